// spin_lock.h: a lock of one byte, held for a few microseconds.
#pragma once

#include <atomic>
#include <thread>

#include "base/cpu.h"

namespace skep {

// Has the interface of the standard's mutexes, for std::lock_guard. The thread-safety analysis does
// not know it: which leaves and partitions a batch locks is decided at run time.
class SpinLock {
 public:
  bool try_lock() {
    // The load keeps waiting threads from taking the cache line away from the thread that holds the
    // lock.
    return !is_taken_.load(std::memory_order_relaxed) &&
           !is_taken_.exchange(true, std::memory_order_acquire);
  }
  void lock() {
    constexpr int kSpins = 128;
    for (int spins = 0; !try_lock(); ++spins) {
      if (spins < kSpins) {
        Pause();
      } else {
        std::this_thread::yield();
      }
    }
  }
  void unlock() { is_taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> is_taken_{false};
};

}  // namespace skep
