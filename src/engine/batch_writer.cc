#include "engine/batch_writer.h"

#include <algorithm>

namespace skep {

void BatchWriter::AbortPart(const Part& part, uint32_t culprit) {
  for (uint32_t slot = part.begin; slot < part.end; ++slot) {
    if (slot == culprit) continue;
    batch_.outcomes_[slot] = Outcome{};
    batch_.outcomes_[slot].verdict = Verdict::kAborted;
    batch_.outcomes_[slot].status = Status(Code::kAborted, "the batch was not applied");
  }
}

void BatchWriter::AbortAllBut(uint32_t culprit) {
  const auto size = static_cast<uint32_t>(batch_.outcomes_.size());
  AbortPart({.begin = 0, .end = size, .is_first = true}, culprit);
  batch_.applied_ = false;
}

void BatchWriter::LeaveOut(uint32_t slot) {
  if (IsPostponing()) return Postpone(slot);
  if (batch_.work_bytes() > batch_.work_bytes_max_) {
    return Refuse(slot,
                  {Code::kTooLarge, "the values that a batch looks at exceed the maximum size",
                   batch_.work_bytes_max_});
  }
  RefuseAnswer(slot);
}

void CopyOutcome(const Batch& from, uint32_t slot, BatchWriter& to, uint32_t to_slot) {
  to.outcome(to_slot) = from.outcome(slot);
  to.outcome(to_slot).value = to.scratch().Copy(from.outcome(slot).value);
  if (from.outcome(slot).pinned != 0) to.Pin(to_slot, from.pinned(slot));
  to.BeginItems(to_slot);
  for (const Item& item : from.items(slot)) to.AddItem(to_slot, item);
}

Status CheckSizes(const Request& request, const EngineTraits& traits) {
  if (IsRange(request.op)) return {};  // bounds may have any length
  if (request.op == Op::kDeleteAll || request.op == Op::kSample || request.op == Op::kWalk) {
    return {};
  }
  if (request.key.size() > traits.key_bytes_max) {
    return {Code::kTooLarge, "key exceeds the maximum size", traits.key_bytes_max};
  }
  if (request.op == Op::kMove && request.other.size() > traits.key_bytes_max) {
    return {Code::kTooLarge, "key exceeds the maximum size", traits.key_bytes_max};
  }
  const bool moves = request.op == Op::kMove;
  if (request.key.size() < traits.key_bytes_min ||
      (moves && request.other.size() < traits.key_bytes_min)) {
    return {Code::kInvalidArgument, "key is shorter than those of this keyspace",
            traits.key_bytes_min};
  }
  const bool applies = request.op == Op::kApply;
  const size_t value_bytes_max = applies ? traits.operand_bytes_max() : traits.value_bytes_max;
  if (request.value.size() > value_bytes_max) {
    return {Code::kTooLarge, "value exceeds the maximum size", value_bytes_max};
  }
  const bool stores =
      request.op == Op::kPut || request.op == Op::kInsert || request.op == Op::kUpdate;
  if (stores && request.value.size() < traits.value_bytes_min) {
    return {Code::kInvalidArgument, "value is shorter than those of this keyspace",
            traits.value_bytes_min};
  }
  return {};
}

namespace {

Status CheckSupport(const Request& request, const Batch& batch, const EngineTraits& traits) {
  if (batch.kind() == Batch::Kind::kAtomic && !traits.atomic) {
    return {Code::kNotSupported, "this engine has no atomic batches"};
  }
  if (IsRange(request.op) && !traits.ordered && !CountsAll(request)) {
    return {Code::kNotSupported, "this engine has no order"};
  }
  const bool writes_range = request.op == Op::kDeleteAll || request.op == Op::kDeleteRange ||
                            request.op == Op::kExpireRange;
  if (writes_range && !traits.range_writes) {
    return {Code::kNotSupported, "this engine writes one key at a time"};
  }
  if (request.op == Op::kSample && !traits.samples) {
    return {Code::kNotSupported, "this engine has no samples"};
  }
  if (request.op == Op::kWalk && !traits.walks) {
    return {Code::kNotSupported, "this engine has no walks"};
  }
  if (request.op == Op::kApply && !traits.functions) {
    return {Code::kNotSupported, "this engine has no functions"};
  }
  const bool is_typed =
      request.type != kPlainType || (request.op == Op::kApply && request.function != nullptr &&
                                     request.function->type != kPlainType);
  if (is_typed && !traits.types) {
    return {Code::kNotSupported, "this engine has plain values only: strings"};
  }
  const bool expires = request.op == Op::kExpire || request.op == Op::kExpireRange ||
                       (request.deadline_ms != 0 && request.deadline_ms != kKeepDeadline);
  if (expires && !traits.expiry) {
    return {Code::kNotSupported, "this engine has no deadlines"};
  }
  return {};
}

// Checks deadlines, and the conditions an operation may carry.
Status CheckWhen(const Request& request) {
  const bool expires = request.op == Op::kExpire || request.op == Op::kExpireRange;
  const bool keeps = request.deadline_ms == kKeepDeadline;
  if (request.deadline_ms > kDeadlineMax && (!keeps || expires)) {
    return {Code::kInvalidArgument, "the deadline is too late", kDeadlineMax};
  }
  const bool compares =
      request.op == Op::kPut || request.op == Op::kUpdate || request.op == Op::kDelete;
  constexpr uint8_t kOfValue = Request::kHasNoDeadline - 1;
  const int of_value = request.when & kOfValue;
  if ((of_value != 0 && !compares) || (request.when > kOfValue && !expires)) {
    return {Code::kInvalidArgument, "a condition that this operation cannot have"};
  }
  // The comparisons share the operand `other`.
  if ((of_value & (of_value - 1)) != 0) {
    return {Code::kInvalidArgument, "an operation compares its value once"};
  }
  return {};
}

Status CheckForm(const Request& request, const Batch& batch) {
  if (IsCondition(request.op) && batch.kind() != Batch::Kind::kAtomic) {
    return {Code::kInvalidArgument, "a condition needs an atomic batch"};
  }
  if (request.op == Op::kMove && batch.kind() != Batch::Kind::kAtomic) {
    return {Code::kInvalidArgument, "a move needs an atomic batch"};
  }
  if (request.op == Op::kWalk && batch.kind() == Batch::Kind::kAtomic) {
    return {Code::kInvalidArgument, "a walk is not of one instant, as an atomic batch is"};
  }
  if (batch.snapshot().id != 0 && request.op == Op::kWalk) {
    return {Code::kInvalidArgument, "a snapshot has no walks"};
  }
  if (batch.snapshot().id != 0 && request.op == Op::kRequireUnchanged) {
    return {Code::kInvalidArgument, "a snapshot has no watches"};
  }
  if (batch.snapshot().id != 0 && request.op == Op::kSample) {
    return {Code::kInvalidArgument, "a snapshot has no samples"};
  }
  if (request.has(Request::kSeekFloor) && request.has(Request::kReverse)) {
    return {Code::kInvalidArgument, "a scan from the floor goes forward"};
  }
  if (request.op == Op::kApply && request.function == nullptr) {
    return {Code::kInvalidArgument, "no such function"};
  }
  const bool is_chained = request.op == Op::kApply && request.has(Request::kOperandOfSlot);
  if (is_chained && batch.kind() != Batch::Kind::kAtomic) {
    return {Code::kInvalidArgument, "an operand of another slot needs an atomic batch"};
  }
  return CheckWhen(request);
}

}  // namespace

Status CheckBatch(const Batch& batch, const EngineTraits& traits) {
  if (!batch.part_begins().empty() && batch.kind() != Batch::Kind::kAtomic) {
    return {Code::kInvalidArgument, "only an atomic batch has parts"};
  }
  if (batch.snapshot().id == 0) return {};
  if (!traits.snapshots) return {Code::kNotSupported, "this engine has no snapshots"};
  const auto writes = [](const Request& request) { return IsWrite(request.op); };
  if (std::ranges::any_of(batch.requests(), writes)) {
    return {Code::kInvalidArgument, "a snapshot can only be read"};
  }
  return {};
}

Status CheckRequest(const Request& request, const Batch& batch, const EngineTraits& traits) {
  if (Status s = CheckSupport(request, batch, traits); !s.ok()) return s;
  if (Status s = CheckForm(request, batch); !s.ok()) return s;
  return CheckSizes(request, traits);
}

}  // namespace skep
