#include "engine/release_gate.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"

namespace skep {

void ReleaseGate::Release(Version version) {
  Version seen = released_.load(std::memory_order_seq_cst);
  while (seen < version &&
         !released_.compare_exchange_weak(seen, version, std::memory_order_seq_cst)) {
  }
  if (shown_.load(std::memory_order_seq_cst) != nullptr) [[unlikely]]
    Show(version);
  if (lowest_wanted_.load(std::memory_order_seq_cst) > version) return;

  std::vector<Waiter> ready;
  {
    const MutexLock lock(mutex_);
    const Version now = released();
    const auto later = std::partition(waiters_.begin(), waiters_.end(),
                                      [now](const Waiter& w) { return w.ticket > now; });
    ready.assign(std::make_move_iterator(later), std::make_move_iterator(waiters_.end()));
    waiters_.erase(later, waiters_.end());
    Version lowest = UINT64_MAX;
    for (const Waiter& w : waiters_) lowest = std::min(lowest, w.ticket);
    lowest_wanted_.store(lowest, std::memory_order_seq_cst);
  }
  for (Waiter& w : ready) w.then();
}

// A Release that does not see the pointer has stored its version before the load here.
void ReleaseGate::ShowIn(std::atomic<Version>* shown) {
  shown_.store(shown, std::memory_order_seq_cst);
  Show(released());
}

void ReleaseGate::Show(Version version) {
  std::atomic<Version>& shown = *shown_.load(std::memory_order_seq_cst);
  Version seen = shown.load(std::memory_order_relaxed);
  while (version > seen && !shown.compare_exchange_weak(seen, version, std::memory_order_release)) {
  }
}

void ReleaseGate::CallWhenReleased(Version ticket, std::function<void()> then) {
  if (IsReleased(ticket)) return then();
  {
    const MutexLock lock(mutex_);
    const Version lowest = lowest_wanted_.load(std::memory_order_seq_cst);
    lowest_wanted_.store(std::min(lowest, ticket), std::memory_order_seq_cst);
    if (!IsReleased(ticket)) {
      waiters_.push_back({ticket, std::move(then)});
      return;
    }
  }
  // lowest_wanted_ may stay too low: the next Release looks in vain once and raises it.
  then();
}

void ReleaseGate::Wait(Version ticket) {
  if (IsReleased(ticket)) return;
  Mutex mutex;
  ConditionVariable released;
  bool done = false;
  CallWhenReleased(ticket, [&] {
    const MutexLock lock(mutex);
    done = true;
    released.NotifyOne();
  });
  const MutexLock lock(mutex);
  while (!done) released.Wait(mutex);
}

}  // namespace skep
