// side_thread.h: a thread beside a worker, for what would hold the worker for long.
//
//   worker   Post(job)         ...turns, which serve others...         is_done(): takes it over
//                |                                                         ^
//   thread       +--> runs the job, says that it is done, wakes the worker +
//
//   jobs     a batch of a command that was left out of the batch of a turn (postponed_task.h)
//            a command that looks at much, with its reply (aside_task.h)
//
// The thread executes batches as another worker would, so each takes effect at one instant. The
// session that has posted a job reads no further command meanwhile. Jobs are run one after the
// other, in the order in which they were posted. A job that has not begun when its connection goes
// is not run: what it has copied stays charged until the thread passes it over.
//
// Safety
//   (1) Until a job is done only the thread touches it, but for is_done(), which the worker reads
//       with acquire and the thread stores with release behind all else. So the worker sees what
//       the thread has written.
//   (2) A job is shared by its task and the thread, and owns the bytes that it reads: so the task
//       may go first. Whatever follows the execution, as clients that are woken and events that are
//       told, is done by the thread, too (TurnContext::Execute), and not by the task.
// Progress. Each job ends as a batch of a worker does (engine.h). The wake-up comes after is_done()
// is stored, and a poller that is woken does not wait: so the worker looks again.
//
// Thread safety: the owning worker only, but for SideJob::Run.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "base/memory_budget.h"
#include "base/mutex.h"

namespace skep {

class SideJob {
 public:
  SideJob() = default;
  virtual ~SideJob() {
    if (budget_ != nullptr) budget_->Release(held_bytes_);
  }
  SideJob(const SideJob&) = delete;
  SideJob& operator=(const SideJob&) = delete;

  bool is_done() const { return is_done_.load(std::memory_order_acquire); }
  // What Hold has charged; it does not change once the job is posted.
  uint64_t held_bytes() const { return held_bytes_; }

 protected:
  // Charges the bytes that the job has copied until it is destroyed; once.
  void Hold(MemoryBudget& budget, uint64_t bytes) {
    budget_ = &budget;
    held_bytes_ = bytes;
    budget.Charge(bytes);
  }

 private:
  friend class SideThread;

  virtual void Run() = 0;

  std::atomic<bool> is_done_{false};
  MemoryBudget* budget_ = nullptr;
  uint64_t held_bytes_ = 0;
};

class SideThread {
 public:
  // How long a task may wait before it looks whether its job is done: the worker is woken then.
  static constexpr int kPatienceMs = 100;

  // `wake` is called on the thread behind each job.
  explicit SideThread(std::function<void()> wake) : wake_(std::move(wake)) {}
  ~SideThread() { Stop(); }
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Begins the thread: jobs may be posted from now on. A worker that is turned by hand has none.
  // Throws std::system_error if the system gives no thread.
  void Allow();
  bool is_allowed() const { return is_allowed_; }
  // Requires that jobs are allowed.
  void Post(std::shared_ptr<SideJob> job);
  // The job, which is done, is to be run once more: it is not done until then.
  void PostAgain(std::shared_ptr<SideJob> job) {
    job->is_done_.store(false, std::memory_order_relaxed);  // the queue's lock publishes it
    Post(std::move(job));
  }
  // Waits for the job that is run; those behind it are never run, and none is allowed any more.
  void Stop();

 private:
  void Run();

  const std::function<void()> wake_;
  bool is_allowed_ = false;
  std::thread thread_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::shared_ptr<SideJob>> jobs_ SKEP_GUARDED_BY(mutex_);
  bool stops_ SKEP_GUARDED_BY(mutex_) = false;
};

}  // namespace skep
