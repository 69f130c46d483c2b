// log_merger.h: merges the logs of leaves that scans go through again and again.
//
// A leaf's log makes writes cheap and scans dear: a scan has to put the log's items into the order
// of their keys. A write merges the log once it is full; a leaf that is no longer written would
// keep what it has, and every scan would pay for it. So a batch that has scanned leaves with logs
// merges some of them when it is done.
//
// Roles
//   scan     counts the log items that it passes and samples leaves, in its thread's state
//            (scanned_leaves.h): it writes nothing that other threads read.
//   merger   the same thread, when its batch is done and has left its epoch. For each sample it
//            looks whether the leaf is as the scan saw it, builds a leaf of the same items without
//            a log, and puts it in the place of the old one by a StructureChange, as a write does
//            whose item finds no room (writer.h).
//
// Safety. A merge changes no key and no value, and draws no version: else a batch that reads would
//   make versions that a log has to release (src/durable) before others may read.
//   (1) The merger announces that it rebuilds, asks whether the writers are being stopped, then
//       detached(), then loads the row of the LID, then the word. If the word is that of the sample
//       and has no mark, the node was in the tree when the row was loaded (reader.h, from a hint).
//       It locks the node by compare-and-swap of that word, so the node is still its LID's newest
//       and has the items that were merged.
//   (2) A thread that stops the writers after that, to detach a subtree, sees the announcement and
//       waits until the leaf is rebuilt (P6 of versions.h).
//   (3) The merged leaf has the version of the newest item of the old one, e. A reader at e or
//       later sees in both what it had at e, as there is no later write in the old one. A reader
//       before e finds the old leaf in the chain. The old leaf is retired at e, and so is freed
//       once no reader is before e (S of versions.h) and by the rules of epochs (E).
//
// Progress. The merger never waits for a node, a turn or a stop: where anything is in its way it
//   leaves the leaf as it is. It holds one lock, of a leaf, for as long as it takes to copy a leaf.
//   A thread that stops the writers waits for one merge of each other thread at most, and so do
//   the writers that it has stopped; the release of versions waits for none, since a merger
//   announces no floor, and what its batch wrote is released before. The reply of its own batch
//   waits for kSamplesMax merges at most.
//   A write that meets it begins again, as if it had met another write; a leaf for which a write
//   waits at the turnstile (tries.h) is left alone, so (1) of tries.h holds with the merger as one
//   of the writes of a thread.
//
// Bound. There is at most one merge for ScannedLeaves::kItemsASample log items that scans have
//   passed, and for a batch at most kSamplesMax. So all merges together cost no more than about
//   half of what scans have spent on logs, however leaves are written and scanned. A leaf that was
//   written since the scan, or is being written, is not merged.
//
// A leaf whose items would not fit into a leaf with room for a log is left to its next write, which
// splits it. One that is nearly empty is left to the erase that joins it with its neighbour
// (split_join.h), which learns from the log that it is.
//
// A tree that is shared (leaf_board.h) has no merges: a one-sided reader knows the nodes of one
// buffer by their versions (G1 of src/netindex/leaves/leaf_reader.h), and a merged leaf has the
// version of the old one's newest item.
//
// Memory. A merged leaf gets a buffer as long as the old one, if it fits, and so a shorter log
//   until a write merges it again: else a tree that is scanned would grow by the room for logs.
//   While a snapshot is pinned nothing is merged, since the old leaf would be kept for it. One that
//   is pinned meanwhile keeps at most the leaves of one batch of each thread. A merge that finds no
//   memory is left out.
#pragma once

#include "btree/core.h"
#include "btree/scanned_leaves.h"
#include "btree/split_join.h"

namespace skep::btree {

// Thread-safe.
template <class Layout>
class LogMerger {
 public:
  explicit LogMerger(Core& core) : core_(core), split_join_(core) {}

  // Merges leaves that the thread has sampled. The thread is out of its epoch and writes nothing.
  // Returns whether it may have retired leaves. Cost: nothing without samples; else some
  // microseconds for each.
  bool Run(ThreadState& thread) { return !thread.scanned.empty() && MergeSampled(thread); }

 private:
  bool MergeSampled(ThreadState& thread);
  void TryMerge(ThreadState& thread, const ScannedLeaves::Sample& sample);

  Core& core_;
  const SplitJoin<Layout> split_join_;
};

}  // namespace skep::btree
