// tree_statistics.h: a tree in numbers.
#pragma once

#include <cstdint>

#include "skep/batch.h"

namespace skep {

struct TreeStatistics {
  // Taken from the nodes: estimates if only some were looked at, and for chain_max a lower bound.
  uint64_t leaves = 0;
  uint64_t inner_nodes = 0;
  uint32_t height = 0;         // levels; 1: the root is a leaf
  uint64_t sampled_nodes = 0;  // nodes that were looked at
  uint64_t node_bytes = 0;     // in buffers of live nodes, newest ones only
  uint64_t used_bytes = 0;     // part of node_bytes
  uint64_t log_bytes = 0;      // part of used_bytes
  uint64_t chain_buffers = 0;  // older buffers
  uint64_t chain_max = 0;      // the most in one chain

  // Taken from counters.
  uint64_t items = 0;             // live keys
  uint64_t executing = 0;         // batches that execute now
  Version unreleased = 0;         // versions drawn and not yet released
  Version reader_behind = 0;      // versions released since the oldest read of a batch began
  uint64_t snapshots = 0;         // live snapshots
  Version snapshot_behind = 0;    // versions released since the oldest snapshot
  uint64_t reclaim_waiting = 0;   // pieces in stage 1 of reclaim.h
  uint64_t reclaim_kept = 0;      // pieces kept for snapshots
  uint64_t reclaim_dying = 0;     // pieces in stage 2
  uint64_t reclaim_detached = 0;  // detached subtrees still to be walked
  Version reclaim_behind = 0;     // versions released since the oldest waiting piece
  uint64_t arena_allocated = 0;   // bytes in use
  uint64_t arena_held = 0;        // bytes taken from the system
  uint64_t table_held = 0;        // bytes of the page table
  uint64_t reclaim_held = 0;      // bytes of the lists of pieces that wait to be freed
  uint64_t directory_held = 0;    // bytes of the directory of leaves
  uint64_t log_merges = 0;        // logs merged because scans had gone through them
  uint64_t huge_bytes = 0;        // part of arena_held that lies on huge pages
};

}  // namespace skep
