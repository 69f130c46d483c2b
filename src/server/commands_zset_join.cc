// Unions, intersections and differences of sorted sets, of which some may be sets. What they read
// is joined here (types/sorted_set_join.h): a function at the data sees values of one type only.
#include <algorithm>
#include <optional>
#include <string>

#include "base/ascii.h"
#include "base/decimal.h"
#include "base/float_text.h"
#include "server/command_tables.h"
#include "server/optimistic_write.h"
#include "server/type_args.h"
#include "server/zset_replies.h"
#include "types/elements.h"
#include "types/sorted_set_join.h"
#include "types/value_type.h"

namespace skep {
namespace commands_zset_join {
namespace {

using types::Join;

struct Shape {
  Join join;
  bool stores = false;
  bool counts = false;  // ZINTERCARD
};

struct JoinArgs {
  std::span<const std::string_view> keys;
  std::vector<double> weights;
  types::Aggregate aggregate = types::Aggregate::kSum;
  bool with_scores = false;
  int64_t limit = 0;  // 0: none
};

// Where numkeys stands.
constexpr size_t CountAt(const Shape& shape) { return shape.stores ? 2 : 1; }

// Reads the keys. Returns an error text if there are none, else an empty one.
std::string_view ParseKeys(const Call& call, const Shape& shape, Scratch& scratch, JoinArgs& join) {
  const auto args = call.args();
  const size_t at = CountAt(shape);
  const auto count = ParseInt64(args[at]);
  if (!count) return kNotAnInteger;
  if (*count < 1) {
    return scratch.Concat(
        scratch.Concat("ERR at least 1 input key is needed for '", call.command().name),
        "' command");
  }
  if (static_cast<uint64_t>(*count) > args.size() - at - 1) return kSyntaxError;
  join.keys = args.subspan(at + 1, static_cast<size_t>(*count));
  return {};
}

std::string_view ParseAggregate(std::string_view word, types::Aggregate* aggregate) {
  constexpr std::pair<std::string_view, types::Aggregate> kNames[] = {
      {"sum", types::Aggregate::kSum},
      {"min", types::Aggregate::kMin},
      {"max", types::Aggregate::kMax}};
  for (const auto& [name, value] : kNames) {
    if (!EqualsIgnoringCase(word, name)) continue;
    *aggregate = value;
    return {};
  }
  return kSyntaxError;
}

// Reads the options behind the keys. Returns an error text if they are wrong, else an empty one.
std::string_view ParseOptions(std::span<const std::string_view> options, const Shape& shape,
                              JoinArgs& join) {
  const bool weighs = shape.join != Join::kDifference && !shape.counts;
  for (size_t i = 0; i < options.size(); ++i) {
    const size_t left = options.size() - i;
    if (weighs && left > join.keys.size() && EqualsIgnoringCase(options[i], "weights")) {
      join.weights.clear();
      for (size_t key = 0; key < join.keys.size(); ++key) {
        const auto weight = ParseDouble(options[++i]);
        if (!weight) return "ERR weight value is not a float";
        join.weights.push_back(*weight);
      }
    } else if (weighs && left > 1 && EqualsIgnoringCase(options[i], "aggregate")) {
      const auto error = ParseAggregate(options[++i], &join.aggregate);
      if (!error.empty()) return error;
    } else if (!shape.stores && !shape.counts && EqualsIgnoringCase(options[i], "withscores")) {
      join.with_scores = true;
    } else if (shape.counts && left > 1 && EqualsIgnoringCase(options[i], "limit")) {
      const auto limit = ParseInt64(options[++i]);
      if (!limit || *limit < 0) return "ERR LIMIT can't be negative";
      join.limit = *limit;
    } else {
      return kSyntaxError;
    }
  }
  return {};
}

std::string_view ParseRest(const Call& call, const Shape& shape, JoinArgs& join) {
  return ParseOptions(call.args().subspan(CountAt(shape) + 1 + join.keys.size()), shape, join);
}

// The join of the values that the outcomes have, one for each key. Returns an error if a value has
// another type.
std::string_view JoinValues(const Shape& shape, const JoinArgs& args,
                            std::span<const Outcome* const> values,
                            std::vector<types::Entry>& entries) {
  std::vector<types::JoinInput> inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    types::JoinInput& input = inputs.emplace_back();
    if (!args.weights.empty()) input.weight = args.weights[i];
    if (!values[i]->present) continue;
    auto read = types::ReadScored(values[i]->type, values[i]->value);
    if (!read) return kWrongType;
    input.entries = std::move(*read);
  }
  entries = types::JoinEntries(shape.join, args.aggregate, std::move(inputs));
  return {};
}

// ---- Reading: two slots a key, one for each type of value that it may have

template <Shape kShape>
Plan PlanJoin(const Call& call, Batch& batch) {
  JoinArgs join;
  if (const auto error = ParseKeys(call, kShape, batch.scratch(), join); !error.empty()) {
    return Plan::Error(error);
  }
  for (const std::string_view key : join.keys) {
    for (const uint8_t type : {types::kSortedSet, types::kSet}) {
      batch.Add(
          {.op = Op::kGet, .flags = Request::kIfOfType, .type = type, .key = key, .other = {}});
    }
  }
  return Plan::Requests();
}

// A value of a wrong type is told before a wrong option, as in Redis.
template <Shape kShape>
void FinishJoin(const Call& call, const Batch& batch, uint32_t slot) {
  Scratch scratch;
  JoinArgs join;
  ParseKeys(call, kShape, scratch, join);
  if (call.Refused(batch, slot, 2 * join.keys.size())) return;
  std::vector<const Outcome*> values;
  for (size_t i = 0; i < join.keys.size(); ++i) {
    const Outcome* const out = &batch.outcome(slot + static_cast<uint32_t>(2 * i));
    const bool is_set = out->present && types::KindOf(out->type) == types::kSet;
    values.push_back(is_set ? out + 1 : out);
    const uint8_t kind = types::KindOf(out->type);
    if (out->present && kind != types::kSet && kind != types::kSortedSet) {
      return call.Error(kWrongType);
    }
  }
  if (const auto error = ParseRest(call, kShape, join); !error.empty()) return call.Error(error);
  std::vector<types::Entry> entries;
  if (const auto error = JoinValues(kShape, join, values, entries); !error.empty()) {
    return call.Error(error);
  }
  if (!kShape.counts) return ReplyEntries(call, entries, join.with_scores, true);
  const auto count = static_cast<int64_t>(entries.size());
  call.reply().Integer(join.limit == 0 ? count : std::min(count, join.limit));
}

// ---- Storing

template <Shape kShape>
void RunStore(const ServerCall& call) {
  Scratch scratch;
  JoinArgs join;
  if (const auto error = ParseKeys(call, kShape, scratch, join); !error.empty()) {
    return call.Error(error);
  }
  std::string_view error;
  Status too_large;
  size_t members = 0;
  const auto make = [&](const Batch& read, Batch& write) {
    error = {};
    std::vector<const Outcome*> values;
    for (uint32_t slot = 0; slot < read.size(); ++slot) {
      values.push_back(&read.outcome(slot));
      const uint8_t kind = types::KindOf(values.back()->type);
      const bool is_fit = kind == types::kSet || kind == types::kSortedSet;
      if (values.back()->present && !is_fit) error = kWrongType;
    }
    std::vector<types::Entry> entries;
    if (error.empty()) error = ParseRest(call, kShape, join);
    if (error.empty()) error = JoinValues(kShape, join, values, entries);
    if (!error.empty()) return;
    members = entries.size();
    const auto value = types::WriteSortedSet(std::move(entries), write.scratch());
    too_large = CollectionSizeError(call, value.size());
    if (!too_large.ok()) return;
    if (members == 0) {
      write.Delete(call.arg(1));
    } else {
      write.Add({.op = Op::kPut,
                 .type = types::kSortedSet,
                 .key = call.arg(1),
                 .value = value,
                 .other = {}});
    }
  };
  Batch write(Batch::Kind::kAtomic);
  if (!WriteIfUnchanged(call, join.keys, ValuesOf::kAnyTypes, make, write)) return;
  if (!error.empty()) return call.Error(error);
  if (!too_large.ok()) return call.Error(too_large);
  call.reply().Integer(static_cast<int64_t>(members));
}

using enum Command::Flag;
constexpr uint32_t kReads = kReadOnly | kRange | kAtomic | kWhole;
constexpr uint32_t kWrites = kWrite | kStores | kReadsFirst | kWhole;
constexpr Shape kUnion = {Join::kUnion};
constexpr Shape kInter = {Join::kIntersection};
constexpr Shape kDiff = {Join::kDifference};
constexpr Shape kInterCard = {Join::kIntersection, false, true};
constexpr Shape kUnionStore = {Join::kUnion, true};
constexpr Shape kInterStore = {Join::kIntersection, true};
constexpr Shape kDiffStore = {Join::kDifference, true};

constexpr Command kCommands[] = {
    {"zdiff", -3, kReads, 0, 0, 0, "sorted-set", "6.2.0", "numkeys key [key ...] [WITHSCORES]",
     "Returns the members of the first sorted set that no other one has.", PlanJoin<kDiff>,
     FinishJoin<kDiff>},
    {"zdiffstore", -4, kWrites, 1, 1, 1, "sorted-set", "6.2.0", "destination numkeys key [key ...]",
     "Stores the members of the first sorted set that no other one has.", nullptr, nullptr,
     RunStore<kDiffStore>},
    {"zinter", -3, kReads, 0, 0, 0, "sorted-set", "6.2.0",
     "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]",
     "Returns the members that all sorted sets have.", PlanJoin<kInter>, FinishJoin<kInter>},
    {"zintercard", -3, kReads, 0, 0, 0, "sorted-set", "7.0.0",
     "numkeys key [key ...] [LIMIT limit]", "Returns how many members all sorted sets have.",
     PlanJoin<kInterCard>, FinishJoin<kInterCard>},
    {"zinterstore", -4, kWrites, 1, 1, 1, "sorted-set", "2.0.0",
     "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX]",
     "Stores the members that all sorted sets have.", nullptr, nullptr, RunStore<kInterStore>},
    {"zunion", -3, kReads, 0, 0, 0, "sorted-set", "6.2.0",
     "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]",
     "Returns the members that any of the sorted sets has.", PlanJoin<kUnion>, FinishJoin<kUnion>},
    {"zunionstore", -4, kWrites, 1, 1, 1, "sorted-set", "2.0.0",
     "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX]",
     "Stores the members that any of the sorted sets has.", nullptr, nullptr,
     RunStore<kUnionStore>},
};

}  // namespace
}  // namespace commands_zset_join

std::span<const Command> SortedSetJoinCommands() { return commands_zset_join::kCommands; }

}  // namespace skep
