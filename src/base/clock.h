// clock.h: time, injected. Engines never read a clock; their caller passes "now", which is the time
// of the store (store_time.h).
#pragma once

#include <cstdint>

namespace skep {

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since some fixed instant; never goes back.
  virtual uint64_t MonotonicNs() = 0;
  // Microseconds since 1970-01-01 UTC; may jump either way.
  virtual uint64_t WallUs() = 0;

  uint64_t MonotonicMs() { return MonotonicNs() / 1'000'000; }
  uint64_t WallMs() { return WallUs() / 1'000; }
};

// The machine's clocks. Thread-safe; lives as long as the process.
Clock& SystemClock();

}  // namespace skep
