// clock.h: time, injected. Engines never read a clock; whoever calls them passes "now".
#pragma once

#include <atomic>
#include <cstdint>

namespace skep {

class Clock {
 public:
  virtual ~Clock() = default;
  // Since some fixed instant; never goes back.
  virtual uint64_t MonotonicNs() = 0;
  // Since 1970-01-01 UTC; may jump either way.
  virtual uint64_t WallUs() = 0;

  uint64_t MonotonicMs() { return MonotonicNs() / 1'000'000; }

  // Milliseconds since 1970 UTC that never go back: what keys expire by and snapshots age by. While
  // the wall clock is set back, time goes on from where it was, at the pace of the monotonic clock,
  // until the wall clock has caught up; so no time limit comes twice, and none stands still.
  // Thread-safe.
  uint64_t TimeMs();

 private:
  // The most that the wall clock was ever seen ahead of the monotonic one.
  std::atomic<int64_t> lead_ns_{INT64_MIN};
};

// The machine's clocks. Thread-safe; lives as long as the process.
Clock& SystemClock();

}  // namespace skep
