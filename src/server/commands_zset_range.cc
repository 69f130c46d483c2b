// Commands about ranges of sorted sets: by rank, by score, by member.
#include <optional>

#include "base/decimal.h"
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/portions.h"
#include "server/type_args.h"
#include "server/zset_replies.h"
#include "types/score.h"
#include "types/sorted_set.h"

namespace skep {
namespace commands_zset_range {
namespace {

using By = types::RangeRequest::By;

const Function* const kEntries = TypeFunctionNamed("zset-range");
const Function* const kCount = TypeFunctionNamed("zset-count");
const Function* const kCut = TypeFunctionNamed("zset-cut");
const Function* const kStoreEntries = TypeFunctionNamed("zset-store");

struct RangeArgs {
  std::optional<By> by;
  std::optional<bool> reverse;
  bool with_scores = false;
  bool stores = false;  // ZRANGESTORE, which has no scores to return
  int64_t offset = 0;
  int64_t count = -1;
};

// Reads the options behind the bounds; `range` has what the command's name already says. Returns an
// error text if they are wrong, else an empty one.
std::string_view ParseRange(std::span<const std::string_view> options, RangeArgs& range) {
  for (size_t i = 0; i < options.size(); ++i) {
    if (!range.stores && EqualsIgnoringCase(options[i], "withscores")) {
      range.with_scores = true;
    } else if (EqualsIgnoringCase(options[i], "limit") && options.size() - i > 2) {
      const auto offset = ParseInt64(options[++i]);
      const auto count = ParseInt64(options[++i]);
      if (!offset || !count) return kNotAnInteger;
      range.offset = *offset;
      range.count = *count;
    } else if (!range.reverse && EqualsIgnoringCase(options[i], "rev")) {
      range.reverse = true;
    } else if (!range.by && EqualsIgnoringCase(options[i], "bylex")) {
      range.by = By::kMember;
    } else if (!range.by && EqualsIgnoringCase(options[i], "byscore")) {
      range.by = By::kScore;
    } else {
      return kSyntaxError;
    }
  }
  const By by = range.by.value_or(By::kRank);
  if (range.count != -1 && by == By::kRank) {
    return "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
  }
  if (range.with_scores && by == By::kMember) {
    return "ERR syntax error, WITHSCORES not supported in combination with BYLEX";
  }
  return {};
}

// The error of bounds that are none of this kind; empty if they are.
std::string_view BoundError(By by, std::string_view low, std::string_view high) {
  switch (by) {
    case By::kRank:
      return ParseInt64(low) && ParseInt64(high) ? std::string_view() : kNotAnInteger;
    case By::kScore:
      return types::ParseScoreBound(low) && types::ParseScoreBound(high)
                 ? std::string_view()
                 : "ERR min or max is not a float";
    case By::kMember:
      return types::ParseMemberBound(low) && types::ParseMemberBound(high)
                 ? std::string_view()
                 : "ERR min or max not valid string range item";
  }
  return {};
}

Plan AddRange(const Call& call, Batch& batch, const Function* function, const RangeArgs& range) {
  const By by = range.by.value_or(By::kRank);
  const bool reverse = range.reverse.value_or(false);
  const bool swaps = reverse && by != By::kRank;
  const std::string_view low = call.arg(swaps ? 3 : 2);
  const std::string_view high = call.arg(swaps ? 2 : 3);
  if (const auto error = BoundError(by, low, high); !error.empty()) return Plan::Error(error);
  types::RangeRequest request = {.by = by, .reverse = reverse};
  if (by != By::kRank) {
    request.offset = range.offset;
    request.count = range.count;
  }
  batch.Apply(call.arg(1), function, types::WriteRangeRequest(request, low, high, batch.scratch()));
  return Plan::Requests();
}

// A command whose name says what it is a range of, and its direction, as far as it does.
RangeArgs ArgsOf(const Command& command) {
  const std::string_view name = command.name;
  if (name == "zrange" || name == "zrangestore") return {};
  RangeArgs range;
  range.reverse = name.starts_with("zrev");
  range.by = name.ends_with("byscore") ? By::kScore
             : name.ends_with("bylex") ? By::kMember
                                       : By::kRank;
  return range;
}

Plan PlanRange(const Call& call, Batch& batch) {
  RangeArgs range = ArgsOf(call.command());
  if (const auto error = ParseRange(call.args().subspan(4), range); !error.empty()) {
    return Plan::Error(error);
  }
  return AddRange(call, batch, kEntries, range);
}

// The words behind the destination are those of ZRANGE.
Plan PlanRangeStore(const Call& call, Batch& batch) {
  const Call range_call = call.Of(call.command(), call.args().subspan(1));
  RangeArgs range = {.stores = true};
  if (const auto error = ParseRange(range_call.args().subspan(4), range); !error.empty()) {
    return Plan::Error(error);
  }
  const auto found = static_cast<uint32_t>(batch.size());
  if (const Plan plan = AddRange(range_call, batch, kEntries, range);
      plan.kind == Plan::Kind::kError) {
    return plan;
  }
  batch.Delete(call.arg(1));
  AddChained(batch, call.arg(1), kStoreEntries, found, Request::kUnlessNone);
  return Plan::Requests();
}

void FinishRangeStore(const Call& call, const Batch& batch, uint32_t slot) {
  if (!call.Refused(batch, slot, 3)) call.reply().Integer(batch.outcome(slot + 2).integer);
}

Plan PlanRemove(const Call& call, Batch& batch) {
  const std::string_view name = call.command().name;
  const By by = name.ends_with("rank")    ? By::kRank
                : name.ends_with("score") ? By::kScore
                                          : By::kMember;
  return AddRange(call, batch, kCut, {.by = by});
}

Plan PlanZcount(const Call& call, Batch& batch) {
  return AddRange(call, batch, kCount, {.by = By::kScore});
}
Plan PlanZlexcount(const Call& call, Batch& batch) {
  return AddRange(call, batch, kCount, {.by = By::kMember});
}

void FinishRange(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  RangeArgs range = ArgsOf(call.command());
  ParseRange(call.args().subspan(4), range);
  ReplyEntries(call, EntriesOf(out), range.with_scores, true);
}

std::unique_ptr<Portions> PortionsOfRange(const Call& call) {
  RangeArgs range = ArgsOf(call.command());
  ParseRange(call.args().subspan(4), range);
  const By by = range.by.value_or(By::kRank);
  if (by == By::kMember) return nullptr;
  const bool reverse = range.reverse.value_or(false);
  const bool swaps = reverse && by == By::kScore;
  return PortionsOfEntries(call, {.is_by_score = by == By::kScore,
                                  .reverse = reverse,
                                  .low = call.arg(swaps ? 3 : 2),
                                  .high = call.arg(swaps ? 2 : 3),
                                  .offset = range.offset,
                                  .count = range.count,
                                  .with_scores = range.with_scores});
}

using commands::FinishInteger;
using enum Command::Flag;

constexpr Command kCommands[] = {
    {"zcount", 4, kReadOnly | kFast, 1, 1, 1, "sorted-set", "2.0.0", "key min max",
     "Counts the members of a range of scores.", PlanZcount, FinishInteger},
    {"zlexcount", 4, kReadOnly | kFast, 1, 1, 1, "sorted-set", "2.8.9", "key min max",
     "Counts the members of a range of members.", PlanZlexcount, FinishInteger},
    {"zrange",
     -4,
     kReadOnly,
     1,
     1,
     1,
     "sorted-set",
     "1.2.0",
     "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
     "Returns the members of a range of ranks, scores or members.",
     PlanRange,
     FinishRange,
     nullptr,
     {},
     nullptr,
     PortionsOfRange},
    {"zrangebylex",
     -4,
     kReadOnly,
     1,
     1,
     1,
     "sorted-set",
     "2.8.9",
     "key min max [LIMIT offset count]",
     "Returns the members of a range of members.",
     PlanRange,
     FinishRange,
     nullptr,
     {},
     nullptr,
     PortionsOfRange},
    {"zrangebyscore",
     -4,
     kReadOnly,
     1,
     1,
     1,
     "sorted-set",
     "1.0.5",
     "key min max [WITHSCORES] [LIMIT offset count]",
     "Returns the members of a range of scores.",
     PlanRange,
     FinishRange,
     nullptr,
     {},
     nullptr,
     PortionsOfRange},
    {"zrangestore", -5, kWrite | kStores | kAtomic, 1, 2, 1, "sorted-set", "6.2.0",
     "destination source min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]",
     "Stores the members of a range of ranks, scores or members.", PlanRangeStore,
     FinishRangeStore},
    {"zremrangebylex", 4, kWrite, 1, 1, 1, "sorted-set", "2.8.9", "key min max",
     "Removes the members of a range of members.", PlanRemove, FinishInteger},
    {"zremrangebyrank", 4, kWrite, 1, 1, 1, "sorted-set", "2.0.0", "key start stop",
     "Removes the members of a range of ranks.", PlanRemove, FinishInteger},
    {"zremrangebyscore", 4, kWrite, 1, 1, 1, "sorted-set", "1.2.0", "key min max",
     "Removes the members of a range of scores.", PlanRemove, FinishInteger},
    {"zrevrange",
     -4,
     kReadOnly,
     1,
     1,
     1,
     "sorted-set",
     "1.2.0",
     "key start stop [WITHSCORES]",
     "Returns the members of a range of ranks, from the highest score.",
     PlanRange,
     FinishRange,
     nullptr,
     {},
     nullptr,
     PortionsOfRange},
    {"zrevrangebylex",
     -4,
     kReadOnly,
     1,
     1,
     1,
     "sorted-set",
     "2.8.9",
     "key max min [LIMIT offset count]",
     "Returns the members of a range of members, from the last one.",
     PlanRange,
     FinishRange,
     nullptr,
     {},
     nullptr,
     PortionsOfRange},
    {"zrevrangebyscore",
     -4,
     kReadOnly,
     1,
     1,
     1,
     "sorted-set",
     "2.2.0",
     "key max min [WITHSCORES] [LIMIT offset count]",
     "Returns the members of a range of scores, from the highest.",
     PlanRange,
     FinishRange,
     nullptr,
     {},
     nullptr,
     PortionsOfRange},
};

}  // namespace
}  // namespace commands_zset_range

std::span<const Command> SortedSetRangeCommands() { return commands_zset_range::kCommands; }

}  // namespace skep
