// helper_pool.h: threads that help whoever has a job for several.
//
//   caller  Help(job):  shows the job, does it too, takes it back, waits for those who are inside;
//                       or Begin(job), something else, and End()
//   helper  looks for a job; when one is shown, counts itself in, looks again, does it, counts out
//
// The job itself says what is left to do (a shared counter of pieces, say): a helper that comes
// late finds nothing. One caller at a time is helped; others do their jobs alone.
//
// Why nobody is inside a job that is over
//   (1) A helper counts itself in before it looks whether the job is still shown; the caller takes
//       the job back before it looks at the count. Both are sequentially consistent, so one of the
//       two sees the other: the helper finds no job, or the caller waits for it.
//   (2) A new job is shown only after that wait, by the next caller that has `caller_`.
//
// A helper looks for some microseconds before it sleeps: waking one takes longer than most jobs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace skep {

// Thread-safe.
class HelperPool {
 public:
  // So many helpers; callers come on top.
  explicit HelperPool(uint32_t helpers);
  ~HelperPool();
  HelperPool(const HelperPool&) = delete;
  HelperPool& operator=(const HelperPool&) = delete;

  uint32_t helpers() const { return static_cast<uint32_t>(threads_.size()); }
  // The caller and the helpers that are free run job() at the same time, each once. Returns when
  // all have come back. The job must not throw.
  void Help(const std::function<void()>& job);

  // The helpers that are free begin to run job(), which outlives End(). Waits for another caller's.
  void Begin(const std::function<void()>& job) SKEP_ACQUIRE(caller_);
  // Returns when all who have begun have come back. By the thread that called Begin().
  void End() SKEP_RELEASE(caller_);

 private:
  void Show(const std::function<void()>& job);
  void Work();

  Mutex caller_;
  std::atomic<const std::function<void()>*> job_{nullptr};
  std::atomic<uint32_t> inside_{0};
  std::atomic<uint32_t> shown_{0};  // jobs so far; helpers sleep on it
  std::atomic<bool> ends_{false};
  std::vector<std::thread> threads_;
};

}  // namespace skep
