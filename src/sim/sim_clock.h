// sim_clock.h: a clock whose time passes only when it is told to.
//
// Everything that will happen later (a delivery, a timeout) leaves a reminder of its instant; when
// nothing can happen now, the clock is moved to the earliest reminder. Reminders are instants, not
// callbacks: their owners compare the time when they are asked.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "base/clock.h"

namespace skep {

class SimClock final : public Clock {
 public:
  // The clock does not begin at 0, so that a 0 that stands for "never" is not mistaken for an
  // instant.
  static constexpr uint64_t kStartNs = 1'000'000'000;
  static constexpr uint64_t kStartWallUs = 1'700'000'000'000'000;

  uint64_t MonotonicNs() override { return now_ns_; }
  uint64_t WallUs() override { return wall_at_zero_us_ + now_ns_ / 1'000; }

  void Advance(uint64_t ns);
  // Steps the wall clock alone, forward or back, as an administrator or NTP would.
  void StepWall(int64_t us) { wall_at_zero_us_ += static_cast<uint64_t>(us); }

  // Leaves a reminder that something is due at this instant. An instant that is not in the future
  // is ignored.
  void Remind(uint64_t at_ns);
  // Returns the earliest reminder in the future.
  std::optional<uint64_t> NextReminder() const;
  // Moves to the earliest reminder. Returns false if there is none.
  bool AdvanceToReminder();

 private:
  uint64_t now_ns_ = kStartNs;
  uint64_t wall_at_zero_us_ = kStartWallUs - kStartNs / 1'000;
  std::set<uint64_t> reminders_;  // all > now_ns_
};

}  // namespace skep
