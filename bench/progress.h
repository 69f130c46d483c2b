// progress.h: a line that shows how far a long run is, for people at a terminal.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace skep::bench {

// Writes to standard error while it lives, a few times a second, and clears its line at the end.
// Silent unless `show`.
class Progress {
 public:
  Progress(std::string what, uint64_t total, size_t lanes, bool show);
  ~Progress();

  // Counts `more` as done. Thread-safe; costs one uncontended store: each lane has its own cache
  // line.
  void Add(size_t lane, uint64_t more) {
    std::atomic<uint64_t>& done = lanes_[lane].done;
    // Relaxed: no other memory is read because of it. Owner of the lane: one thread.
    done.store(done.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Lane {
    std::atomic<uint64_t> done{0};
  };

  void Run();
  void Print() const;

  const std::string what_;
  const uint64_t total_;
  std::vector<Lane> lanes_;
  Mutex mutex_;
  bool is_over_ SKEP_GUARDED_BY(mutex_) = false;
  ConditionVariable over_;
  std::thread printer_;  // last: it uses the members above
};

// Returns whether standard error is a terminal.
bool ErrorOutputIsTerminal();

}  // namespace skep::bench
