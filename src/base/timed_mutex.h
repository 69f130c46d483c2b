// timed_mutex.h: std::timed_mutex of parts that GCC 12's ThreadSanitizer knows: it misses that
// pthread_mutex_clocklock locks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace skep {

// Thread-safe. To lock or unlock it costs two uncontended locks of a std::mutex at most.
class TimedMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    unlocked_.wait(lock, [&] { return !is_locked_; });
    is_locked_ = true;
  }
  bool try_lock() {
    std::lock_guard lock(mutex_);
    return !std::exchange(is_locked_, true);
  }
  bool try_lock_for(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (is_locked_ && !unlocked_.wait_for(lock, patience, [&] { return !is_locked_; }))
      return false;
    is_locked_ = true;
    return true;
  }
  void unlock() {
    {
      std::lock_guard lock(mutex_);
      is_locked_ = false;
    }
    unlocked_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable unlocked_;
  bool is_locked_ = false;  // guarded by mutex_
};

}  // namespace skep
