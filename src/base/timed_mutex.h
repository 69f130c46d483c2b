// timed_mutex.h: a std::timed_mutex made of parts that GCC 12's ThreadSanitizer knows: it does not
// see that pthread_mutex_clocklock locks.
#pragma once

#include <chrono>
#include <utility>

#include "base/mutex.h"

namespace skep {

// Thread-safe. To lock or to unlock costs at most two uncontended locks of a Mutex.
class SKEP_CAPABILITY("mutex") TimedMutex {
 public:
  void lock() SKEP_ACQUIRE() {
    const MutexLock lock(mutex_);
    while (is_locked_) unlocked_.Wait(mutex_);
    is_locked_ = true;
  }
  bool try_lock() SKEP_TRY_ACQUIRE(true) {
    const MutexLock lock(mutex_);
    return !std::exchange(is_locked_, true);
  }
  bool try_lock_for(std::chrono::milliseconds patience) SKEP_TRY_ACQUIRE(true) {
    const auto until = std::chrono::steady_clock::now() + patience;
    const MutexLock lock(mutex_);
    while (is_locked_) {
      if (!unlocked_.WaitUntil(mutex_, until) && is_locked_) return false;
    }
    is_locked_ = true;
    return true;
  }
  void unlock() SKEP_RELEASE() {
    {
      const MutexLock lock(mutex_);
      is_locked_ = false;
    }
    unlocked_.NotifyOne();
  }

 private:
  Mutex mutex_;
  ConditionVariable unlocked_;
  bool is_locked_ SKEP_GUARDED_BY(mutex_) = false;
};

}  // namespace skep
