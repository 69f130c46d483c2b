// core.h: the parts of one tree, for any layout.
//
// The way down: the root keeps one LID for ever; page_table.h leads from LIDs to buffers. The
// protocols: versions.h (which versions and buffers are still needed), snapshots.h, reclaim.h,
// split_join.h (how the tree changes shape).
//
// Node locks. The lock is a bit in the newest buffer of a node. It is taken by compare-and-swap of
// the whole word, with the value from when the writer looked at the node, so success also means
// that nothing has changed since. A holder of one lock may wait for others only to the right (keys
// above), or upwards by trying and giving everything up on failure; so there is no deadlock. A
// buffer that was replaced, or whose node left the tree, stays locked for ever.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "base/arena.h"
#include "btree/directory_keeper.h"
#include "btree/expiry_queue.h"
#include "btree/multi_version.h"
#include "btree/node.h"
#include "btree/page_table.h"
#include "btree/reclaim.h"
#include "btree/snapshots.h"
#include "btree/stored.h"
#include "btree/sync_point.h"
#include "btree/tries.h"
#include "btree/versions.h"
#include "engine/engine.h"
#include "engine/expiry_observer.h"
#include "engine/leaf_board.h"

namespace skep::btree {

struct Core {
  static constexpr uint64_t kLidsMax = uint64_t{1} << 28;

  Core(const EngineOptions& options, ReleaseGate& release_gate, LatestNow& latest_now,
       Watches& key_watches, const NodeContents& contents, uint32_t bytes_before_node)
      : budget(*options.budget),
        multi_version(options.index.btree.multi_version),
        front_bytes(bytes_before_node),
        arena({.budget = options.budget, .is_shared = options.index.btree.shared}),
        table(options.budget, kLidsMax, options.index.btree.shared),
        versions(threads),
        snapshots(*options.budget),
        gate(release_gate),
        now(latest_now),
        watches(key_watches),
        codec{.geometry = {.node_bytes = options.index.btree.node_bytes,
                           .log_bytes_max = std::min(options.index.btree.log_bytes,
                                                     options.index.btree.node_bytes / 4)},
              .arena = &arena},
        reclaimer(arena, table, versions, snapshots, release_gate, contents, hook, budget,
                  front_bytes),
        directory(budget) {}

  // The node that lies in a buffer.
  NodeHeader* Node(ArenaAddress buffer) const { return NodeIn(arena.At(buffer), front_bytes); }
  // Makes the board of a tree that is shared. False: the system has no memory for it.
  bool MakeBoard(NodeLayout layout);
  // Null: the tree is not shared.
  SharedMemory* board() const { return board_memory.get(); }
  // The newest buffer of the node that a valid link names.
  NodeHeader* Head(Link link) const { return Node(table.Load(link.lid()).buffer()); }
  void Sync(SyncPoint point) const { hook.Reach(point); }
  // The number of keys that have a value, from the counts of all threads.
  uint64_t ItemCount() const { return Sum(&ThreadState::items); }
  // The number of keys that have a deadline.
  uint64_t DeadlineCount() const { return Sum(&ThreadState::deadlines); }
  uint64_t Sum(std::atomic<int64_t> ThreadState::* number) const {
    int64_t sum = 0;
    threads.ForEach([&](const ThreadState& thread) {
      sum += (thread.*number).load(std::memory_order_relaxed);
    });
    return sum > 0 ? static_cast<uint64_t>(sum) : 0;
  }
  Version Stamp(Version drawn) const { return multi_version.Stamp(drawn); }

  MemoryBudget& budget;
  const MultiVersion multi_version;
  std::unique_ptr<SharedMemory> board_memory;
  const uint32_t front_bytes;  // bytes of a buffer before its node: the layout's kFrontBytes
  Arena arena;
  PageTable table;
  ThreadStates threads;
  Versions versions;
  Turnstiles turnstiles;
  Snapshots snapshots;
  ReleaseGate& gate;
  LatestNow& now;
  Watches& watches;
  const Codec codec;
  Link root;
  Reclaimer reclaimer;
  DirectoryKeeper directory;
  SyncHook hook;  // set before the first operation
  ExpiryQueue expiry;
  std::atomic<uint64_t> expired_keys{0};  // expired keys whose items have left the tree
  std::atomic<ExpiryObserver*> expiry_observer{nullptr};  // release and acquire: it is used
  // Set once an outside block was made: nodes may name blocks.
  std::atomic<bool> has_blocks{false};
  std::atomic<uint64_t> log_merges{0};  // merges of logs that scans had gone through
  std::atomic<uint64_t> leaves{0};
  std::atomic<uint64_t> inner_nodes{0};
  std::atomic<uint32_t> leaf_items_max{1};  // at least the keys of any leaf that ever was
};

inline bool Core::MakeBoard(NodeLayout layout) {
  auto memory = SharedMemory::Create(sizeof(LeafBoard), SharedPages::kPlain);
  if (!memory) return false;
  board_memory = std::make_unique<SharedMemory>(std::move(*memory));
  auto* const board = new (board_memory->begin()) LeafBoard;
  board->layout = static_cast<uint32_t>(layout);
  board->node_bytes = codec.geometry.node_bytes;
  reclaimer.ShowDetachedIn(board);
  return true;
}

// Locks the node if its word still is `word`; the word then is `word` with the lock bit.
inline bool TryLock(NodeHeader* node, uint64_t word) {
  return (word & NodeWord::kLocked) == 0 &&
         node->word.compare_exchange_strong(word, word | NodeWord::kLocked,
                                            std::memory_order_seq_cst);
}
// Unlocks a node that its holder has not changed, by restoring the word from before the lock.
inline void UnlockUnchanged(NodeHeader* node, uint64_t word) {
  node->word.store(word, std::memory_order_release);
}

}  // namespace skep::btree
