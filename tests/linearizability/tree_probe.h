// tree_probe.h: counts what happens in a tree while threads work on it, and holds threads up in it.
//
// The tree names the places where its threads may meet (btree/sync_point.h). The probe counts how
// often each was reached, which proves that a test provokes splits, joins and range deletes; and
// now and then it lets other threads run right there, so that rare meetings are common.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <ostream>

#include "btree/btree_engine.h"
#include "btree/sync_point.h"

namespace skep::linearizability {

// Totals of all trees that a test has probed. Thread-safe except for Note() and its totals.
class TreeTally {
 public:
  void Count(btree::SyncPoint point) {
    reached_[static_cast<size_t>(point)].fetch_add(1, std::memory_order_relaxed);
  }
  // Adds the tree's present statistics; the tree may be in use.
  void Note(const TreeStatistics& tree);

  uint64_t buffers() const;         // of merges and of new nodes that were mapped
  uint64_t restructurings() const;  // splits and joins, of all levels, as far as all their locks
  uint64_t range_deletes() const;
  uint64_t siblings() const;  // links from leaf to leaf that were followed
  uint64_t leaves_max() const { return leaves_max_; }
  uint32_t height_min() const { return height_min_; }
  uint32_t height_max() const { return height_max_; }

  // Prints one line for people.
  friend std::ostream& operator<<(std::ostream& out, const TreeTally& tally);

 private:
  uint64_t Reached(btree::SyncPoint point) const {
    return reached_[static_cast<size_t>(point)].load(std::memory_order_relaxed);
  }

  std::array<std::atomic<uint64_t>, 256> reached_{};  // by point
  uint64_t leaves_max_ = 0;
  uint32_t height_min_ = UINT32_MAX;
  uint32_t height_max_ = 0;
};

// Probes one tree. Must outlive all operations on it.
class TreeProbe {
 public:
  // To be made before the tree's first operation. `one_in`: a thread is held up at one in so many
  // places; 0: never. An engine that is no tree is left alone.
  TreeProbe(Engine& engine, TreeTally& tally, uint32_t one_in);
  TreeProbe(const TreeProbe&) = delete;
  TreeProbe& operator=(const TreeProbe&) = delete;

  // Adds the tree's present statistics to the tally.
  void Note();

 private:
  static void AtPoint(void* context, btree::SyncPoint point);

  BtreeEngine* const tree_;  // null: the engine is no tree
  TreeTally& tally_;
  const uint32_t one_in_;
};

}  // namespace skep::linearizability
