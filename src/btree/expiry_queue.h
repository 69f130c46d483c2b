// expiry_queue.h: the leaves in the order in which their keys expire.
//
// Every leaf knows a lower bound of its items' deadlines (layout.h, NodeDeadline). The queue orders
// the leaves by it, so keys are reclaimed in the order of their deadlines and a leaf is rewritten
// once for all of its keys that have expired by then. The queue costs an entry a leaf, none a key,
// and is touched only when a leaf's bound falls or a leaf is new.
//
// Invariant. A leaf of the tree that has a deadline d has an entry at d or earlier, but for a
//   moment: while the thread that lowered the bound or mapped the leaf is on the way to Add(), and
//   while Expirer has taken the entry. An entry may be too early, or of a LID that is no leaf any
//   more: a thread that takes it looks. Add() comes after the tree leads to the leaf, so an entry
//   whose leaf is not in the tree may be dropped.
//
// If there is no memory for an entry, the leaf has none or keeps a later one, and the loss is
//   counted: Expirer then looks at all leaves again, and the queue is whole again when it has come
//   to the last one and none was lost meanwhile.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "btree/link.h"

namespace skep::btree {

class ExpiryQueue {
 public:
  // Notes that the leaf has an item with this deadline, not 0. Keeps the earliest deadline of a
  // leaf.
  void Add(Lid leaf, uint64_t deadline_ms) noexcept {
    was_used_.store(true, std::memory_order_relaxed);
    const MutexLock lock(mutex_);
    try {
      const auto at = of_leaf_.find(leaf);
      if (at != of_leaf_.end() && at->second <= deadline_ms) return;
      const auto entry = by_deadline_.emplace(deadline_ms, leaf).first;
      if (at != of_leaf_.end()) {
        by_deadline_.erase({at->second, leaf});
        at->second = deadline_ms;
      } else {
        Bind(leaf, deadline_ms, entry);
      }
    } catch (const std::bad_alloc&) {
      lost_.fetch_add(1, std::memory_order_release);
    }
    SetNext();
  }

  // How many entries were lost for want of memory, ever. Acquire: a thread that looks at the leaves
  // then sees the deadlines of those.
  uint64_t lost() const { return lost_.load(std::memory_order_acquire); }
  // Whether the invariant holds.
  bool is_whole() const { return lost() == found_again_.load(std::memory_order_relaxed); }
  // Notes that all leaves were looked at, and added, since `lost` entries were lost.
  void FoundAgain(uint64_t lost) { found_again_.store(lost, std::memory_order_relaxed); }

  struct Entry {
    uint64_t deadline_ms;
    Lid leaf;
  };
  // Whether some entry is due. Relaxed, as it is asked again a little later.
  bool IsDue(uint64_t now_ms) const { return next_ms_.load(std::memory_order_relaxed) <= now_ms; }
  // Takes the entry with the earliest deadline, if that is not after `now_ms`.
  std::optional<Entry> Take(uint64_t now_ms) {
    const MutexLock lock(mutex_);
    if (by_deadline_.empty() || by_deadline_.begin()->first > now_ms) return std::nullopt;
    const auto [deadline_ms, leaf] = *by_deadline_.begin();
    by_deadline_.erase(by_deadline_.begin());
    of_leaf_.erase(leaf);
    SetNext();
    return Entry{.deadline_ms = deadline_ms, .leaf = leaf};
  }

  // The deadline of the leaf's entry; none if it has no entry.
  std::optional<uint64_t> Find(Lid leaf) const {
    const MutexLock lock(mutex_);
    const auto at = of_leaf_.find(leaf);
    if (at == of_leaf_.end()) return std::nullopt;
    return at->second;
  }
  size_t size() const {
    const MutexLock lock(mutex_);
    return by_deadline_.size();
  }
  // Whether any item ever had a deadline. Relaxed: Add() comes before its writer's floor rises, so
  // a thread that has stopped the writers sees this.
  bool was_used() const { return was_used_.load(std::memory_order_relaxed); }

 private:
  using ByDeadline = std::set<std::pair<uint64_t, Lid>>;

  // Notes the leaf's entry in of_leaf_. Without memory for that, removes `entry` again.
  void Bind(Lid leaf, uint64_t deadline_ms, ByDeadline::iterator entry) SKEP_REQUIRES(mutex_) {
    try {
      of_leaf_.emplace(leaf, deadline_ms);
    } catch (const std::bad_alloc&) {
      by_deadline_.erase(entry);
      throw;
    }
  }
  void SetNext() SKEP_REQUIRES(mutex_) {
    next_ms_.store(by_deadline_.empty() ? UINT64_MAX : by_deadline_.begin()->first,
                   std::memory_order_relaxed);
  }

  std::atomic<bool> was_used_{false};
  std::atomic<uint64_t> next_ms_{UINT64_MAX};
  std::atomic<uint64_t> lost_{0};
  std::atomic<uint64_t> found_again_{0};
  mutable Mutex mutex_;
  ByDeadline by_deadline_ SKEP_GUARDED_BY(mutex_);
  std::unordered_map<Lid, uint64_t> of_leaf_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep::btree
