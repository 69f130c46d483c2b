#include "bench/fat_btree/model_tree.h"

#include <algorithm>

#include "base/check.h"

namespace skep::bench {
namespace {

// The levels of nodes above so many leaves.
uint32_t LevelsAbove(uint64_t leaves, uint32_t branches) {
  uint32_t levels = 0;
  for (; leaves > 1; leaves = (leaves + branches - 1) / branches) ++levels;
  return levels;
}

}  // namespace

ModelTree::ModelTree(const TreeShape& shape, const RecordKeys& keys, std::span<const uint64_t> hits,
                     uint32_t servers)
    : shape_(shape) {
  const size_t records = keys.sorted().size();
  std::vector<netindex::ServerLeaves> leaves;
  for (uint32_t i = 0; i < servers; ++i) {
    leaves.push_back(LeavesOf(keys, hits, records * i / servers, records * (i + 1) / servers));
  }
  index_ = netindex::MakeIndexTree(leaves, shape.branches);
  MeasureHeights();
  for (uint32_t i = 0; i < servers; ++i) {
    const uint32_t branches = shape.is_ours ? shape.inner_branches : shape.branches;
    levels_.push_back(1 + LevelsAbove(leaves[i].leaves.size(), branches));
  }
}

netindex::ServerLeaves ModelTree::LeavesOf(const RecordKeys& keys, std::span<const uint64_t> hits,
                                           size_t begin, size_t end) {
  const size_t step = shape_.is_ours ? shape_.leaf_keys : 1;
  netindex::ServerLeaves server{.first = begin == 0 ? 0 : keys.sorted()[begin], .leaves = {}};
  for (size_t at = begin; at < end; at += step) {
    netindex::IndexLeaf leaf{.first = at == begin ? server.first : keys.sorted()[at],
                             .address = kLeafAddress + at};
    for (size_t i = at; i < std::min(at + step, end); ++i) leaf.hits += hits[i];
    server.leaves.push_back(leaf);
  }
  return server;
}

// Inner nodes were made, and got their addresses, from the leaves upwards.
void ModelTree::MeasureHeights() {
  const auto height_of = [&](uint64_t address) {
    return address >= kLeafAddress ? 0 : heights_[address - 1];
  };
  for (const netindex::IndexNode& node : index_.nodes) {
    if (node.children.empty()) continue;
    SKEP_CHECK(node.address == heights_.size() + 1);
    const uint64_t child = index_.nodes[node.children.front()].address;
    heights_.push_back(static_cast<uint8_t>(height_of(child) + 1));
  }
}

uint32_t ModelTree::LevelsFrom(uint64_t address, uint64_t key) const {
  if (address >= kLeafAddress) return 1;
  if (address == 0 || shape_.is_ours) return levels_[ServerOf(key)];
  return heights_[address - 1] + 1u;
}

uint32_t ModelTree::ServerOf(uint64_t key) const {
  const auto above = std::ranges::partition_point(
      index_.roots, [&](uint32_t root) { return index_.nodes[root].pivot < key; });
  return above == index_.roots.begin() ? 0
                                       : static_cast<uint32_t>(above - index_.roots.begin() - 1);
}

}  // namespace skep::bench
