// range_delete.h: deletes every key of a range at one version, whatever their number.
//
// Below the lowest node whose range holds both ends, the paths to the two end leaves are built anew
// without the keys between them; that node's buffer is swapped, and everything between is out of
// the tree: detached, not touched.
//
//            P                        P'                 A' [A.lower, sep)   items of A below lo
//        ____|______                __|___               B' [sep, B.upper)   items of B from hi up
//       /  |  |     \              /      \              sep: where P led to the right path
//      X   x  x      Y            X'       Y'            x, a, b: detached subtrees
//     / \  .  .     / \           |         |            A', B', X', Y' have new LIDs: their ranges
//    A   a .  .    b   B          A'        B'           are new. P keeps its own.
//
// Stopping. The caller has asked at a version whether there is a key at all (HasKey), so that the
//   delete of an empty range stops no writer. (Without versions it cannot ask: a walk over several
//   leaves might find no key although there was always one.) A range within one leaf is a write of
//   that leaf, under its lock. Only where subtrees are detached are the other writers stopped
//   (protocol P of versions.h), as a writer that is in one of them must not write there any more,
//   and the detached leaves are not locked one by one. The work in a stop does not depend on the
//   number of keys: two ways down, and the two paths built anew. How many keys there were is
//   counted afterwards, at the version before; without versions, while the writers are stopped.
//
// A delete of at most `limit` keys looks for its end under the locks of the leaves that it counts,
//   from left to right, before it stops the writers: only writers of those leaves wait.
//
// reclaim.h walks the detached subtrees and frees them in the background.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "btree/core.h"
#include "btree/ranges.h"
#include "btree/split_join.h"
#include "btree/structure_change.h"
#include "btree/upkeep.h"

namespace skep::btree {

// Owner: one operation. The caller is inside an epoch and has called BeginWrites; it has announced
// a read floor, which keeps the keys that are counted.
template <class Layout>
class RangeDelete {
 public:
  struct Result {
    bool no_memory = false;  // nothing was deleted
    uint64_t keys = 0;
    Version version = 0;  // if something was deleted
    bool more = false;    // there may be more than `limit`; `bound` is where to go on
    std::string bound;
  };

  RangeDelete(Core& core, Upkeep& upkeep) : core_(core), upkeep_(upkeep), split_join_(core) {}

  // Whether the range has a key that has not expired, at a version. Cost: the leaves up to that
  // key.
  static bool HasKey(const Core& core, Version at, std::string_view lo, std::string_view hi,
                     bool unbounded, uint64_t now_ms);

  // Deletes the first `limit` keys of [lo, hi) that have not expired, and all expired ones between
  // them, which are not counted.
  Result Run(ThreadState& thread, std::string_view lo, std::string_view hi, bool unbounded,
             uint64_t limit, uint64_t now_ms);

 private:
  using LeafItem = typename Layout::LeafItem;
  using InnerItem = typename Layout::InnerItem;
  struct Ends {
    std::string_view lo, hi;
    bool unbounded;
  };
  // The rebuilt part of one path, below the common node.
  struct Side {
    Link link;  // the topmost new node
    Link leaf;
  };

  Attempt Try(ThreadState& thread, Tries& tries);
  std::optional<Attempt> TryOneLeaf(ThreadState& thread, Tries& tries);
  Attempt DeleteNothing();
  void LockAndCount(StructureChange<Layout>& change);
  LeafPlace LockLeaf(StructureChange<Layout>& change, std::string_view key) const;
  bool CountLeaf(const NodeHeader* leaf, uint64_t word);
  bool EndsIn(const NodeHeader* leaf) const;
  bool Hold(StructureChange<Layout>& change, const Step& step) const;
  Attempt Detach(ThreadState& thread, StructureChange<Layout>* held);
  Attempt RewriteLeaf(ThreadState& thread, StructureChange<Layout>& change, const Step& leaf);
  Attempt DetachBetween(ThreadState& thread, StructureChange<Layout>& change, const Path& left,
                        const Path& right, size_t common);
  Attempt BuildSide(ThreadState& thread, StructureChange<Layout>& change, const Path& path,
                    size_t common, bool is_left, std::string_view sep, bool sep_unbounded,
                    Side* side);
  void CollectDetached(const Path& path, size_t common, bool is_left, std::vector<Link>* links);

  Core& core_;
  Upkeep& upkeep_;
  SplitJoin<Layout> split_join_;
  // The arguments of Run.
  Ends asked_ = {};
  uint64_t limit_ = 0;
  uint64_t now_ms_ = 0;
  // The state of one try.
  Ends ends_ = {};
  Result result_;
  typename Ranges<Layout>::Tally deleted_;
  bool is_counted_ = false;
};

}  // namespace skep::btree
