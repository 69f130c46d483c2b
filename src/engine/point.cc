#include "engine/point.h"

namespace skep {
namespace {

// Whether the operation may act on the value it finds.
Verdict Judge(const Request& r, std::optional<std::string_view> now) {
  switch (r.op) {
    case Op::kInsert:
    case Op::kRequireAbsent:
      return now ? Verdict::kExists : Verdict::kDone;
    case Op::kPut:
      return Verdict::kDone;
    default:
      break;
  }
  if (!now) return Verdict::kAbsent;
  switch (r.op) {
    case Op::kCompareAndSet:
    case Op::kRequireValue:
      return r.other == *now ? Verdict::kDone : Verdict::kMismatch;
    case Op::kCompareDigestAndSet:
    case Op::kRequireDigest:
      return r.digest == DigestOf(*now) ? Verdict::kDone : Verdict::kMismatch;
    default:
      return Verdict::kDone;
  }
}

PointEffect ApplyFunction(const Request& r, std::optional<std::string_view> now,
                          size_t value_bytes_max, BatchWriter& out, uint32_t slot) {
  const FunctionEffect effect =
      r.function->body({.value = now, .operand = r.value, .scratch = &out.scratch()});
  Status status = effect.status;
  if (status.ok() && effect.action == FunctionEffect::Action::kReplace &&
      effect.value.size() > value_bytes_max) {
    status = {Code::kTooLarge, "value exceeds the maximum size", value_bytes_max};
  }
  if (!status.ok()) {
    out.Refuse(slot, status);
    return {};
  }
  Outcome& outcome = out.outcome(slot);
  outcome.verdict = Verdict::kDone;
  outcome.integer = effect.integer;
  // It may be a view of the value that is about to change.
  outcome.value = out.scratch().Copy(effect.returned);
  switch (effect.action) {
    case FunctionEffect::Action::kKeep:
      return {};
    case FunctionEffect::Action::kErase:
      return {.action = now ? PointEffect::Action::kErase : PointEffect::Action::kKeep};
    case FunctionEffect::Action::kReplace:
      return {.action = PointEffect::Action::kStore, .value = effect.value};
  }
  return {};
}

}  // namespace

PointEffect ApplyPoint(const Request& r, std::optional<std::string_view> now,
                       size_t value_bytes_max, BatchWriter& out, uint32_t slot) {
  Outcome& outcome = out.outcome(slot);
  outcome = Outcome{.present = now.has_value()};
  if (r.op == Op::kApply) return ApplyFunction(r, now, value_bytes_max, out, slot);
  outcome.verdict = Judge(r, now);
  const bool done = outcome.verdict == Verdict::kDone;
  if (r.op == Op::kGet && r.has(Request::kNoValue)) {
    if (now) outcome.integer = static_cast<int64_t>(now->size());
    return {};
  }
  const bool returns =
      r.op == Op::kGet || r.has(Request::kReturnPrevious) || outcome.verdict == Verdict::kMismatch;
  if (now && returns) outcome.value = out.scratch().Copy(*now);
  if (!done || !IsWrite(r.op)) return {};
  if (r.op == Op::kDelete) return {.action = PointEffect::Action::kErase};
  return {.action = PointEffect::Action::kStore, .value = r.value};
}

}  // namespace skep
