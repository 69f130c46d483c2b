// schedule.h: the fixed times at which an open loop sends.
#pragma once

#include <cstdint>

namespace skep::bench {

// Schedules requests of `group` operations each, `rate` (> 0) operations a second, evenly spaced:
// the times do not depend on the answers. A value.
class OpenSchedule {
 public:
  OpenSchedule(uint64_t begin_ns, uint64_t rate, uint32_t group)
      : begin_ns_(begin_ns), rate_(rate), group_(group) {}

  // Returns when request `index` (from 0) is meant to be sent. Each time is rounded by itself, so
  // errors do not add up.
  uint64_t MeantNs(uint64_t index) const {
    constexpr uint64_t kNsPerSecond = 1'000'000'000;
    const auto since = static_cast<unsigned __int128>(index) * group_ * kNsPerSecond / rate_;
    return begin_ns_ + static_cast<uint64_t>(since);
  }

 private:
  uint64_t begin_ns_;
  uint64_t rate_;
  uint32_t group_;
};

}  // namespace skep::bench
