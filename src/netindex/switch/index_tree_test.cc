#include "netindex/switch/index_tree.h"

#include <gtest/gtest.h>

#include <random>

#include "netindex/switch/testing/switch_world.h"

namespace skep::netindex {
namespace {

// Goal: a key's leaf is the one whose lower fence is the last not above it, of the key's server.
TEST(IndexTree, FindsTheLeafOfAKey) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  const auto servers = RandomLeaves(rng, 3, 400);
  const IndexTree tree = MakeIndexTree(servers, 16);
  for (const uint64_t key : KeysFor(tree, rng)) {
    uint32_t server = 2;
    while (key < servers[server].first) --server;
    const auto& leaves = servers[server].leaves;
    size_t at = leaves.size() - 1;
    while (key < leaves[at].first) --at;
    const IndexNode& leaf = tree.nodes[LeafOf(tree, key)];
    EXPECT_EQ(leaf.server, server) << key;
    // Of leaves with the same number one is known.
    EXPECT_EQ(leaf.pivot, leaves[at].first == 0 ? 0 : leaves[at].first - 1) << key;
  }
}

// Goal: fences in front of the server's range, and equal ones, leave one leaf each.
TEST(IndexTree, KnowsOneLeafOfEachNumber) {
  const std::vector<ServerLeaves> servers = {
      {.first = 0, .leaves = {{0, 11, 0}, {5, 12, 1}, {5, 13, 9}, {5, 14, 2}}},
      {.first = 100, .leaves = {{0, 21, 50}, {50, 22, 50}, {100, 23, 1}, {101, 24, 0}}}};
  const IndexTree tree = MakeIndexTree(servers, 16);
  const auto address = [&](uint64_t key) { return tree.nodes[LeafOf(tree, key)].address; };
  EXPECT_EQ(address(0), 11u);
  EXPECT_EQ(address(4), 11u);
  EXPECT_EQ(address(5), 13u);
  EXPECT_EQ(address(99), 13u);
  EXPECT_EQ(address(100), 23u);
  EXPECT_EQ(address(101), 24u);
}

// Goal: hits of an inner node are those below it, and its pivot is that of its first child.
TEST(IndexTree, InnerNodesSumUpTheirChildren) {
  std::mt19937_64 rng(4);
  const IndexTree tree = MakeIndexTree(RandomLeaves(rng, 2, 100), 5);
  for (const IndexNode& node : tree.nodes) {
    if (node.children.empty()) continue;
    uint64_t hits = 0;
    for (const uint32_t child : node.children) hits += tree.nodes[child].hits;
    EXPECT_EQ(node.hits, hits);
    EXPECT_EQ(node.pivot, tree.nodes[node.children.front()].pivot);
    EXPECT_EQ(node.address >> 48, 0u);
    EXPECT_NE(node.address, 0u);
  }
}

}  // namespace
}  // namespace skep::netindex
