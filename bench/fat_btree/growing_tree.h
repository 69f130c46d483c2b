// growing_tree.h: a B+tree of keys alone that counts what splits do to those who remember nodes.
//
// Two ways of splitting a node:
//
//   retire      both halves are new nodes, and the old one is retired, as in the engine btree: who
//               remembers the old one starts at the root. A leaf that only gets a key stays the
//               node that it is
//   push down   a fixed node keeps its address: what it has moves into a fresh node, which becomes
//               its only child, and the fresh node is split below it. This is the paper's temporary
//               root (IV-B), and how the root grows: the root is always fixed
//
// The child i of an inner node has the keys from separators[i - 1] on, below separators[i].
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "netindex/switch/index_tree.h"

namespace skep::bench {

class GrowingTree {
 public:
  using Id = uint32_t;
  static constexpr Id kRoot = 0;

  GrowingTree(size_t leaf_keys_max, size_t branches_max);

  // The key is not there.
  void Insert(uint64_t key);
  // From now on the node, which is not retired, keeps its address.
  void Fix(Id id) { nodes_[id].is_fixed = true; }

  bool IsRetired(Id id) const { return nodes_[id].is_retired; }
  Id LeafOf(uint64_t key) const;
  // The nodes from this one, which is not retired and has the key in its range, to the leaf.
  uint32_t LevelsFrom(Id id, uint64_t key) const;
  // How many fixed nodes but the root have been pushed down; one can be several times.
  uint64_t pushed_down() const { return pushed_down_; }

  // The tree without keys, for switches; a node's address is its id + 1. Hits are those of the keys
  // that are accessed.
  netindex::IndexTree Index(std::span<const uint64_t> accessed) const;

 private:
  struct Node {
    std::vector<uint64_t> keys;  // of an inner node the separators, of a leaf its keys
    std::vector<Id> children;    // none: a leaf
    bool is_fixed = false;
    bool is_retired = false;
  };

  static size_t ChildOf(const Node& node, uint64_t key);
  bool IsTooLarge(Id id) const;
  Id Add(Node node);
  std::vector<Id> PathTo(uint64_t key) const;
  // Splits a child, which gets two new ids.
  void Split(Id parent, Id child);
  void PushDown(Id id);
  uint32_t AddTo(netindex::IndexTree& tree, Id id, uint64_t pivot,
                 std::span<const uint64_t> hits) const;

  const size_t leaf_keys_max_, branches_max_;
  std::vector<Node> nodes_;
  uint64_t pushed_down_ = 0;
};

}  // namespace skep::bench
