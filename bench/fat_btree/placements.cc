#include "bench/fat_btree/placements.h"

#include <algorithm>

namespace skep::bench {

SwitchChain::SwitchChain(const netindex::IndexTree& tree, const SwitchLimits& limits)
    : root_(netindex::BuildFatRoot(tree, limits.ranges)),
      layers_(netindex::CacheLayers(tree, root_, limits.layers, limits.nodes)) {
  banks_.push_back(std::make_unique<SwitchBank>());
  netindex::WriteRoot(tree, root_, banks_.front().get());
  bytes_ = root_.ranges.size() * kRangeBytes;
  for (uint32_t i = 0; i < layers_.size(); ++i) {
    if (i / SWITCH_LAYERS == banks_.size()) banks_.push_back(std::make_unique<SwitchBank>());
    netindex::WriteLayer(tree, layers_[i], i % SWITCH_LAYERS, banks_.back().get());
    bytes_ += layers_[i].size() * sizeof(SwitchNode);
  }
}

uint64_t SwitchChain::AddressOf(uint64_t key) const {
  const SwitchRoot& root = banks_.front()->root;
  uint64_t address = root.address[SwitchRangeOf(&root, key)];
  for (const auto& bank : banks_) address = SwitchDescend(bank.get(), 0, key, address);
  return address;
}

ClientCache::ClientCache(const netindex::IndexTree& tree, uint64_t bytes) {
  for (const uint32_t node : netindex::BuildFatRoot(tree, bytes / kRangeBytes).ranges) {
    pivots_.push_back(tree.nodes[node].pivot);
    addresses_.push_back(tree.nodes[node].address);
  }
}

uint64_t ClientCache::AddressOf(uint64_t key) const {
  const auto above = std::ranges::lower_bound(pivots_, key);
  const auto at = above == pivots_.begin() ? above : above - 1;
  return addresses_[static_cast<size_t>(at - pivots_.begin())];
}

}  // namespace skep::bench
