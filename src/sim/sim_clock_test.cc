#include "sim/sim_clock.h"

#include <gtest/gtest.h>

namespace skep {
namespace {

TEST(SimClock, StandsStillUntilTold) {
  SimClock clock;
  EXPECT_EQ(clock.MonotonicNs(), SimClock::kStartNs);
  EXPECT_EQ(clock.WallUs(), SimClock::kStartWallUs);
  clock.Advance(2'500'000);
  EXPECT_EQ(clock.MonotonicNs(), SimClock::kStartNs + 2'500'000);
  EXPECT_EQ(clock.WallUs(), SimClock::kStartWallUs + 2'500);
}

TEST(SimClock, WallStepsLeaveTheMonotonicClockAlone) {
  SimClock clock;
  clock.StepWall(-3'600'000'000);
  EXPECT_EQ(clock.WallUs(), SimClock::kStartWallUs - 3'600'000'000);
  EXPECT_EQ(clock.MonotonicNs(), SimClock::kStartNs);
  clock.StepWall(3'600'000'001);
  EXPECT_EQ(clock.WallUs(), SimClock::kStartWallUs + 1);
}

TEST(SimClock, VisitsRemindersInOrderAndEachInstantOnce) {
  SimClock clock;
  const uint64_t start = clock.MonotonicNs();
  for (const uint64_t delay : {30, 10, 20, 10, 0}) clock.Remind(start + delay);
  clock.Remind(start - 1);
  for (const uint64_t delay : {10, 20, 30}) {
    EXPECT_EQ(clock.NextReminder(), start + delay);
    ASSERT_TRUE(clock.AdvanceToReminder());
    EXPECT_EQ(clock.MonotonicNs(), start + delay);
  }
  EXPECT_EQ(clock.NextReminder(), std::nullopt);
  EXPECT_FALSE(clock.AdvanceToReminder());
  EXPECT_EQ(clock.MonotonicNs(), start + 30);
}

TEST(SimClock, AdvancePassesReminders) {
  SimClock clock;
  const uint64_t start = clock.MonotonicNs();
  for (const uint64_t delay : {10, 20, 30}) clock.Remind(start + delay);
  clock.Advance(20);
  EXPECT_EQ(clock.NextReminder(), start + 30);
}

}  // namespace
}  // namespace skep
