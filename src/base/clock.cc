#include "base/clock.h"

#include <time.h>

#include <algorithm>

#include "base/check.h"

namespace skep {
namespace {

timespec Now(clockid_t id) {
  timespec now;
  SKEP_CHECK(clock_gettime(id, &now) == 0);
  return now;
}

class MachineClock final : public Clock {
 public:
  uint64_t MonotonicNs() override {
    const timespec now = Now(CLOCK_MONOTONIC);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  }
  uint64_t WallUs() override {
    const timespec now = Now(CLOCK_REALTIME);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000 +
           static_cast<uint64_t>(now.tv_nsec) / 1'000;
  }
};

}  // namespace

uint64_t Clock::TimeMs() {
  const auto wall_ns = static_cast<int64_t>(WallUs()) * 1000;
  // Read second: whatever comes between makes the lead look smaller than it is, never larger.
  const auto monotonic_ns = static_cast<int64_t>(MonotonicNs());
  const int64_t lead_ns = wall_ns - monotonic_ns;
  // Relaxed: nothing else depends on it.
  int64_t most = lead_ns_.load(std::memory_order_relaxed);
  while (most < lead_ns &&
         !lead_ns_.compare_exchange_weak(most, lead_ns, std::memory_order_relaxed)) {
  }
  return static_cast<uint64_t>(monotonic_ns + std::max(most, lead_ns)) / 1'000'000;
}

Clock& SystemClock() {
  static MachineClock clock;
  return clock;
}

}  // namespace skep
