#include "bench/core_round_trip.h"

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/cpu.h"
#include "bench/repeat.h"

namespace skep::bench {
namespace {

constexpr int kSeries = 9;
constexpr uint32_t kRoundTrips = 500;  // of a series: shorter than what a scheduler gives a thread
constexpr uint32_t kAll = kSeries * kRoundTrips;

void AwaitWord(const std::atomic<uint32_t>& word, uint32_t wanted) {
  while (word.load(std::memory_order_acquire) != wanted) {
  }
}

void Echo(std::atomic<uint32_t>& word) {
  for (uint32_t i = 0; i < kAll; ++i) {
    AwaitWord(word, 2 * i + 1);
    word.store(2 * i + 2, std::memory_order_release);
  }
}

}  // namespace

std::optional<double> CoreRoundTripNs(const std::vector<int>& cores) {
  if (cores.size() < 2) return std::nullopt;
  alignas(64) std::atomic<uint32_t> word = 0;
  bool echo_pinned = false;
  std::jthread echo([&] {
    const ScopedPin pin(cores[1]);
    echo_pinned = pin.pinned();
    Echo(word);
  });
  const ScopedPin pin(cores[0]);
  uint32_t trip = 0;
  const double seconds = MedianSeconds(kSeries, [&](int) {
    for (uint32_t i = 0; i < kRoundTrips; ++i, ++trip) {
      word.store(2 * trip + 1, std::memory_order_release);
      AwaitWord(word, 2 * trip + 2);
    }
  });
  echo.join();
  if (!pin.pinned() || !echo_pinned) return std::nullopt;
  return seconds * 1e9 / kRoundTrips;
}

}  // namespace skep::bench
