// tree_test_stage.h: fixed interleavings, by threads that stop at sync points (sync_point.h).
//
//   Stage stage(tree.core());                  // before the tree's first operation
//   Actor reader(SyncPoint::kReaderInLeaf, 2, [&] { ... });
//   if (reader.WaitUntilStopped()) ...         // it stands at its second kReaderInLeaf
//   reader.Finish();                           // it goes on to its end
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "btree/core.h"

namespace skep::btree {

inline constexpr auto kSyncPoints = static_cast<size_t>(SyncPoint::kReclaimUnlinked) + 1;

// One thread, which is stopped once. Owner: the thread that made it.
class Actor {
 public:
  Actor(SyncPoint point, uint32_t nth, std::function<void()> body)
      : point_(point), nth_(nth), thread_([this, body = std::move(body)] {
          current = this;
          body();
          Change(&Actor::finished_);
        }) {}
  // A thread that runs to its end without a stop.
  explicit Actor(std::function<void()> body)
      : Actor(SyncPoint::kReaderAtRoot, 0, std::move(body)) {}
  ~Actor() { Finish(); }

  // Waits until the thread stops or ends. False: it ended without coming to the point.
  bool WaitUntilStopped() {
    const MutexLock lock(mutex_);
    while (!stopped_ && !finished_) changed_.Wait(mutex_);
    return stopped_;
  }
  // Gives the thread some chance to come to its end, or to where it has to wait for others.
  void LetRun() {
    for (int i = 0; i < 200 && !finished(); ++i) std::this_thread::yield();
  }
  bool finished() {
    const MutexLock lock(mutex_);
    return finished_;
  }
  void Finish() {
    if (!thread_.joinable()) return;
    Change(&Actor::may_go_on_);
    thread_.join();
  }

 private:
  friend class Stage;

  void Reach(SyncPoint point) {
    if (point != point_ || nth_ == 0 || --nth_ > 0) return;
    Change(&Actor::stopped_);
    const MutexLock lock(mutex_);
    while (!may_go_on_) changed_.Wait(mutex_);
  }
  void Change(bool Actor::* state) {
    const MutexLock lock(mutex_);
    this->*state = true;
    changed_.NotifyAll();
  }

  static inline thread_local Actor* current = nullptr;

  const SyncPoint point_;
  uint32_t nth_;  // visits of point_ by this thread until it stops; 0: it does not stop
  Mutex mutex_;
  ConditionVariable changed_;
  bool stopped_ SKEP_GUARDED_BY(mutex_) = false;
  bool finished_ SKEP_GUARDED_BY(mutex_) = false;
  bool may_go_on_ SKEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last, as it uses all the others
};

// Calls the actors, and counts the points that any thread reaches.
class Stage {
 public:
  explicit Stage(Core& core) {
    core.hook = {
        .call = [](void* stage, SyncPoint point) { static_cast<Stage*>(stage)->Reach(point); },
        .context = this};
  }

  uint64_t reached(SyncPoint point) const {
    return reached_[static_cast<size_t>(point)].load(std::memory_order_relaxed);
  }

 private:
  void Reach(SyncPoint point) {
    reached_[static_cast<size_t>(point)].fetch_add(1, std::memory_order_relaxed);
    if (Actor::current != nullptr) Actor::current->Reach(point);
  }

  std::array<std::atomic<uint64_t>, kSyncPoints> reached_{};
};

}  // namespace skep::btree
