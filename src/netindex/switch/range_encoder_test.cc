#include "netindex/switch/range_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "netindex/switch/testing/switch_world.h"

namespace skep::netindex {
namespace {

constexpr uint64_t kGreatest = ~uint64_t{0};

// Looks a number up as the stages of a switch do; checks that exactly one entry matches in each.
uint32_t LookUp(const std::vector<RangeStage>& stages, uint32_t chunk_bits, uint64_t number) {
  uint32_t table = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    const uint64_t chunk =
        number >> (stages.size() - s - 1) * chunk_bits & ((uint64_t{1} << chunk_bits) - 1);
    const auto matches = [&](const RangeEntry& entry) {
      return entry.table == table && entry.low <= chunk && chunk <= entry.high;
    };
    EXPECT_EQ(std::ranges::count_if(stages[s], matches), 1);
    const RangeEntry& entry = *std::ranges::find_if(stages[s], matches);
    if (!entry.is_table) return entry.result;
    table = entry.result;
  }
  ADD_FAILURE() << "the last stage has no result";
  return 0;
}

uint32_t TablesOf(const RangeStage& stage) { return stage.empty() ? 0 : stage.back().table + 1; }

// Goal: the paper's example (figure 4): 4, 9 and 8 entries in 1, 3 and 4 tables.
TEST(RangeEncoder, EncodesThePapersExample) {
  const std::vector<uint64_t> uppers = {10, 14, 37, 56, 63};
  const auto stages = EncodeRanges(uppers, 3, 2);
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].size(), 4u);
  EXPECT_EQ(stages[1].size(), 9u);
  EXPECT_EQ(stages[2].size(), 8u);
  EXPECT_EQ(TablesOf(stages[0]), 1u);
  EXPECT_EQ(TablesOf(stages[1]), 3u);
  EXPECT_EQ(TablesOf(stages[2]), 4u);
  for (uint64_t number = 0; number < 64; ++number) {
    EXPECT_EQ(LookUp(stages, 2, number), std::ranges::lower_bound(uppers, number) - uppers.begin());
  }
}

// Goal: every number is found in its range, and no stage is larger than its bound.
// Method: random borders, close together or far apart, also 0, neighbours, and below 2^48.
TEST(RangeEncoder, FindsEachNumberWithinItsBounds) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  for (int round = 0; round < 60; ++round) {
    std::set<uint64_t> borders = {kGreatest};
    const int shift = round % 3 == 0 ? 16 : 0;
    for (size_t n = rng() % 100; borders.size() <= n;) borders.insert(RandomKey(rng) >> shift);
    if (round % 2 == 0) borders.insert({0, 1, 2});
    const std::vector<uint64_t> uppers(borders.begin(), borders.end());
    const auto stages = EncodeRanges(uppers);
    const size_t n = uppers.size();
    EXPECT_LE(stages[0].size(), 2 * n);
    EXPECT_LE(stages[1].size(), 3 * n);
    EXPECT_LE(stages[2].size(), 3 * n);
    EXPECT_LE(stages[3].size(), 2 * n);
    for (size_t i = 0; i < n; ++i) {
      for (const uint64_t number : {uppers[i] - 1, uppers[i], uppers[i] + 1, RandomKey(rng)}) {
        ASSERT_EQ(LookUp(stages, 16, number),
                  std::ranges::lower_bound(uppers, number) - uppers.begin())
            << number;
      }
    }
  }
}

// Goal: the paper's bound of 2 n entries a stage does not hold, ours is nearly reached.
TEST(RangeEncoder, NeedsThreeEntriesARange) {
  std::vector<uint64_t> uppers;
  for (uint64_t i = 1; i <= 16; ++i) uppers.push_back(kGreatest / 17 * i + i);
  uppers.push_back(kGreatest);
  const auto stages = EncodeRanges(uppers);
  EXPECT_GT(stages[1].size(), 2 * uppers.size());
  EXPECT_LE(stages[1].size(), 3 * (uppers.size() - 1));
}

TEST(RangeEncoder, EncodesOneRange) {
  const std::vector<uint64_t> uppers = {kGreatest};
  const auto stages = EncodeRanges(uppers);
  EXPECT_EQ(stages[0], (RangeStage{{0, 0, 0xffff, false, 0}}));
  EXPECT_TRUE(stages[1].empty());
}

}  // namespace
}  // namespace skep::netindex
