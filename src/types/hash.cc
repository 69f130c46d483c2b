#include "types/hash.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/float_text.h"
#include "types/collection.h"
#include "types/function_table.h"
#include "types/hash_fields.h"
#include "types/short_texts.h"

namespace skep::types {
namespace {

// The places of fields among the strings of a hash.
class FieldIndex {
 public:
  // `lookups`: how many are to come.
  FieldIndex(const Texts& texts, size_t lookups) : texts_(texts), has_table_(lookups > kFewFields) {
    if (!has_table_) return;
    table_.reserve(texts.size() / 2 + lookups);
    for (size_t i = 0; i < texts.size(); i += 2) table_.emplace(texts[i], i);
  }
  // The place of the field, or texts.size().
  size_t Find(std::string_view field) const {
    if (has_table_) {
      const auto at = table_.find(field);
      return at == table_.end() ? texts_.size() : at->second;
    }
    size_t at = 0;
    while (at < texts_.size() && texts_[at] != field) at += 2;
    return at;
  }
  // A field was added at this place.
  void Add(size_t at) {
    if (has_table_) table_.emplace(texts_[at], at);
  }

 private:
  const Texts& texts_;
  const bool has_table_;
  std::unordered_map<std::string_view, size_t> table_;
};

// Goes through the fields of a hash without a list of them.
class FieldReader {
 public:
  explicit FieldReader(const Counted& hash) : rest_(hash.body), left_(hash.members) {}
  // The value of the field; nothing if there is none, or the bytes are wrong (is_bad).
  std::optional<std::string_view> Find(std::string_view wanted) {
    for (; left_ > 0; --left_) {
      const size_t name = ShortTextBytes(rest_);
      const std::string_view behind = Behind(rest_, name);
      const size_t value = name == 0 ? 0 : ShortTextBytes(behind);
      if (value != 0) [[likely]] {
        if (AreEqual(ShortText(rest_, name), wanted)) return ShortText(behind, value);
        rest_ = Behind(behind, value);
        continue;
      }
      std::string_view long_field;
      std::string_view long_value;
      if (!TakeText(rest_, &long_field) || !TakeText(rest_, &long_value)) {
        is_bad_ = true;
        return std::nullopt;
      }
      if (long_field == wanted) return long_value;
    }
    return std::nullopt;
  }
  bool is_bad() const { return is_bad_; }

 private:
  std::string_view rest_;
  uint64_t left_;
  bool is_bad_ = false;
};

FunctionEffect StoreFields(const Texts& texts, int64_t integer, Scratch& scratch) {
  return Stored(WriteTexts(texts, 2, scratch), texts.size(), integer);
}

// Sets one field: the bytes before its value, or before the end, and behind it are copied as they
// are.
FunctionEffect SetField(const FunctionInput& input, std::string_view field,
                        std::string_view value) {
  const auto hash = ReadCounted(input.value);
  if (!hash) return Failure(kNoCollection);
  std::string_view rest = hash->body;
  std::string_view before = rest;
  std::string_view behind;
  bool is_there = false;
  for (uint64_t i = 0; i < hash->members; ++i) {
    std::string_view name;
    std::string_view old;
    if (!TakeText(rest, &name)) return Failure(kNoCollection);
    const size_t at = hash->body.size() - rest.size();
    if (!TakeText(rest, &old)) return Failure(kNoCollection);
    if (is_there || name != field) continue;
    is_there = true;
    before = hash->body.substr(0, at);
    behind = rest;
  }
  if (!rest.empty()) return Failure(kNoCollection);
  const size_t fields = hash->members + (is_there ? 0 : 1);
  TextWriter writer(*input.scratch, VarintBytes(fields) + before.size() + TextBytes(field) +
                                        TextBytes(value) + behind.size());
  writer.Number(fields);
  writer.Bytes(before);
  if (!is_there) writer.Text(field);
  writer.Text(value);
  writer.Bytes(behind);
  return Stored(writer.bytes(), fields, is_there ? 0 : 1);
}

FunctionEffect SetFields(const FunctionInput& input) {
  std::string_view rest = input.operand;
  std::string_view field;
  std::string_view value;
  if (TakeText(rest, &field) && TakeText(rest, &value) && rest.empty()) {
    return SetField(input, field, value);
  }
  Texts pairs;
  if (!TakeTexts(input.operand, &pairs) || pairs.empty() || pairs.size() % 2 != 0) {
    return Failure(kBadOperand);
  }
  auto texts = ReadTexts(input.value, 2);
  if (!texts) return Failure(kNoCollection);
  FieldIndex index(*texts, pairs.size() / 2);
  int64_t added = 0;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const size_t at = index.Find(pairs[i]);
    if (at < texts->size()) {
      (*texts)[at + 1] = pairs[i + 1];
      continue;
    }
    texts->push_back(pairs[i]);
    texts->push_back(pairs[i + 1]);
    index.Add(at);
    ++added;
  }
  return StoreFields(*texts, added, *input.scratch);
}

FunctionEffect SetNewField(const FunctionInput& input) {
  Texts pair;
  if (!TakeTexts(input.operand, &pair) || pair.size() != 2) return Failure(kBadOperand);
  const auto hash = ReadCounted(input.value);
  if (!hash) return Failure(kNoCollection);
  FieldReader reader(*hash);
  if (reader.Find(pair[0])) return Number(0);
  return reader.is_bad() ? Failure(kNoCollection) : SetFields(input);
}

FunctionEffect GetField(const FunctionInput& input, std::string_view field) {
  const auto hash = ReadCounted(input.value);
  if (!hash) return Failure(kNoCollection);
  FieldReader reader(*hash);
  const auto value = reader.Find(field);
  if (reader.is_bad()) return Failure(kNoCollection);
  TextWriter writer(*input.scratch, value ? TextBytes(*value) : 1);
  value ? writer.Text(*value) : writer.NoText();
  return {.returned = writer.bytes()};
}

FunctionEffect GetFields(const FunctionInput& input) {
  if (const auto only = OnlyText(input.operand)) return GetField(input, *only);
  Texts fields;
  if (!TakeTexts(input.operand, &fields)) return Failure(kBadOperand);
  std::vector<std::optional<std::string_view>> values;
  values.reserve(fields.size());
  if (fields.size() > kFewFields) {
    const auto texts = ReadTexts(input.value, 2);
    if (!texts) return Failure(kNoCollection);
    const FieldIndex index(*texts, fields.size());
    for (const std::string_view field : fields) {
      const size_t at = index.Find(field);
      values.push_back(at < texts->size() ? std::optional((*texts)[at + 1]) : std::nullopt);
    }
  } else {
    const auto hash = ReadCounted(input.value);
    if (!hash) return Failure(kNoCollection);
    for (const std::string_view field : fields) {
      FieldReader reader(*hash);
      values.push_back(reader.Find(field));
      if (reader.is_bad()) return Failure(kNoCollection);
    }
  }
  size_t bytes = 0;
  for (const auto& value : values) bytes += value ? TextBytes(*value) : 1;
  TextWriter writer(*input.scratch, bytes);
  for (const auto& value : values) value ? writer.Text(*value) : writer.NoText();
  return {.returned = writer.bytes()};
}

FunctionEffect HashLength(const FunctionInput& input) {
  const auto hash = ReadCounted(input.value);
  return hash ? Number(static_cast<int64_t>(hash->members)) : Failure(kNoCollection);
}

FunctionEffect FieldValueBytes(const FunctionInput& input) {
  const auto field = OnlyText(input.operand);
  if (!field) return Failure(kBadOperand);
  const auto hash = ReadCounted(input.value);
  if (!hash) return Failure(kNoCollection);
  FieldReader reader(*hash);
  const auto value = reader.Find(*field);
  if (reader.is_bad()) return Failure(kNoCollection);
  return Number(value ? static_cast<int64_t>(value->size()) : -1);
}

FunctionEffect AllFields(const FunctionInput& input) {
  const auto hash = ReadCounted(input.value);
  if (!hash) return Failure(kNoCollection);
  return {.returned = hash->body, .integer = static_cast<int64_t>(hash->members)};
}

FunctionEffect DeleteFields(const FunctionInput& input) {
  Texts fields;
  if (!TakeTexts(input.operand, &fields)) return Failure(kBadOperand);
  const auto texts = ReadTexts(input.value, 2);
  if (!texts) return Failure(kNoCollection);
  const FieldIndex index(*texts, fields.size());
  std::vector<bool> gone(texts->size() / 2);
  int64_t deleted = 0;
  for (const std::string_view field : fields) {
    const size_t at = index.Find(field);
    if (at == texts->size() || gone[at / 2]) continue;
    gone[at / 2] = true;
    ++deleted;
  }
  if (deleted == 0) return Number(0);
  Texts left;
  left.reserve(texts->size());
  for (size_t i = 0; i < texts->size(); i += 2) {
    if (gone[i / 2]) continue;
    left.push_back((*texts)[i]);
    left.push_back((*texts)[i + 1]);
  }
  return StoreFields(left, deleted, *input.scratch);
}

// Stores what `add` makes of the value of the operand's field and of the operand's second string.
template <typename Add>
FunctionEffect ChangeField(const FunctionInput& input, Add add) {
  Texts operand;
  if (!TakeTexts(input.operand, &operand) || operand.size() != 2) return Failure(kBadOperand);
  auto texts = ReadTexts(input.value, 2);
  if (!texts) return Failure(kNoCollection);
  const FieldIndex index(*texts, 1);
  const size_t at = index.Find(operand[0]);
  const bool is_new = at == texts->size();
  FunctionEffect made = add(is_new ? std::nullopt : std::optional((*texts)[at + 1]), operand[1]);
  if (!made.status.ok()) return made;
  if (is_new) {
    texts->push_back(operand[0]);
    texts->push_back(made.returned);
  } else {
    (*texts)[at + 1] = made.returned;
  }
  FunctionEffect effect = StoreFields(*texts, made.integer, *input.scratch);
  effect.returned = made.returned;
  return effect;
}

FunctionEffect AddToInteger(const FunctionInput& input) {
  return ChangeField(input, [&](std::optional<std::string_view> value, std::string_view by) {
    const auto now = value ? ParseInt64(*value) : 0;
    const auto delta = ParseInt64(by);
    if (!delta) return Failure(kBadOperand);
    if (!now) return Failure("hash value is not an integer");
    int64_t sum = 0;
    if (__builtin_add_overflow(*now, *delta, &sum)) {
      return Failure("increment or decrement would overflow");
    }
    char* const at = input.scratch->Allocate(kDecimalBytesMax);
    return FunctionEffect{.returned = {at, static_cast<size_t>(WriteDecimal(at, sum) - at)},
                          .integer = sum};
  });
}

FunctionEffect AddToFloat(const FunctionInput& input) {
  return ChangeField(input, [&](std::optional<std::string_view> value, std::string_view by) {
    const auto now = value ? ParseLongDouble(*value) : 0;
    const auto delta = ParseLongDouble(by);
    if (!delta || std::isinf(*delta)) return Failure(kBadOperand);
    if (!now) return Failure("hash value is not a float");
    const long double sum = *now + *delta;
    if (std::isnan(sum) || std::isinf(sum)) {
      return Failure("increment would produce NaN or Infinity");
    }
    return FunctionEffect{.returned = input.scratch->Copy(TextOf(sum))};
  });
}

FunctionEffect DrawFields(const FunctionInput& input) {
  const auto request = ReadDrawRequest(input.operand);
  if (!request) return Failure(kBadOperand);
  const auto texts = ReadTexts(input.value, 2);
  if (!texts) return Failure(kNoCollection);
  if (texts->empty()) return {};
  const auto indexes = DrawIndexesToRead(texts->size() / 2, *request);
  if (!indexes) return Failure(kTooManyDraws);
  size_t bytes = 0;
  for (const size_t i : *indexes)
    bytes += TextBytes((*texts)[2 * i]) + TextBytes((*texts)[2 * i + 1]);
  if (bytes > input.value_bytes_max) {
    return Failure(Status(Code::kTooLarge, kDrawnTooLarge, input.value_bytes_max));
  }
  TextWriter writer(*input.scratch, bytes);
  for (const size_t i : *indexes) {
    writer.Text((*texts)[2 * i]);
    writer.Text((*texts)[2 * i + 1]);
  }
  return {.returned = writer.bytes()};
}

FunctionEffect ScanFields(const FunctionInput& input) {
  const auto found = ReadCounted(input.value);
  return found ? WholeMemberScan(input, found->body) : Failure(kNoCollection);
}

// The function on a hash of either form (hash_fields.h).
template <FunctionEffect (*kPlain)(const FunctionInput&), bool kTakesDeadlines = false>
FunctionEffect OnHash(const FunctionInput& input) {
  if (input.value && HasDeadlineForm(*input.value)) [[unlikely]] {
    return RunOnLiveFields(input, kPlain, kTakesDeadlines);
  }
  return kPlain(input);
}

constexpr TypeFunction kHashFunctions[] = {
    {"hash-set", OnHash<SetFields, true>, kHash},
    {"hash-set-new", OnHash<SetNewField>, kHash},
    {"hash-get", OnHash<GetFields>, kHash, true},
    {"hash-length", OnHash<HashLength>, kHash, true},
    {"hash-value-bytes", OnHash<FieldValueBytes>, kHash, true},
    {"hash-all", OnHash<AllFields>, kHash, true},
    {"hash-delete", OnHash<DeleteFields>, kHash},
    {"hash-add", OnHash<AddToInteger>, kHash},
    {"hash-add-float", OnHash<AddToFloat>, kHash},
    {"hash-scan", OnHash<ScanFields>, kHash, true},
    {"hash-draw", OnHash<DrawFields>, kHash, true},
};

}  // namespace

std::span<const TypeFunction> HashFunctions() { return kHashFunctions; }

}  // namespace skep::types
