#include "netindex/switch/fat_root_builder.h"

#include <queue>
#include <unordered_set>
#include <utility>

namespace skep::netindex {
namespace {

using Hot = std::pair<uint64_t, uint32_t>;  // hits, node

void Collect(const IndexTree& tree, const std::unordered_set<uint32_t>& merged, uint32_t node,
             std::vector<uint32_t>* ranges) {
  if (!merged.contains(node)) {
    ranges->push_back(node);
    return;
  }
  for (const uint32_t child : tree.nodes[node].children) Collect(tree, merged, child, ranges);
}

}  // namespace

FatRoot BuildFatRoot(const IndexTree& tree, size_t ranges_max) {
  FatRoot root;
  std::priority_queue<Hot> hottest;
  for (const uint32_t node : tree.roots) hottest.emplace(tree.nodes[node].hits, node);
  size_t ranges = tree.roots.size();
  while (!hottest.empty()) {
    const uint32_t node = hottest.top().second;
    hottest.pop();
    const auto& children = tree.nodes[node].children;
    if (children.empty() || ranges + children.size() - 1 > ranges_max) continue;
    ranges += children.size() - 1;
    root.merged.push_back(node);
    for (const uint32_t child : children) hottest.emplace(tree.nodes[child].hits, child);
  }
  const std::unordered_set<uint32_t> merged(root.merged.begin(), root.merged.end());
  for (const uint32_t node : tree.roots) Collect(tree, merged, node, &root.ranges);
  return root;
}

}  // namespace skep::netindex
