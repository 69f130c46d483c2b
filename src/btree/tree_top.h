// tree_top.h: reads the links of leaves from the inner nodes above them (engine/leaf_links.h).
//
// The lowest inner nodes are read one after the other, each in its newest state: its separators are
// the fences of its children. The next one is found from the root, by the upper fence of the one
// before, so nothing between two nodes is left out or comes twice. Leaves are not looked at.
#pragma once

#include <string_view>

#include "btree/core.h"
#include "engine/leaf_links.h"

namespace skep::btree {

// As HasLeafLinks::LinksFrom. The caller is inside an epoch. Cost: a way down and a copy of the
// separators for each inner node that is read.
template <class Layout>
LeafLinks LinksOfLeaves(const Core& core, std::string_view from, uint32_t links_max,
                        size_t bytes_max);

}  // namespace skep::btree
