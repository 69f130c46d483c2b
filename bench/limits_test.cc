#include "bench/limits.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/cpu.h"
#include "bench/loopback_limit.h"
#include "bench/memory_limits.h"
#include "bench/repeat.h"

namespace skep::bench {
namespace {

// Speeds depend on the machine: these tests check that each loop does the work it claims.

TEST(Repeat, MedianIsTheMiddle) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({4, 1, 3, 2}), 3);
}

TEST(Repeat, RunsEveryRepetition) {
  std::vector<int> seen;
  EXPECT_GE(MedianSeconds(5, [&](int repetition) { seen.push_back(repetition); }), 0);
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 4}));
}

// Goal: the chase visits every line before it returns, so that no line stays cached.
// Method: follow the cycle that it leaves behind.
TEST(MemoryLimits, ChaseIsOneCycleThroughAllLines) {
  auto region = PageRegion::Reserve(1, Pages::kPlain);
  ASSERT_TRUE(region);
  MemoryLimits limits(*region, 1000, 1);
  limits.Touch();
  EXPECT_GT(limits.ChaseNs(), 0);
  const auto* words = reinterpret_cast<const uint64_t*>(region->begin());
  const uint64_t lines = region->size() / kLineBytes;
  uint64_t at = 0;
  uint64_t steps = 0;
  do {
    ASSERT_LT(at, lines);
    at = words[at * kLineBytes / sizeof(uint64_t)];
    ++steps;
  } while (at != 0 && steps <= lines);
  EXPECT_EQ(steps, lines);
}

// Goal: the read-modify-writes reach memory, spread over the region.
// Method: as many as a few for each line; a random choice then leaves hardly a line untouched.
TEST(MemoryLimits, RmwChangesLinesAllOver) {
  auto region = PageRegion::Reserve(1, Pages::kPlain);
  ASSERT_TRUE(region);
  const uint64_t lines = region->size() / kLineBytes;
  MemoryLimits limits(*region, 8 * lines, 1);
  limits.Touch();
  EXPECT_GT(limits.RandomRmwMops(), 0);
  const auto* words = reinterpret_cast<const uint64_t*>(region->begin());
  uint64_t untouched = 0;
  for (uint64_t i = 0; i < lines; ++i) {
    if (words[i * kLineBytes / sizeof(uint64_t)] == 1) ++untouched;
  }
  EXPECT_LT(untouched, lines / 500) << "expected lines / e^8";
}

// Goal: every figure is there, and the thread is unpinned afterwards.
TEST(Limits, SmallRunFillsEveryFigure) {
  const std::vector<int> cores = AllowedCores();
  const auto report =
      MeasureLimits({.bytes = 4 << 20, .reads = 20'000, .round_trips = 50, .repetitions = 5});
  ASSERT_TRUE(report) << report.error().ToString();
  for (double figure :
       {report->address_mops, report->random_read_mops, report->random_rmw_mops,
        report->random_read_4k_mops, report->random_start_3200b_mops, report->chase_ns,
        report->seq_read_gbs, report->loopback_rtt_us, report->loopback_64_mops}) {
    EXPECT_GT(figure, 0);
  }
  EXPECT_GE(report->huge_fraction, 0);
  EXPECT_LE(report->huge_fraction, 1);
  EXPECT_EQ(report->huge_fraction_4k, 0);
  EXPECT_EQ(AllowedCores(), cores);
}

TEST(Limits, RefusesImpossibleSizes) {
  EXPECT_EQ(MeasureLimits({.bytes = kRunBytes}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(MeasureLimits({.bytes = size_t{1} << 40}).error().code(), Code::kInvalidArgument);
}

// Goal: all messages are answered whatever the window, fewer messages than it included.
TEST(Loopback, AnswersEveryWindow) {
  const int core = AllowedCores().front();
  for (uint64_t in_flight : {1, 3, 64, 5000}) {
    for (uint64_t messages : {1, 64, 1000}) {
      const auto seconds = LoopbackSeconds(messages, in_flight, core);
      ASSERT_TRUE(seconds) << seconds.error().ToString();
      EXPECT_GT(*seconds, 0);
    }
  }
}

}  // namespace
}  // namespace skep::bench
