// Commands about sorted sets. The functions that do their work are in types/sorted_set.h; those
// that read ranges are in commands_zset_range.cc.
#include <climits>
#include <cstring>
#include <optional>

#include "base/decimal.h"
#include "base/float_text.h"
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/member_scan.h"
#include "server/type_args.h"
#include "server/zset_replies.h"
#include "types/sorted_set.h"
#include "types/text.h"

namespace skep {
namespace commands_zset {
namespace {

const Function* const kAdd = TypeFunctionNamed("zset-add");
const Function* const kRemove = TypeFunctionNamed("zset-remove");
const Function* const kScore = TypeFunctionNamed("zset-score");
const Function* const kLength = TypeFunctionNamed("zset-length");
const Function* const kRank = TypeFunctionNamed("zset-rank");
const Function* const kRankFromEnd = TypeFunctionNamed("zset-rank-from-end");
const Function* const kPopLowest = TypeFunctionNamed("zset-pop-lowest");
const Function* const kPopHighest = TypeFunctionNamed("zset-pop-highest");
const Function* const kScan = TypeFunctionNamed("zset-scan");
const Function* const kDraw = TypeFunctionNamed("zset-draw");

// The words behind the key are the function's operand.
template <const Function* const* kFunction>
Plan PlanRest(const Call& call, Batch& batch) {
  return PlanOnKey(call, batch, *kFunction, call.args().subspan(2));
}

// ZADD's options, as bits of types::AddRule; moves *at behind them.
uint8_t ReadRule(std::span<const std::string_view> args, size_t* at) {
  constexpr std::pair<std::string_view, types::AddRule> kRules[] = {
      {"nx", types::kAddNew},  {"xx", types::kAddExisting}, {"gt", types::kAddGreater},
      {"lt", types::kAddLess}, {"ch", types::kAddChanged},  {"incr", types::kAddOne}};
  uint8_t rule = 0;
  for (; *at < args.size(); ++*at) {
    const auto is_named = [&](const auto& named) {
      return EqualsIgnoringCase(args[*at], named.first);
    };
    const auto* const found = std::ranges::find_if(kRules, is_named);
    if (found == std::end(kRules)) break;
    rule |= found->second;
  }
  return rule;
}

// The error of rules that do not go together; empty if they do.
std::string_view RuleError(uint8_t rule, size_t members) {
  const auto has = [&](uint8_t bits) { return (rule & bits) == bits; };
  if (has(types::kAddNew | types::kAddExisting)) {
    return "ERR XX and NX options at the same time are not compatible";
  }
  if (has(types::kAddNew | types::kAddGreater) || has(types::kAddNew | types::kAddLess) ||
      has(types::kAddGreater | types::kAddLess)) {
    return "ERR GT, LT, and/or NX options at the same time are not compatible";
  }
  if (has(types::kAddOne) && members > 1) {
    return "ERR INCR option supports a single increment-element pair";
  }
  return {};
}

Plan PlanAdd(const Call& call, Batch& batch, uint8_t rule) {
  const auto args = call.args();
  size_t at = 2;
  rule |= ReadRule(args, &at);
  const size_t words = args.size() - at;
  if (words == 0 || words % 2 != 0) return Plan::Error(kSyntaxError);
  if (const auto error = RuleError(rule, words / 2); !error.empty()) return Plan::Error(error);
  std::vector<types::Entry> entries;
  entries.reserve(words / 2);
  for (; at < args.size(); at += 2) {
    const auto score = ParseDouble(args[at]);
    if (!score) return Plan::Error("ERR value is not a valid float");
    entries.push_back({*score, args[at + 1]});
  }
  Scratch& scratch = batch.scratch();
  const std::string_view operand = scratch.Concat({reinterpret_cast<const char*>(&rule), 1},
                                                  types::WriteEntries(entries, scratch));
  batch.Apply(call.arg(1), kAdd, operand);
  return Plan::Requests();
}

Plan PlanZadd(const Call& call, Batch& batch) { return PlanAdd(call, batch, 0); }
Plan PlanZincrby(const Call& call, Batch& batch) { return PlanAdd(call, batch, types::kAddOne); }

// Takes entries off an end.
template <const Function* const* kFunction>
Plan PlanPop(const Call& call, Batch& batch) {
  static constexpr std::string_view kOne[] = {"1"};
  if (call.args().size() > 3) return Plan::Error(kSyntaxError);
  if (call.args().size() == 2) return PlanOnKey(call, batch, *kFunction, kOne);
  const auto count = ParseInt64(call.arg(2));
  if (!count || *count < 0) return Plan::Error(kNotPositive);
  return PlanRest<kFunction>(call, batch);
}

Plan PlanZrandmember(const ServerCall& call, Batch& batch) {
  DrawArgs draw;
  if (const auto error = ParseDraw(call.args(), "withscores", draw); !error.empty()) {
    return Plan::Error(error);
  }
  return PlanDraw(call, batch, kDraw, draw.count.value_or(1));
}

template <typename Caller>
Plan PlanZscan(const Caller& call, Batch& batch) {
  return PlanMemberScan(call, batch, kScan);
}

// Takes a score from the front of a function's answer: one byte, 1 and the score, or 0.
std::optional<double> TakeScore(std::string_view& from) {
  const bool has_score = from.size() >= 1 + sizeof(double) && from[0] != 0;
  double score = 0;
  if (has_score) std::memcpy(&score, from.data() + 1, sizeof score);
  from.remove_prefix(std::min(from.size(), has_score ? 1 + sizeof score : 1));
  return has_score ? std::optional(score) : std::nullopt;
}

void ReplyMaybeScore(RespWriter reply, std::optional<double> score) {
  if (score) {
    ReplyScore(reply, *score);
  } else {
    reply.Null();
  }
}

// ZADD with INCR, and ZINCRBY: the score, or that nothing was done.
void FinishZincrby(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  std::optional<double> score;
  if (out.value.size() == sizeof(double)) std::memcpy(&score.emplace(), out.value.data(), 8);
  ReplyMaybeScore(call.reply(), score);
}

void FinishZadd(const Call& call, const Batch& batch, uint32_t slot) {
  size_t at = 2;
  if ((ReadRule(call.args(), &at) & types::kAddOne) != 0) return FinishZincrby(call, batch, slot);
  commands::FinishInteger(call, batch, slot);
}

void FinishZscore(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  std::string_view bytes = out.value;
  ReplyMaybeScore(call.reply(), TakeScore(bytes));
}

void FinishZmscore(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  const size_t members = call.args().size() - 2;
  call.reply().Array(members);
  std::string_view bytes = out.value;
  for (size_t i = 0; i < members; ++i) ReplyMaybeScore(call.reply(), TakeScore(bytes));
}

void FinishPop(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  ReplyEntries(call, EntriesOf(out), true, call.args().size() == 3);
}

void FinishZrandmember(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  const auto entries = EntriesOf(out);
  if (call.args().size() > 2) return ReplyEntries(call, entries, call.args().size() == 4, true);
  if (entries.empty()) return call.reply().Null();
  call.reply().Bulk(entries[0].member);
}

template <typename Caller>
void FinishZscan(const Caller& call, const Batch& batch, uint32_t slot) {
  FinishMemberScan(call, batch, slot, 2);
}

void FinishZrank(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  if (out.integer < 0) return call.reply().Null();
  call.reply().Integer(out.integer);
}

using commands::FinishInteger;
using enum Command::Flag;
constexpr uint32_t kReads = kReadOnly | kFast;
constexpr uint32_t kAdds = kWrite | kStores | kFast;

constexpr Command kCommands[] = {
    {"zadd", -4, kAdds, 1, 1, 1, "sorted-set", "1.2.0",
     "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
     "Adds members to a sorted set, or changes their scores.", PlanZadd, FinishZadd},
    {"zcard", 2, kReads, 1, 1, 1, "sorted-set", "1.2.0", "key",
     "Returns how many members a sorted set has.", PlanRest<&kLength>, FinishInteger},
    {"zincrby", 4, kAdds, 1, 1, 1, "sorted-set", "1.2.0", "key increment member",
     "Adds to the score of a member.", PlanZincrby, FinishZincrby},
    {"zmscore", -3, kReads, 1, 1, 1, "sorted-set", "6.2.0", "key member [member ...]",
     "Returns the scores of members.", PlanRest<&kScore>, FinishZmscore},
    {"zpopmax", -2, kWrite | kFast, 1, 1, 1, "sorted-set", "5.0.0", "key [count]",
     "Takes the members with the highest scores out.", PlanPop<&kPopHighest>, FinishPop},
    {"zpopmin", -2, kWrite | kFast, 1, 1, 1, "sorted-set", "5.0.0", "key [count]",
     "Takes the members with the lowest scores out.", PlanPop<&kPopLowest>, FinishPop},
    {"zrandmember", -2, kReadOnly, 1, 1, 1, "sorted-set", "6.2.0", "key [count [WITHSCORES]]",
     "Returns members of a sorted set, drawn at random.", PlanZrandmember, FinishZrandmember},
    {"zrank", 3, kReads, 1, 1, 1, "sorted-set", "2.0.0", "key member",
     "Returns the rank of a member, from the lowest score.", PlanRest<&kRank>, FinishZrank},
    {"zrem", -3, kWrite | kFast, 1, 1, 1, "sorted-set", "1.2.0", "key member [member ...]",
     "Removes members from a sorted set.", PlanRest<&kRemove>, FinishInteger},
    {"zrevrank", 3, kReads, 1, 1, 1, "sorted-set", "2.0.0", "key member",
     "Returns the rank of a member, from the highest score.", PlanRest<&kRankFromEnd>, FinishZrank},
    {"zscan",
     -3,
     kReadOnly,
     1,
     1,
     1,
     "sorted-set",
     "2.8.0",
     "key cursor [MATCH pattern] [COUNT count]",
     "Iterates over the members of a sorted set and their scores.",
     {PlanZscan<Call>, PlanZscan<ServerCall>},
     {FinishZscan<Call>, FinishZscan<ServerCall>}},
    {"zscore", 3, kReads, 1, 1, 1, "sorted-set", "1.2.0", "key member",
     "Returns the score of a member.", PlanRest<&kScore>, FinishZscore},
};

}  // namespace
}  // namespace commands_zset

std::span<const Command> SortedSetCommands() { return commands_zset::kCommands; }

}  // namespace skep
