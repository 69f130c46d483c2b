// worker_statistics.h: the counters of a worker for INFO.
#pragma once

#include <atomic>
#include <cstdint>

namespace skep {

// Relaxed: sums that nothing else depends on.
struct WorkerStatistics {
  std::atomic<uint64_t> commands{0};
  std::atomic<uint64_t> connections{0};  // accepted since start
  std::atomic<uint64_t> rejected{0};     // over maxclients
  std::atomic<uint64_t> batches{0};
  std::atomic<uint64_t> batch_requests{0};
  std::atomic<uint64_t> input_bytes{0};
  std::atomic<uint64_t> output_bytes{0};
  std::atomic<uint64_t> errors{0};
};

// Increments a counter that only one thread writes.
inline void Bump(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace skep
