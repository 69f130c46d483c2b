#include "base/store_time.h"

#include <algorithm>
#include <cstdlib>

namespace skep {
namespace {

constexpr int64_t kStartMsMax = int64_t{1} << 52;

// Raises the value to at least `to`. Returns the larger of the two.
int64_t Raise(std::atomic<int64_t>& value, int64_t to) {
  int64_t most = value.load(std::memory_order_relaxed);
  while (most < to && !value.compare_exchange_weak(most, to, std::memory_order_relaxed)) {
  }
  return std::max(most, to);
}

}  // namespace

// Returns how far the wall clock is ahead of the monotonic clock. The monotonic clock is read
// second, so that a delay between the two makes the lead look smaller than it is, never larger.
int64_t StoreTime::LeadUs(int64_t* monotonic_us) {
  const auto wall_us = static_cast<int64_t>(clock_.WallUs());
  *monotonic_us = static_cast<int64_t>(clock_.MonotonicNs() / 1'000);
  return wall_us - *monotonic_us;
}

StoreNow StoreTime::Now() {
  int64_t monotonic_us = 0;
  const int64_t lead_us = LeadUs(&monotonic_us);
  const int64_t most_us = Raise(lead_us_, lead_us);
  int64_t behind_ms = behind_ms_.load(std::memory_order_relaxed);
  if (std::abs((most_us - lead_us) / 1'000 - behind_ms) > kSlackMs) behind_ms = MeasureBehind();
  return {.ms = static_cast<uint64_t>((monotonic_us + most_us) / 1'000),
          .behind_ms = static_cast<uint64_t>(behind_ms)};
}

// Measures how far the wall clock is behind. The thread may be held up between its readings of the
// two clocks, which makes the wall clock look further behind than it is; so the best of some
// readings counts.
int64_t StoreTime::MeasureBehind() {
  constexpr int kReadings = 8;
  int64_t best_us = INT64_MIN;
  for (int i = 0; i < kReadings; ++i) {
    int64_t monotonic_us = 0;
    best_us = std::max(best_us, LeadUs(&monotonic_us));
  }
  const int64_t behind_ms = (Raise(lead_us_, best_us) - best_us) / 1'000;
  const int64_t known_ms = behind_ms_.load(std::memory_order_relaxed);
  if (std::abs(behind_ms - known_ms) <= kSlackMs) return known_ms;
  // A clock that was not set may seem to be behind by up to kSlackMs.
  const int64_t told_ms = behind_ms > kSlackMs ? behind_ms : 0;
  behind_ms_.store(told_ms, std::memory_order_relaxed);
  return told_ms;
}

void StoreTime::StartAt(uint64_t ms) {
  const auto start_ms = static_cast<int64_t>(std::min<uint64_t>(ms, kStartMsMax));
  Raise(lead_us_, start_ms * 1'000 - static_cast<int64_t>(clock_.MonotonicNs() / 1'000));
}

}  // namespace skep
