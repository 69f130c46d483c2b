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

#include "engine/engine.h"

namespace skep {

namespace btree {
struct Core;
struct SyncHook;
}  // namespace btree

struct TreeStatistics {
  uint64_t leaves = 0;
  uint64_t inner_nodes = 0;
  uint32_t height = 0;            // levels; 1: the root is a leaf
  uint64_t node_bytes = 0;        // in buffers of live nodes, newest ones only
  uint64_t used_bytes = 0;        // of those
  uint64_t log_bytes = 0;         // of those
  uint64_t chain_buffers = 0;     // older buffers
  uint64_t chain_max = 0;         // in one chain
  uint64_t reclaim_waiting = 0;   // pieces in stage 1 of reclaim.h
  uint64_t reclaim_kept = 0;      // for snapshots
  uint64_t reclaim_dying = 0;     // in stage 2
  uint64_t reclaim_detached = 0;  // subtrees to walk
  Version reclaim_behind = 0;     // versions since the oldest waiting piece
  uint64_t arena_allocated = 0;   // bytes in use
  uint64_t arena_held = 0;        // bytes taken from the system
  uint64_t huge_bytes = 0;        // of those on huge pages
};

class BtreeEngine final : public Engine {
 public:
  // Null if the system has no memory for an empty tree.
  static std::unique_ptr<Engine> Make(const EngineOptions& options);
  ~BtreeEngine() override;

  const EngineTraits& traits() const override;
  Version Execute(Batch& batch) override;
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override;
  void CloseSnapshot(SnapshotRef snapshot) override;
  bool Maintain(uint64_t now_ms) override;
  EngineStatistics Statistics() const override;
  const char* Verify() const override;

  // Walks the page table: takes time with the number of nodes. Thread-safe.
  TreeStatistics Tree() const;

  // For tests.
  btree::Core& core();

 private:
  class Impl;
  explicit BtreeEngine(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace skep
