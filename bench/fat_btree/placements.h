// placements.h: where a query learns the address of a node: in switches on its way, or in a cache
// of the client that has as many bytes.
//
// Bytes are counted alike: a range takes 16, its pivot and its address, and a node what a switch
// needs for it, SwitchNode. What range tables and keys of exact matches take besides is left out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "netindex/switch/bank_writer.h"
#include "netindex/switch/fat_root_builder.h"
#include "netindex/switch/index_tree.h"
#include "netindex/switch/layer_cache.h"
#include "netindex/switch/switch_tables.h"

namespace skep::bench {

inline constexpr uint64_t kRangeBytes = 16;

struct SwitchLimits {
  size_t ranges;
  size_t layers;
  size_t nodes;  // of a layer
};

// The first switch has the fat root, and SWITCH_LAYERS layers stand in each.
class SwitchChain {
 public:
  SwitchChain(const netindex::IndexTree& tree, const SwitchLimits& limits);

  // The address that the last switch sends a query on to.
  uint64_t AddressOf(uint64_t key) const;
  uint64_t bytes() const { return bytes_; }
  // The nodes whose branches the switches hold.
  const netindex::FatRoot& root() const { return root_; }
  const std::vector<netindex::Layer>& layers() const { return layers_; }

 private:
  netindex::FatRoot root_;
  std::vector<netindex::Layer> layers_;
  std::vector<std::unique_ptr<SwitchBank>> banks_;
  uint64_t bytes_ = 0;
};

// One array of ranges, as src/client/fat_root.h has it, of the hottest nodes that fit.
class ClientCache {
 public:
  ClientCache(const netindex::IndexTree& tree, uint64_t bytes);

  uint64_t AddressOf(uint64_t key) const;

 private:
  std::vector<uint64_t> pivots_, addresses_;
};

}  // namespace skep::bench
