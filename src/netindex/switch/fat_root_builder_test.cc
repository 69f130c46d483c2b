#include "netindex/switch/fat_root_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "netindex/switch/testing/switch_world.h"

namespace skep::netindex {
namespace {

// The separators of a fat root: the pivots of its ranges but the first.
std::vector<uint64_t> SeparatorsOf(const IndexTree& tree, const FatRoot& root) {
  std::vector<uint64_t> separators;
  for (size_t i = 1; i < root.ranges.size(); ++i) {
    separators.push_back(tree.nodes[root.ranges[i]].pivot);
  }
  return separators;
}

// Goal: the paper's example (figure 4): the nodes {7}, {11, 13, 16}, {8, 9, 10}, {14, 15} give 9
// keys, although other nodes lie higher.
TEST(FatRootBuilder, BuildsThePapersExample) {
  IndexTree tree;
  const auto add = [&](uint64_t pivot, uint64_t hits, std::vector<uint32_t> children = {}) {
    tree.nodes.push_back({.pivot = pivot, .hits = hits, .children = std::move(children)});
    return static_cast<uint32_t>(tree.nodes.size() - 1);
  };
  const auto leaves = [&](std::vector<uint64_t> pivots) {
    std::vector<uint32_t> nodes;
    for (const uint64_t pivot : pivots) nodes.push_back(add(pivot, 1));
    return nodes;
  };
  const uint32_t cold = add(0, 10, leaves({0, 1, 2}));
  const uint32_t left = add(0, 20, {cold, add(3, 10, leaves({3, 4, 5}))});
  const uint32_t hot = add(7, 35, leaves({7, 8, 9, 10}));
  const uint32_t warm = add(13, 25, leaves({13, 14, 15}));
  const uint32_t right =
      add(7, 80, {hot, add(11, 12, leaves({11, 12})), warm, add(16, 8, leaves({16, 17}))});
  tree.roots = {add(0, 100, {left, right})};
  const FatRoot root = BuildFatRoot(tree, 10);
  EXPECT_EQ(root.merged, (std::vector<uint32_t>{tree.roots[0], right, hot, warm}));
  EXPECT_EQ(SeparatorsOf(tree, root), (std::vector<uint64_t>{7, 8, 9, 10, 11, 13, 14, 15, 16}));
}

// The most hits that any set of `count` inner nodes has which has the parent of each of its nodes.
uint64_t BestHits(const IndexTree& tree, const std::vector<uint32_t>& open, size_t count) {
  if (count == 0) return 0;
  uint64_t best = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    const IndexNode& node = tree.nodes[open[i]];
    if (node.children.empty()) continue;
    // Nodes in front of this one are left out for good, so that no set comes twice.
    std::vector<uint32_t> rest(open.begin() + static_cast<ptrdiff_t>(i) + 1, open.end());
    rest.insert(rest.end(), node.children.begin(), node.children.end());
    best = std::max(best, node.hits + BestHits(tree, rest, count - 1));
  }
  return best;
}

// Goal: where nodes are full no choice saves more accesses, of one server or several.
// Method: all choices, of small trees.
TEST(FatRootBuilder, IsTheBestWhereNodesAreFull) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  for (int round = 0; round < 60; ++round) {
    const uint32_t branches = 2 + rng() % 2;
    const size_t servers = 1 + rng() % 2;
    const IndexTree tree =
        MakeIndexTree(RandomLeaves(rng, servers, branches * branches * branches), branches);
    const bool is_full = std::ranges::all_of(tree.nodes, [&](const IndexNode& node) {
      return node.children.empty() || node.children.size() == branches;
    });
    if (!is_full) continue;  // some leaves had the same number
    for (size_t merged = 1; merged <= 5; ++merged) {
      const FatRoot root = BuildFatRoot(tree, servers + merged * (branches - 1));
      uint64_t hits = 0;
      for (const uint32_t node : root.merged) hits += tree.nodes[node].hits;
      EXPECT_EQ(hits, BestHits(tree, tree.roots, root.merged.size()));
      EXPECT_LE(root.ranges.size(), servers + merged * (branches - 1));
    }
  }
}

// Goal: the ranges cover all keys once, whatever the limit.
TEST(FatRootBuilder, CoversAllKeys) {
  std::mt19937_64 rng(1);
  const IndexTree tree = MakeIndexTree(RandomLeaves(rng, 3, 200), 16);
  for (const size_t limit : {1, 3, 40, 1024}) {
    const FatRoot root = BuildFatRoot(tree, limit);
    EXPECT_EQ(tree.nodes[root.ranges.front()].pivot, 0u);
    EXPECT_TRUE(std::ranges::is_sorted(root.ranges, {},
                                       [&](uint32_t node) { return tree.nodes[node].pivot; }));
    EXPECT_LE(root.ranges.size(), std::max<size_t>(limit, 3));
  }
  EXPECT_EQ(BuildFatRoot(tree, 100'000).ranges.size(),
            std::ranges::count_if(tree.nodes,
                                  [](const IndexNode& node) { return node.children.empty(); }));
}

}  // namespace
}  // namespace skep::netindex
