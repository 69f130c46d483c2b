#include "engine/partial_batch.h"

#include <optional>
#include <vector>

#include "engine/batch_writer.h"

namespace skep {
namespace {

// A part that is not executed, and the slot because of which it is not.
struct Left {
  Part part;
  uint32_t culprit;
  Status status;
};

std::vector<Left> LeftOut(const Batch& batch, const std::function<Status(uint32_t)>& why_not) {
  const bool is_atomic = batch.kind() == Batch::Kind::kAtomic;
  std::vector<Left> left_out;
  ForEachPart(batch, [&](const Part& part) {
    for (uint32_t slot = part.begin; slot < part.end; ++slot) {
      const Status status = why_not(slot);
      if (status.ok()) continue;
      const Part whole = is_atomic ? part : Part{.begin = slot, .end = slot + 1, .is_first = false};
      left_out.push_back({.part = whole, .culprit = slot, .status = status});
      if (is_atomic) break;
    }
    return true;
  });
  return left_out;
}

Version AbortAll(Engine& engine, Batch& batch, const Left& because) {
  Batch nothing;
  nothing.set_now_ms(batch.now_ms());
  const Version ticket = engine.Execute(nothing);  // lets time pass, although all is refused
  BatchWriter writer(batch);
  writer.Refuse(because.culprit, because.status);
  writer.AbortAllBut(because.culprit);
  return ticket;
}

// Executes all parts but those that are left out, which are ascending.
Version ExecuteRest(Engine& engine, Batch& batch, const std::vector<Left>& left_out) {
  Batch rest(batch.kind());
  rest.set_snapshot(batch.snapshot());
  rest.set_now_ms(batch.now_ms());
  rest.set_scan_bytes_max(batch.scan_bytes_max());
  rest.set_scan_visits_max(batch.scan_visits_max());
  rest.set_answer_bytes_max(batch.answer_bytes_max());
  rest.set_returned_bytes_max(batch.returned_bytes_max());
  rest.set_work_bytes_max(batch.work_bytes_max());
  const bool is_atomic = batch.kind() == Batch::Kind::kAtomic;
  if (is_atomic) rest.set_portion_bytes_max(batch.portion_bytes_max());
  BatchWriter writer(batch);
  rest.set_notes_effects(writer.notes_effects());
  std::vector<bool> is_left_out(batch.size());
  for (const Left& left : left_out) {
    for (uint32_t slot = left.part.begin; slot < left.part.end; ++slot) is_left_out[slot] = true;
  }
  size_t parts = 0;
  // Where the slots are in the rest; those left out nowhere.
  std::vector<uint32_t> places(batch.size(), kNoLimit);
  std::vector<uint32_t> slots;  // of the requests of the rest
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    for (; parts < batch.part_begins().size() && batch.part_begins()[parts] == slot; ++parts) {
      rest.BeginPart();
    }
    if (is_left_out[slot]) continue;
    Request request = batch.requests()[slot];
    const bool is_chained = request.op == Op::kApply && request.has(Request::kOperandOfSlot);
    if (is_chained && request.limit < slot) request.limit = places[request.limit];
    places[slot] = rest.Add(request);
    slots.push_back(slot);
  }
  const Version ticket = engine.Execute(rest);
  writer.CountWork(rest.work_bytes());
  std::optional<uint32_t> culprit;
  for (uint32_t from = 0; from < slots.size(); ++from) {
    if (rest.outcome(from).verdict != Verdict::kAborted) culprit = slots[from];
    CopyOutcome(rest, from, writer, slots[from]);
  }
  for (const Effect& effect : rest.effects()) writer.NoteAgain(slots[effect.slot], effect);
  const bool is_postponed =
      is_atomic && !slots.empty() && rest.outcome(0).verdict == Verdict::kPostponed;
  if (is_postponed) {
    for (uint32_t slot = 0; slot < batch.size(); ++slot) writer.Postpone(slot);
    writer.set_applied(false);
    return ticket;
  }
  if (!rest.applied()) {
    if (!culprit) {  // the snapshot is gone, and no executed request can say so
      culprit = left_out[0].culprit;
      writer.Refuse(*culprit, left_out[0].status);
    }
    writer.AbortAllBut(*culprit);
    return ticket;
  }
  for (const Left& left : left_out) {
    writer.Refuse(left.culprit, left.status);
    writer.AbortPart(left.part, left.culprit);
  }
  return ticket;
}

}  // namespace

Version ExecutePartly(Engine& engine, Batch& batch,
                      const std::function<Status(uint32_t slot)>& why_not) {
  const std::vector<Left> left_out = LeftOut(batch, why_not);
  if (left_out.empty()) return engine.Execute(batch);
  const bool is_atomic = batch.kind() == Batch::Kind::kAtomic;
  if (is_atomic && left_out[0].part.is_first) return AbortAll(engine, batch, left_out[0]);
  return ExecuteRest(engine, batch, left_out);
}

}  // namespace skep
