#include "bench/batch_session.h"

#include "base/clock.h"
#include "bench/answer_checksum.h"

// The clock runs during the loops of Execute, so their functions are of this file, for inlining.
namespace skep::bench {
namespace {

// `index`: the operation's, in its stream; it decides which value a write stores.
void Add(const YcsbOp& op, const ValuePool& values, size_t index, Batch& batch) {
  switch (op.kind) {
    case OpKind::kRead:
      batch.Get(op.key);
      break;
    case OpKind::kUpdate:
      batch.Put(op.key, values.at(index));
      break;
    case OpKind::kInsert:
      batch.Insert(op.key, values.at(index));
      break;
    case OpKind::kReadModifyWrite:
      batch.Get(op.key);
      batch.Put(op.key, values.at(index));
      break;
    case OpKind::kDelete:
      batch.Delete(op.key);
      break;
    case OpKind::kScan:
      batch.Scan(Range::From(op.key), {.limit = op.scan_items});
      break;
  }
}

// Returns what is wrong with an outcome that its operation must not have.
const char* Complaint(const Outcome& outcome) {
  switch (outcome.verdict) {
    case Verdict::kDone:
      return "a value or a scan has the wrong size, or a write was not done";
    case Verdict::kAbsent:
      return "a key that was inserted is absent";
    case Verdict::kExists:
      return "a key was there before it was inserted";
    case Verdict::kMismatch:
      return "an impossible verdict";
    case Verdict::kAborted:
      return "an unordered batch was aborted";
    case Verdict::kPostponed:
      return "a batch without a bound of work was postponed";
    case Verdict::kRefused:
      return outcome.status.what();
  }
  return "an unknown verdict";
}

uint64_t SumOfItems(const Batch& batch, uint32_t slot) {
  uint64_t sum = 0;
  for (const Item& item : batch.items(slot)) sum = AddItem(sum, item.key, item.value);
  return sum;
}

// Checks the slots of operation `index` of the batch; returns the slot behind them.
uint32_t Check(const YcsbOp& op, const ValuePool& values, size_t index, const Batch& batch,
               uint32_t slot, Tally& tally) {
  const Outcome& outcome = batch.outcome(slot);
  bool good = outcome.verdict == Verdict::kDone;
  uint32_t next = slot + 1;
  if (op.kind == OpKind::kScan) {
    tally.items_scanned += outcome.item_count;
    tally.checksum += ChecksumOfScan(index, SumOfItems(batch, slot));
    good &= outcome.item_count > 0 && outcome.item_count <= op.scan_items;
  } else if (op.kind == OpKind::kRead || op.kind == OpKind::kReadModifyWrite) {
    tally.checksum += ChecksumOfValue(index, outcome.value);
    good &= values.IsSizeOfValue(outcome.value.size());
    if (op.kind == OpKind::kReadModifyWrite) {
      good &= batch.outcome(next++).verdict == Verdict::kDone;
    }
  }
  if (!good) [[unlikely]]
    tally.CountError(Complaint(outcome));
  return next;
}

}  // namespace

Status BatchSession::Execute(const OpStream& stream, size_t first, size_t count, Tally& tally) {
  batch_.Clear();
  for (size_t i = first; i < first + count; ++i) Add(stream.at(i), values_, i, batch_);
  const uint64_t begin_ns = SystemClock().MonotonicNs();
  if (Status status = Run(batch_); !status.ok()) return status;
  tally.target_ns += SystemClock().MonotonicNs() - begin_ns;
  uint32_t slot = 0;
  for (size_t i = 0; i < count; ++i) {
    slot = Check(stream.at(first + i), values_, i, batch_, slot, tally);
  }
  return {};
}

}  // namespace skep::bench
