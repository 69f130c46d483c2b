#include "engine/batch_writer.h"

#include <algorithm>

namespace skep {

void BatchWriter::AbortAllBut(uint32_t culprit) {
  for (uint32_t slot = 0; slot < batch_.outcomes_.size(); ++slot) {
    if (slot == culprit) continue;
    batch_.outcomes_[slot] = Outcome{};
    batch_.outcomes_[slot].verdict = Verdict::kAborted;
    batch_.outcomes_[slot].status = Status(Code::kAborted, "the batch was not applied");
  }
  batch_.applied_ = false;
}

namespace {

Status CheckSizes(const Request& request, const EngineTraits& traits) {
  if (IsRange(request.op)) return {};  // bounds may have any length
  if (request.key.size() > traits.key_bytes_max) {
    return {Code::kTooLarge, "key exceeds the maximum size", traits.key_bytes_max};
  }
  if (request.value.size() > traits.value_bytes_max) {
    return {Code::kTooLarge, "value exceeds the maximum size", traits.value_bytes_max};
  }
  return {};
}

Status CheckSupport(const Request& request, const Batch& batch, const EngineTraits& traits) {
  if (batch.kind() == Batch::Kind::kAtomic && !traits.atomic) {
    return {Code::kNotSupported, "this engine has no atomic batches"};
  }
  if (IsRange(request.op) && !traits.ordered) {
    return {Code::kNotSupported, "this engine has no order"};
  }
  if (request.op == Op::kApply && !traits.functions) {
    return {Code::kNotSupported, "this engine has no functions"};
  }
  return {};
}

Status CheckForm(const Request& request, const Batch& batch) {
  if (IsCondition(request.op) && batch.kind() != Batch::Kind::kAtomic) {
    return {Code::kInvalidArgument, "a condition needs an atomic batch"};
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
  return {};
}

}  // namespace

Status CheckBatch(const Batch& batch, const EngineTraits& traits) {
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
