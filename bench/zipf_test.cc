#include "bench/zipf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace skep::bench {
namespace {

// Returns the law itself: the probability of each rank.
std::vector<double> ZipfLaw(uint64_t items, double theta) {
  std::vector<double> law(items);
  double sum = 0;
  for (uint64_t rank = 0; rank < items; ++rank) {
    law[rank] = std::pow(static_cast<double>(rank + 1), -theta);
    sum += law[rank];
  }
  for (double& probability : law) probability /= sum;
  return law;
}

// Returns Pearson's statistic in units of its own deviation: about -3..3 for a right sampler, and
// growing with the number of draws for a wrong one.
double ChiSquareSigmas(const std::vector<uint64_t>& counts, const std::vector<double>& law,
                       double draws) {
  double statistic = 0;
  for (size_t i = 0; i < law.size(); ++i) {
    const double expected = law[i] * draws;
    const double off = static_cast<double>(counts[i]) - expected;
    statistic += off * off / expected;
  }
  const double freedom = static_cast<double>(law.size() - 1);
  return (statistic - freedom) / std::sqrt(2 * freedom);
}

// Goal: ranks follow the law exactly, for few and many items and away from 0.99 too.
// Method: chi-square over all ranks with fixed seeds; the bound is generous to chance, but Gray's
// approximation (what YCSB draws with) misses it by far.
TEST(Zipf, FollowsTheLaw) {
  constexpr int kDraws = 2'000'000;
  for (double theta : {0.5, 0.99, 1.5}) {
    for (uint64_t items : {2, 3, 10, 1000}) {
      SCOPED_TRACE(testing::Message() << "theta " << theta << " items " << items);
      SeededRandom random(items);
      Zipf zipf(items, theta);
      std::vector<uint64_t> counts(items);
      for (int i = 0; i < kDraws; ++i) {
        const uint64_t rank = zipf.Draw(random);
        ASSERT_LT(rank, items);
        ++counts[rank];
      }
      EXPECT_LT(std::abs(ChiSquareSigmas(counts, ZipfLaw(items, theta), kDraws)), 5);
    }
  }
}

TEST(Zipf, OneItem) {
  SeededRandom random(1);
  Zipf zipf(1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(zipf.Draw(random), 0u);
}

// Goal: Resize makes the same sampler as construction does.
TEST(Zipf, ResizeEqualsMaking) {
  SeededRandom first(5), second(5);
  Zipf resized(3), made(12345);
  resized.Resize(12345);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(resized.Draw(first), made.Draw(second));
}

// Goal: over YCSB's ten thousand million items the head has YCSB's own frequencies.
// Method: YCSB's constant for the sum of all terms (ZETAN of ScrambledZipfianGenerator) gives the
// probabilities of the first ranks; five standard deviations.
TEST(Zipf, HeadOfTheVirtualItems) {
  constexpr double kZetaN = 26.46902820178302;
  constexpr int kDraws = 2'000'000;
  SeededRandom random(7);
  Zipf zipf(ScrambledZipf::kVirtualItems);
  std::vector<uint64_t> counts(20);
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t rank = zipf.Draw(random);
    ASSERT_LT(rank, ScrambledZipf::kVirtualItems);
    if (rank < counts.size()) ++counts[rank];
  }
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    const double expected = kDraws / kZetaN / std::pow(static_cast<double>(rank + 1), 0.99);
    EXPECT_NEAR(static_cast<double>(counts[rank]), expected, 5 * std::sqrt(expected)) << rank;
  }
}

// Goal: the scrambling is YCSB's.
// Method: the keys of YCSB's first two records, as its documentation and its clients show them.
TEST(ScrambleFnv, IsYcsbs) {
  EXPECT_EQ(ScrambleFnv(0), 6284781860667377211u);
  EXPECT_EQ(ScrambleFnv(1), 8517097267634966620u);
}

// Goal: every item can be chosen, the hottest is where the hash puts rank 0, and it is as hot as
// the law says (its share of the virtual items, plus what else falls on it by chance).
TEST(ScrambledZipf, CoversAllItems) {
  constexpr uint64_t kItems = 1000;
  constexpr int kDraws = 1'000'000;
  SeededRandom random(11);
  ScrambledZipf zipf(kItems);
  std::vector<uint64_t> counts(kItems);
  for (int i = 0; i < kDraws; ++i) ++counts.at(zipf.Draw(random));
  EXPECT_GT(*std::ranges::min_element(counts), 0u);
  const auto hottest = static_cast<uint64_t>(std::ranges::max_element(counts) - counts.begin());
  EXPECT_EQ(hottest, ScrambleFnv(0) % kItems);
  EXPECT_NEAR(static_cast<double>(counts[hottest]) / kDraws, 1 / 26.469, 0.002);
}

}  // namespace
}  // namespace skep::bench
