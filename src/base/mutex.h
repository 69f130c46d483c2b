// mutex.h: a mutex, a lock of it and a condition variable, with clang's thread-safety annotations.
//
// libstdc++'s own have no annotations, so the tree uses these. A field that a mutex guards says so
// with SKEP_GUARDED_BY, a function that its caller has to lock for with SKEP_REQUIRES; `make lint`
// compiles the tree with -Wthread-safety and fails on an access without the lock. Other compilers
// see std::mutex and nothing else: the annotations cost nothing.
//
// The analysis cannot follow a lock that is chosen at run time (all leaves of a batch), a lock that
// another function gives back, and a function that is called under a lock through a pointer. Such
// code says SKEP_NO_THREAD_SAFETY_ANALYSIS and why.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define SKEP_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define SKEP_THREAD_ATTRIBUTE(x)
#endif

#define SKEP_CAPABILITY(name) SKEP_THREAD_ATTRIBUTE(capability(name))
#define SKEP_SCOPED_CAPABILITY SKEP_THREAD_ATTRIBUTE(scoped_lockable)
// Marks a field that is read and written under the mutex only.
#define SKEP_GUARDED_BY(mutex) SKEP_THREAD_ATTRIBUTE(guarded_by(mutex))
// Marks a function whose caller holds the mutex.
#define SKEP_REQUIRES(...) SKEP_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
// Mark a function that takes or releases the mutex: its own object, if there is no argument.
#define SKEP_ACQUIRE(...) SKEP_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define SKEP_TRY_ACQUIRE(...) SKEP_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define SKEP_RELEASE(...) SKEP_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define SKEP_NO_THREAD_SAFETY_ANALYSIS SKEP_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace skep {

// A std::mutex that the thread-safety analysis knows.
class SKEP_CAPABILITY("mutex") Mutex {
 public:
  void lock() SKEP_ACQUIRE() { mutex_.lock(); }
  bool try_lock() SKEP_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() SKEP_RELEASE() { mutex_.unlock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

// Holds a Mutex or a TimedMutex from its construction to its end.
template <typename M>
class SKEP_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(M& mutex) SKEP_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  // Takes over a mutex that the thread already holds, after try_lock().
  MutexLock(M& mutex, std::adopt_lock_t) SKEP_REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() SKEP_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  M& mutex_;
};

// Releases a mutex that the thread holds, and takes it again at the end of the scope.
template <typename M>
class SKEP_SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(M& mutex) SKEP_RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  // To the analysis, the "release" of this object means that the mutex is taken again.
  ~MutexUnlock() SKEP_RELEASE() { mutex_.lock(); }
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  M& mutex_;
};

// A std::condition_variable. A caller waits in a loop that checks what it waits for: a wait may end
// without a reason.
class ConditionVariable {
 public:
  // The caller holds the mutex, which is free during the wait.
  void Wait(Mutex& mutex) SKEP_REQUIRES(mutex) {
    Held held(mutex);
    changed_.wait(held.lock);
  }
  // Waits until a notification or the time. Returns false if the time has come.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point time) SKEP_REQUIRES(mutex) {
    Held held(mutex);
    return changed_.wait_until(held.lock, time) == std::cv_status::no_timeout;
  }
  bool WaitFor(Mutex& mutex, std::chrono::steady_clock::duration duration) SKEP_REQUIRES(mutex) {
    return WaitUntil(mutex, std::chrono::steady_clock::now() + duration);
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  // The standard's lock for the duration of a wait; the mutex remains owned by the caller's lock.
  struct Held {
    explicit Held(Mutex& mutex) : lock(mutex.mutex_, std::adopt_lock) {}
    ~Held() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable changed_;
};

}  // namespace skep
