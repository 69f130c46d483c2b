#include "bench/batch_session.h"

#include "bench/answer_checksum.h"

namespace skep::bench {

Status BatchSession::Execute(const OpStream& stream, size_t first, size_t count, Tally& tally) {
  batch_.Clear();
  for (size_t i = first; i < first + count; ++i) Add(stream.at(i), values_.at(i));
  if (Status status = Run(batch_); !status.ok()) return status;
  uint32_t slot = 0;
  for (size_t i = 0; i < count; ++i) slot = Check(stream.at(first + i), i, slot, tally);
  return {};
}

void BatchSession::Add(const YcsbOp& op, std::string_view value) {
  switch (op.kind) {
    case OpKind::kRead:
      batch_.Get(op.key);
      break;
    case OpKind::kUpdate:
      batch_.Put(op.key, value);
      break;
    case OpKind::kInsert:
      batch_.Insert(op.key, value);
      break;
    case OpKind::kReadModifyWrite:
      batch_.Get(op.key);
      batch_.Put(op.key, value);
      break;
    case OpKind::kDelete:
      batch_.Delete(op.key);
      break;
    case OpKind::kScan:
      batch_.Scan(Range::From(op.key), {.limit = op.scan_items});
      break;
  }
}

uint32_t BatchSession::Check(const YcsbOp& op, size_t index, uint32_t slot, Tally& tally) const {
  const Outcome& outcome = batch_.outcome(slot);
  const char* wrong = Complaint(op, outcome);
  tally.items_scanned += outcome.item_count;
  tally.checksum += ChecksumOf(index, slot);
  if (op.kind == OpKind::kReadModifyWrite) {
    ++slot;
    if (wrong == nullptr && batch_.outcome(slot).verdict != Verdict::kDone) wrong = "not stored";
  }
  if (wrong != nullptr) tally.CountError(wrong);
  return slot + 1;
}

const char* BatchSession::Complaint(const YcsbOp& op, const Outcome& outcome) const {
  switch (outcome.verdict) {
    case Verdict::kDone:
      break;
    case Verdict::kAbsent:
      return "a key that was inserted is absent";
    case Verdict::kExists:
      return "a key was there before it was inserted";
    case Verdict::kMismatch:
      return "an impossible verdict";
    case Verdict::kAborted:
      return "an unordered batch was aborted";
    case Verdict::kRefused:
      return outcome.status.what();
  }
  const bool reads = op.kind == OpKind::kRead || op.kind == OpKind::kReadModifyWrite;
  if (reads && outcome.value.size() != values_.value_bytes()) {
    return "a value has the wrong size";
  }
  if (op.kind == OpKind::kScan && (outcome.item_count == 0 || outcome.item_count > op.scan_items)) {
    return "a scan returned a wrong number of items";
  }
  return nullptr;
}

uint64_t BatchSession::ChecksumOf(size_t index, uint32_t slot) const {
  const Outcome& outcome = batch_.outcome(slot);
  if (outcome.item_count == 0) return ChecksumOfValue(index, outcome.value);
  uint64_t sum = 0;
  size_t position = 0;
  for (const Item& item : batch_.items(slot)) {
    sum += ChecksumOfItem(position++, item.key, item.value);
  }
  return ChecksumOfScan(index, sum);
}

}  // namespace skep::bench
