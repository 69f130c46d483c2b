#include "bench/core_round_trip.h"

#include <atomic>
#include <cstdint>
#include <future>
#include <thread>

#include "base/cpu.h"
#include "bench/repeat.h"

namespace skep::bench {
namespace {

constexpr int kSeries = 7;
constexpr uint32_t kRoundTrips = 100;  // in a series: much shorter than a time slice
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

// Both threads are on their cores before the first round trip, for on one core they would wait for
// the scheduler each time.
std::optional<double> CoreRoundTripNs(const std::vector<int>& cores) {
  if (cores.size() < 2) return std::nullopt;
  const ScopedPin pin(cores[0]);
  if (!pin.pinned()) return std::nullopt;
  alignas(64) std::atomic<uint32_t> word = 0;
  std::promise<bool> echo_pinned;
  std::jthread echo([&] {
    const ScopedPin echo_pin(cores[1]);
    echo_pinned.set_value(echo_pin.pinned());
    if (echo_pin.pinned()) Echo(word);
  });
  if (!echo_pinned.get_future().get()) return std::nullopt;
  uint32_t trip = 0;
  const double seconds = MedianSeconds(kSeries, [&](int) {
    for (uint32_t i = 0; i < kRoundTrips; ++i, ++trip) {
      word.store(2 * trip + 1, std::memory_order_release);
      AwaitWord(word, 2 * trip + 2);
    }
  });
  return seconds * 1e9 / kRoundTrips;
}

}  // namespace skep::bench
