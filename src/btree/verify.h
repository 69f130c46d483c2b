// verify.h: checks a whole tree.
//
// Invariants. True whenever nothing writes; VerifyTree() checks them.
//   T1  every node by itself is sound (Layout::Check), and not marked dead or locked
//   T2  the children of an inner node cover its key range without gap or overlap, by their fences
//   T3  levels fall by one from parent to child; the root covers all keys
//   T4  versions fall along a chain of older buffers, and each chain ends; the version of a buffer
//       or of a log item is not above the last one drawn
//   T5  the number of keys, and of those with a deadline, are those that the threads have counted
//   T6  every LID in use is a node of the tree or on its way out
//   T7  the arena's own accounts hold
//   T8  outside blocks: a stub's size agrees with its key or value being outside
//   T9  the arena holds the nodes of the tree, the outside blocks they name, and the pieces on
//       their way out
//   T10 the expiry queue has every leaf with a deadline, at its deadline or before
#pragma once

#include "btree/core.h"

namespace skep::btree {

// Returns null, or a literal that names the broken invariant. Nothing else may run meanwhile.
template <class Layout>
const char* VerifyTree(const Core& core);

}  // namespace skep::btree
