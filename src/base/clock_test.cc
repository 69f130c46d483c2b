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
// two dates no machine that runs this can be outside of.
TEST(SystemClock, UnitsAgree) {
  Clock& clock = SystemClock();
  const uint64_t before_ns = clock.MonotonicNs();
  const uint64_t ms = clock.MonotonicMs();
  const uint64_t after_ns = clock.MonotonicNs();
  EXPECT_GE(ms, before_ns / 1'000'000);
  EXPECT_LE(ms, after_ns / 1'000'000);

  constexpr uint64_t k2020Ms = 1'577'836'800'000;
  constexpr uint64_t k2200Ms = 7'258'118'400'000;
  EXPECT_GT(clock.TimeMs(), k2020Ms);
  EXPECT_LT(clock.TimeMs(), k2200Ms);
}

class SetClock final : public Clock {
 public:
  uint64_t MonotonicNs() override { return monotonic_ns; }
  uint64_t WallUs() override { return wall_us; }
  void Pass(uint64_t ms) {
    monotonic_ns += ms * 1'000'000;
    wall_us += ms * 1'000;
  }

  uint64_t monotonic_ns = 5'000'000'000;
  uint64_t wall_us = 1'700'000'000'000'000;
};

// Goal: the time that limits are measured by follows the wall clock forward, and never back.
// Method: steps both ways; while it is set back it goes on at its pace, and meets the wall clock
// again when that has caught up.
TEST(Clock, TimeNeverGoesBack) {
  SetClock clock;
  const uint64_t start = clock.TimeMs();
  EXPECT_EQ(start, 1'700'000'000'000u);
  clock.Pass(10);
  EXPECT_EQ(clock.TimeMs(), start + 10);
  clock.wall_us += 1'000'000;
  EXPECT_EQ(clock.TimeMs(), start + 1010);
  clock.wall_us -= 60'000'000;
  EXPECT_EQ(clock.TimeMs(), start + 1010);
  clock.Pass(5);
  EXPECT_EQ(clock.TimeMs(), start + 1015);
  clock.wall_us += 60'000'000;
  EXPECT_EQ(clock.TimeMs(), start + 1015);
  clock.wall_us += 2'000;
  EXPECT_EQ(clock.TimeMs(), start + 1017);
}

}  // namespace
}  // namespace skep
