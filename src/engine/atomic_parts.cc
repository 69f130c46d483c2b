#include "engine/atomic_parts.h"

namespace skep {

bool JudgeMove(const Request& r, const std::optional<PointState>& from, bool other_is_present,
               BatchWriter& out, uint32_t slot) {
  Outcome& outcome = out.outcome(slot);
  outcome = {.verdict = Verdict::kDone, .present = from.has_value()};
  if (!from) {
    outcome.verdict = Verdict::kAbsent;
    return false;
  }
  outcome.deadline_ms = from->deadline_ms;
  outcome.type = from->type;
  if (r.has(Request::kKeepExisting) && other_is_present) {
    outcome.verdict = Verdict::kExists;
    return false;
  }
  return r.key != r.other;
}

std::optional<Watches::Seen> JudgeUnchanged(const Request& r, const Watches& watches,
                                            uint64_t now_ms, BatchWriter& out, uint32_t slot) {
  const auto seen = watches.Judge(r.watch, r.key, now_ms);
  if (!seen) {
    out.Refuse(slot, {Code::kInvalidArgument, "no such watch"});
    return std::nullopt;
  }
  out.outcome(slot) = {.verdict = seen->unchanged ? Verdict::kDone : Verdict::kMismatch,
                       .version = seen->version};
  return seen;
}

Version NumberWrites(const Batch& batch, SequenceNumbers& numbers, BatchWriter& out) {
  if (!numbers.wanted()) return 0;
  Version number = 0;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    Outcome& outcome = out.outcome(slot);
    if (!IsWrite(batch.requests()[slot].op) || outcome.verdict != Verdict::kDone) continue;
    if (number == 0) number = numbers.Draw();
    outcome.version = number;
  }
  return number;
}

}  // namespace skep
