#include "hash/slabs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace skep::hash {
namespace {

struct Block {
  SlabAddress at;
  uint32_t size_class;
};

class SlabsTest : public testing::Test {
 protected:
  SlabsTest() : arena_({.budget = &budget_, .pages = Pages::kPlain}), slabs_(arena_, cache_) {}
  ~SlabsTest() override {
    slabs_.DropAll();
    EXPECT_STREQ(slabs_.Verify(), nullptr);
    arena_.Flush(cache_);
    EXPECT_EQ(arena_.Statistics().allocated_bytes, 0u);
  }

  // Allocates slabs until memory is refused.
  std::vector<Block> Fill(uint32_t size_class) {
    std::vector<Block> blocks;
    while (const SlabAddress at = slabs_.Allocate(size_class, Arena::Limit::kObey)) {
      blocks.push_back({.at = at, .size_class = size_class});
    }
    return blocks;
  }
  void FreeAll(std::vector<Block>& blocks) {
    for (const Block& block : blocks) slabs_.Free(block.size_class, block.at);
    blocks.clear();
  }

  MemoryBudget budget_;
  Arena arena_;
  Arena::Cache cache_;
  Slabs slabs_;
};

TEST_F(SlabsTest, ClassesAreTheSmallestThatFit) {
  for (size_t bytes = 1; bytes <= Slabs::kSlabBytesMax; ++bytes) {
    const uint32_t size_class = Slabs::ClassOf(bytes);
    EXPECT_GE(Slabs::BytesOf(size_class), bytes);
    EXPECT_TRUE(size_class == 0 || Slabs::BytesOf(size_class - 1) < bytes);
  }
}

// Goal: slabs are aligned, never overlap, and the account balances, whatever is allocated and
// freed.
// Method: random storms: phases that mostly allocate or mostly free, of one class or all, with
// flushes between; every slab is filled with bytes of its own, which are still there when it is
// freed. A failure prints its seed.
TEST_F(SlabsTest, RandomStorms) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  std::vector<Block> live;
  uint64_t used = 0;
  const auto mark = [](SlabAddress at) { return static_cast<int>(at * 7 % 251); };
  for (int phase = 0; phase < 60; ++phase) {
    const uint64_t allocates = rng() % 11;  // of ten
    const uint32_t only = static_cast<uint32_t>(rng() % (2 * Slabs::kClasses));
    for (int step = 0; step < 2000; ++step) {
      if (rng() % 10 < allocates) {
        const uint32_t c = only < Slabs::kClasses ? only : static_cast<uint32_t>(rng() % 5);
        const SlabAddress at = slabs_.Allocate(c, Arena::Limit::kObey);
        ASSERT_NE(at, 0u);
        ASSERT_EQ(at % (1u << c), 0u);
        std::memset(slabs_.At(at), mark(at), Slabs::BytesOf(c));
        live.push_back({.at = at, .size_class = c});
        used += Slabs::BytesOf(c);
      } else if (!live.empty()) {
        std::swap(live[rng() % live.size()], live.back());
        const Block block = live.back();
        live.pop_back();
        for (size_t i = 0; i < Slabs::BytesOf(block.size_class); ++i) {
          ASSERT_EQ(static_cast<int>(slabs_.At(block.at)[i]), mark(block.at));
        }
        slabs_.Free(block.size_class, block.at);
        used -= Slabs::BytesOf(block.size_class);
      }
    }
    if (rng() % 4 == 0) slabs_.Flush();
    ASSERT_STREQ(slabs_.Verify(), nullptr);
    ASSERT_EQ(slabs_.used_bytes(), used);
    std::map<SlabAddress, uint32_t> by_address;
    for (const Block& block : live) by_address[block.at] = block.size_class;
    SlabAddress end = 0;
    for (const auto& [at, size_class] : by_address) {
      ASSERT_GE(at, end);
      end = at + (1u << size_class);
    }
  }
  FreeAll(live);
  slabs_.Flush();
  EXPECT_EQ(slabs_.span_count(), 0u);
}

// Goal: memory freed in one class serves every other one: small slabs merge, large ones split.
// Method: under a limit that does not grow, all memory is filled with one class and freed, then
// with another; as much fits as if it were fresh.
TEST_F(SlabsTest, FreedMemoryServesEveryClass) {
  budget_.set_limit(40 * Slabs::kSpanBytes);
  for (const uint32_t from : {0u, 2u, 4u}) {
    for (const uint32_t to : {0u, 1u, 3u, 4u}) {
      std::vector<Block> blocks = Fill(from);
      const size_t bytes = blocks.size() * Slabs::BytesOf(from);
      EXPECT_GT(bytes, 38 * Slabs::kSpanBytes);
      FreeAll(blocks);
      std::vector<Block> others = Fill(to);
      EXPECT_GT(others.size() * Slabs::BytesOf(to), 38 * Slabs::kSpanBytes) << from << to;
      FreeAll(others);
      EXPECT_STREQ(slabs_.Verify(), nullptr);
    }
  }
}

// Goal: spans that are wholly free go back although others are in use; spans with a used slab do
// not.
// Method: of each span's worth of slabs all are freed but one, then that one.
TEST_F(SlabsTest, FreeSpansGoBack) {
  std::vector<Block> kept;
  std::vector<Block> freed;
  for (int i = 0; i < 20'000; ++i) {
    const Block block = {.at = slabs_.Allocate(1, Arena::Limit::kObey), .size_class = 1};
    (i % 1000 == 0 ? kept : freed).push_back(block);
  }
  const uint64_t spans = slabs_.span_count();
  EXPECT_GE(spans, 20u);
  FreeAll(freed);
  slabs_.Flush();
  EXPECT_LE(slabs_.span_count(), kept.size());
  EXPECT_GE(slabs_.span_count(), kept.size() / 2);
  FreeAll(kept);
  slabs_.Flush();
  EXPECT_EQ(slabs_.span_count(), 0u);
}

// Goal: at the limit free memory is used up to the last slab, and an allocation that may exceed
// gets more.
TEST_F(SlabsTest, TheLimitRefuses) {
  budget_.set_limit(Slabs::kSpanBytes);
  std::vector<Block> blocks = Fill(4);
  EXPECT_EQ(blocks.size(), Slabs::kSpanBytes / 512 - 1);  // one has the header
  std::vector<Block> rest = Fill(0);
  EXPECT_GT(rest.size(), 0u);
  EXPECT_EQ(slabs_.free_bytes(), 0u);
  EXPECT_EQ(slabs_.Allocate(2, Arena::Limit::kObey), 0u);
  const SlabAddress more = slabs_.Allocate(2, Arena::Limit::kExceed);
  EXPECT_NE(more, 0u);
  slabs_.Free(2, more);
  FreeAll(blocks);
  FreeAll(rest);
}

TEST_F(SlabsTest, FreeingTwiceStops) {
  const SlabAddress at = slabs_.Allocate(0, Arena::Limit::kObey);
  slabs_.Free(0, at);
  EXPECT_DEATH(
      {
        slabs_.Free(0, at);
        slabs_.Flush();
      },
      "");
}

}  // namespace
}  // namespace skep::hash
