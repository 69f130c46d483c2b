// range_delete.h: every key of a range gone at one version, whatever their number.
//
// Below the lowest node whose range holds both ends, the paths to the two end leaves are built anew
// without what lies between them; that node's buffer is swapped, and everything between is out of
// the tree: detached, not touched.
//
//            P                        P'                 A' [A.lower, sep)   items of A below lo
//        ____|______                __|___               B' [sep, B.upper)   items of B from hi up
//       /  |  |     \              /      \              sep: where P led to the right path
//      X   x  x      Y            X'       Y'            x, a, b: detached subtrees
//     / \  .  .     / \           |         |            A', B', X', Y' have new LIDs: their ranges
//    A   a .  .    b   B          A'        B'           are new. P keeps its own.
//
// The detached leaves are not locked one by one: a writer that is in one of them must not write
// there any more. So the other writers are stopped (protocol P of versions.h) for as long as it
// takes to build two paths, some microseconds; readers are not. How many keys there were is counted
// afterwards, at the version before. reclaim.h walks what was detached and frees it in the
// background.
//
// A delete of at most `limit` keys looks for its end while the writers are stopped, a step a leaf.
#pragma once

#include <string>
#include <string_view>

#include "btree/change.h"
#include "btree/core.h"
#include "btree/structure.h"
#include "btree/upkeep.h"

namespace skep::btree {

// Thread safety: stateless but for the core. The caller is inside an epoch and has called
// BeginWrites; it has announced a read floor, which keeps what is counted.
template <class Layout>
class RangeDelete {
 public:
  struct Result {
    bool no_memory = false;  // nothing was deleted
    uint64_t keys = 0;
    Version version = 0;  // if keys > 0
    bool more = false;    // there may be more than `limit`; `bound` is where to go on
    std::string bound;
  };

  RangeDelete(Core& core, Upkeep& upkeep) : core_(core), upkeep_(upkeep), structure_(core) {}

  // Deletes the first `limit` keys of [lo, hi) that have not expired; and all that have between
  // them, which are not counted.
  Result Run(Slot& slot, std::string_view lo, std::string_view hi, bool unbounded, uint64_t limit,
             uint64_t now_ms);

 private:
  using LeafItem = typename Layout::LeafItem;
  using InnerItem = typename Layout::InnerItem;
  struct Ends {
    std::string_view lo, hi;
    bool unbounded;
  };
  // The rebuilt part of one path, below the common node.
  struct Side {
    Link link;  // of its topmost new node
    Link leaf;
  };

  Attempt Detach(Slot& slot, const Ends& ends, Version* version);
  Attempt RewriteLeaf(Slot& slot, const Step& leaf, const Ends& ends, Version* version);
  Attempt DetachBetween(Slot& slot, const Path& left, const Path& right, size_t common,
                        const Ends& ends, Version* version);
  Attempt BuildSide(Slot& slot, Change<Layout>& change, const Path& path, size_t common,
                    bool is_left, const Ends& ends, std::string_view sep, bool sep_unbounded,
                    Side* side);
  void CollectDetached(const Path& path, size_t common, bool is_left, std::vector<Link>* links);
  bool HasKey(const Ends& ends, uint64_t now_ms) const;

  Core& core_;
  Upkeep& upkeep_;
  Structure<Layout> structure_;
};

}  // namespace skep::btree
