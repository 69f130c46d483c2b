// repeating_thread.h: a thread that does some work again and again until it is destroyed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <new>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/thread_time.h"

namespace skep {

class RepeatingThread {
 public:
  // `work` returns whether there is more to be done at once; else it is called again after a pause,
  // and so it is when there was no memory for it.
  RepeatingThread(std::chrono::milliseconds pause, std::function<bool()> work)
      : pause_(pause), work_(std::move(work)), thread_([this] { Run(); }) {}
  // Waits for the work that is under way.
  ~RepeatingThread() {
    RequestStop();
    thread_.join();
  }
  RepeatingThread(const RepeatingThread&) = delete;
  RepeatingThread& operator=(const RepeatingThread&) = delete;

  // Its processor time. Thread-safe.
  uint64_t CpuNs() { return CpuNsOf(thread_); }
  // The work is not begun again. Thread-safe.
  void RequestStop() {
    const MutexLock lock(mutex_);
    stops_ = true;
    changed_.NotifyAll();
  }

 private:
  void Run() {
    while (Pause(Work())) {
    }
  }
  bool Work() {
    try {
      return work_();
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  // False: the thread is to stop.
  bool Pause(bool is_busy) {
    const MutexLock lock(mutex_);
    if (!is_busy && !stops_) changed_.WaitFor(mutex_, pause_);
    return !stops_;
  }

  const std::chrono::milliseconds pause_;
  const std::function<bool()> work_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool stops_ SKEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace skep
