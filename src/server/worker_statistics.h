// worker_statistics.h: the counters of a worker for INFO.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "server/command_statistics.h"

namespace skep {

// How much a counter has grown in a second, over the last kSamples samples. Owner: the worker that
// counts; any thread reads.
class RateMeter {
 public:
  static constexpr size_t kSamples = 16;

  void Sample(uint64_t now_ms, uint64_t count) {
    Point& oldest = points_[next_++ % kSamples];
    const uint64_t ms = now_ms - oldest.ms;
    const bool is_known = oldest.ms != 0 && ms > 0;
    if (is_known) {
      per_second_.store((count - oldest.count) * 1000 / ms, std::memory_order_relaxed);
    }
    oldest = {.ms = now_ms, .count = count};
  }
  uint64_t per_second() const { return per_second_.load(std::memory_order_relaxed); }

 private:
  struct Point {
    uint64_t ms = 0;  // 0: there was none yet
    uint64_t count = 0;
  };
  std::array<Point, kSamples> points_{};
  size_t next_ = 0;
  std::atomic<uint64_t> per_second_{0};
};

// Turns by their work (turn_context.h): the first class has less than kTurnClassBytes, each of the
// others up to twice as much as the one before it.
inline constexpr size_t kTurnClasses = 16;
inline constexpr size_t kTurnClassBytes = size_t{256} << 10;
constexpr size_t TurnClassOf(uint64_t bytes) {
  const auto width = static_cast<size_t>(std::bit_width(bytes / kTurnClassBytes));
  return width < kTurnClasses ? width : kTurnClasses - 1;
}
constexpr uint64_t TurnClassBytesMax(size_t turn_class) {
  return uint64_t{kTurnClassBytes} << turn_class;
}

// Relaxed: sums that nothing else depends on.
struct WorkerStatistics {
  std::atomic<uint64_t> commands{0};
  std::atomic<uint64_t> connections{0};  // accepted since start
  std::atomic<uint64_t> rejected{0};     // over maxclients
  std::atomic<uint64_t> batches{0};
  std::atomic<uint64_t> batch_requests{0};
  std::atomic<uint64_t> input_bytes{0};
  std::atomic<uint64_t> output_bytes{0};
  std::atomic<uint64_t> reads{0};   // of streams
  std::atomic<uint64_t> writes{0};  // likewise
  std::atomic<uint64_t> errors{0};
  std::atomic<uint64_t> hits{0};    // requests that ask for a key's value, or whether it is there,
  std::atomic<uint64_t> misses{0};  // and find it, or do not

  std::array<std::atomic<uint64_t>, kTurnClasses> turns_by_work{};

  CommandStatistics by_command;
  RateMeter command_rate, input_rate, output_rate;  // sampled some ten times a second
};

// Increments a counter that only one thread writes.
inline void Bump(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace skep
