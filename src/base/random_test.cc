#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace skep {
namespace {

// Goal: a seed means the same stream on every machine and in every build.
// Method: the first words for seed 0, from a second implementation in another language.
TEST(SeededRandom, IsXoshiro256StarStar) {
  SeededRandom random(0);
  EXPECT_EQ(random.Next(), 0x99ec5f36cb75f2b4);
  EXPECT_EQ(random.Next(), 0xbf6e1f784956452a);
  EXPECT_EQ(random.Next(), 0x1a5f849d4933e6e0);
  EXPECT_EQ(random.Next(), 0x6aa594f1262d2d2c);
}

// Goal: neighbouring seeds give unrelated streams.
// Method: a thousand streams share no word among their first eight.
TEST(SeededRandom, SeedsDiffer) {
  std::set<uint64_t> words;
  for (uint64_t seed = 0; seed < 1'000; ++seed) {
    SeededRandom random(seed);
    for (int i = 0; i < 8; ++i) words.insert(random.Next());
  }
  EXPECT_EQ(words.size(), 8'000);
}

// Goal: Below is in range and uniform; Chance is as likely as it says.
// Method: 100 000 draws from ten values: each count is within six standard deviations (95) of its
// mean, so a right generator fails once in about 10^8 seeds.
TEST(Random, BelowIsUniform) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  std::array<int, 10> counts = {};
  int chances = 0;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t drawn = random.Below(counts.size());
    ASSERT_LT(drawn, counts.size());
    ++counts[drawn];
    chances += random.Chance(1, 10);
  }
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 6 * 95);
  EXPECT_NEAR(chances, 10'000, 6 * 95);
}

TEST(Random, BelowOneIsZeroAndChancesCanBeCertain) {
  SeededRandom random(1);
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_EQ(random.Below(1), 0);
    ASSERT_TRUE(random.Chance(1, 1));
    ASSERT_FALSE(random.Chance(0, 1));
  }
}

// Goal: the kernel's words do not repeat, within a thread's buffer, past it, or between threads.
// Method: four threads draw 1000 words each: 64-bit words collide with a chance of 10^-12.
TEST(SystemRandom, WordsAreDistinctInAllThreads) {
  std::set<uint64_t> words;
  Mutex mutex;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      std::vector<uint64_t> mine;
      for (int k = 0; k < 1'000; ++k) mine.push_back(SystemRandom().Next());
      const MutexLock lock(mutex);
      words.insert(mine.begin(), mine.end());
    });
  }
  threads.clear();
  EXPECT_EQ(words.size(), 4'000);
}

}  // namespace
}  // namespace skep
