// Commands about values: GET and SET and their kin, counters.
#include <climits>
#include <optional>

#include "base/decimal.h"
#include "base/float_text.h"
#include "engine/string_functions.h"
#include "server/bit_args.h"
#include "server/commands.h"
#include "server/compare_args.h"
#include "server/expiry_args.h"

namespace skep::commands {
namespace {

struct SetArgs {
  Op op = Op::kPut;
  bool get = false;
  CompareOption compare;  // only with kPut
  ExpiryOption expiry;
};

// SET key value option...; nullopt on a syntax error.
std::optional<SetArgs> ParseSet(std::span<const std::string_view> args) {
  SetArgs set;
  for (size_t i = 3; i < args.size();) {
    if (set.op == Op::kPut && set.compare.Read(args, i)) continue;
    if (set.expiry.Read(args, i, ExpiryOption::kTime | ExpiryOption::kKeep)) continue;
    const std::string_view arg = args[i++];
    if (EqualsIgnoringCase(arg, "get")) {
      set.get = true;
    } else if (EqualsIgnoringCase(arg, "nx") && set.op != Op::kUpdate && !set.compare.given()) {
      set.op = Op::kInsert;
    } else if (EqualsIgnoringCase(arg, "xx") && set.op != Op::kInsert && !set.compare.given()) {
      set.op = Op::kUpdate;
    } else {
      return std::nullopt;
    }
  }
  return set;
}

void ReplyValue(const Call& call, const Batch& batch, uint32_t slot) {
  if (batch.outcome(slot).present) {
    call.Bulk(batch, slot);
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

// MSET and MSETNX: adds the puts of all pairs, after the conditions.
Plan PlanPairs(const Call& call, Batch& batch, bool only_if_absent) {
  const size_t words = call.args().size();
  if (words % 2 == 0) return Plan::Error(batch.scratch().Copy(WrongCountError(call.command())));
  for (size_t i = 1; only_if_absent && i < words; i += 2) batch.RequireAbsent(call.arg(i));
  for (size_t i = 1; i < words; i += 2) batch.Put(call.arg(i), call.arg(i + 1));
  return Plan::Requests();
}

}  // namespace

Plan PlanGet(const Call& call, Batch& batch) {
  batch.Add({.op = Op::kGet, .key = call.arg(1), .other = {}});
  return Plan::Requests();
}

Plan PlanGetToSend(const Call& call, Batch& batch) {
  batch.Add({.op = Op::kGet, .flags = Request::kMayPin, .key = call.arg(1), .other = {}});
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
  if (set->get) request.flags = Request::kReturnPrevious | Request::kMayPin;
  const auto error =
      set->expiry.Resolve(call.now(), call.command().name, batch.scratch(), request.deadline_ms);
  if (!error.empty()) return Plan::Error(error);
  if (!set->compare.Apply(request)) return Plan::Error(kNotADigest);
  batch.Add(request);
  return Plan::Requests();
}

Plan PlanSetNx(const Call& call, Batch& batch) {
  batch.Insert(call.arg(1), call.arg(2));
  return Plan::Requests();
}

Plan PlanGetSet(const Call& call, Batch& batch) {
  batch.Put(call.arg(1), call.arg(2), Request::kReturnPrevious | Request::kMayPin);
  return Plan::Requests();
}

Plan PlanGetDel(const Call& call, Batch& batch) {
  batch.Delete(call.arg(1), Request::kReturnPrevious | Request::kMayPin);
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

// As in Redis, that the key has no string is told before that the increment is no number.
Plan PlanIncrByFloat(const Call& call, Batch& batch) {
  if (!ParseLongDouble(call.arg(2))) return PlanLength(call, batch);
  batch.Apply(call.arg(1), functions::kAddFloat, call.arg(2));
  return Plan::Requests();
}

void FinishReturned(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (!call.Refused(out)) call.reply().Bulk(out.value);
}

void FinishIncrByFloat(const Call& call, const Batch& batch, uint32_t slot) {
  if (batch.requests()[slot].op != Op::kGet) return FinishReturned(call, batch, slot);
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  call.Error(out.type != kPlainType ? kWrongType : "ERR value is not a valid float");
}

Plan PlanGetRange(const Call& call, Batch& batch) {
  const auto first = ParseInt64(call.arg(2));
  const auto last = ParseInt64(call.arg(3));
  if (!first || !last) return Plan::Error(kNotAnInteger);
  // As in Redis, a part that ends before it begins is empty, also before the value's begin.
  const bool is_empty = *first < 0 && *last < 0 && *first > *last;
  batch.Add({.op = Op::kGet,
             .flags = Request::kByteRange | Request::kMayPin,
             .key = call.arg(1),
             .bytes = {.first = is_empty ? INT64_MAX : *first, .last = *last}});
  return Plan::Requests();
}

void FinishGetRange(const Call& call, const Batch& batch, uint32_t slot) {
  if (!call.Refused(batch.outcome(slot))) call.Bulk(batch, slot);
}

Plan PlanSetRange(const Call& call, Batch& batch) {
  const auto offset = ParseInt64(call.arg(2));
  const std::string_view bytes = call.arg(3);
  if (!offset) return Plan::Error(kNotAnInteger);
  if (*offset < 0) return Plan::Error("ERR offset is out of range");
  // As in Redis, that the key has no string is told before that the string would be too long.
  if (bytes.empty() || *offset > kRedisValueBytesMax - static_cast<int64_t>(bytes.size())) {
    return PlanLength(call, batch);
  }
  batch.Apply(call.arg(1), functions::kSetRange,
              SetRangeOperand(static_cast<uint64_t>(*offset), bytes, batch.scratch()));
  return Plan::Requests();
}

void FinishSetRange(const Call& call, const Batch& batch, uint32_t slot) {
  const bool is_too_long = batch.requests()[slot].op == Op::kGet && !call.arg(3).empty();
  const Outcome& out = batch.outcome(slot);
  if (!is_too_long || out.type != kPlainType) return FinishStrlen(call, batch, slot);
  if (call.Refused(out)) return;
  call.Error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
}

void FinishValue(const Call& call, const Batch& batch, uint32_t slot) {
  if (!call.Refused(batch.outcome(slot))) ReplyValue(call, batch, slot);
}

void FinishSet(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  const Request& request = batch.requests()[slot];
  if (call.Refused(out)) return;
  if (request.has(Request::kReturnPrevious)) {
    ReplyValue(call, batch, slot);
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

void FinishStrlen(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  if (out.type != kPlainType) return call.Error(kWrongType);
  call.reply().Integer(out.integer);
}

Plan PlanMget(const Call& call, Batch& batch) {
  for (const std::string_view key : call.args().subspan(1)) {
    batch.Add({.op = Op::kGet, .flags = Request::kIfOfType | Request::kMayPin, .key = key});
  }
  return Plan::Requests();
}

void FinishMget(const Call& call, const Batch& batch, uint32_t slot) {
  const size_t keys = call.args().size() - 1;
  if (call.Refused(batch, slot, keys)) return;
  call.reply().Array(keys);
  for (size_t i = 0; i < keys; ++i, ++slot) {
    if (batch.outcome(slot).type == kPlainType) {
      ReplyValue(call, batch, slot);
    } else {
      call.reply().Null();
    }
  }
}

Plan PlanMset(const Call& call, Batch& batch) { return PlanPairs(call, batch, false); }
Plan PlanMsetNx(const Call& call, Batch& batch) { return PlanPairs(call, batch, true); }

void FinishMset(const Call& call, const Batch& batch, uint32_t slot) {
  if (!call.Refused(batch, slot, call.args().size() / 2)) call.reply().SimpleString("OK");
}

void FinishMsetNx(const Call& call, const Batch& batch, uint32_t slot) {
  const size_t pairs = call.args().size() / 2;
  if (call.Refused(batch, slot, 2 * pairs)) return;
  // The puts come last, and one of them is done only if all are.
  const Outcome& last = batch.outcome(slot + 2 * static_cast<uint32_t>(pairs) - 1);
  call.reply().Integer(last.verdict == Verdict::kDone ? 1 : 0);
}

}  // namespace skep::commands
