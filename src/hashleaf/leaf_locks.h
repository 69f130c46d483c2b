// leaf_locks.h: the leaves that an operation on several keys holds at once (leaf.h, "several").
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/reserve_more.h"
#include "hashleaf/core.h"

namespace skep::hashleaf {

// The locks of several leaves; the destructor unlocks them. Owner: one thread, which is a reader of
// the core's epochs.
template <typename K>
class LeafLocks {
 public:
  explicit LeafLocks(const Core<K>& core) : core_(core) {}
  ~LeafLocks() { Unlock(); }
  LeafLocks(const LeafLocks&) = delete;
  LeafLocks& operator=(const LeafLocks&) = delete;

  // Returns the leaf of the key, and locks it if it is not held yet: it must then be above all held
  // leaves.
  Leaf<K>& Of(K key) {
    if (!held_.empty() && key <= held_.back()->last) return HeldOf(key);
    ReserveMore(held_, 1);  // before the leaf is locked
    const LeafMap<K>& map = core_.Map();
    Leaf<K>* leaf = map.leaf(map.IndexOf(key));
    for (;;) {
      // The map, or an absorber, may lead back to a held leaf, or before it: the held leaf's own
      // link leads on.
      if (!held_.empty() && leaf->first <= held_.back()->first) leaf = held_.back()->next;
      leaf->lock.lock();
      if (leaf->Has(key)) break;
      Leaf<K>* const other = leaf->Other();
      leaf->lock.unlock();
      leaf = other;
    }
    held_.push_back(leaf);
    return *leaf;
  }
  // Returns the leaf right of a held one, locked; null: there is none.
  Leaf<K>* After(const Leaf<K>& leaf) {
    return leaf.next == nullptr ? nullptr : &Of(leaf.next->first);
  }
  // Locks all leaves that have a part of the interval.
  void Lock(const Interval<K>& interval) {
    for (Leaf<K>* leaf = &Of(interval.first); leaf->last < interval.last;) leaf = After(*leaf);
  }
  // Makes room for one leaf more, so that Add() cannot fail.
  void MakeRoomForOne() { ReserveMore(held_, 1); }
  // Adds a new leaf, split off a held one.
  void Add(Leaf<K>& leaf) {
    leaf.lock.lock();
    held_.insert(std::ranges::upper_bound(held_, leaf.first, {}, &Leaf<K>::first), &leaf);
  }
  void Unlock() {
    for (Leaf<K>* const leaf : held_) leaf->lock.unlock();
    held_.clear();
  }

  // Returns the held leaves in the order of their keys.
  const std::vector<Leaf<K>*>& held() const { return held_; }
  // Returns the held leaf of the key.
  Leaf<K>& HeldOf(K key) const {
    return **std::prev(std::ranges::upper_bound(held_, key, {}, &Leaf<K>::first));
  }

 private:
  const Core<K>& core_;
  std::vector<Leaf<K>*> held_;
};

}  // namespace skep::hashleaf
