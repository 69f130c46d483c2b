// key_sweep.h: operations that take each key of a set once: all that are loaded, or those that a
// thread has inserted.
#pragma once

#include <cstdint>

#include "bench/op_stream.h"
#include "bench/ycsb_workload.h"

namespace skep::bench {

// Takes keys 0 .. items-1, each once as long as no more than `items` are taken by all threads
// together, in an order that is neither that of the numbers nor that of the keys.
class KeySweep final : public OpSource {
 public:
  // `items` > 0, `threads` > `thread`. `seed` says where the sweep begins.
  KeySweep(OpKind kind, uint64_t items, uint32_t thread, uint32_t threads, uint64_t seed);
  void Fill(OpStream& stream, size_t count) override;

 private:
  // (base + times * step) modulo items.
  uint64_t Modulo(uint64_t base, uint64_t times, uint64_t step) const;

  const OpKind kind_;
  const uint64_t items_;
  uint64_t next_;
  uint64_t step_;
};

// Takes the keys a thread has inserted, the first one first: numbers as OpGenerator gives them.
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
