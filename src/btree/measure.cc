#include "btree/measure.h"

#include <algorithm>

#include "base/random.h"

namespace skep::btree {
namespace {

// Returns value * whole / part; 0 if `part` is 0, as there is nothing to judge by.
uint64_t Scaled(uint64_t value, uint64_t whole, uint64_t part) {
  if (part == 0) return 0;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(value) * whole / part);
}

class Survey {
 public:
  Survey(const Core& core, const SurveyBounds& bounds)
      : core_(core),
        rows_(core.table.end() - 1),
        stretch_(1 + (rows_ - 1) / bounds.rows_max),
        buffers_left_(bounds.buffers_max) {}

  TreeStatistics Take() {
    // The seed gives other rows when the tree has changed, the same rows while it rests.
    SeededRandom random(core_.versions.last_drawn());
    for (uint64_t first = 1; first <= rows_; first += stretch_) {
      const uint64_t row = stretch_ == 1 ? first : first + random.Below(stretch_);
      if (row <= rows_) VisitRow(row);
    }
    if (stretch_ > 1) ScaleUp();
    tree_.height = core_.Head(core_.root)->level + 1u;
    return tree_;
  }

 private:
  void VisitRow(Lid lid) {
    if (buffers_left_ > 0) ++rows_with_chain_;
    const ArenaAddress at = core_.table.Load(lid).buffer();
    if (!at) return;
    const NodeHeader* const node = core_.Node(at);
    const NodeWord word{node->word.load(std::memory_order_acquire)};
    const uint64_t chain = ChainOf(node);
    tree_.chain_buffers += chain;
    tree_.chain_max = std::max(tree_.chain_max, chain);
    if (word.retired()) return;
    ++tree_.sampled_nodes;
    ++(node->is_leaf() ? tree_.leaves : tree_.inner_nodes);
    tree_.node_bytes += node->buffer_bytes();
    tree_.used_bytes += word.bytes_used();
    if (node->is_leaf()) tree_.log_bytes += word.bytes_used() - node->log_begin;
  }

  // Counts the older buffers of the node, as long as buffers_left_ allows.
  uint64_t ChainOf(const NodeHeader* node) {
    uint64_t length = 0;
    while (buffers_left_ > 0) {
      const Older older{node->older.load(std::memory_order_acquire)};
      if (!older.buffer()) break;
      node = core_.Node(older.buffer());
      ++length;
      --buffers_left_;
    }
    return length;
  }

  void ScaleUp() {
    tree_.leaves = core_.leaves.load(std::memory_order_relaxed);
    tree_.inner_nodes = core_.inner_nodes.load(std::memory_order_relaxed);
    const uint64_t nodes = tree_.leaves + tree_.inner_nodes;
    for (uint64_t* const bytes : {&tree_.node_bytes, &tree_.used_bytes, &tree_.log_bytes}) {
      *bytes = Scaled(*bytes, nodes, tree_.sampled_nodes);
    }
    tree_.chain_buffers = Scaled(tree_.chain_buffers, rows_, rows_with_chain_);
  }

  const Core& core_;
  const uint64_t rows_;
  const uint64_t stretch_;  // length of a stretch, of which one row is looked at
  uint64_t buffers_left_;
  uint64_t rows_with_chain_ = 0;  // rows whose chain was looked at
  TreeStatistics tree_;
};

}  // namespace

TreeStatistics SurveyNodes(const Core& core, const SurveyBounds& bounds) {
  return Survey(core, bounds).Take();
}

void AddCounters(const Core& core, TreeStatistics* tree) {
  tree->items = core.ItemCount();
  core.threads.ForEach([&](const ThreadState& thread) {
    tree->executing += thread.epoch.load(std::memory_order_relaxed) != ThreadState::kIdle;
  });
  // Each number is read before the one that it may not exceed, so that writes meanwhile do not
  // count as a delay.
  const Version drawn = core.Stamp(core.versions.last_drawn());
  const Version released = core.gate.released();
  const Version floor = core.versions.LowestReadFloor();
  const SnapshotStatistics snapshots = core.snapshots.Statistics();
  tree->unreleased = drawn - std::min(drawn, released);
  tree->reader_behind = released - std::min(released, floor);
  tree->snapshots = snapshots.count;
  if (snapshots.count > 0) tree->snapshot_behind = released - std::min(released, snapshots.oldest);

  const ReclaimStatistics reclaim = core.reclaimer.Statistics();
  tree->reclaim_waiting = reclaim.waiting;
  tree->reclaim_kept = reclaim.kept;
  tree->reclaim_dying = reclaim.dying;
  tree->reclaim_detached = reclaim.detached;
  tree->reclaim_behind = reclaim.behind;
  const ArenaStatistics arena = core.arena.Statistics();
  tree->arena_allocated = arena.allocated_bytes;
  tree->arena_held = arena.held_bytes;
  tree->table_held = core.table.held_bytes();
  tree->reclaim_held = core.reclaimer.held_bytes();
  tree->directory_held = core.directory.held_bytes();
  tree->log_merges = core.log_merges.load(std::memory_order_relaxed);
}

void Report(const TreeStatistics& tree, const Engine::StatsVisitor& visit) {
  visit("items", tree.items);
  visit("leaves", tree.leaves);
  visit("inner_nodes", tree.inner_nodes);
  visit("height", tree.height);
  visit("sampled_nodes", tree.sampled_nodes);
  visit("node_bytes", tree.node_bytes);
  visit("used_bytes", tree.used_bytes);
  visit("fill_percent", Scaled(100, tree.used_bytes, tree.node_bytes));
  visit("log_bytes", tree.log_bytes);
  visit("log_merges", tree.log_merges);
  visit("chain_buffers", tree.chain_buffers);
  visit("chain_max", tree.chain_max);
  visit("executing", tree.executing);
  visit("unreleased", tree.unreleased);
  visit("reader_behind", tree.reader_behind);
  visit("snapshots", tree.snapshots);
  visit("snapshot_behind", tree.snapshot_behind);
  visit("reclaim_waiting", tree.reclaim_waiting);
  visit("reclaim_kept", tree.reclaim_kept);
  visit("reclaim_dying", tree.reclaim_dying);
  visit("reclaim_detached", tree.reclaim_detached);
  visit("reclaim_behind", tree.reclaim_behind);
  visit("arena_allocated_bytes", tree.arena_allocated);
  visit("arena_held_bytes", tree.arena_held);
  visit("table_held_bytes", tree.table_held);
  visit("reclaim_held_bytes", tree.reclaim_held);
  visit("directory_held_bytes", tree.directory_held);
  visit("bytes_per_item",
        Scaled(1, tree.arena_held + tree.table_held + tree.reclaim_held + tree.directory_held,
               tree.items));
}

}  // namespace skep::btree
