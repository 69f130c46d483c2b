// core.h: what the parts of the hash leaf engine share.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <vector>

#include "base/epochs.h"
#include "base/helper_pool.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/sequence_numbers.h"
#include "hashleaf/leaf_map.h"

namespace skep::hashleaf {

// How a scan reads a leaf.
enum class ScanBy : uint8_t { kCost, kProbe, kSweep, kRun };

// Where a full leaf is divided: at the middle of its keys' range, as the paper does, unless that
// leaves a side with less than a sixteenth; or always there.
enum class SplitAt : uint8_t { kMidpointOrMedian, kMidpoint };

struct Settings {
  uint32_t leaf_bytes;  // of a full table: Table::kBytesMin times a power of two
  ScanBy scan_by = ScanBy::kCost;
  SplitAt split_at = SplitAt::kMidpointOrMedian;
  uint32_t threads = 1;  // that a large batch is done by, with the one that brought it
};

// A snapshot iterator that is open: what it still has to give of leaves that have changed since
// (snapshot_iterator.h has the protocol).
template <typename K>
struct SnapshotIteratorState {
  explicit SnapshotIteratorState(MemoryBudget& budget) : memory(budget), images(&memory) {}

  struct Image {
    K last;
    std::pmr::vector<char> pairs;  // as a Slice has them
  };

  // Of the open iterator; 0: none. It begins while every leaf is locked, so relaxed for who has
  // one.
  std::atomic<uint64_t> id{0};
  Mutex mutex;  // guards what is below
  BudgetedMemory memory;
  uint64_t last_id = 0;
  bool is_lost = false;
  bool is_done = false;
  K from = 0;                      // keys before it are walked, unless is_done: then all
  std::pmr::map<K, Image> images;  // by the first key; none meets another
};

template <typename K>
struct Core {
  // All must outlive it.
  Core(const Settings& the_settings, const Format& the_format, MemoryBudget& the_budget,
       LatestNow& the_now, Watches& the_watches, bool numbers_writes)
      : settings(the_settings),
        format(the_format),
        budget(the_budget),
        now(the_now),
        watches(the_watches),
        numbers(numbers_writes),
        memory(the_budget),
        snapshot(the_budget),
        helper_pool(the_settings.threads - 1) {}
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // The first leaf, with all keys. False: no memory.
  bool Start();

  // A leaf without pairs. Null: no memory for its table.
  Leaf<K>* NewLeaf(K first, K last, uint32_t table_bytes, Arena::Limit limit);
  void DeleteLeaf(Leaf<K>* leaf);

  // Readers of the epochs may use what it gives.
  const LeafMap<K>& Map() const { return *map.load(std::memory_order_seq_cst); }
  // Makes a map with what is `unpublished`, and without those that are dead. The caller has
  // `structure`. If it throws, nothing is changed, and it can be done later: links lead to leaves
  // that the map has not, and from those that it still has.
  void Publish() SKEP_REQUIRES(structure);
  // Leaves that were split off and are to come into the map, linked.
  void AddUnpublished(const std::vector<Leaf<K>*>& added) SKEP_REQUIRES(structure);

  // The engine gives up what it can do without. The caller holds no leaf.
  void GiveWay();
  // Of a leaf that is locked.
  void DropRun(Leaf<K>& leaf);

  const Settings settings;
  const Format format;
  MemoryBudget& budget;
  LatestNow& now;
  Watches& watches;
  SequenceNumbers numbers;
  Memory memory;
  Epochs epochs;
  Mutex structure;  // taken to publish, before leaves are locked
  Leaf<K>* unpublished SKEP_GUARDED_BY(structure) = nullptr;  // guarded by `structure`
  std::vector<Leaf<K>*> dead SKEP_GUARDED_BY(structure);  // those that the map still has; likewise
  std::atomic<const LeafMap<K>*> map{nullptr};
  SnapshotIteratorState<K> snapshot;
  HelperPool helper_pool;
  std::atomic<uint64_t> splits{0};
  std::atomic<uint64_t> merges{0};
  std::atomic<uint64_t> runs_built{0};
  std::atomic<uint64_t> runs{0};          // that there are
  std::atomic<uint64_t> shared_reads{0};  // of a leaf, by several threads at a time

 private:
  std::atomic_flag gives_way_;
};

extern template struct Core<uint32_t>;
extern template struct Core<uint64_t>;
extern template struct Core<Key128>;

}  // namespace skep::hashleaf
