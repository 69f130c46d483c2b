#include "base/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace skep {
namespace {

// Returns the quantile by its definition: the smallest sample with at least `fraction` of all
// samples at or below it.
uint64_t ExactQuantile(const std::vector<uint64_t>& sorted, double fraction) {
  const auto rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

void ExpectWithinError(uint64_t got, uint64_t exact) {
  EXPECT_GE(got, exact);
  EXPECT_LE(got - exact, exact / Histogram::kSubBuckets);
}

// Goal: every value lands in the bucket that ends at or above it, within the promised error.
// Method: both ends of every bucket, computed from LastOf alone.
TEST(Histogram, BucketsTileTheWholeRange) {
  uint64_t first = 0;
  for (size_t bucket = 0; bucket < Histogram::kBuckets; ++bucket) {
    const uint64_t last = Histogram::LastOf(bucket);
    ASSERT_EQ(Histogram::BucketOf(first), bucket);
    ASSERT_EQ(Histogram::BucketOf(last), bucket);
    ASSERT_LE(last - first, first / Histogram::kSubBuckets) << "bucket " << bucket;
    first = last + 1;
  }
  EXPECT_EQ(first, 0u) << "the last bucket must end at the largest value";
}

// Goal: H1 and H2 against sorted samples, over many magnitudes.
// Method: log-uniform samples, so that every power of two is hit; quantiles to p99.99.
TEST(Histogram, AgreesWithSortedSamples) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  Histogram histogram;
  std::vector<uint64_t> samples;
  for (int i = 0; i < 50'000; ++i) {
    samples.push_back(rng() >> (rng() % 64));
    histogram.Record(samples.back());
  }
  std::sort(samples.begin(), samples.end());

  EXPECT_EQ(histogram.count(), samples.size());
  EXPECT_EQ(histogram.max(), samples.back());
  EXPECT_EQ(histogram.Quantile(1.0), samples.back());
  for (double fraction : {0.0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999}) {
    SCOPED_TRACE(fraction);
    ExpectWithinError(histogram.Quantile(fraction), ExactQuantile(samples, fraction));
  }
}

// Goal: merged histograms equal one that recorded all values, and Record(v, n) equals n records.
TEST(Histogram, MergeAndTimesAddUp) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  Histogram whole, left, right;
  for (int i = 0; i < 5'000; ++i) {
    const uint64_t value = rng() % 1'000'000;
    const uint64_t times = rng() % 4;
    for (uint64_t n = 0; n < times; ++n) whole.Record(value);
    (i % 2 == 0 ? left : right).Record(value, times);
  }
  left.Merge(right);
  EXPECT_EQ(left.count(), whole.count());
  EXPECT_EQ(left.max(), whole.max());
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(left.Quantile(i / 100.0), whole.Quantile(i / 100.0));
}

TEST(Histogram, EmptyAndCleared) {
  Histogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), 0u);
  histogram.Record(7, 0);
  EXPECT_EQ(histogram.max(), 0u);
  histogram.Record(UINT64_MAX);
  EXPECT_EQ(histogram.Quantile(0.5), UINT64_MAX);
  histogram.Clear();
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
}

}  // namespace
}  // namespace skep
