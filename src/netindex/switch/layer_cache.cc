#include "netindex/switch/layer_cache.h"

#include <algorithm>

#include "netindex/switch/switch_tables.h"

namespace skep::netindex {
namespace {

bool IsInner(const IndexTree& tree, uint32_t node) {
  const size_t children = tree.nodes[node].children.size();
  return children >= 1 && children <= SWITCH_BRANCHES;
}

Layer HottestOf(const IndexTree& tree, const std::vector<uint32_t>& nodes, size_t nodes_max) {
  Layer layer;
  std::ranges::copy_if(nodes, std::back_inserter(layer),
                       [&](uint32_t node) { return IsInner(tree, node); });
  std::ranges::stable_sort(
      layer, [&](uint32_t a, uint32_t b) { return tree.nodes[a].hits > tree.nodes[b].hits; });
  layer.resize(std::min(layer.size(), nodes_max));
  return layer;
}

std::vector<uint32_t> ChildrenOf(const IndexTree& tree, const Layer& layer) {
  std::vector<uint32_t> children;
  for (const uint32_t node : layer) {
    children.insert(children.end(), tree.nodes[node].children.begin(),
                    tree.nodes[node].children.end());
  }
  return children;
}

uint64_t HitsOfLeaves(const IndexTree& tree, const std::vector<uint32_t>& nodes) {
  uint64_t hits = 0;
  for (const uint32_t node : nodes) {
    if (tree.nodes[node].children.empty()) hits += tree.nodes[node].hits;
  }
  return hits;
}

}  // namespace

std::vector<Layer> CacheLayers(const IndexTree& tree, const FatRoot& root, size_t layers,
                               size_t nodes_max) {
  std::vector<Layer> found;
  std::vector<uint32_t> candidates = root.ranges;
  while (found.size() < layers) {
    found.push_back(HottestOf(tree, candidates, nodes_max));
    candidates = ChildrenOf(tree, found.back());
  }
  return found;
}

uint64_t HitsCovered(const IndexTree& tree, const FatRoot& root, const std::vector<Layer>& layers) {
  uint64_t hits = HitsOfLeaves(tree, root.ranges);
  for (const Layer& layer : layers) hits += HitsOfLeaves(tree, ChildrenOf(tree, layer));
  return hits;
}

}  // namespace skep::netindex
