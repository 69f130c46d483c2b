// batch_session.h: executes a benchmark's operations as one reused skep::Batch.
#pragma once

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
  // Executes the batch until its outcomes are released. The batch must not be touched meanwhile.
  virtual Status Run(Batch& batch) = 0;

  const ValuePool& values_;
  Batch batch_;
};

}  // namespace skep::bench
