// atomic_parts.h: the steps of an atomic batch that are the same for every engine: the order in
// which its parts and their slots are performed, what happens to a part that fails, and the
// judgements that do not depend on how the engine keeps its keys.
//
//   for each part, in order           ExecuteParts
//     BeginPart(part)
//     Perform(slot)                   the conditions, on the state before the part
//     Perform(slot)                   then the operations, each of which sees those before it
//     FinishPart(part)                the part is applied
//   or TakeBack(part)                 a condition does not hold, an operation was refused, or there
//                                     was no memory
//
// A part that fails is aborted and the next one begins; if the first one fails, nothing is applied.
#pragma once

#include <concepts>
#include <cstdint>
#include <new>
#include <optional>

#include "engine/batch_writer.h"
#include "engine/point.h"
#include "engine/sequence_numbers.h"
#include "engine/watches.h"

namespace skep {

// The engine's side. Perform fills in the outcome of the slot: kRefused also if the request is not
// well-formed. FinishPart returns the slot because of which the part cannot be applied, if there is
// one. TakeBack undoes whatever Perform has done for the part, which may be nothing.
template <typename T>
concept PartPerformer = requires(T& performer, const Part& part, uint32_t slot) {
  performer.BeginPart(part);
  performer.Perform(slot);
  { performer.FinishPart(part) } -> std::same_as<std::optional<uint32_t>>;
  performer.TakeBack(part);
};

// Returns the first slot of the part that stops it, if there is one.
template <PartPerformer Performer>
std::optional<uint32_t> PerformSlots(const Batch& batch, const Part& part, BatchWriter& out,
                                     Performer& performer) {
  for (const bool conditions : {true, false}) {
    for (uint32_t slot = part.begin; slot < part.end; ++slot) {
      if (IsCondition(batch.requests()[slot].op) != conditions) continue;
      performer.Perform(slot);
      const Verdict verdict = out.outcome(slot).verdict;
      if (conditions ? verdict != Verdict::kDone : verdict == Verdict::kRefused) return slot;
    }
  }
  return std::nullopt;
}

// Returns the slot because of which the part was taken back, if it was. If std::bad_alloc is
// thrown, the part was taken back, too.
template <PartPerformer Performer>
std::optional<uint32_t> ExecutePart(const Batch& batch, const Part& part, BatchWriter& out,
                                    Performer& performer) {
  try {
    performer.BeginPart(part);
    auto culprit = PerformSlots(batch, part, out, performer);
    if (!culprit) culprit = performer.FinishPart(part);
    if (culprit) performer.TakeBack(part);
    return culprit;
  } catch (const std::bad_alloc&) {
    performer.TakeBack(part);
    throw;
  }
}

// Fills in the outcomes of an atomic batch. False: its first part failed, so nothing is applied.
// May be called again for the same batch, if all effects of the first call were dropped.
template <PartPerformer Performer>
bool ExecuteParts(const Batch& batch, BatchWriter& out, Performer& performer) {
  out.set_applied(true);
  ForEachPart(batch, [&](const Part& part) {
    const auto culprit = ExecutePart(batch, part, out, performer);
    if (!culprit) return true;
    out.Abort(part, *culprit);
    return !part.is_first;
  });
  return batch.applied();
}

// Judges a kMove whose key is in the state `from` (nullopt: it is absent) and fills in its outcome,
// but for the version. True: value and deadline are to be moved.
bool JudgeMove(const Request& request, const std::optional<PointState>& from, bool other_is_present,
               BatchWriter& out, uint32_t slot);

// Judges a kRequireUnchanged and fills in its outcome. Returns what the watch has seen; nullopt if
// there is no such watch, and the condition is refused.
std::optional<Watches::Seen> JudgeUnchanged(const Request& request, const Watches& watches,
                                            uint64_t now_ms, BatchWriter& out, uint32_t slot);

// Draws one number for all writes of the batch that were done, while the locks of the written keys
// are held (sequence_numbers.h). Returns it; 0: there are no writes, or numbers are not wanted.
Version NumberWrites(const Batch& batch, SequenceNumbers& numbers, BatchWriter& out);

}  // namespace skep
