// scanned_leaves.h: a thread's sample of the leaves whose logs its scans have gone through.
//
// A scan puts the log items that it passes into the order of their keys, each time anew. So leaves
// that are scanned and no longer written should have no log (log_merger.h). Which leaves these are
// a scan may not note in the leaf, nor anywhere that other threads write. Each thread counts the
// log items that it passes; the leaf in which the count comes to kItemsASample is sampled, and the
// count begins again. So a leaf is sampled in proportion to the work that its log makes, and there
// is at most one sample for kItemsASample log items.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "btree/link.h"

namespace skep::btree {

// Owner: the thread whose state it is part of. Nothing allocates.
class ScannedLeaves {
 public:
  // Passing so many log items costs more than twice what merging one leaf does. A prime, so that a
  // scan that is repeated does not sample the same leaf each time.
  static constexpr uint32_t kItemsASample = 127;
  // Further samples are left out until those that there are have been taken.
  static constexpr uint32_t kSamplesMax = 32;

  struct Sample {
    Link leaf;
    uint64_t word;  // of the leaf's node when the scan came to it
  };

  // Notes that a scan goes through `log_items` items of the log of a leaf.
  void Pass(uint32_t log_items, Link leaf, uint64_t word) {
    passed_ += log_items;
    if (passed_ < kItemsASample) return;
    passed_ %= kItemsASample;
    if (count_ < kSamplesMax) samples_[count_++] = {.leaf = leaf, .word = word};
  }
  bool empty() const { return count_ == 0; }
  // Takes all samples. They are valid until the next call of Pass().
  std::span<const Sample> Take() {
    const std::span<const Sample> taken(samples_.data(), count_);
    count_ = 0;
    return taken;
  }

 private:
  std::array<Sample, kSamplesMax> samples_;
  uint32_t count_ = 0;
  uint32_t passed_ = 0;  // log items since the last sample, below kItemsASample
};

}  // namespace skep::btree
