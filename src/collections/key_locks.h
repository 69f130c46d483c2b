// key_locks.h: locks of keys, for the few operations that make a large collection or move it to
// another key.
//
// A key has one of a fixed number of mutexes. Who needs several keys takes their mutexes in
// ascending order, each once, so there is no cycle. They are held for as long as a conversion, or
// one atomic batch, takes.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace skep::collections {

// Thread-safe.
class KeyLocks {
 public:
  // Holds the locks of all the keys until it is destroyed.
  class Held {
   public:
    // The analysis does not see which mutexes a list of keys has.
    Held(KeyLocks& locks, std::span<const std::string_view> keys) SKEP_NO_THREAD_SAFETY_ANALYSIS
        : locks_(locks) {
      for (const std::string_view key : keys) {
        indexes_.push_back(std::hash<std::string_view>()(key) % kLocks);
      }
      std::ranges::sort(indexes_);
      const auto rest = std::ranges::unique(indexes_);
      indexes_.erase(rest.begin(), rest.end());
      for (const size_t index : indexes_) locks_.mutexes_[index].lock();
    }
    ~Held() SKEP_NO_THREAD_SAFETY_ANALYSIS {
      for (const size_t index : indexes_) locks_.mutexes_[index].unlock();
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    KeyLocks& locks_;
    std::vector<size_t> indexes_;
  };

 private:
  static constexpr size_t kLocks = 64;
  std::array<Mutex, kLocks> mutexes_;
};

// Lets a call that has failed too often have its turn: while one holds it, calls that begin an
// attempt wait. So it fails at most once more for each call that was under way before.
//
// Thread-safe.
class Turnstile {
 public:
  // Waits while another call has the turn.
  void Pass() {
    if (taken_.load(std::memory_order_acquire) == 0) return;
    const MutexLock lock(mutex_);
  }
  // Has the turn until it is destroyed.
  class Turn {
   public:
    explicit Turn(Turnstile& turnstile) SKEP_NO_THREAD_SAFETY_ANALYSIS : turnstile_(turnstile) {
      turnstile_.taken_.fetch_add(1, std::memory_order_acq_rel);
      turnstile_.mutex_.lock();
    }
    ~Turn() SKEP_NO_THREAD_SAFETY_ANALYSIS {
      turnstile_.mutex_.unlock();
      turnstile_.taken_.fetch_sub(1, std::memory_order_acq_rel);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Turnstile& turnstile_;
  };

 private:
  std::atomic<int> taken_{0};
  Mutex mutex_;
};

}  // namespace skep::collections
