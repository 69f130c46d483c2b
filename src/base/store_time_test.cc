#include "base/store_time.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

namespace skep {
namespace {

constexpr uint64_t kStartMs = 1'700'000'000'000;
constexpr uint64_t kMinuteMs = 60'000;
constexpr uint64_t kDayMs = 24 * 60 * kMinuteMs;
constexpr uint64_t kJumpsMs[] = {kMinuteMs, kDayMs, 365 * kDayMs};

class SetClock final : public Clock {
 public:
  uint64_t MonotonicNs() override { return monotonic_us * 1'000; }
  uint64_t WallUs() override {
    const uint64_t wall = wall_us;
    if (between) between();
    return wall;
  }
  void Pass(uint64_t ms) {
    monotonic_us += ms * 1'000;
    wall_us += ms * 1'000;
  }
  void StepForward(uint64_t ms) { wall_us += ms * 1'000; }
  void StepBack(uint64_t ms) { wall_us -= ms * 1'000; }

  uint64_t monotonic_us = 5'000'000;
  uint64_t wall_us = kStartMs * 1'000;
  std::function<void()> between;  // called between a reading of the wall clock and the next reading
};

void ExpectNow(StoreTime& time, uint64_t ms, uint64_t behind_ms) {
  const StoreNow now = time.Now();
  EXPECT_EQ(now.ms, ms);
  EXPECT_EQ(now.behind_ms, behind_ms);
}

// Goal: the time follows the wall clock forward, and never back; while the wall clock is behind,
// the time goes on at the pace of the monotonic clock, and says by how much it is ahead.
TEST(StoreTime, FollowsTheWallClockForwardOnly) {
  for (const uint64_t jump_ms : kJumpsMs) {
    SCOPED_TRACE(jump_ms);
    SetClock clock;
    StoreTime time(clock);
    ExpectNow(time, kStartMs, 0);
    clock.Pass(10);
    ExpectNow(time, kStartMs + 10, 0);
    clock.StepForward(jump_ms);
    uint64_t now_ms = kStartMs + 10 + jump_ms;
    ExpectNow(time, now_ms, 0);
    clock.StepBack(jump_ms);
    ExpectNow(time, now_ms, jump_ms);
    clock.Pass(5);
    now_ms += 5;
    ExpectNow(time, now_ms, jump_ms);
    clock.StepForward(jump_ms / 2);
    ExpectNow(time, now_ms, jump_ms - jump_ms / 2);
    clock.StepForward(jump_ms - jump_ms / 2);
    ExpectNow(time, now_ms, 0);
    clock.StepForward(2);
    ExpectNow(time, now_ms + 2, 0);
  }
}

// Goal: after a start the time is not before the recovered one, whichever way the wall clock was
// set meanwhile, and goes on at its pace.
TEST(StoreTime, BeginsAtTheLaterOfTheWallClockAndWhatWasRecovered) {
  for (const uint64_t jump_ms : kJumpsMs) {
    SCOPED_TRACE(jump_ms);
    {
      SetClock clock;
      StoreTime time(clock);
      time.StartAt(kStartMs + jump_ms);
      ExpectNow(time, kStartMs + jump_ms, jump_ms);
      clock.Pass(30'000);
      ExpectNow(time, kStartMs + jump_ms + 30'000, jump_ms);
      clock.StepForward(2 * jump_ms);
      ExpectNow(time, kStartMs + 2 * jump_ms + 30'000, 0);
    }
    SetClock clock;
    StoreTime time(clock);
    time.StartAt(kStartMs - jump_ms);
    ExpectNow(time, kStartMs, 0);
  }
}

// Goal: a recovered time that no file should have neither overflows nor stops the time.
TEST(StoreTime, TakesAnyStart) {
  SetClock clock;
  StoreTime time(clock);
  time.StartAt(UINT64_MAX);
  const uint64_t start_ms = time.Now().ms;
  EXPECT_GT(start_ms, kStartMs);
  EXPECT_LT(start_ms, kDeadlineMax);
  clock.Pass(7);
  EXPECT_EQ(time.Now().ms, start_ms + 7);
}

// Goal: a thread that is held up between its readings of the two clocks is not taken for a clock
// that was set, and the time does not go on by more than it should.
TEST(StoreTime, AThreadThatIsHeldUpIsNoClockThatWasSet) {
  SetClock clock;
  StoreTime time(clock);
  ExpectNow(time, kStartMs, 0);
  clock.between = [&] {
    clock.between = nullptr;
    clock.Pass(700);
  };
  ExpectNow(time, kStartMs + 700, 0);
}

// Goal: steps of the wall clock that are less than the error of a reading change nothing; so an
// instant that was converted one way comes back.
TEST(StoreTime, SmallStepsAreNotNoticed) {
  SetClock clock;
  StoreTime time(clock);
  ExpectNow(time, kStartMs, 0);
  clock.StepBack(StoreTime::kSlackMs);
  ExpectNow(time, kStartMs, 0);
  clock.StepBack(kMinuteMs);
  ExpectNow(time, kStartMs, kMinuteMs + StoreTime::kSlackMs);
  clock.StepForward(StoreTime::kSlackMs);
  ExpectNow(time, kStartMs, kMinuteMs + StoreTime::kSlackMs);
}

// Goal: instants of the wall clock become later by what it is behind, and come back as they were;
// deadlines that stand for no instant stay as they are.
TEST(StoreNow, TranslatesInstantsOfTheWallClock) {
  const StoreNow equal{.ms = kStartMs};
  const StoreNow behind{.ms = kStartMs, .behind_ms = kDayMs};
  for (const uint64_t special : {uint64_t{0}, kKeepDeadline, kDeadlineMax + 1}) {
    for (const StoreNow& now : {equal, behind}) {
      EXPECT_EQ(now.FromWall(special), special);
      EXPECT_EQ(now.ToWall(special), special);
    }
  }
  for (const uint64_t deadline_ms : {uint64_t{1}, kStartMs, kDeadlineMax - kDayMs}) {
    EXPECT_EQ(equal.FromWall(deadline_ms), deadline_ms);
    EXPECT_EQ(equal.ToWall(deadline_ms), deadline_ms);
    EXPECT_EQ(behind.FromWall(deadline_ms), deadline_ms + kDayMs);
    EXPECT_EQ(behind.ToWall(behind.FromWall(deadline_ms)), deadline_ms);
  }
  EXPECT_EQ(behind.FromWall(kDeadlineMax), kDeadlineMax);
  EXPECT_EQ(behind.ToWall(kDayMs), 1u);
}

}  // namespace
}  // namespace skep
