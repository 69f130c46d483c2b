#include "bench/huge_page_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace skep::bench {
namespace {

struct Block {
  unsigned char* at;
  size_t bytes;
  unsigned char fill;
};

bool IsIntact(const Block& block) {
  return std::all_of(block.at, block.at + block.bytes,
                     [&](unsigned char byte) { return byte == block.fill; });
}

// Goal: blocks never overlap, lie on cache lines, and freed ones are used again.
// Method: random allocations and frees of few sizes; each block is filled with a byte of its own,
// which must still be there when it is freed. At most kLive blocks are in use, so that the heap
// must not grow beyond the largest block for each, in each size.
TEST(HugePageHeap, BlocksAreDisjointAndReused) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr size_t kLive = 50;
  constexpr std::array<size_t, 4> kSizes = {1, 64, 65, HugePageHeap::kBlockBytesMax};
  auto heap = HugePageHeap::Open(kLive * 20'000);
  ASSERT_TRUE(heap);
  std::vector<Block> live;
  for (int step = 0; step < 20'000; ++step) {
    if (live.size() < kLive && random() % 2 == 0) {
      const size_t bytes = kSizes[random() % kSizes.size()];
      auto* at = static_cast<unsigned char*>((*heap)->Allocate(bytes));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(at) % HugePageHeap::kUnitBytes, 0u);
      live.push_back({at, bytes, static_cast<unsigned char>(random())});
      std::memset(at, live.back().fill, bytes);
    } else if (!live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      ASSERT_TRUE(IsIntact(live.back()));
      (*heap)->Free(live.back().at, live.back().bytes);
      live.pop_back();
    }
  }
  EXPECT_LE((*heap)->held_bytes(), kLive * (64 + 128 + HugePageHeap::kBlockBytesMax));
}

TEST(HugePageHeapDeath, StopsWhenUsedUp) {
  auto heap = HugePageHeap::Open(1);
  ASSERT_TRUE(heap);
  EXPECT_DEATH(
      {
        for (size_t i = 0; i <= PageRegion::kHugePageBytes / 64; ++i) (*heap)->Allocate(64);
      },
      "check failed");
  EXPECT_DEATH((*heap)->Allocate(HugePageHeap::kBlockBytesMax + 1), "check failed");
}

}  // namespace
}  // namespace skep::bench
