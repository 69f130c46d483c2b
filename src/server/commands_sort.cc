// SORT and SORT_RO: the elements of a list, a set or a sorted set, sorted by themselves or by what
// other keys hold.
//
// Which other keys that are follows from the elements. So the key is read, and then all of them in
// one atomic batch, the key once more among them; if its value has changed in between, it begins
// again (as optimistic_write.h does it, and with its limit of attempts). So what is sorted is of
// one instant. With STORE the last step is a WriteIfUnchanged.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/decimal.h"
#include "server/command_tables.h"
#include "server/optimistic_write.h"
#include "server/transaction.h"
#include "server/type_args.h"
#include "types/collection.h"
#include "types/elements.h"
#include "types/hash_fields.h"
#include "types/value_type.h"

namespace skep {
namespace commands_sort {
namespace {

const Function* const kPush = TypeFunctionNamed("list-push-right");

struct SortArgs {
  std::optional<std::string_view> by;
  std::vector<std::string_view> gets;
  std::optional<std::string_view> destination;
  int64_t start = 0;
  int64_t count = -1;
  bool descends = false;
  bool is_alpha = false;

  // A pattern without a star names no key, and nothing is sorted.
  bool sorts() const { return !by || by->find('*') != std::string_view::npos; }
};

// Returns an error text if the options are wrong, else an empty one.
std::string_view ParseSort(std::span<const std::string_view> options, bool stores, SortArgs& sort) {
  for (size_t i = 0; i < options.size(); ++i) {
    const size_t left = options.size() - i - 1;
    const auto is = [&](std::string_view name) { return EqualsIgnoringCase(options[i], name); };
    if (is("asc") || is("desc")) {
      sort.descends = is("desc");
    } else if (is("alpha")) {
      sort.is_alpha = true;
    } else if (is("limit") && left >= 2) {
      const auto start = ParseInt64(options[++i]);
      const auto count = ParseInt64(options[++i]);
      if (!start || !count) return kNotAnInteger;
      sort.start = *start;
      sort.count = *count;
    } else if (stores && is("store") && left >= 1) {
      sort.destination = options[++i];
    } else if (is("by") && left >= 1) {
      sort.by = options[++i];
    } else if (is("get") && left >= 1) {
      sort.gets.push_back(options[++i]);
    } else {
      return kSyntaxError;
    }
  }
  return {};
}

// What a pattern names for an element: a string, or a field of a hash.
struct Named {
  std::string key;
  std::string_view field;
  uint8_t type() const { return field.empty() ? types::kString : types::kHash; }
};
// Nothing if the pattern has no star.
std::optional<Named> NameOf(std::string_view pattern, std::string_view element) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::nullopt;
  Named named;
  const size_t arrow = pattern.find("->", star + 1);
  std::string_view rest = pattern.substr(star + 1);
  if (arrow != std::string_view::npos && arrow + 2 < pattern.size()) {
    named.field = pattern.substr(arrow + 2);
    rest = pattern.substr(star + 1, arrow - star - 1);
  }
  named.key = pattern.substr(0, star);
  named.key += element;
  named.key += rest;
  return named;
}

// The values that the patterns of a sort name, as they are found in a batch.
class Lookups {
 public:
  Lookups(const SortArgs& sort, std::span<const std::string_view> elements) {
    for (const std::string_view element : elements) {
      if (sort.by && sort.sorts()) Add(*sort.by, element);
      for (const std::string_view get : sort.gets) {
        if (get != "#") Add(get, element);
      }
    }
  }

  size_t size() const { return slots_.size(); }
  // Calls visit(key, type) for each value, in an order that stays.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [name, slot] : slots_) visit(std::string_view(name.first), name.second);
  }
  // The values are the batch's outcomes from this slot on, in the order of ForEach.
  void Found(const Batch& batch, uint32_t slot) {
    batch_ = &batch;
    for (auto& [name, its_slot] : slots_) its_slot = slot++;
  }
  // The text that the pattern names for the element; nothing if there is none.
  std::optional<std::string_view> Find(std::string_view pattern, std::string_view element) const {
    if (pattern == "#") return element;
    const auto named = NameOf(pattern, element);
    if (!named) return std::nullopt;
    const Outcome& out = batch_->outcome(slots_.find(std::pair(named->key, named->type()))->second);
    if (!out.present || out.type != named->type()) return std::nullopt;
    if (named->field.empty()) return out.value;
    const auto fields = types::ReadLiveHash(out.value, batch_->now_ms());
    if (!fields) return std::nullopt;
    const auto at = std::ranges::find(*fields, named->field, &types::HashField::name);
    return at == fields->end() ? std::nullopt : std::optional(at->value);
  }

 private:
  void Add(std::string_view pattern, std::string_view element) {
    if (auto named = NameOf(pattern, element)) {
      slots_.emplace(std::pair(std::move(named->key), named->type()), 0);
    }
  }

  std::map<std::pair<std::string, uint8_t>, uint32_t> slots_;
  const Batch* batch_ = nullptr;
};

struct Item {
  std::string_view element;
  double score = 0;
  std::optional<std::string_view> text;
};

// The number that Redis reads, by strtod, from all of the text; an empty one is 0.
std::optional<double> ScoreOf(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  const double score = std::strtod(copy.c_str(), &end);
  if (*end != '\0' || errno == ERANGE || std::isnan(score)) return std::nullopt;
  return score;
}

bool IsBefore(const SortArgs& sort, const Item& a, const Item& b) {
  if (sort.is_alpha) return sort.descends ? b.text < a.text : a.text < b.text;
  if (a.score != b.score) return sort.descends ? b.score < a.score : a.score < b.score;
  return sort.descends ? b.element < a.element : a.element < b.element;
}

// Sorts the items. Returns an error text if one has no number, else an empty one.
std::string_view SortItems(const SortArgs& sort, const Lookups& lookups, std::vector<Item>& items) {
  for (Item& item : items) {
    item.text = sort.by ? lookups.Find(*sort.by, item.element) : item.element;
    if (sort.is_alpha || !item.text) continue;
    const auto score = ScoreOf(*item.text);
    if (!score) return "ERR One or more scores can't be converted into double";
    item.score = *score;
  }
  std::ranges::stable_sort(items,
                           [&](const Item& a, const Item& b) { return IsBefore(sort, a, b); });
  return {};
}

// The part of `size` items that LIMIT wants.
std::span<const Item> Limited(const SortArgs& sort, std::span<const Item> items) {
  const auto size = static_cast<int64_t>(items.size());
  const int64_t start = std::clamp<int64_t>(sort.start, 0, size);
  const int64_t count = sort.count < 0 ? size - start : std::min(sort.count, size - start);
  return items.subspan(static_cast<size_t>(start), static_cast<size_t>(count));
}

using Answer = std::vector<std::optional<std::string_view>>;

// The elements of the key, of which the batch has read the type and the value, sorted. `lookups`
// knows the outcomes of the other keys. Returns an error text, or an empty one.
std::string_view Sort(SortArgs sort, uint8_t type, std::span<const std::string_view> elements,
                      const Lookups& lookups, Answer& answer) {
  std::vector<Item> items;
  for (const std::string_view element : elements) items.push_back({.element = element, .text = {}});
  // What is stored of a set has an order in any case.
  if (!sort.sorts() && type == types::kSet && sort.destination) {
    sort.by.reset();
    sort.is_alpha = true;
  }
  if (sort.sorts()) {
    if (const auto error = SortItems(sort, lookups, items); !error.empty()) return error;
  } else if (sort.descends && type != types::kSet) {
    std::ranges::reverse(items);
  }
  for (const Item& item : Limited(sort, items)) {
    if (sort.gets.empty()) answer.emplace_back(item.element);
    for (const std::string_view get : sort.gets) answer.push_back(lookups.Find(get, item.element));
  }
  return {};
}

bool IsSortable(const Outcome& out) {
  return !out.present || out.type == types::kList || out.type == types::kSet ||
         out.type == types::kSortedSet;
}

// A key's value as it was read first, and its elements.
struct Source {
  uint8_t type = types::kList;
  std::string value;
  std::vector<std::string_view> elements;

  bool IsSame(const Outcome& out) const {
    return out.present ? out.type == type && out.value == value : value.empty();
  }
};

// Adds GETs of the key, a slot for each type that has elements; returns the first.
uint32_t AddGets(Batch& batch, std::string_view key) {
  const auto first = static_cast<uint32_t>(batch.size());
  for (const uint8_t type : {types::kList, types::kSet, types::kSortedSet}) {
    batch.Add({.op = Op::kGet, .flags = Request::kIfOfType, .type = type, .key = key, .other = {}});
  }
  return first;
}
// The outcome of the slot that has found the value, or the first one's.
const Outcome& FoundBy(const Batch& batch, uint32_t first) {
  for (uint32_t slot = first; slot < first + 3; ++slot) {
    const Outcome& out = batch.outcome(slot);
    if (out.present && out.type == batch.requests()[slot].type) return out;
  }
  return batch.outcome(first);
}

// Reads the key. False, with the error sent, if it cannot be sorted.
bool ReadSource(const ServerCall& call, Source& source) {
  Batch read(Batch::Kind::kAtomic);
  AddGets(read, call.arg(1));
  call.Execute(read);
  if (call.Refused(read)) return false;
  const Outcome& out = FoundBy(read, 0);
  if (!IsSortable(out)) {
    call.Error(kWrongType);
    return false;
  }
  if (!out.present) return true;
  source.type = out.type;
  source.value = out.value;
  auto elements = types::ReadElements(source.type, source.value);
  if (!elements) {
    call.Error(types::kNoCollection);
    return false;
  }
  source.elements = std::move(*elements);
  return true;
}

void ReplyAnswer(const Call& call, const Answer& answer) {
  RespWriter reply = call.reply();
  reply.Array(answer.size());
  for (const auto& text : answer) text ? reply.Bulk(*text) : reply.Null();
}

// The attempts: true if the command has replied, false if the key has changed meanwhile.

bool ReplySorted(const ServerCall& call, const SortArgs& sort) {
  Source source;
  if (!ReadSource(call, source)) return true;
  Lookups lookups(sort, source.elements);
  Batch read(Batch::Kind::kAtomic);
  const uint32_t first = AddGets(read, call.arg(1));
  const auto looked_up = static_cast<uint32_t>(read.size());
  lookups.ForEach([&](std::string_view key, uint8_t type) {
    read.Add({.op = Op::kGet, .flags = Request::kIfOfType, .type = type, .key = key, .other = {}});
  });
  call.Execute(read);
  if (call.Refused(read)) return true;
  if (!source.IsSame(FoundBy(read, first))) return false;
  lookups.Found(read, looked_up);
  Answer answer;
  const auto error = Sort(sort, source.type, source.elements, lookups, answer);
  error.empty() ? ReplyAnswer(call, answer) : call.Error(error);
  return true;
}

bool StoreSorted(const ServerCall& call, const SortArgs& sort) {
  Source source;
  if (!ReadSource(call, source)) return true;
  Lookups lookups(sort, source.elements);
  if (lookups.size() >= kWatchesMax) {
    call.Error("ERR SORT with STORE can look at 16384 keys at most");
    return true;
  }
  std::vector<std::string_view> keys = {call.arg(1)};
  lookups.ForEach([&](std::string_view key, uint8_t) { keys.push_back(key); });
  bool has_changed = false;
  std::string_view error;
  size_t stored = 0;
  const auto make = [&](const Batch& read, Batch& write) {
    has_changed = !source.IsSame(read.outcome(0));
    if (has_changed) return;
    lookups.Found(read, 1);
    Answer answer;
    error = Sort(sort, source.type, source.elements, lookups, answer);
    if (!error.empty()) return;
    stored = answer.size();
    write.Delete(*sort.destination);
    if (answer.empty()) return;
    std::vector<std::string_view> texts;
    for (const auto& text : answer) texts.push_back(text.value_or(std::string_view()));
    write.Apply(*sort.destination, kPush, types::JoinTexts(texts, write.scratch()));
  };
  Batch write(Batch::Kind::kAtomic);
  if (!WriteIfUnchanged(call, keys, ValuesOf::kAnyTypes, make, write)) return true;
  if (has_changed) return false;
  error.empty() ? call.reply().Integer(static_cast<int64_t>(stored)) : call.Error(error);
  return true;
}

void RunSort(const ServerCall& call) {
  SortArgs sort;
  const bool stores = call.command().name == "sort";
  if (const auto error = ParseSort(call.args().subspan(2), stores, sort); !error.empty()) {
    return call.Error(error);
  }
  for (int attempt = 0; attempt < kOptimisticAttemptsMax; ++attempt) {
    if (sort.destination ? StoreSorted(call, sort) : ReplySorted(call, sort)) return;
  }
  call.Error(kWrittenAllTheTime);
}

using enum Command::Flag;

constexpr Command kCommands[] = {
    {"sort", -2, kWrite | kStores | kReadsFirst | kWhole, 1, 1, 1, "generic", "1.0.0",
     "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] "
     "[STORE destination]",
     "Sorts the elements of a list, a set or a sorted set, and may store them.", nullptr, nullptr,
     RunSort},
    {"sort_ro", -2, kReadOnly | kRange | kReadsFirst | kWhole, 1, 1, 1, "generic", "7.0.0",
     "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]",
     "Sorts the elements of a list, a set or a sorted set.", nullptr, nullptr, RunSort},
};

}  // namespace
}  // namespace commands_sort

std::span<const Command> SortCommands() { return commands_sort::kCommands; }

}  // namespace skep
