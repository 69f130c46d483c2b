#include "netindex/switch/layer_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "netindex/switch/testing/switch_world.h"

namespace skep::netindex {
namespace {

// Goal: each node of a layer is a child of one of the layer before, none of those left out is
// hotter, and no layer has more than it may.
TEST(LayerCache, HoldsTheHottestThatCanBeReached) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  const IndexTree tree = MakeIndexTree(RandomLeaves(rng, 2, 3000), 4);
  const FatRoot root = BuildFatRoot(tree, 12);
  const auto layers = CacheLayers(tree, root, 4, 7);
  ASSERT_EQ(layers.size(), 4u);
  std::vector<uint32_t> above = root.ranges;
  for (const Layer& layer : layers) {
    EXPECT_LE(layer.size(), 7u);
    const std::set<uint32_t> reachable(above.begin(), above.end());
    const std::set<uint32_t> held(layer.begin(), layer.end());
    EXPECT_TRUE(std::ranges::includes(reachable, held));
    for (const uint32_t node : reachable) {
      if (tree.nodes[node].children.empty() || held.contains(node)) continue;
      EXPECT_EQ(layer.size(), 7u);
      EXPECT_LE(tree.nodes[node].hits, tree.nodes[layer.back()].hits);
    }
    above.clear();
    for (const uint32_t node : layer) {
      above.insert(above.end(), tree.nodes[node].children.begin(), tree.nodes[node].children.end());
    }
  }
}

// Goal: what is covered are the hits of leaves to which the tables lead, counted leaf by leaf.
TEST(LayerCache, CountsTheHitsItCovers) {
  std::mt19937_64 rng(2);
  const IndexTree tree = MakeIndexTree(RandomLeaves(rng, 1, 500), 4);
  const FatRoot root = BuildFatRoot(tree, 10);
  EXPECT_EQ(HitsCovered(tree, root, {}), 0u);
  uint64_t all = 0;
  for (const IndexNode& node : tree.nodes) all += node.children.empty() ? node.hits : 0;
  EXPECT_EQ(HitsCovered(tree, root, CacheLayers(tree, root, 6, 1000)), all);
  const uint64_t some = HitsCovered(tree, root, CacheLayers(tree, root, 6, 12));
  EXPECT_GT(some, 0u);
  EXPECT_LT(some, all);
}

// Goal: what a switch cannot compare is not given to it.
TEST(LayerCache, LeavesOutNodesThatAreTooWide) {
  std::mt19937_64 rng(3);
  const IndexTree tree = MakeIndexTree(RandomLeaves(rng, 1, 500), SWITCH_BRANCHES + 1);
  const auto layers = CacheLayers(tree, BuildFatRoot(tree, 1), 1, 10);
  EXPECT_TRUE(layers[0].empty() || tree.nodes[layers[0][0]].children.size() <= SWITCH_BRANCHES);
}

}  // namespace
}  // namespace skep::netindex
