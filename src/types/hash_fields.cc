#include "types/hash_fields.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "types/collection.h"
#include "types/hash.h"

namespace skep::types {
namespace {

constexpr size_t kDeadlineBytes = 1 + sizeof(uint64_t);

size_t FieldBytes(const HashField& field) {
  return (field.deadline_ms == 0 ? 0 : kDeadlineBytes) + TextBytes(field.name) +
         TextBytes(field.value);
}

std::string_view BytesOfNumber(const uint64_t& number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

// Stores the fields, or erases the hash if there are none.
FunctionEffect Replace(const HashFields& fields, int64_t integer, Scratch& scratch) {
  return Stored(WriteHash(fields, scratch), fields.size(), integer);
}

// The places of fields by their names.
class FieldPlaces {
 public:
  FieldPlaces(const HashFields& fields, size_t lookups)
      : fields_(fields), has_table_(lookups > kFewFields) {
    if (!has_table_) return;
    table_.reserve(fields.size() + lookups);
    for (size_t i = 0; i < fields.size(); ++i) table_.emplace(fields[i].name, i);
  }
  // The place of the field, or the number of fields.
  size_t Find(std::string_view name) const {
    if (has_table_) {
      const auto at = table_.find(name);
      return at == table_.end() ? fields_.size() : at->second;
    }
    return static_cast<size_t>(std::ranges::find(fields_, name, &HashField::name) -
                               fields_.begin());
  }
  // The last field was added a moment ago.
  void NoteAdded() {
    if (has_table_) table_.emplace(fields_.back().name, fields_.size() - 1);
  }

 private:
  const HashFields& fields_;
  const bool has_table_;
  std::unordered_map<std::string_view, size_t> table_;
};

// The operand and the fields of a function about deadlines.
struct Work {
  FieldDeadline deadline;
  Texts words;
  HashFields fields;  // that are not due
};

// Reads what the function works on. With `has_deadline` the operand begins with a FieldDeadline.
// Returns an error, or kOk.
Status ReadWork(const FunctionInput& input, bool has_deadline, Work* work) {
  std::string_view operand = input.operand;
  if (has_deadline) {
    if (operand.size() < FieldDeadline::kBytes) return kBadOperand;
    work->deadline.when = static_cast<uint8_t>(operand.front());
    std::memcpy(&work->deadline.deadline_ms, operand.data() + 1, sizeof(uint64_t));
    operand.remove_prefix(FieldDeadline::kBytes);
  }
  if (!TakeTexts(operand, &work->words)) return kBadOperand;
  auto fields = ReadLiveHash(input.value, input.now_ms);
  if (!fields) return kNoCollection;
  work->fields = std::move(*fields);
  return {};
}

// Takes fields out that were marked so.
void RemoveMarked(const std::vector<bool>& marked, HashFields& fields) {
  size_t kept = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!marked[i]) fields[kept++] = fields[i];
  }
  fields.resize(kept);
}

std::string_view WriteNumbers(const std::vector<int64_t>& numbers, Scratch& scratch) {
  return scratch.Copy(
      {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)});
}

bool MayExpire(const HashField& field, const FieldDeadline& deadline) {
  const auto needs = [&](FieldDeadline::When when) { return (deadline.when & when) != 0; };
  const bool has_one = field.deadline_ms != 0;
  if (needs(FieldDeadline::kHasNone) && has_one) return false;
  if (needs(FieldDeadline::kHasOne) && !has_one) return false;
  if (needs(FieldDeadline::kLater) && (!has_one || deadline.deadline_ms <= field.deadline_ms)) {
    return false;
  }
  return !needs(FieldDeadline::kEarlier) || !has_one || deadline.deadline_ms < field.deadline_ms;
}

FunctionEffect ExpireFields(const FunctionInput& input) {
  Work work;
  if (const Status s = ReadWork(input, true, &work); !s.ok()) return Failure(s);
  const uint64_t deadline_ms = work.deadline.deadline_ms;
  if (deadline_ms == 0) return Failure(kBadOperand);
  const FieldPlaces places(work.fields, work.words.size());
  std::vector<bool> gone(work.fields.size());
  std::vector<int64_t> answers;
  int64_t changed = 0;
  for (const std::string_view name : work.words) {
    const size_t at = places.Find(name);
    if (at == work.fields.size() || gone[at]) {
      answers.push_back(kNoField);
    } else if (!MayExpire(work.fields[at], work.deadline)) {
      answers.push_back(kConditionNotMet);
    } else {
      ++changed;
      gone[at] = deadline_ms <= input.now_ms;
      answers.push_back(gone[at] ? kFieldDeleted : kDeadlineChanged);
      work.fields[at].deadline_ms = deadline_ms;
    }
  }
  FunctionEffect effect = Number(0);
  if (changed > 0) {
    RemoveMarked(gone, work.fields);
    effect = Replace(work.fields, changed, *input.scratch);
  }
  if (effect.status.ok()) effect.returned = WriteNumbers(answers, *input.scratch);
  return effect;
}

FunctionEffect TellDeadlines(const FunctionInput& input) {
  Work work;
  if (const Status s = ReadWork(input, false, &work); !s.ok()) return Failure(s);
  const FieldPlaces places(work.fields, work.words.size());
  std::vector<int64_t> answers;
  for (const std::string_view name : work.words) {
    const size_t at = places.Find(name);
    const bool is_there = at < work.fields.size();
    const uint64_t deadline_ms = is_there ? work.fields[at].deadline_ms : 0;
    answers.push_back(!is_there          ? kNoField
                      : deadline_ms == 0 ? kNoDeadline
                                         : static_cast<int64_t>(deadline_ms));
  }
  return {.returned = WriteNumbers(answers, *input.scratch)};
}

FunctionEffect PersistFields(const FunctionInput& input) {
  Work work;
  if (const Status s = ReadWork(input, false, &work); !s.ok()) return Failure(s);
  const FieldPlaces places(work.fields, work.words.size());
  std::vector<int64_t> answers;
  int64_t changed = 0;
  for (const std::string_view name : work.words) {
    const size_t at = places.Find(name);
    if (at == work.fields.size()) {
      answers.push_back(kNoField);
    } else if (work.fields[at].deadline_ms == 0) {
      answers.push_back(kNoDeadline);
    } else {
      work.fields[at].deadline_ms = 0;
      answers.push_back(kDeadlineChanged);
      ++changed;
    }
  }
  FunctionEffect effect = changed > 0 ? Replace(work.fields, changed, *input.scratch) : Number(0);
  if (effect.status.ok()) effect.returned = WriteNumbers(answers, *input.scratch);
  return effect;
}

// Returns the values of fields, which change(field, at) may change after that: it returns whether
// it has. Fields of which gone[at] is true are removed.
template <typename Change>
FunctionEffect GetAndChange(const FunctionInput& input, Work& work, std::vector<bool>& gone,
                            Change change) {
  const FieldPlaces places(work.fields, work.words.size());
  std::vector<std::optional<std::string_view>> values;
  int64_t changed = 0;
  size_t bytes = 0;
  for (const std::string_view name : work.words) {
    const size_t at = places.Find(name);
    const bool is_there = at < work.fields.size() && !gone[at];
    values.push_back(is_there ? std::optional(work.fields[at].value) : std::nullopt);
    bytes += is_there ? TextBytes(*values.back()) : 1;
    if (is_there && change(work.fields[at], at)) ++changed;
  }
  FunctionEffect effect = Number(0);
  if (changed > 0) {
    RemoveMarked(gone, work.fields);
    effect = Replace(work.fields, changed, *input.scratch);
    if (!effect.status.ok()) return effect;
  }
  TextWriter writer(*input.scratch, bytes);
  for (const auto& value : values) value ? writer.Text(*value) : writer.NoText();
  effect.returned = writer.bytes();
  return effect;
}

FunctionEffect TakeFields(const FunctionInput& input) {
  Work work;
  if (const Status s = ReadWork(input, false, &work); !s.ok()) return Failure(s);
  std::vector<bool> gone(work.fields.size());
  return GetAndChange(input, work, gone, [&](HashField&, size_t at) { return gone[at] = true; });
}

FunctionEffect GetFieldsUntil(const FunctionInput& input) {
  Work work;
  if (const Status s = ReadWork(input, true, &work); !s.ok()) return Failure(s);
  const uint64_t deadline_ms = work.deadline.deadline_ms;
  std::vector<bool> gone(work.fields.size());
  return GetAndChange(input, work, gone, [&](HashField& field, size_t at) {
    if (deadline_ms == 0 && field.deadline_ms == 0) return false;
    field.deadline_ms = deadline_ms;
    gone[at] = field.IsDue(input.now_ms);
    return true;
  });
}

FunctionEffect SetFieldsUntil(const FunctionInput& input) {
  Work work;
  if (const Status s = ReadWork(input, true, &work); !s.ok()) return Failure(s);
  if (work.words.empty() || work.words.size() % 2 != 0) return Failure(kBadOperand);
  const auto needs = [&](FieldDeadline::When when) { return (work.deadline.when & when) != 0; };
  const size_t before = work.fields.size();
  FieldPlaces places(work.fields, work.words.size() / 2);
  for (size_t i = 0; i < work.words.size(); i += 2) {
    const bool is_there = places.Find(work.words[i]) < before;
    if (is_there ? needs(FieldDeadline::kNoneThere) : needs(FieldDeadline::kAllThere)) {
      return Number(0);
    }
  }
  for (size_t i = 0; i < work.words.size(); i += 2) {
    const size_t at = places.Find(work.words[i]);
    if (at == work.fields.size()) {
      work.fields.push_back({.name = work.words[i], .value = {}});
      places.NoteAdded();
    }
    HashField& field = work.fields[at];
    field.value = work.words[i + 1];
    if (!needs(FieldDeadline::kKeeps)) field.deadline_ms = work.deadline.deadline_ms;
  }
  std::erase_if(work.fields, [&](const HashField& field) { return field.IsDue(input.now_ms); });
  return Replace(work.fields, 1, *input.scratch);
}

FunctionEffect DropDueFields(const FunctionInput& input) {
  Texts names;
  if (!TakeTexts(input.operand, &names)) return Failure(kBadOperand);
  auto fields = ReadHash(input.value);
  if (!fields) return Failure(kNoCollection);
  const size_t before = fields->size();
  std::erase_if(*fields, [&](const HashField& field) { return field.IsDue(input.now_ms); });
  int64_t next = 0;  // the earliest deadline that is left
  for (const HashField& field : *fields) {
    const auto deadline_ms = static_cast<int64_t>(field.deadline_ms);
    if (deadline_ms != 0 && (next == 0 || deadline_ms < next)) next = deadline_ms;
  }
  return fields->size() == before ? Number(next) : Replace(*fields, next, *input.scratch);
}

constexpr TypeFunction kHashDeadlineFunctions[] = {
    {"hash-expire", ExpireFields, kHash},      {"hash-deadlines", TellDeadlines, kHash, true},
    {"hash-persist", PersistFields, kHash},    {"hash-take", TakeFields, kHash},
    {"hash-get-until", GetFieldsUntil, kHash}, {"hash-set-until", SetFieldsUntil, kHash},
    {"hash-drop-due", DropDueFields, kHash},
};

}  // namespace

bool TakeFieldDeadline(std::string_view& from, uint64_t* deadline_ms) {
  if (from.size() < kDeadlineBytes || !HasDeadlineForm(from)) return false;
  std::memcpy(deadline_ms, from.data() + 1, sizeof(*deadline_ms));
  from.remove_prefix(kDeadlineBytes);
  return *deadline_ms != 0;
}

bool TakeHashField(std::string_view& from, HashField* field) {
  field->deadline_ms = 0;
  if (HasDeadlineForm(from) && !TakeFieldDeadline(from, &field->deadline_ms)) return false;
  return TakeText(from, &field->name) && TakeText(from, &field->value);
}

std::optional<HashFields> ReadHash(const std::optional<std::string_view>& value) {
  HashFields fields;
  if (!value) return fields;
  std::string_view plain = *value;
  if (HasDeadlineForm(plain)) plain.remove_prefix(1);
  const auto counted = ReadCounted(plain);
  if (!counted) return std::nullopt;
  fields.resize(counted->members);
  std::string_view rest = counted->body;
  for (HashField& field : fields) {
    if (!TakeHashField(rest, &field)) return std::nullopt;
  }
  return rest.empty() ? std::optional(std::move(fields)) : std::nullopt;
}

std::optional<HashFields> ReadLiveHash(const std::optional<std::string_view>& value,
                                       uint64_t now_ms) {
  auto fields = ReadHash(value);
  if (fields) std::erase_if(*fields, [&](const HashField& field) { return field.IsDue(now_ms); });
  return fields;
}

std::string_view WriteHash(std::span<const HashField> fields, Scratch& scratch) {
  const bool has_deadlines =
      std::ranges::any_of(fields, [](const HashField& field) { return field.deadline_ms != 0; });
  size_t bytes = VarintBytes(fields.size()) + (has_deadlines ? 1 : 0);
  for (const HashField& field : fields) bytes += FieldBytes(field);
  TextWriter writer(scratch, bytes);
  if (has_deadlines) writer.Number(0);
  writer.Number(fields.size());
  for (const HashField& field : fields) {
    if (field.deadline_ms != 0) {
      writer.Number(0);
      writer.Bytes(BytesOfNumber(field.deadline_ms));
    }
    writer.Text(field.name);
    writer.Text(field.value);
  }
  return writer.bytes();
}

FunctionEffect RunOnLiveFields(const FunctionInput& input, FunctionBody plain,
                               bool takes_deadlines) {
  const auto fields = ReadLiveHash(input.value, input.now_ms);
  if (!fields) return Failure(kNoCollection);
  HashFields without = *fields;
  for (HashField& field : without) field.deadline_ms = 0;
  FunctionInput plain_input = input;
  plain_input.value.reset();
  if (!without.empty()) plain_input.value = WriteHash(without, *input.scratch);
  const FunctionEffect effect = plain(plain_input);
  if (!effect.status.ok() || effect.action != FunctionEffect::Action::kReplace) return effect;
  auto after = ReadHash(effect.value);
  if (!after) return Failure(kNoCollection);
  std::unordered_map<std::string_view, uint64_t> deadlines;
  for (const HashField& field : *fields) {
    if (field.deadline_ms != 0) deadlines.emplace(field.name, field.deadline_ms);
  }
  Texts words;
  if (takes_deadlines && TakeTexts(input.operand, &words)) {
    for (size_t i = 0; i < words.size(); i += 2) deadlines.erase(words[i]);
  }
  for (HashField& field : *after) {
    const auto at = deadlines.find(field.name);
    if (at != deadlines.end()) field.deadline_ms = at->second;
  }
  FunctionEffect dated = Replace(*after, effect.integer, *input.scratch);
  if (dated.status.ok()) dated.returned = effect.returned;
  return dated;
}

std::string_view WriteFieldDeadline(const FieldDeadline& deadline, std::string_view rest,
                                    Scratch& scratch) {
  TextWriter writer(scratch, FieldDeadline::kBytes + rest.size());
  writer.Bytes({reinterpret_cast<const char*>(&deadline.when), 1});
  writer.Bytes(BytesOfNumber(deadline.deadline_ms));
  writer.Bytes(rest);
  return writer.bytes();
}

std::span<const TypeFunction> HashDeadlineFunctions() { return kHashDeadlineFunctions; }

}  // namespace skep::types
