// structure_change.h: one change of nodes, made whole or not at all (Honeycomb, section 3.4).
//
//   lock        the nodes that are to be replaced or to leave, if they are as they were read
//   build       new nodes, where no other thread sees them
//   draw        the version, under the locks; if the writers were stopped meanwhile, give up
//   publish     1 the buffers of new LIDs are mapped
//               2 the nodes that leave are marked retired
//               3 the buffers of LIDs that stay are swapped: of one LID in a change of structure,
//                 so that one store shows the new subtree
//               4 the replaced buffers are marked, and handed to the freer
//
// A reader at a version below that of the change comes to the old nodes, by the chain of the
// swapped one; a reader of the newest state comes to all or none of the new ones. A node is marked
// retired before a write can go to the node that replaces it, so a reader that takes a hint and
// sees no mark reads what was current then. A new node's `older` names the node it came from, if it
// came from one.
//
// The stubs of a node carry its outside blocks (stored.h) over to the new nodes. Publish() compares
// the blocks that the old nodes named with those that the new ones name, and retires the
// difference.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "btree/change_lists.h"
#include "btree/core.h"
#include "btree/node_items.h"
#include "btree/outside.h"
#include "btree/workspace.h"

namespace skep::btree {

// The result of an attempt.
enum class Attempt : uint8_t {
  kDone,
  kAgain,     // another thread changed something meanwhile; nothing was done
  kNoMemory,  // there was no memory; nothing was done
};

// Owner: one attempt of one operation, inside its epoch. The destructor undoes a change that was
// not published.
// It has 39 methods: each kind of new node has one, and all note in the same lists what Publish()
// is to show and Undo() to take back.
template <class Layout>
class StructureChange {
 public:
  using LeafItem = typename Layout::LeafItem;
  using InnerItem = typename Layout::InnerItem;
  using Fences = typename Layout::Fences;

  StructureChange(Core& core, ThreadState& thread, Arena::Limit limit)
      : core_(core),
        thread_(thread),
        limit_(limit),
        storing_(core, thread, limit),
        lists_(std::exchange(thread.workspace->change, {})) {}
  ~StructureChange();

  // Locks the node if its word is still `word`.
  bool Lock(NodeHeader* node, uint64_t word);
  // Whether the node is locked here. Cost: a look at every node that is.
  bool Holds(const NodeHeader* node) const;

  // Make new nodes. No link: there is no memory.
  Link NewLeaf(std::span<const LeafItem> items, const Fences& fences);
  Link NewLeaf(const ItemSpan& items, const Fences& fences);
  Link NewInner(uint8_t level, Link leftmost, std::span<const InnerItem> items,
                const Fences& fences);
  // Set the neighbours, and the node of origin, of the leaves made last.
  void SetSiblings(Link leaf, Link left, Link right);
  void SetOrigin(Link made, Link origin);
  // Makes a new buffer for a LID whose newest one, `old`, is locked. False: there is no memory.
  bool ReplaceByLeaf(Link link, NodeHeader* old, std::span<const LeafItem> items,
                     const Fences& fences);
  // Like ReplaceByLeaf, by a leaf of `used` bytes that Layout::MergeLeaf has built elsewhere, such
  // as on the thread's bench.
  bool ReplaceByMerged(Link link, NodeHeader* old, const NodeHeader* merged, uint32_t used);
  // Says that the blocks which the leaf replaced last no longer names are those of values that the
  // caller hands to the freer itself. Else both leaves are gone through to find them.
  void TellsGone() { lists_.made.back().lists_gone = false; }
  bool ReplaceByInner(Link link, NodeHeader* old, uint8_t level, Link leftmost,
                      std::span<const InnerItem> items, const Fences& fences);
  // Like ReplaceByInner, with one child split: child number `child` becomes `left`, and behind it
  // come `separator` and `right`.
  bool InsertChild(Link link, NodeHeader* old, uint32_t child, Link left,
                   const StoredKey& separator, Link right);
  // Notes that the node, which is locked, leaves the tree.
  void Leave(Link link, NodeHeader* node);
  // Notes that items were written to the log of the node, locked as `word`, up to `used`.
  void Appended(NodeHeader* node, uint64_t word, uint32_t used);

  void set_limit(Arena::Limit limit) { limit_ = limit; }

  // Stores the separators and fences of new nodes.
  Storing& storing() { return storing_; }

  // Draws the version. False: the writers were stopped since the operation began. From here until
  // the change is published nothing is allocated, so that it is made whole or not at all; nor
  // afterwards for `more_retired` pieces that the caller hands to the freer itself.
  bool Draw(size_t more_retired = 0);
  // In place of Draw(), for nodes that are rebuilt as they are: they get the version of the last
  // write to those that they replace, and none is drawn. Requires Versions::TryBeginRebuild().
  void ShowFrom(Version version);
  Version version() const { return version_; }
  void Publish();
  // Undoes everything: gives the memory back and unlocks.
  void Undo();

 private:
  using Locked = ChangeLists::Locked;
  using Made = ChangeLists::Made;
  using Leaving = ChangeLists::Leaving;
  using Append = ChangeLists::Append;

  // The memory in which nodes are built.
  NodeHeader* Bench() { return thread_.workspace->Bench(Layout::kFrontBytes); }
  NodeHeader* Copy(Link link, const NodeHeader* built, uint32_t used, uint32_t bytes,
                   NodeHeader* replaces);
  bool MakeLeaf(Link link, NodeHeader* old, std::span<const LeafItem> items, const Fences& fences);
  Link PlaceNewLeaf(uint32_t used);
  bool PlaceLeaf(Link link, NodeHeader* old, const NodeHeader* built, uint32_t used);
  bool PlaceInner(Link link, NodeHeader* old, uint32_t used);
  bool MakeInner(Link link, NodeHeader* old, uint8_t level, Link leftmost,
                 std::span<const InnerItem> items, const Fences& fences);
  Link FreshLink();
  Made& Find(Link link);
  static uint64_t WordOf(const NodeHeader* node);
  void QueueDeadline(const Made& made);
  void MarkDead(NodeHeader* node, uint64_t mark);
  void Map(const Made& made);
  static void FollowSiblings(const Made& made);
  void PreparePublish(size_t more_retired);
  void ListGone();
  void Count(const NodeHeader* node, uint64_t by);

  Core& core_;
  ThreadState& thread_;
  Arena::Limit limit_;
  Storing storing_;
  Version drawn_ = 0;
  Version version_ = 0;
  ChangeLists lists_;
  bool is_prepared_ = false;  // memory for Publish() is reserved
  Link unused_;               // a LID without a buffer, since its node could not be made
};

}  // namespace skep::btree
