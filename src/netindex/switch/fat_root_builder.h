// fat_root_builder.h: which nodes of the trees are merged into the fat root (Fat-B+Tree, III-B).
//
// Greedy: of the nodes that are children of merged ones the one with the most hits is merged next,
// as long as its children fit. At first these are the children of the super-root, the roots of all
// servers. If all nodes are full, no other choice saves more accesses: a node never has more hits
// than its parent, so the merged nodes are as many of the hottest ones as fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "netindex/switch/index_tree.h"

namespace skep::netindex {

struct FatRoot {
  std::vector<uint32_t> merged;  // inner nodes, in the order in which they were merged
  std::vector<uint32_t> ranges;  // the nodes that it leads to, by rising pivots
};

// A fat root with at most `ranges_max` ranges, but with all roots of the trees. A node whose
// children do not fit is passed over. Cost: n log n of the nodes that are looked at.
FatRoot BuildFatRoot(const IndexTree& tree, size_t ranges_max);

}  // namespace skep::netindex
