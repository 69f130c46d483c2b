// index_tree.h: trees of servers as a controller knows them: what may be put into switches.
//
// A node has the keys in (pivot, pivot of the next node of its level], as switch_tables.h has them;
// pivots are the lower fences of a server's tree, less 1. Several servers have ranges that follow
// each other, and a root each; the roots are the children of the paper's super-root (IV-A).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace skep::netindex {

struct IndexNode {
  uint64_t pivot = 0;
  uint64_t address = 0;
  uint64_t hits = 0;  // accesses, of it or of what is below it
  uint32_t server = 0;
  std::vector<uint32_t> children = {};  // indices of nodes, by rising pivots; none: a leaf
};

struct IndexTree {
  std::vector<IndexNode> nodes;
  std::vector<uint32_t> roots;  // by rising pivots; the first pivot is 0
};

// A leaf of a server's tree.
struct IndexLeaf {
  uint64_t first = 0;  // the number of its lower fence
  uint64_t address = 0;
  uint64_t hits = 0;
};

// The leaves of one server, in the order of keys.
struct ServerLeaves {
  uint64_t first = 0;  // the number of the first key of the server's range
  std::vector<IndexLeaf> leaves;
};

// Makes a tree of nodes of `branches` children over the leaves of the servers, whose ranges follow
// each other from 0 on; each has at least one leaf. Of leaves whose fences have the same number the
// one with the most hits is taken, and so it is with fences in front of the server's range. Inner
// nodes get addresses from 1 on (numbers that only switches know), and the hits of their children.
IndexTree MakeIndexTree(std::span<const ServerLeaves> servers, uint32_t branches);

// The leaf of the key, by a way down from its root.
uint32_t LeafOf(const IndexTree& tree, uint64_t key);

}  // namespace skep::netindex
