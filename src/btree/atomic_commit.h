// atomic_commit.h: how an atomic batch takes effect once its leaves are locked and its requests
// performed.
//
//   prepare   the changes of each leaf are written where nobody sees them: behind its log, or into
//             a new buffer if the log has no room
//   split     if they do not fit into one leaf, everything is undone, and leaves are split into as
//             many as will be needed (split_join.h: that changes no data); the batch begins again
//   draw      one version, under the locks
//   publish   the version is written into every item, and the leaves are unlocked
//
// All memory is taken before the version is drawn, so from that moment on nothing can fail.
//
// A commit waits for no thread. It asks its caller to begin again (kAgain) after it has split
// leaves or merged one whose version is too far back, and if the writers were stopped since the
// operation began. Each time it has made the room that was wanted; other writers may take it again.
#pragma once

#include <span>

#include "btree/atomic_lists.h"
#include "btree/core.h"
#include "btree/split_join.h"
#include "btree/structure_change.h"

namespace skep::btree {

// Owner: one execution of one batch.
template <class Layout>
class AtomicCommit {
 public:
  AtomicCommit(Core& core, ThreadState& thread, SplitJoin<Layout>& split_join, AtomicLists& lists)
      : core_(core), thread_(thread), split_join_(split_join), lists_(lists) {}

  // Writes the changes of lists.keys, whose leaves `change` has locked. Not kDone: nothing was
  // written and no lock is held. kNoMemory only if something is to be stored.
  Attempt Apply(StructureChange<Layout>& change);

 private:
  bool PrepareAll(StructureChange<Layout>& change, Storing& storing);
  bool Prepare(StructureChange<Layout>& change, const LockedLeaf& leaf, Storing& storing);
  bool ListEdits(const LockedLeaf& leaf, Storing& storing);
  bool AppendAll(StructureChange<Layout>& change, const LockedLeaf& leaf);
  bool Merge(StructureChange<Layout>& change, const LockedLeaf& leaf);
  void ListReplaced(StructureChange<Layout>& change, const LockedLeaf& leaf);
  void NoteSeparators(std::span<const LeafItem> items);
  Attempt SplitAll();
  bool Shrinks() const;
  const NodeHeader* SetVersions(Version version);
  void CountItems();

  Core& core_;
  ThreadState& thread_;
  SplitJoin<Layout>& split_join_;
  AtomicLists& lists_;
  Arena::Limit limit_ = Arena::Limit::kObey;
};

}  // namespace skep::btree
