// replace_values.h: merges of leaves in which nothing but values changes.
//
// The keys of such a leaf stay, so its heads and their form are copied, and so is each run of items
// between two that change. Leaves of typed or long values, whose items have several forms or are
// not plain, are merged so; those of plain items of one form by HeadLayout::MergeLeaf.
//
// Thread safety: pure; the caller's epoch protects the leaf.
#pragma once

#include <cstdint>
#include <span>

#include "btree/heads/head_layout.h"
#include "btree/leaf_edit.h"

namespace skep::btree {

// ReplaceValues takes no more edits than these.
inline constexpr size_t kEditsReplacedMax = 64;

// Builds what HeadLayout::BuildLeaf would build of the leaf's items as of `used` and the edits,
// which ascend, if the log and the edits do nothing but replace values, none of which has a
// deadline. Returns log_begin; 0 if it cannot, as these do more, or the items would come to have
// one form. If log_begin would be above `bytes_max`, or FitsLeaf would say no, writes nothing and
// returns more than `bytes_max`. Cost: the log, a search for each edit, and copying.
uint32_t ReplaceValues(const Codec& codec, const NodeHeader* leaf, uint32_t used,
                       std::span<const LeafEdit> edits, uint32_t bytes_max, NodeHeader* buffer);

}  // namespace skep::btree
