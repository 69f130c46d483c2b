#include "base/clock.h"

#include <gtest/gtest.h>

namespace skep {
namespace {

// Goal: the monotonic clock never goes back.
// Method: many readings in a row.
TEST(SystemClock, NeverGoesBack) {
  uint64_t last = SystemClock().MonotonicNs();
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t now = SystemClock().MonotonicNs();
    ASSERT_GE(now, last);
    last = now;
  }
}

// Goal: the units are what the names say.
// Method: milliseconds are read between two readings of the finer unit. Wall time must lie between
// two dates outside of which no machine runs this test.
TEST(SystemClock, UnitsAgree) {
  Clock& clock = SystemClock();
  const uint64_t before_ns = clock.MonotonicNs();
  const uint64_t ms = clock.MonotonicMs();
  const uint64_t after_ns = clock.MonotonicNs();
  EXPECT_GE(ms, before_ns / 1'000'000);
  EXPECT_LE(ms, after_ns / 1'000'000);

  constexpr uint64_t k2020Ms = 1'577'836'800'000;
  constexpr uint64_t k2200Ms = 7'258'118'400'000;
  EXPECT_GT(clock.WallMs(), k2020Ms);
  EXPECT_LT(clock.WallMs(), k2200Ms);
}

}  // namespace
}  // namespace skep
