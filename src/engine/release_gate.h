// release_gate.h: when a write may be seen, and how to wait for that.
//
// An engine's Execute() never waits for another thread: it returns a ticket, the highest version it
// wrote or read. The version is released once every write up to it is complete and visible to
// readers. A reply must not leave before its ticket is released; the gate says when.
//
// Roles
//   engine  Release(v): every write up to v is visible. v never goes back.
//   waiter  IsReleased(ticket), then Wait(ticket) or CallWhenReleased(ticket, f).
//
// Why no wake-up is lost
//   A waiter (under the mutex) lowers lowest_wanted_ to its ticket, then reads released_. Release
//   stores released_, then reads lowest_wanted_. All four are seq_cst, so in their single total
//   order either the waiter's read comes after the store and it does not wait, or Release's read
//   comes after the lowering and it takes the mutex and calls the waiter.
//
// Release costs two uncontended atomic accesses while nobody waits.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "base/mutex.h"
#include "skep/batch.h"

namespace skep {

class ReleaseGate {
 public:
  // The version up to which every write can be seen. Thread-safe, as are all methods.
  Version released() const { return released_.load(std::memory_order_seq_cst); }
  bool IsReleased(Version ticket) const { return released() >= ticket; }

  // Engines only. A version below the released one changes nothing.
  void Release(Version version);

  // Shows the released version in `shown` from now on, for readers in other processes. What is
  // shown is never above released(), and no lower once Release has returned. Called once, or again
  // with the same word; `shown` must outlive the gate's last Release.
  void ShowIn(std::atomic<Version>* shown);

  // Blocks the thread until the ticket is released.
  void Wait(Version ticket);

  // Calls `then` exactly once, when the ticket is released: at once on this thread, or later on the
  // releasing one, so it must be short and must not call the gate.
  void CallWhenReleased(Version ticket, std::function<void()> then);

 private:
  struct Waiter {
    Version ticket;
    std::function<void()> then;
  };

  void Show(Version version);

  std::atomic<Version> released_{0};
  std::atomic<std::atomic<Version>*> shown_{nullptr};  // null: nowhere
  std::atomic<Version> lowest_wanted_{UINT64_MAX};
  Mutex mutex_;
  std::vector<Waiter> waiters_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep
