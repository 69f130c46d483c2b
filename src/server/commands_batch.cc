// Conditional commands, each one round trip: KCAS, DELEX, DIGEST, MSETEX, KBATCH.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/decimal.h"
#include "server/batch_args.h"
#include "server/commands.h"
#include "server/compare_args.h"
#include "server/expiry_args.h"

namespace skep::commands {
namespace {

// The slot after the last one of an atomic command that begins at `slot`: the command is a batch or
// a part of its own.
uint32_t EndOf(const Batch& batch, uint32_t slot) {
  const auto parts = batch.part_begins();
  const auto next = std::ranges::upper_bound(parts, slot);
  return next == parts.end() ? static_cast<uint32_t>(batch.size()) : *next;
}

void ReplySeen(const Call& call, const Outcome& out) {
  if (out.present) {
    call.reply().Bulk(out.value);
  } else {
    call.reply().Null();
  }
}

// ---- MSETEX ----

struct MsetExArgs {
  size_t pairs = 0;
  std::optional<Op> condition;  // condition on every key
  uint64_t deadline_ms = 0;
};

// MSETEX count key value [key value ...] [NX | XX] [expiry]. Returns an error text or an empty one.
std::string_view ParseMsetEx(const Call& call, Scratch& scratch, MsetExArgs& out) {
  const auto args = call.args();
  const auto count = ParseInt64(args[1]);
  if (!count || *count < 1 || *count > INT32_MAX) return "ERR invalid numkeys value";
  out.pairs = static_cast<size_t>(*count);
  if (2 + 2 * out.pairs > args.size()) return "ERR wrong number of key-value pairs";
  ExpiryOption expiry;
  for (size_t i = 2 + 2 * out.pairs; i < args.size();) {
    if (expiry.Read(args, i, ExpiryOption::kTime | ExpiryOption::kKeep)) continue;
    const bool nx = EqualsIgnoringCase(args[i], "nx");
    if (!nx && !EqualsIgnoringCase(args[i], "xx")) return kSyntaxError;
    const Op condition = nx ? Op::kRequireAbsent : Op::kRequirePresent;
    if (out.condition && out.condition != condition) return kSyntaxError;
    out.condition = condition;
    ++i;
  }
  return expiry.Resolve(call.now(), call.command().name, scratch, out.deadline_ms);
}

// ---- KBATCH ----

// The slots of a KBATCH: first its conditions, then its operations.
struct KbatchSlots {
  uint32_t begin, operations, end;

  KbatchSlots(const Batch& batch, uint32_t slot)
      : begin(slot), operations(slot), end(EndOf(batch, slot)) {
    while (operations < end && IsCondition(batch.requests()[operations].op)) ++operations;
  }
};

// Replies with the error of a refused slot, which the error names. Errors whose code is not ERR
// keep their text, because clients know it.
void ReplyRefused(const Call& call, const Outcome& out, const KbatchSlots& slots, uint32_t slot) {
  const Code code = out.status.code();
  if (code == Code::kOutOfMemory || code == Code::kSnapshotTooOld || code == Code::kIo ||
      code == Code::kMoved) {
    return call.Error(out.status);
  }
  const bool condition = slot < slots.operations;
  call.Error(fmt::format("ERR KBATCH {} {}: {}", condition ? "condition" : "operation",
                         slot - (condition ? slots.begin : slots.operations), out.status.what()));
}

// Replies to a condition that does not hold: 0 and [its index, the key, the value seen].
void ReplyFailed(const Call& call, const Batch& batch, const KbatchSlots& slots, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  const Request& request = batch.requests()[slot];
  RespWriter reply = call.reply();
  reply.Array(2);
  reply.Integer(0);
  reply.Array(3);
  reply.Integer(slot - slots.begin);
  if (request.op == Op::kRequireEmpty) {
    reply.Bulk(out.value);  // for a range: its first key
    reply.Null();
  } else {
    reply.Bulk(request.key);
    ReplySeen(call, out);
  }
}

void ReplyOperation(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  switch (batch.requests()[slot].op) {
    case Op::kPut:
      return call.reply().SimpleString("OK");
    case Op::kGet:
      return ReplySeen(call, out);
    case Op::kDelete:
    case Op::kExpire:
      return call.reply().Integer(out.verdict == Verdict::kDone ? 1 : 0);
    default:
      return call.reply().Integer(out.integer);
  }
}

}  // namespace

Plan PlanDelEx(const Call& call, Batch& batch) {
  const auto args = call.args();
  if (args.size() != 2 && args.size() != 4) {
    return Plan::Error(batch.scratch().Copy(WrongCountError(call.command())));
  }
  Request request{.op = Op::kDelete, .key = args[1], .other = {}};
  CompareOption compare;
  size_t i = 2;
  if (args.size() == 4 && !compare.Read(args, i)) {
    return Plan::Error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
  }
  if (!compare.Apply(request)) return Plan::Error(kNotADigest);
  batch.Add(request);
  return Plan::Requests();
}

void FinishDigest(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  if (!out.present) return call.reply().Null();
  const auto text = DigestText(DigestOf(out.value));
  call.reply().Bulk({text.data(), text.size()});
}

Plan PlanKcas(const Call& call, Batch& batch) {
  const auto args = call.args();
  ExpiryOption expiry;
  for (size_t i = 4; i < args.size();) {
    if (!expiry.Read(args, i, ExpiryOption::kTime | ExpiryOption::kKeep)) {
      return Plan::Error(kSyntaxError);
    }
  }
  Request request{.op = Op::kUpdate,
                  .when = Request::kEquals,
                  .key = args[1],
                  .value = args[3],
                  .other = args[2]};
  const auto error =
      expiry.Resolve(call.now(), call.command().name, batch.scratch(), request.deadline_ms);
  if (!error.empty()) return Plan::Error(error);
  batch.Add(request);
  return Plan::Requests();
}

void FinishKcas(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  const bool stored = out.verdict == Verdict::kDone;
  call.reply().Array(2);
  call.reply().Integer(stored ? 1 : 0);
  if (stored) return call.reply().Null();
  ReplySeen(call, out);
}

Plan PlanMsetEx(const Call& call, Batch& batch) {
  MsetExArgs mset;
  const auto error = ParseMsetEx(call, batch.scratch(), mset);
  if (!error.empty()) return Plan::Error(error);
  const auto pairs = call.args().subspan(2, 2 * mset.pairs);
  for (size_t i = 0; mset.condition && i < pairs.size(); i += 2) {
    batch.Add({.op = *mset.condition, .key = pairs[i], .other = {}});
  }
  for (size_t i = 0; i < pairs.size(); i += 2) {
    batch.Add({.op = Op::kPut,
               .key = pairs[i],
               .value = pairs[i + 1],
               .other = {},
               .deadline_ms = mset.deadline_ms});
  }
  return Plan::Requests();
}

void FinishMsetEx(const Call& call, const Batch& batch, uint32_t slot) {
  const uint32_t end = EndOf(batch, slot);
  if (call.Refused(batch, slot, end - slot)) return;
  // The puts come last, and one of them is done only if all are.
  call.reply().Integer(batch.outcome(end - 1).verdict == Verdict::kDone ? 1 : 0);
}

Plan PlanKbatch(const Call& call, Batch& batch) {
  Batch requests(Batch::Kind::kAtomic);
  const auto error = ParseKbatch(call.args().subspan(1), call.now(), batch.scratch(), requests);
  if (!error.empty()) return Plan::Error(error);
  for (const Request& request : requests.requests()) batch.Add(request);
  return Plan::Requests();
}

void FinishKbatch(const Call& call, const Batch& batch, uint32_t slot) {
  const KbatchSlots slots(batch, slot);
  for (uint32_t s = slots.begin; s < slots.end; ++s) {
    const Outcome& out = batch.outcome(s);
    if (out.verdict == Verdict::kRefused) return ReplyRefused(call, out, slots, s);
    const bool failed = out.verdict != Verdict::kDone && out.verdict != Verdict::kAborted;
    if (s < slots.operations && failed) return ReplyFailed(call, batch, slots, s);
  }
  call.reply().Array(2);
  call.reply().Integer(1);
  call.reply().Array(slots.end - slots.operations);
  for (uint32_t s = slots.operations; s < slots.end; ++s) ReplyOperation(call, batch, s);
}

}  // namespace skep::commands
