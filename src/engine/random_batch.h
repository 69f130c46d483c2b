// random_batch.h: random batches whose answers are determined, for tests.
//
// An unordered batch promises no order between operations on different keys, so its scans and
// counts have one right answer only if the batch does not write what they see. Three forms do:
//   points alone, also many on one key; reads alone, ranges included; and points below a pivot with
//   one operation on the range above it.
// Atomic batches act in slot order: anything goes.
#pragma once

#include <random>
#include <string_view>

#include "skep/batch.h"

namespace skep {

class RandomBatch {
 public:
  explicit RandomBatch(uint64_t seed);

  // Adds requests to an empty batch. Their bytes live in the batch's scratch.
  void Fill(Batch& batch);
  // The same, but reads only, without conditions: for snapshots.
  void FillWithReads(Batch& batch);

  uint64_t Below(uint64_t bound) { return rng_() % bound; }

 private:
  enum class Side : uint8_t { kBelowPivot, kAbovePivot, kAnywhere };

  void AddPoint(Batch& batch, Side side);
  void AddRead(Batch& batch);
  void AddScan(Batch& batch, Side side);
  void AddRange(Batch& batch, Side side);
  void AddCondition(Batch& batch);
  void Add(Batch& batch, Request request);
  Range ARange(Batch& batch, Side side);
  std::string_view Key(Batch& batch, Side side);
  std::string_view Value(Batch& batch);
  uint32_t Limit();

  std::mt19937_64 rng_;
};

// Registered once in the process: reverses the value and returns the old one; by the operand:
// "erase" erases it, "keep" keeps it, "fail" is an error (kInvalidArgument).
const Function* ReverseFunction();

}  // namespace skep
