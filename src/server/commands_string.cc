// Values: GET and SET and their kin, counters.
#include <climits>
#include <optional>

#include "base/decimal.h"
#include "server/commands.h"
#include "server/server.h"
#include "server/worker.h"

namespace skep::commands {
namespace {

struct SetArgs {
  Op op = Op::kPut;
  bool get = false;
};

// SET key value [NX | XX] [GET]; nullopt for anything else.
std::optional<SetArgs> ParseSet(std::span<const std::string_view> args) {
  SetArgs set;
  for (const std::string_view arg : args.subspan(3)) {
    if (EqualsIgnoringCase(arg, "get")) {
      set.get = true;
    } else if (EqualsIgnoringCase(arg, "nx") && set.op != Op::kUpdate) {
      set.op = Op::kInsert;
    } else if (EqualsIgnoringCase(arg, "xx") && set.op != Op::kInsert) {
      set.op = Op::kUpdate;
    } else {
      return std::nullopt;
    }
  }
  return set;
}

void ReplyValue(const Call& call, const Outcome& out) {
  if (out.present) {
    call.reply().Bulk(out.value);
  } else {
    call.reply().Null();
  }
}

std::string_view Decimal(int64_t number, Scratch& scratch) {
  char* const at = scratch.Allocate(kDecimalBytesMax);
  return {at, static_cast<size_t>(WriteDecimal(at, number) - at)};
}

Plan PlanAdd(const Call& call, Batch& batch, std::string_view delta) {
  batch.Apply(call.arg(1), functions::kAddDecimal, delta);
  return Plan::Requests();
}

// Puts all pairs of the arguments into the batch.
void PutPairs(const Call& call, Batch& batch) {
  for (size_t i = 1; i + 1 < call.args().size(); i += 2) batch.Put(call.arg(i), call.arg(i + 1));
}

// False, and the error sent, if keys and values do not pair up.
bool HavePairs(const Call& call) {
  if (call.args().size() % 2 == 1) return true;
  call.Error("ERR wrong number of arguments for '" + std::string(call.command().name) +
             "' command");
  return false;
}

}  // namespace

Plan PlanGet(const Call& call, Batch& batch) {
  batch.Get(call.arg(1));
  return Plan::Requests();
}

Plan PlanLength(const Call& call, Batch& batch) {
  batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = call.arg(1), .other = {}});
  return Plan::Requests();
}

Plan PlanSet(const Call& call, Batch& batch) {
  const auto set = ParseSet(call.args());
  if (!set) return Plan::Error(kSyntaxError);
  Request request{.op = set->op, .key = call.arg(1), .value = call.arg(2), .other = {}};
  if (set->get) request.flags = Request::kReturnPrevious;
  batch.Add(request);
  return Plan::Requests();
}

Plan PlanSetNx(const Call& call, Batch& batch) {
  batch.Insert(call.arg(1), call.arg(2));
  return Plan::Requests();
}

Plan PlanGetSet(const Call& call, Batch& batch) {
  batch.Put(call.arg(1), call.arg(2), Request::kReturnPrevious);
  return Plan::Requests();
}

Plan PlanGetDel(const Call& call, Batch& batch) {
  batch.Delete(call.arg(1), Request::kReturnPrevious);
  return Plan::Requests();
}

Plan PlanAppend(const Call& call, Batch& batch) {
  batch.Apply(call.arg(1), functions::kAppend, call.arg(2));
  return Plan::Requests();
}

Plan PlanIncr(const Call& call, Batch& batch) { return PlanAdd(call, batch, "1"); }
Plan PlanDecr(const Call& call, Batch& batch) { return PlanAdd(call, batch, "-1"); }

Plan PlanIncrBy(const Call& call, Batch& batch) {
  if (!ParseInt64(call.arg(2))) return Plan::Error(kNotAnInteger);
  return PlanAdd(call, batch, call.arg(2));
}

Plan PlanDecrBy(const Call& call, Batch& batch) {
  const auto by = ParseInt64(call.arg(2));
  if (!by) return Plan::Error(kNotAnInteger);
  if (*by == INT64_MIN) return Plan::Error("ERR decrement would overflow");
  return PlanAdd(call, batch, Decimal(-*by, batch.scratch()));
}

void FinishValue(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  ReplyValue(call, out);
}

void FinishSet(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  const Request& request = batch.requests()[slot];
  if (call.Refused(out)) return;
  if (request.has(Request::kReturnPrevious)) {
    ReplyValue(call, out);
  } else if (out.verdict == Verdict::kDone) {
    call.reply().SimpleString("OK");
  } else {
    call.reply().Null();
  }
}

void FinishWhether(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (!call.Refused(out)) call.reply().Integer(out.verdict == Verdict::kDone ? 1 : 0);
}

void FinishInteger(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (!call.Refused(out)) call.reply().Integer(out.integer);
}

void RunMget(Call& call) {
  Batch batch(Batch::Kind::kAtomic);
  for (const std::string_view key : call.args().subspan(1)) batch.Get(key);
  call.Execute(batch);
  if (call.Refused(batch)) return;
  call.reply().Array(batch.size());
  for (uint32_t slot = 0; slot < batch.size(); ++slot) FinishValue(call, batch, slot);
}

void RunMset(Call& call) {
  if (!HavePairs(call)) return;
  Batch batch(Batch::Kind::kAtomic);
  PutPairs(call, batch);
  call.Execute(batch);
  if (!call.Refused(batch)) call.reply().SimpleString("OK");
}

void RunMsetNx(Call& call) {
  if (!HavePairs(call)) return;
  Batch batch(Batch::Kind::kAtomic);
  for (size_t i = 1; i < call.args().size(); i += 2) batch.RequireAbsent(call.arg(i));
  PutPairs(call, batch);
  call.Execute(batch);
  if (!call.Refused(batch)) call.reply().Integer(batch.applied() ? 1 : 0);
}

}  // namespace skep::commands
