// expiry_queue.h: which leaf holds the key that expires next.
//
// Every leaf knows a bound of its items' deadlines (paper_layout.h). The queue orders the leaves by
// it, so keys are reclaimed in the order of their deadlines and a leaf is rewritten once for all of
// its keys that have expired by then. It costs an entry a leaf, none a key, and is touched only
// when a leaf's bound falls or a leaf is new.
//
// Invariant. A leaf of the tree that has a deadline d has an entry at d or earlier, but for a
//   moment: while whoever lowered the bound or mapped the leaf is on the way to Add(), and while
//   Expirer has taken the entry. An entry may be too early, or of a LID that is no leaf any more:
//   who takes it looks. Add() comes after the tree leads to the leaf, so an entry whose leaf is not
//   in the tree may be dropped.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "btree/link.h"

namespace skep::btree {

class ExpiryQueue {
 public:
  // The leaf has an item with this deadline, not 0. Keeps the earliest one of a leaf. Without
  // memory for an entry the leaf has none, or keeps a later one: what expires in it is out of sight
  // all the same, and is reclaimed when somebody else builds the leaf anew.
  void Add(Lid leaf, uint64_t deadline_ms) noexcept {
    was_used_.store(true, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    try {
      const auto at = of_leaf_.find(leaf);
      if (at != of_leaf_.end() && at->second <= deadline_ms) return;
      const auto entry = by_deadline_.emplace(deadline_ms, leaf).first;
      if (at != of_leaf_.end()) {
        by_deadline_.erase({at->second, leaf});
        at->second = deadline_ms;
      } else if (!Know(leaf, deadline_ms)) {
        by_deadline_.erase(entry);
      }
    } catch (const std::bad_alloc&) {
    }
    SetNext();
  }

  struct Entry {
    uint64_t deadline_ms;
    Lid leaf;
  };
  // Some entry is due. Relaxed: it is asked again a little later.
  bool IsDue(uint64_t now_ms) const { return next_ms_.load(std::memory_order_relaxed) <= now_ms; }
  // Takes the entry with the earliest deadline, if that is not after now.
  std::optional<Entry> Take(uint64_t now_ms) {
    std::lock_guard lock(mutex_);
    if (by_deadline_.empty() || by_deadline_.begin()->first > now_ms) return std::nullopt;
    const auto [deadline_ms, leaf] = *by_deadline_.begin();
    by_deadline_.erase(by_deadline_.begin());
    of_leaf_.erase(leaf);
    SetNext();
    return Entry{.deadline_ms = deadline_ms, .leaf = leaf};
  }

  // The entry of a leaf; none if it has none.
  std::optional<uint64_t> Find(Lid leaf) const {
    std::lock_guard lock(mutex_);
    const auto at = of_leaf_.find(leaf);
    if (at == of_leaf_.end()) return std::nullopt;
    return at->second;
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return by_deadline_.size();
  }
  // Some item ever had a deadline. Relaxed: Add() comes before its writer's floor rises, so who has
  // stopped the writers sees this.
  bool was_used() const { return was_used_.load(std::memory_order_relaxed); }

 private:
  // False: no memory.
  bool Know(Lid leaf, uint64_t deadline_ms) {
    try {
      of_leaf_.emplace(leaf, deadline_ms);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }
  void SetNext() {
    next_ms_.store(by_deadline_.empty() ? UINT64_MAX : by_deadline_.begin()->first,
                   std::memory_order_relaxed);
  }

  std::atomic<bool> was_used_{false};
  std::atomic<uint64_t> next_ms_{UINT64_MAX};
  mutable std::mutex mutex_;  // guards all below
  std::set<std::pair<uint64_t, Lid>> by_deadline_;
  std::unordered_map<Lid, uint64_t> of_leaf_;
};

}  // namespace skep::btree
