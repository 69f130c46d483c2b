// Commands about sets. The functions that do their work are in types/set.h.
#include <climits>

#include "base/decimal.h"
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/member_scan.h"
#include "server/portions.h"
#include "server/type_args.h"
#include "types/text.h"

namespace skep {
namespace commands_set {
namespace {

const Function* const kAdd = TypeFunctionNamed("set-add");
const Function* const kRemove = TypeFunctionNamed("set-remove");
const Function* const kHas = TypeFunctionNamed("set-has");
const Function* const kLength = TypeFunctionNamed("set-length");
const Function* const kAll = TypeFunctionNamed("set-all");
const Function* const kPop = TypeFunctionNamed("set-pop");
const Function* const kScan = TypeFunctionNamed("set-scan");
const Function* const kDraw = TypeFunctionNamed("set-draw");
const Function* const kTake = TypeFunctionNamed("set-take");
const Function* const kUnite = TypeFunctionNamed("set-unite");
const Function* const kIntersect = TypeFunctionNamed("set-intersect");
const Function* const kSubtract = TypeFunctionNamed("set-subtract");
const Function* const kStore = TypeFunctionNamed("set-store");

Plan PlanSadd(const Call& call, Batch& batch) {
  return PlanOnKey(call, batch, kAdd, call.args().subspan(2));
}
Plan PlanSrem(const Call& call, Batch& batch) {
  return PlanOnKey(call, batch, kRemove, call.args().subspan(2));
}
Plan PlanSismember(const Call& call, Batch& batch) {
  return PlanOnKey(call, batch, kHas, call.args().subspan(2));
}
Plan PlanScard(const Call& call, Batch& batch) { return PlanOnKey(call, batch, kLength, {}); }
Plan PlanSmembers(const Call& call, Batch& batch) { return PlanOnKey(call, batch, kAll, {}); }

Plan PlanSpop(const ServerCall& call, Batch& batch) {
  if (call.args().size() > 3) return Plan::Error(kSyntaxError);
  if (call.args().size() == 2) return PlanDraw(call, batch, kPop, 1);
  const auto count = ParseInt64(call.arg(2));
  if (!count || *count < 0) return Plan::Error(kNotPositive);
  return PlanDraw(call, batch, kPop, *count);
}

Plan PlanSrandmember(const ServerCall& call, Batch& batch) {
  if (call.args().size() > 3) return Plan::Error(kSyntaxError);
  DrawArgs draw;
  if (const auto error = ParseDraw(call.args(), {}, draw); !error.empty()) {
    return Plan::Error(error);
  }
  return PlanDraw(call, batch, kDraw, draw.count.value_or(1));
}

template <typename Caller>
Plan PlanSscan(const Caller& call, Batch& batch) {
  return PlanMemberScan(call, batch, kScan);
}

Plan PlanSmove(const Call& call, Batch& batch) {
  const auto member = call.args().subspan(3);
  if (call.arg(1) == call.arg(2)) return PlanOnKey(call, batch, kHas, member);
  const uint32_t taken = batch.Apply(call.arg(1), kTake, types::JoinTexts(member, batch.scratch()));
  AddChained(batch, call.arg(2), kAdd, taken, Request::kUnlessNone);
  return Plan::Requests();
}

// Adds requests that join the sets at the keys; the last slot's value has the members.
void JoinSets(Batch& batch, const Function* join, std::span<const std::string_view> keys) {
  uint32_t slot = batch.Apply(keys[0], kAll, {});
  for (const std::string_view key : keys.subspan(1)) slot = AddChained(batch, key, join, slot);
}

template <const Function* const* kJoin>
Plan PlanJoin(const Call& call, Batch& batch) {
  JoinSets(batch, *kJoin, call.args().subspan(1));
  return Plan::Requests();
}

// The result replaces whatever the destination, which may be one of the sets, has.
template <const Function* const* kJoin>
Plan PlanJoinStore(const Call& call, Batch& batch) {
  JoinSets(batch, *kJoin, call.args().subspan(2));
  const uint32_t joined = static_cast<uint32_t>(batch.size()) - 1;
  batch.Delete(call.arg(1));
  AddChained(batch, call.arg(1), kStore, joined, Request::kUnlessNone);
  return Plan::Requests();
}

struct IntersectionArgs {
  size_t keys = 0;
  int64_t limit = 0;  // 0: none
};

// SINTERCARD's arguments; returns an error text if they are wrong, else an empty one.
std::string_view ParseIntersection(std::span<const std::string_view> args, IntersectionArgs& to) {
  const auto keys = ParseInt64(args[1]);
  if (!keys || *keys < 1) return "ERR numkeys should be greater than 0";
  if (static_cast<uint64_t>(*keys) > args.size() - 2) {
    return "ERR Number of keys can't be greater than number of args";
  }
  to.keys = static_cast<size_t>(*keys);
  for (size_t i = 2 + to.keys; i < args.size(); i += 2) {
    if (!EqualsIgnoringCase(args[i], "limit") || i + 1 == args.size()) return kSyntaxError;
    const auto limit = ParseInt64(args[i + 1]);
    if (!limit || *limit < 0) return "ERR LIMIT can't be negative";
    to.limit = *limit;
  }
  return {};
}

Plan PlanSintercard(const Call& call, Batch& batch) {
  IntersectionArgs args;
  if (const auto error = ParseIntersection(call.args(), args); !error.empty()) {
    return Plan::Error(error);
  }
  JoinSets(batch, kIntersect, call.args().subspan(2, args.keys));
  return Plan::Requests();
}

void FinishSintercard(const Call& call, const Batch& batch, uint32_t slot) {
  IntersectionArgs args;
  ParseIntersection(call.args(), args);
  const auto count = static_cast<uint32_t>(args.keys);
  if (call.Refused(batch, slot, count)) return;
  const int64_t members = batch.outcome(slot + count - 1).integer;
  call.reply().Integer(args.limit == 0 ? members : std::min(members, args.limit));
}

void FinishJoin(const Call& call, const Batch& batch, uint32_t slot) {
  const auto keys = static_cast<uint32_t>(call.args().size() - 1);
  if (!call.Refused(batch, slot, keys - 1)) FinishTextSet(call, batch, slot + keys - 1);
}

void FinishJoinStore(const Call& call, const Batch& batch, uint32_t slot) {
  const auto slots = static_cast<uint32_t>(call.args().size());
  if (call.Refused(batch, slot, slots)) return;
  call.reply().Integer(batch.outcome(slot + slots - 1).integer);
}

void FinishSmove(const Call& call, const Batch& batch, uint32_t slot) {
  const size_t slots = call.arg(1) == call.arg(2) ? 1 : 2;
  if (!call.Refused(batch, slot, slots)) call.reply().Integer(batch.outcome(slot).integer);
}

void FinishSmismember(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  RespWriter reply = call.reply();
  reply.Array(out.value.size());
  for (const char has : out.value) reply.Integer(has);
}

void FinishSpop(const Call& call, const Batch& batch, uint32_t slot) {
  call.args().size() == 2 ? FinishText(call, batch, slot) : FinishTextSet(call, batch, slot);
}
void FinishSrandmember(const Call& call, const Batch& batch, uint32_t slot) {
  call.args().size() == 2 ? FinishText(call, batch, slot) : FinishTextArray(call, batch, slot);
}

template <typename Caller>
void FinishSscan(const Caller& call, const Batch& batch, uint32_t slot) {
  FinishMemberScan(call, batch, slot, 1);
}

using commands::FinishInteger;
using enum Command::Flag;
constexpr uint32_t kReads = kReadOnly | kFast;
constexpr uint32_t kJoins = kReadOnly | kRange | kAtomic | kWhole;
constexpr uint32_t kJoinsAndStores = kWrite | kStores | kAtomic | kWhole;

constexpr Command kCommands[] = {
    {"sadd", -3, kWrite | kStores | kFast, 1, 1, 1, "set", "1.0.0", "key member [member ...]",
     "Adds members to a set.", PlanSadd, FinishInteger},
    {"scard", 2, kReads, 1, 1, 1, "set", "1.0.0", "key", "Returns how many members a set has.",
     PlanScard, FinishInteger},
    {"sdiff", -2, kJoins, 1, -1, 1, "set", "1.0.0", "key [key ...]",
     "Returns the members of the first set that no other one has.", PlanJoin<&kSubtract>,
     FinishJoin},
    {"sdiffstore", -3, kJoinsAndStores, 1, -1, 1, "set", "1.0.0", "destination key [key ...]",
     "Stores the members of the first set that no other one has.", PlanJoinStore<&kSubtract>,
     FinishJoinStore},
    {"sinter", -2, kJoins, 1, -1, 1, "set", "1.0.0", "key [key ...]",
     "Returns the members that all sets have.", PlanJoin<&kIntersect>, FinishJoin},
    {"sintercard", -3, kJoins, 0, 0, 0, "set", "7.0.0", "numkeys key [key ...] [LIMIT limit]",
     "Returns how many members all sets have.", PlanSintercard, FinishSintercard},
    {"sinterstore", -3, kJoinsAndStores, 1, -1, 1, "set", "1.0.0", "destination key [key ...]",
     "Stores the members that all sets have.", PlanJoinStore<&kIntersect>, FinishJoinStore},
    {"sismember", 3, kReads, 1, 1, 1, "set", "1.0.0", "key member",
     "Says whether a set has a member.", PlanSismember, FinishInteger},
    {"smembers",
     2,
     kReadOnly,
     1,
     1,
     1,
     "set",
     "1.0.0",
     "key",
     "Returns all members of a set.",
     PlanSmembers,
     FinishTextSet,
     nullptr,
     {},
     nullptr,
     PortionsOfSet},
    {"smismember", -3, kReads, 1, 1, 1, "set", "6.2.0", "key member [member ...]",
     "Says which of the members a set has.", PlanSismember, FinishSmismember},
    {"smove", 4, kWrite | kStores | kFast | kAtomic, 1, 2, 1, "set", "1.0.0",
     "source destination member", "Moves a member from one set to another.", PlanSmove,
     FinishSmove},
    {"spop", -2, kWrite | kFast, 1, 1, 1, "set", "1.0.0", "key [count]",
     "Takes members out of a set, drawn at random.", PlanSpop, FinishSpop},
    {"srandmember", -2, kReadOnly, 1, 1, 1, "set", "1.0.0", "key [count]",
     "Returns members of a set, drawn at random.", PlanSrandmember, FinishSrandmember},
    {"srem", -3, kWrite | kFast, 1, 1, 1, "set", "1.0.0", "key member [member ...]",
     "Removes members from a set.", PlanSrem, FinishInteger},
    {"sscan",
     -3,
     kReadOnly,
     1,
     1,
     1,
     "set",
     "2.8.0",
     "key cursor [MATCH pattern] [COUNT count]",
     "Iterates over the members of a set.",
     {PlanSscan<Call>, PlanSscan<ServerCall>},
     {FinishSscan<Call>, FinishSscan<ServerCall>}},
    {"sunion", -2, kJoins, 1, -1, 1, "set", "1.0.0", "key [key ...]",
     "Returns the members that any of the sets has.", PlanJoin<&kUnite>, FinishJoin},
    {"sunionstore", -3, kJoinsAndStores, 1, -1, 1, "set", "1.0.0", "destination key [key ...]",
     "Stores the members that any of the sets has.", PlanJoinStore<&kUnite>, FinishJoinStore},
};

}  // namespace
}  // namespace commands_set

std::span<const Command> SetCommands() { return commands_set::kCommands; }

}  // namespace skep
