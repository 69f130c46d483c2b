// layer_cache.h: which nodes below the fat root switches hold, layer by layer (Fat-B+Tree, III-C).
//
// Layer 1 has the hottest inner nodes of those that the fat root leads to, each further layer the
// hottest inner nodes among the children of the layer before. So whatever node a layer has, a query
// can come to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "netindex/switch/fat_root_builder.h"
#include "netindex/switch/index_tree.h"

namespace skep::netindex {

using Layer = std::vector<uint32_t>;  // indices of nodes, by falling hits

// At most `nodes_max` nodes a layer. Nodes with more children than a switch compares
// (SWITCH_BRANCHES) are left out.
std::vector<Layer> CacheLayers(const IndexTree& tree, const FatRoot& root, size_t layers,
                               size_t nodes_max);

// The hits of the leaves that the fat root and these layers lead to.
uint64_t HitsCovered(const IndexTree& tree, const FatRoot& root, const std::vector<Layer>& layers);

}  // namespace skep::netindex
