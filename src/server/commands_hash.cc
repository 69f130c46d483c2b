// Commands about hashes. The functions that do their work are in types/hash.h.
#include <algorithm>
#include <cmath>

#include "base/decimal.h"
#include "base/float_text.h"
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/member_scan.h"
#include "server/portions.h"
#include "server/type_args.h"
#include "types/text.h"

namespace skep {
namespace commands_hash {
namespace {

const Function* const kSet = TypeFunctionNamed("hash-set");
const Function* const kSetNew = TypeFunctionNamed("hash-set-new");
const Function* const kGet = TypeFunctionNamed("hash-get");
const Function* const kLength = TypeFunctionNamed("hash-length");
const Function* const kValueBytes = TypeFunctionNamed("hash-value-bytes");
const Function* const kAll = TypeFunctionNamed("hash-all");
const Function* const kDelete = TypeFunctionNamed("hash-delete");
const Function* const kAdd = TypeFunctionNamed("hash-add");
const Function* const kAddFloat = TypeFunctionNamed("hash-add-float");
const Function* const kScan = TypeFunctionNamed("hash-scan");
const Function* const kDraw = TypeFunctionNamed("hash-draw");

Plan PlanHset(const Call& call, Batch& batch) {
  if (call.args().size() % 2 != 0) return WrongCount(call, batch);
  return PlanOnKey(call, batch, kSet, call.args().subspan(2));
}

Plan PlanHsetnx(const Call& call, Batch& batch) {
  return PlanOnKey(call, batch, kSetNew, call.args().subspan(2));
}
Plan PlanHget(const Call& call, Batch& batch) {
  return PlanOnKey(call, batch, kGet, call.args().subspan(2));
}
Plan PlanHlen(const Call& call, Batch& batch) { return PlanOnKey(call, batch, kLength, {}); }
Plan PlanHstrlen(const Call& call, Batch& batch) {
  return PlanOnKey(call, batch, kValueBytes, call.args().subspan(2));
}
Plan PlanHgetall(const Call& call, Batch& batch) { return PlanOnKey(call, batch, kAll, {}); }
Plan PlanHdel(const Call& call, Batch& batch) {
  return PlanOnKey(call, batch, kDelete, call.args().subspan(2));
}

Plan PlanHincrby(const Call& call, Batch& batch) {
  if (!ParseInt64(call.arg(3))) return Plan::Error(kNotAnInteger);
  return PlanOnKey(call, batch, kAdd, call.args().subspan(2));
}

Plan PlanHincrbyfloat(const Call& call, Batch& batch) {
  const auto by = ParseLongDouble(call.arg(3));
  if (!by) return Plan::Error("ERR value is not a valid float");
  if (std::isinf(*by)) return Plan::Error("ERR value is NaN or Infinity");
  return PlanOnKey(call, batch, kAddFloat, call.args().subspan(2));
}

Plan PlanHrandfield(const ServerCall& call, Batch& batch) {
  DrawArgs draw;
  if (const auto error = ParseDraw(call.args(), "withvalues", draw); !error.empty()) {
    return Plan::Error(error);
  }
  return PlanDraw(call, batch, kDraw, draw.count.value_or(1));
}

template <typename Caller>
Plan PlanHscan(const Caller& call, Batch& batch) {
  return PlanMemberScan(call, batch, kScan);
}

void FinishHmset(const Call& call, const Batch& batch, uint32_t slot) {
  if (!call.Refused(batch.outcome(slot))) call.reply().SimpleString("OK");
}

void FinishHincrbyfloat(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (!call.Refused(out)) call.reply().Bulk(out.value);
}

void FinishHexists(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (!call.Refused(out)) call.reply().Integer(out.integer >= 0 ? 1 : 0);
}

void FinishHstrlen(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (!call.Refused(out)) call.reply().Integer(std::max<int64_t>(out.integer, 0));
}

void FinishHmget(const Call& call, const Batch& batch, uint32_t slot) {
  ReplyMaybeTexts(call, batch.outcome(slot), call.args().size() - 2);
}

void FinishHgetall(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  const auto texts = TextsOf(out);
  RespWriter reply = call.reply();
  reply.Map(texts.size() / 2);
  for (const std::string_view text : texts) reply.Bulk(text);
}

// Replies with every second string, from the first or the second one on.
void ReplyHalf(const Call& call, const Outcome& out, size_t first) {
  if (call.Refused(out)) return;
  const auto texts = TextsOf(out);
  RespWriter reply = call.reply();
  reply.Array(texts.size() / 2);
  for (size_t i = first; i < texts.size(); i += 2) reply.Bulk(texts[i]);
}
void FinishHkeys(const Call& call, const Batch& batch, uint32_t slot) {
  ReplyHalf(call, batch.outcome(slot), 0);
}
void FinishHvals(const Call& call, const Batch& batch, uint32_t slot) {
  ReplyHalf(call, batch.outcome(slot), 1);
}

void FinishHrandfield(const Call& call, const Batch& batch, uint32_t slot) {
  const size_t words = call.args().size();
  if (words == 2) return FinishText(call, batch, slot);
  if (words == 3) return ReplyHalf(call, batch.outcome(slot), 0);
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  const auto texts = TextsOf(out);
  RespWriter reply = call.reply();
  const bool nests = reply.protocol() == 3;
  reply.Array(nests ? texts.size() / 2 : texts.size());
  for (size_t i = 0; i < texts.size(); i += 2) {
    if (nests) reply.Array(2);
    reply.Bulk(texts[i]);
    reply.Bulk(texts[i + 1]);
  }
}

template <typename Caller>
void FinishHscan(const Caller& call, const Batch& batch, uint32_t slot) {
  FinishMemberScan(call, batch, slot, 2);
}

using enum Command::Flag;
constexpr uint32_t kReads = kReadOnly | kFast;
constexpr uint32_t kStoresFast = kWrite | kStores | kFast;

constexpr Command kCommands[] = {
    {"hdel", -3, kWrite | kFast, 1, 1, 1, "hash", "2.0.0", "key field [field ...]",
     "Deletes fields of a hash.", PlanHdel, commands::FinishInteger},
    {"hexists", 3, kReads, 1, 1, 1, "hash", "2.0.0", "key field",
     "Says whether a hash has a field.", PlanHstrlen, FinishHexists},
    {"hget", 3, kReads, 1, 1, 1, "hash", "2.0.0", "key field", "Returns the value of a field.",
     PlanHget, FinishText},
    {"hgetall",
     2,
     kReadOnly,
     1,
     1,
     1,
     "hash",
     "2.0.0",
     "key",
     "Returns all fields of a hash and their values.",
     PlanHgetall,
     FinishHgetall,
     nullptr,
     {},
     nullptr,
     PortionsOfHash},
    {"hincrby", 4, kStoresFast, 1, 1, 1, "hash", "2.0.0", "key field increment",
     "Adds to the integer value of a field.", PlanHincrby, commands::FinishInteger},
    {"hincrbyfloat", 4, kStoresFast, 1, 1, 1, "hash", "2.6.0", "key field increment",
     "Adds to the floating-point value of a field.", PlanHincrbyfloat, FinishHincrbyfloat},
    {"hkeys",
     2,
     kReadOnly,
     1,
     1,
     1,
     "hash",
     "2.0.0",
     "key",
     "Returns all fields of a hash.",
     PlanHgetall,
     FinishHkeys,
     nullptr,
     {},
     nullptr,
     PortionsOfHash},
    {"hlen", 2, kReads, 1, 1, 1, "hash", "2.0.0", "key", "Returns how many fields a hash has.",
     PlanHlen, commands::FinishInteger},
    {"hmget", -3, kReads, 1, 1, 1, "hash", "2.0.0", "key field [field ...]",
     "Returns the values of fields.", PlanHget, FinishHmget},
    {"hmset", -4, kStoresFast, 1, 1, 1, "hash", "2.0.0", "key field value [field value ...]",
     "Sets fields of a hash.", PlanHset, FinishHmset},
    {"hrandfield", -2, kReadOnly, 1, 1, 1, "hash", "6.2.0", "key [count [WITHVALUES]]",
     "Returns fields of a hash, drawn at random.", PlanHrandfield, FinishHrandfield},
    {"hscan",
     -3,
     kReadOnly,
     1,
     1,
     1,
     "hash",
     "2.8.0",
     "key cursor [MATCH pattern] [COUNT count]",
     "Iterates over the fields of a hash and their values.",
     {PlanHscan<Call>, PlanHscan<ServerCall>},
     {FinishHscan<Call>, FinishHscan<ServerCall>}},
    {"hset", -4, kStoresFast, 1, 1, 1, "hash", "2.0.0", "key field value [field value ...]",
     "Sets fields of a hash; returns how many are new.", PlanHset, commands::FinishInteger},
    {"hsetnx", 4, kStoresFast, 1, 1, 1, "hash", "2.0.0", "key field value",
     "Sets a field of a hash if it does not exist.", PlanHsetnx, commands::FinishInteger},
    {"hstrlen", 3, kReads, 1, 1, 1, "hash", "3.2.0", "key field",
     "Returns the length of a field's value in bytes.", PlanHstrlen, FinishHstrlen},
    {"hvals",
     2,
     kReadOnly,
     1,
     1,
     1,
     "hash",
     "2.0.0",
     "key",
     "Returns all values of a hash.",
     PlanHgetall,
     FinishHvals,
     nullptr,
     {},
     nullptr,
     PortionsOfHash},
};

}  // namespace
}  // namespace commands_hash

std::span<const Command> HashCommands() { return commands_hash::kCommands; }

}  // namespace skep
