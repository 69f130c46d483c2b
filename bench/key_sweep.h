// key_sweep.h: operations on each key of a set once: all loaded keys, or those that a thread has
// inserted.
#pragma once

#include <cstdint>

#include "bench/op_stream.h"
#include "bench/ycsb_workload.h"

namespace skep::bench {

// The numbers 0 .. items-1, each once, in an order that is neither theirs nor that of the keys.
class SweepOrder {
 public:
  // `items` > 0. `seed` decides where the order begins.
  SweepOrder(uint64_t items, uint64_t seed);
  // Returns the number at `index`, which is counted modulo the items.
  uint64_t at(uint64_t index) const;

 private:
  uint64_t items_;
  uint64_t first_;
  uint64_t stride_;
};

// Takes keys 0 .. items-1, each once as long as all threads together take no more than `items`:
// thread t of T takes those at t, t + T, ... of the order.
class KeySweep final : public OpSource {
 public:
  // `items` > 0, `threads` > `thread`.
  KeySweep(OpKind kind, uint64_t items, uint32_t thread, uint32_t threads, uint64_t seed)
      : kind_(kind), order_(items, seed), next_(thread), step_(threads) {}
  void Fill(OpStream& stream, size_t count) override;

 private:
  const OpKind kind_;
  const SweepOrder order_;
  uint64_t next_;
  const uint64_t step_;
};

// Takes the keys that a thread has inserted, the first one first, with OpGenerator's numbers.
class InsertedKeys final : public OpSource {
 public:
  InsertedKeys(OpKind kind, uint64_t records, uint32_t thread, uint32_t threads)
      : kind_(kind), next_(records + thread), step_(threads) {}
  void Fill(OpStream& stream, size_t count) override;

 private:
  const OpKind kind_;
  uint64_t next_;
  const uint64_t step_;
};

}  // namespace skep::bench
