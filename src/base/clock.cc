#include "base/clock.h"

#include <time.h>

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

Clock& SystemClock() {
  static MachineClock clock;
  return clock;
}

}  // namespace skep
