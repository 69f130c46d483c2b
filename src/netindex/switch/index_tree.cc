#include "netindex/switch/index_tree.h"

#include <algorithm>
#include <utility>

namespace skep::netindex {
namespace {

// The leaves with the greatest number at or in front of each border, one for each number.
std::vector<IndexLeaf> Distinct(const ServerLeaves& server) {
  std::vector<IndexLeaf> found;
  for (IndexLeaf leaf : server.leaves) {
    leaf.first = std::max(leaf.first, server.first);
    if (found.empty() || found.back().first != leaf.first) {
      found.push_back(leaf);
    } else if (found.back().hits < leaf.hits || leaf.first == server.first) {
      // In front of the server's range lies nothing: the last such leaf has the range's first keys.
      found.back() = leaf;
    }
  }
  return found;
}

uint64_t PivotOf(uint64_t first) { return first == 0 ? 0 : first - 1; }

class Maker {
 public:
  Maker(IndexTree& tree, uint32_t branches) : tree_(tree), branches_(branches) {}

  void AddServer(uint32_t server, const ServerLeaves& leaves) {
    std::vector<uint32_t> level;
    for (const IndexLeaf& leaf : Distinct(leaves)) {
      level.push_back(Add({.pivot = PivotOf(leaf.first),
                           .address = leaf.address,
                           .hits = leaf.hits,
                           .server = server}));
    }
    while (level.size() > 1) level = LevelAbove(level);
    tree_.roots.push_back(level.front());
  }

 private:
  uint32_t Add(IndexNode node) {
    tree_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(tree_.nodes.size() - 1);
  }

  std::vector<uint32_t> LevelAbove(const std::vector<uint32_t>& level) {
    std::vector<uint32_t> above;
    for (size_t at = 0; at < level.size(); at += branches_) {
      const size_t end = std::min(at + branches_, level.size());
      IndexNode node = {.pivot = tree_.nodes[level[at]].pivot,
                        .address = ++last_address_,
                        .server = tree_.nodes[level[at]].server};
      node.children.assign(level.begin() + static_cast<ptrdiff_t>(at),
                           level.begin() + static_cast<ptrdiff_t>(end));
      for (const uint32_t child : node.children) node.hits += tree_.nodes[child].hits;
      above.push_back(Add(std::move(node)));
    }
    return above;
  }

  IndexTree& tree_;
  const uint32_t branches_;
  uint64_t last_address_ = 0;
};

// The last of the nodes whose pivot is below the key; the first one, if there is none.
uint32_t ChildOf(const IndexTree& tree, const std::vector<uint32_t>& nodes, uint64_t key) {
  const auto above = std::ranges::partition_point(
      nodes, [&](uint32_t node) { return tree.nodes[node].pivot < key; });
  // The first node also has the key that equals its pivot 0.
  return above == nodes.begin() ? nodes.front() : *(above - 1);
}

}  // namespace

IndexTree MakeIndexTree(std::span<const ServerLeaves> servers, uint32_t branches) {
  IndexTree tree;
  Maker maker(tree, branches);
  for (uint32_t i = 0; i < servers.size(); ++i) maker.AddServer(i, servers[i]);
  return tree;
}

uint32_t LeafOf(const IndexTree& tree, uint64_t key) {
  uint32_t at = ChildOf(tree, tree.roots, key);
  while (!tree.nodes[at].children.empty()) at = ChildOf(tree, tree.nodes[at].children, key);
  return at;
}

}  // namespace skep::netindex
