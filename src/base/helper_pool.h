// helper_pool.h: threads that help a caller with a job that several threads can do at once.
//
//   caller  Help(job):  shows the job, does it too, takes it back, waits for the helpers inside it;
//                       or Begin(job), something else, and End()
//   helper  looks for a job; when one is shown, counts itself in, looks again, does it, counts out
//
// The job itself says what is left to do (a shared counter of pieces, say): a helper that comes
// late finds nothing. One caller at a time is helped; other callers do their jobs alone.
//
// Why no helper is inside a job that is over
//   (1) A helper counts itself in before it looks whether the job is still shown; the caller takes
//       the job back before it looks at the count. Both are sequentially consistent, so one of the
//       two sees the other: the helper finds no job, or the caller waits for it.
//   (2) A new job is shown only after that wait, by the next caller that holds `caller_`.
//
// A helper spins for some microseconds before it sleeps: to wake one takes longer than most jobs.
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
  // Starts `helpers` threads; callers work beside them.
  explicit HelperPool(uint32_t helpers);
  ~HelperPool();
  HelperPool(const HelperPool&) = delete;
  HelperPool& operator=(const HelperPool&) = delete;

  uint32_t helpers() const { return static_cast<uint32_t>(threads_.size()); }
  // The caller and the helpers that are free run job() at the same time, each once. Returns when
  // all have come back. The job must not throw.
  void Help(const std::function<void()>& job);

  // The helpers that are free begin to run job(), which must live until End(). Waits while another
  // caller is helped.
  void Begin(const std::function<void()>& job) SKEP_ACQUIRE(caller_);
  // Returns when all helpers that have begun have come back. Called by the thread that called
  // Begin().
  void End() SKEP_RELEASE(caller_);

 private:
  void Show(const std::function<void()>& job);
  void Work();

  Mutex caller_;
  std::atomic<const std::function<void()>*> job_{nullptr};
  std::atomic<uint32_t> inside_{0};
  std::atomic<uint32_t> shown_{0};  // number of jobs so far; helpers sleep on it
  std::atomic<bool> ends_{false};
  std::vector<std::thread> threads_;
};

}  // namespace skep
