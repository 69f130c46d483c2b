// btree_engine.h: Honeycomb's tree as an engine.
//
// Points of an unordered batch, and whatever is in an atomic one that writes, act on the newest
// state. Ranges, and atomic batches that only read, read at the version that is released when they
// begin. Nothing waits for a version to be released: the ticket says what the caller has to wait
// for.
//
// Cost: a point is one way down the tree, or straight to a leaf with a good hint. A write copies
// its leaf once in about a dozen times. A range delete takes the writers some microseconds and
// itself a step a leaf, for counting. Bytes: a leaf is as long as its items and its log room.
#pragma once

#include <memory>

#include "engine/engine_info.h"

namespace skep {

namespace btree {
struct Core;
struct SyncHook;
}  // namespace btree

struct TreeStatistics {
  // Of the nodes; if only some of them were looked at, estimates, and chain_max at least.
  uint64_t leaves = 0;
  uint64_t inner_nodes = 0;
  uint32_t height = 0;         // levels; 1: the root is a leaf
  uint64_t sampled_nodes = 0;  // were looked at
  uint64_t node_bytes = 0;     // in buffers of live nodes, newest ones only
  uint64_t used_bytes = 0;     // of those
  uint64_t log_bytes = 0;      // of those
  uint64_t chain_buffers = 0;  // older buffers
  uint64_t chain_max = 0;      // in one chain

  // Counted.
  uint64_t items = 0;             // live keys
  uint64_t executing = 0;         // batches now
  Version unreleased = 0;         // versions drawn and not yet released
  Version reader_behind = 0;      // versions released since the oldest read of a batch began
  uint64_t snapshots = 0;         // live ones
  Version snapshot_behind = 0;    // versions released since the oldest
  uint64_t reclaim_waiting = 0;   // pieces in stage 1 of reclaim.h
  uint64_t reclaim_kept = 0;      // for snapshots
  uint64_t reclaim_dying = 0;     // in stage 2
  uint64_t reclaim_detached = 0;  // subtrees to walk
  Version reclaim_behind = 0;     // versions since the oldest waiting piece
  uint64_t arena_allocated = 0;   // bytes in use
  uint64_t arena_held = 0;        // bytes taken from the system
  uint64_t table_held = 0;        // bytes of the page table
  uint64_t reclaim_held = 0;      // bytes of the lists of what waits to be freed
  uint64_t huge_bytes = 0;        // of arena_held, on huge pages
};

class BtreeEngine final : public Engine {
 public:
  static const EngineInfo kInfo;

  // Null if the system has no memory for an empty tree.
  static std::unique_ptr<Engine> Make(const EngineOptions& options);
  ~BtreeEngine() override;

  const EngineTraits& traits() const override;
  Version Execute(Batch& batch) override;
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override;
  void CloseSnapshot(SnapshotRef snapshot) override;
  Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t now_ms) override;
  // Null, too, of a tree that has had more than a leaf.
  std::unique_ptr<BulkLoad> OpenBulkLoad() override;
  void StartAfter(Version version, uint64_t now_ms) override;
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override;
  bool Maintain(uint64_t now_ms) override;
  void Release() override;
  EngineStatistics Statistics() const override;
  // TreeStatistics by name, of a sample of the nodes and without huge_bytes; the age of the oldest
  // snapshot, in milliseconds.
  void Describe(uint64_t now_ms, const Teller& tell) const override;
  const char* Verify() const override;

  // Walks the page table and asks the system for huge_bytes: takes time with the number of nodes.
  // Thread-safe.
  TreeStatistics Tree() const;

  // For tests.
  btree::Core& core();

 private:
  class Impl;
  template <class Layout>
  class ImplOf;

  BtreeEngine();
  std::unique_ptr<Impl> MakeImpl(const EngineOptions& options);
  Result<SnapshotRef> Pin(uint64_t now_ms, uint64_t until_ms);

  std::unique_ptr<Impl> impl_;
};

}  // namespace skep
