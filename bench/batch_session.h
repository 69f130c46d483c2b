// batch_session.h: a benchmark's operations as one reused skep::Batch.
#pragma once

#include <string_view>

#include "bench/record_format.h"
#include "bench/ycsb_target.h"
#include "skep/batch.h"

namespace skep::bench {

// Batches are unordered. A read-modify-write is a read and a write of one key in one batch, which
// keeps their order; as in YCSB, the value written does not depend on the one read.
class BatchSession : public YcsbSession {
 public:
  // `values` must outlive the session.
  explicit BatchSession(const ValuePool& values) : values_(values) {}

  Status Execute(const OpStream& stream, size_t first, size_t count, Tally& tally) final;

 private:
  // Runs the batch until its outcomes are released. Nothing else may be done with it meanwhile.
  virtual Status Run(Batch& batch) = 0;

  void Add(const YcsbOp& op, std::string_view value);
  // Checks the slots of operation `index` of the batch; returns the slot behind them.
  uint32_t Check(const YcsbOp& op, size_t index, uint32_t slot, Tally& tally) const;
  // Null if the outcome is what the operation must get.
  const char* Complaint(const YcsbOp& op, const Outcome& outcome) const;
  uint64_t ChecksumOf(size_t index, uint32_t slot) const;

  const ValuePool& values_;
  Batch batch_;
};

}  // namespace skep::bench
