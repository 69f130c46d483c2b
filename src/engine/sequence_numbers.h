// sequence_numbers.h: the order of writes, for a log (EngineOptions::numbers_writes).
//
// A number is drawn while its place (a partition, a leaf) is locked, and all writes done under that
// lock have it; those of one batch to one key are in the order of their slots. So of two writes to
// one key the later one has the higher number, or the same and the higher slot. The locked place
// keeps the number of its last write: no reader of the place has seen a write above it.
#pragma once

#include <atomic>

#include "skep/batch.h"

namespace skep {

// Thread-safe.
class SequenceNumbers {
 public:
  explicit SequenceNumbers(bool wanted) : wanted_(wanted) {}

  bool wanted() const { return wanted_; }
  Version Draw() { return last_.fetch_add(1, std::memory_order_seq_cst) + 1; }
  Version last() const { return last_.load(std::memory_order_seq_cst); }
  // Nothing else may run meanwhile.
  void StartAfter(Version version) {
    if (last() < version) last_.store(version, std::memory_order_seq_cst);
  }

 private:
  const bool wanted_;
  alignas(64) std::atomic<Version> last_{0};
};

}  // namespace skep
