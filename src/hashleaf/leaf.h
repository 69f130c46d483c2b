// leaf.h: a leaf of the tree: a range of keys, and a hash table of the pairs in it.
//
//   leaf [a, f]          leaf [g, p]          leaf [q, z]
//   +--------------+     +--------------+     +--------------+
//   | table   run  |---->| table   run  |---->| table   run  |
//   +--------------+     +--------------+     +--------------+
//                             ^ absorber
//                        (dead leaf)
//
// The leaf's lock guards all fields, unless they say otherwise.
//
// Protocol. One thread at a time works on a leaf (the paper: "KV requests falling into the same
// leaf node will be served only by one thread"), the one that holds its lock. There is one
// exception: of a batch that several threads execute, one thread may lock a leaf for all of them,
// who only read it, and another one unlock it (PointRun::Share says why no thread waits for ever
// for that).
//   find    a leaf map (leaf_map.h) tells where a key is, or was some time ago. The thread locks
//           that leaf and looks: if it is dead, the key is in the leaf that absorbed it, or right
//           of that; if the key is above `last`, right of it (LockLeafOf). So a batch may be
//           dispatched while another one splits leaves.
//   split   under the leaf's lock: the upper part goes to a new leaf, which is complete when it
//           becomes `next`. `first` never changes.
//   merge   under both leaves' locks: the left one takes all pairs of the right one, which is dead
//           from then on.
//   several leaves are locked in the order of their keys: a thread that holds a leaf waits for one
//           above it, never for one below.
//
// Why that is linearizable
//   (1) The data that an operation on one key reads or writes is under the lock of the one live
//       leaf that has the key in [first, last]: there is exactly one at any time, for splits and
//       merges hold the locks of all leaves whose ranges change.
//   (2) An operation on several keys, or on a range, holds the locks of all its leaves at once:
//       from the moment it has the last lock until it drops the first, none of the leaves changes,
//       and it takes effect at an instant between. A range holds every leaf that has a part of it,
//       so no key can come into it unseen.
//   (3) A search that goes right from a leaf L with first(L) <= key, or from a dead one to the one
//       that absorbed it, comes to the leaf of the key: live leaves cover all keys without a gap,
//       `next` of one leads to the one that begins behind its `last`, and both change only
//       together.
// Why no thread waits for ever: a thread waits only for a leaf whose first key is above those of
// all leaves that it holds. The map may lead to a leaf at or before the last of these (one that was
// split, and whose new part the map lacks), and so may a dead leaf (to one that absorbed it and was
// split since); then the search goes on from the `next` of the last held leaf (LeafLocks::Of, on
// every step).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/spin_lock.h"
#include "hashleaf/sorted_run.h"
#include "hashleaf/table.h"
#include "skep/batch.h"

namespace skep::hashleaf {

template <typename K>
struct alignas(64) Leaf {
  Leaf(Memory& memory, const Format& format, K first_key, K last_key)
      : last(last_key), table(memory, format), first(first_key) {}

  bool Covers(K key) const { return first <= key && key <= last; }
  // Whether this is the live leaf of the key, which must not be below `first`.
  bool Has(K key) const { return key <= last; }
  // Returns where to look on if it is not.
  Leaf* Other() const { return absorber != nullptr ? absorber : next; }

  // Publishes the table's size; to be called after the table has changed.
  void ShowSize() {
    items.store(table.items(), std::memory_order_relaxed);
    held_bytes.store(table.bytes(), std::memory_order_relaxed);
  }
  // Starts fetching what a point reads. Needs no lock.
  void Prefetch() const {
    FetchLine(this);
    if constexpr (sizeof(K) > 8) FetchLine(reinterpret_cast<const std::byte*>(this) + 64);
  }

  void Die(Leaf& by) {
    absorber = &by;
    last = static_cast<K>(first - 1);
  }

  // The line that every operation reads (for keys of 16 bytes it ends in the next line): `last`,
  // the lock, and the fields that a search reads of the table, whose Prefetch needs no lock.
  K last;  // of a dead leaf below `first`, which is not 0: the first leaf never dies
  SpinLock lock;
  Table<K> table;
  // Pairs and bytes of the table, for threads that do not hold the lock.
  std::atomic<uint32_t> items{0};
  std::atomic<uint32_t> held_bytes{0};
  const K first;                // needs no lock
  Leaf* absorber = nullptr;     // not null: dead
  Leaf* unpublished = nullptr;  // next leaf in the list Core::unpublished
  Leaf* next = nullptr;         // its range begins behind `last`; null: `last` is the last key
  std::unique_ptr<SortedRun<K>> run;
  Version number = 0;     // of the leaf's last write
  uint64_t snapshot = 0;  // number of the last snapshot iterator that is done with the leaf
  uint64_t swept_ns = 0;  // cost of scans without a run since the last run
};

// Locks the live leaf of the key. The thread must hold no leaf, and be a reader of the epochs by
// which leaves are freed. `leaf` is, or was, one whose first key is not above the key.
template <typename K>
Leaf<K>& LockLeafOf(Leaf<K>* leaf, K key) {
  for (;;) {
    leaf->lock.lock();
    if (leaf->Has(key)) return *leaf;
    Leaf<K>* const other = leaf->Other();
    leaf->lock.unlock();
    leaf = other;
  }
}

}  // namespace skep::hashleaf
