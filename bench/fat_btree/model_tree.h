// model_tree.h: the trees that the figures ask: what switches know of them, and how many nodes a
// query reads from some node on.
//
//   paper   nodes of 16 branches, of which `branches` are used, and a value is a node of its own.
//           Switches can hold any node that is not a value.
//   ours    leaves of `leaf_keys` keys with their values, below nodes of `inner_branches`. Switches
//           hold a tree of nodes of 16 branches over the leaves, which they alone know: an address
//           that is not a leaf's means nothing to the server, and the query starts at the root.
//
// The paper's depth grows at 3 M keys. Full nodes would put that at 16^5 = 1.05 M or 16^6 = 16.8 M,
// nodes with 12 branches at 12^6 = 2.99 M: the default.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/fat_btree/accesses.h"
#include "netindex/switch/index_tree.h"

namespace skep::bench {

struct TreeShape {
  bool is_ours = false;
  uint32_t branches = 12;         // of the nodes that switches hold
  uint32_t leaf_keys = 100;       // ours
  uint32_t inner_branches = 100;  // ours
};
inline constexpr TreeShape kPaperShape = {};
inline constexpr TreeShape kOurShape = {.is_ours = true, .branches = 16};

class ModelTree {
 public:
  // `hits` are those of each place. The keys are divided into as many equal ranges as there are
  // servers, each with a tree of its own.
  ModelTree(const TreeShape& shape, const RecordKeys& keys, std::span<const uint64_t> hits,
            uint32_t servers = 1);

  const netindex::IndexTree& index() const { return index_; }
  // The nodes that a query for the key reads from the node at an address on, to its value; of
  // address 0 from the root on.
  uint32_t LevelsFrom(uint64_t address, uint64_t key) const;
  // The server of the key.
  uint32_t ServerOf(uint64_t key) const;
  // The keys of a full leaf, and the nodes that a query reads below a leaf: its value, or nothing.
  uint32_t leaf_keys() const { return shape_.is_ours ? shape_.leaf_keys : shape_.branches; }
  uint32_t value_levels() const { return shape_.is_ours ? 0 : 1; }
  // All levels of a server's tree.
  uint32_t LevelsOf(uint32_t server) const { return levels_[server]; }

 private:
  // Leaves have addresses above all those of inner nodes.
  static constexpr uint64_t kLeafAddress = uint64_t{1} << 48;

  netindex::ServerLeaves LeavesOf(const RecordKeys& keys, std::span<const uint64_t> hits,
                                  size_t begin, size_t end);
  void MeasureHeights();

  TreeShape shape_;
  netindex::IndexTree index_;
  std::vector<uint8_t> heights_;  // of inner nodes, by address - 1; the parents of leaves have 1
  std::vector<uint32_t> levels_;  // by server
};

}  // namespace skep::bench
