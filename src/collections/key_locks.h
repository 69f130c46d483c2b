// key_locks.h: locks of keys, for the few operations that make a large collection or move it to
// another key.
//
// A key has one of a fixed number of mutexes. Who needs several keys takes their mutexes in
// ascending order, each once, so there is no cycle. They are held for as long as a conversion, or
// one atomic batch, takes. Who must not wait for that long tries them: it holds all or none.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace skep::collections {

enum class Wait : uint8_t { kMay, kMustNot };

// How often a mutex is tried for which the caller must not wait: most holders need microseconds.
inline constexpr int kLockTriesMax = 16;

inline bool TryForShort(Mutex& mutex) {
  for (int tries = 1; !mutex.try_lock(); ++tries) {
    if (tries == kLockTriesMax) return false;
    std::this_thread::yield();
  }
  return true;
}

// Locks the mutexes, in their order. False: one of them is held, and the caller must not wait; then
// none is locked. The analysis does not see which mutexes a list has.
inline bool LockAll(std::span<Mutex* const> mutexes, Wait wait) SKEP_NO_THREAD_SAFETY_ANALYSIS {
  for (size_t i = 0; i < mutexes.size(); ++i) {
    if (wait == Wait::kMay) {
      mutexes[i]->lock();
    } else if (!TryForShort(*mutexes[i])) {
      while (i > 0) mutexes[--i]->unlock();
      return false;
    }
  }
  return true;
}

// Thread-safe.
class KeyLocks {
 public:
  // Holds the locks of all the keys until it is destroyed; none of them if it must not wait and one
  // is held by another thread.
  class Held {
   public:
    Held(KeyLocks& locks, std::span<const std::string_view> keys, Wait wait = Wait::kMay) {
      std::vector<size_t> indexes;
      for (const std::string_view key : keys) {
        indexes.push_back(std::hash<std::string_view>()(key) % kLocks);
      }
      std::ranges::sort(indexes);
      const auto rest = std::ranges::unique(indexes);
      indexes.erase(rest.begin(), rest.end());
      for (const size_t index : indexes) mutexes_.push_back(&locks.mutexes_[index]);
      is_held_ = LockAll(mutexes_, wait);
    }
    ~Held() SKEP_NO_THREAD_SAFETY_ANALYSIS {
      if (!is_held_) return;
      for (Mutex* const mutex : mutexes_) mutex->unlock();
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    explicit operator bool() const { return is_held_; }

   private:
    std::vector<Mutex*> mutexes_;
    bool is_held_ = false;
  };

 private:
  static constexpr size_t kLocks = 64;
  std::array<Mutex, kLocks> mutexes_;
};

// Let a call that has failed too often have its turn at its keys: while one holds it, calls on them
// that begin an attempt wait, or are left to later. So it fails at most once more for each call
// that was under way before. A key has one of a fixed number of turnstiles.
//
// Thread-safe.
class Turnstiles {
  struct Turnstile {
    std::atomic<int> taken{0};
    Mutex mutex;
  };

 public:
  // Whether another call has the turn at the key.
  bool IsTaken(std::string_view key) const {
    return At(key).taken.load(std::memory_order_acquire) != 0;
  }
  // Waits while another call has the turn at one of the keys.
  void Pass(std::span<const std::string_view> keys) {
    for (const std::string_view key : keys) {
      if (!IsTaken(key)) continue;
      const MutexLock lock(At(key).mutex);
    }
  }
  // Has the turn at the keys until it is destroyed; at none of them if it must not wait and another
  // call has the turn at one. They are taken in one order, so there is no cycle.
  class Turn {
   public:
    Turn(Turnstiles& turnstiles, std::span<const std::string_view> keys, Wait wait = Wait::kMay) {
      for (const std::string_view key : keys) taken_.push_back(&turnstiles.At(key));
      std::ranges::sort(taken_);
      const auto rest = std::ranges::unique(taken_);
      taken_.erase(rest.begin(), rest.end());
      std::vector<Mutex*> mutexes;
      for (Turnstile* const turnstile : taken_) {
        turnstile->taken.fetch_add(1, std::memory_order_acq_rel);
        mutexes.push_back(&turnstile->mutex);
      }
      has_turn_ = LockAll(mutexes, wait);
    }
    ~Turn() SKEP_NO_THREAD_SAFETY_ANALYSIS {
      for (Turnstile* const turnstile : taken_) {
        if (has_turn_) turnstile->mutex.unlock();
        turnstile->taken.fetch_sub(1, std::memory_order_acq_rel);
      }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return has_turn_; }

   private:
    std::vector<Turnstile*> taken_;
    bool has_turn_ = false;
  };

 private:
  static constexpr size_t kTurnstiles = 64;

  const Turnstile& At(std::string_view key) const {
    return turnstiles_[std::hash<std::string_view>()(key) % kTurnstiles];
  }
  Turnstile& At(std::string_view key) {
    return turnstiles_[std::hash<std::string_view>()(key) % kTurnstiles];
  }

  std::array<Turnstile, kTurnstiles> turnstiles_;
};

}  // namespace skep::collections
