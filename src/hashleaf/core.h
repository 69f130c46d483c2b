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
// leaves one side less than a sixteenth of the keys: then at the median; or always at the middle.
enum class SplitAt : uint8_t { kMidpointOrMedian, kMidpoint };

struct Settings {
  uint32_t leaf_bytes;  // of a full table: Table::kBytesMin times a power of two
  ScanBy scan_by = ScanBy::kCost;
  SplitAt split_at = SplitAt::kMidpointOrMedian;
  uint32_t threads = 1;  // that execute a large batch, the caller's included
};

// The state of the open snapshot iterator: what it still has to give of leaves that have changed
// since its opening (snapshot_iterator.h has the protocol).
template <typename K>
struct SnapshotIteratorState {
  explicit SnapshotIteratorState(MemoryBudget& budget) : memory(budget), images(&memory) {}

  struct Image {
    K last;
    std::pmr::vector<char> pairs;  // in the form of a Slice
  };

  // The number of the open iterator; 0: none is open. It is set while every leaf is locked, so a
  // relaxed load is enough for a thread that holds a leaf.
  std::atomic<uint64_t> id{0};
  Mutex mutex;  // guards the fields below
  BudgetedMemory memory;
  uint64_t last_id = 0;
  bool is_lost = false;
  bool is_done = false;
  K from = 0;                      // keys before it are walked, unless is_done: then all
  std::pmr::map<K, Image> images;  // by first key; disjoint
};

template <typename K>
struct Core {
  // All arguments must outlive the core.
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

  // Makes the first leaf, for all keys. Returns false if there is no memory.
  bool Start();

  // Makes a leaf without pairs. Returns null if there is no memory for its table.
  Leaf<K>* NewLeaf(K first, K last, uint32_t table_bytes, Arena::Limit limit);
  void DeleteLeaf(Leaf<K>* leaf);

  // Returns the current map. The caller must be a reader of the epochs while it uses it.
  const LeafMap<K>& Map() const { return *map.load(std::memory_order_seq_cst); }
  // Makes and publishes a map with the `unpublished` leaves, and without the dead ones. If it
  // throws, nothing is changed, and a later call can do it: links lead to the leaves that the map
  // lacks, and away from the dead ones that it still has.
  void Publish() SKEP_REQUIRES(structure);
  // Adds linked leaves that were split off, to come into the next map.
  void AddUnpublished(const std::vector<Leaf<K>*>& added) SKEP_REQUIRES(structure);

  // Gives up memory that the engine can do without. The caller must hold no leaf.
  void GiveWay();
  // Drops the leaf's sorted run, if it has one. The leaf must be locked.
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
  Leaf<K>* unpublished SKEP_GUARDED_BY(structure) = nullptr;
  std::vector<Leaf<K>*> dead SKEP_GUARDED_BY(structure);  // still in the map
  std::atomic<const LeafMap<K>*> map{nullptr};
  SnapshotIteratorState<K> snapshot;
  HelperPool helper_pool;
  std::atomic<uint64_t> splits{0};
  std::atomic<uint64_t> merges{0};
  std::atomic<uint64_t> runs_built{0};
  std::atomic<uint64_t> runs{0};          // number of runs now
  std::atomic<uint64_t> shared_reads{0};  // times that several threads read one leaf at once

 private:
  std::atomic_flag gives_way_;
};

extern template struct Core<uint32_t>;
extern template struct Core<uint64_t>;
extern template struct Core<Key128>;

}  // namespace skep::hashleaf
