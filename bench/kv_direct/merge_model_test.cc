#include "bench/kv_direct/merge_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace skep::bench {
namespace {

// Merges by definition: a block is aligned, wholly free, and not part of a larger one.
MergedBlocks MergeSlowly(const std::set<uint32_t>& free) {
  const auto is_free = [&](uint32_t first, uint32_t slots) {
    for (uint32_t i = 0; i < slots; ++i) {
      if (!free.contains(first + i)) return false;
    }
    return true;
  };
  MergedBlocks blocks;
  for (const uint32_t slot : free) {
    uint32_t c = 0;
    while (c + 1 < kMergeClasses && is_free(slot >> (c + 1) << (c + 1), 2u << c)) ++c;
    if (slot % (1u << c) == 0) blocks[c].push_back(slot);
  }
  return blocks;
}

// Goal: both ways find exactly the blocks that exist, on one thread and on more.
// Method: random sets of slots, from none to all, in random order; runs among them.
TEST(MergeModel, BothWaysFindEveryBlock) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  for (int round = 0; round < 60; ++round) {
    const uint64_t slot_count = 64 << rng() % 9;
    const uint64_t of_ten = rng() % 11;
    std::set<uint32_t> free;
    for (uint32_t slot = 0; slot < slot_count;) {
      const auto run = static_cast<uint32_t>(1 + rng() % (round % 3 == 0 ? 1 : 40));
      const bool is_free = rng() % 10 < of_ten;
      for (const uint32_t end = slot + run; slot < end && slot < slot_count; ++slot) {
        if (is_free) free.insert(slot);
      }
    }
    std::vector<uint32_t> shuffled(free.begin(), free.end());
    std::ranges::shuffle(shuffled, rng);
    const MergedBlocks wanted = MergeSlowly(free);
    for (const uint32_t threads : {1, 2, 3}) {
      EXPECT_EQ(MergeByBitmap(shuffled, slot_count, threads), wanted) << slot_count;
      EXPECT_EQ(MergeBySort(shuffled, slot_count, threads), wanted) << slot_count;
    }
  }
}

}  // namespace
}  // namespace skep::bench
