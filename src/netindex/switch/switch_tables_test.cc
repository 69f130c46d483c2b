#include "netindex/switch/switch_tables.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "netindex/switch/bank_writer.h"
#include "netindex/switch/testing/switch_world.h"

namespace skep::netindex {
namespace {

// Goal: both comparators are `>` of C, for numbers that differ anywhere or nowhere.
TEST(SwitchTables, ComparesByHalvesAndByBorrow) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t key = RandomKey(rng);
    const uint64_t pivot = i % 2 == 0 ? RandomKey(rng) : key + rng() % 3 - 1;
    ASSERT_EQ(SwitchAboveByHalves(key, pivot), key > pivot) << key << " " << pivot;
    ASSERT_EQ(SwitchAbove(key, pivot), key > pivot) << key << " " << pivot;
  }
}

// Goal: the example of the paper's section III-A.
TEST(SwitchTables, ComparesAsThePapersExample) {
  constexpr uint64_t kKey = 0x59A4737582A775AB, kPivot = 0xDDAEE7764589DB15;
  EXPECT_EQ(static_cast<uint32_t>(kPivot >> 32) - static_cast<uint32_t>(kKey >> 32), 0x840A7401);
  EXPECT_EQ(SwitchAboveByHalves(kKey, kPivot), 0u);
  EXPECT_EQ(SwitchAboveByHalves(kPivot, kKey), 1u);
}

// Goal: results of a node are runs of ones, from the highest bit down; none leads to the first
// child.
TEST(SwitchTables, ResultsOfANodeAreRunsOfOnes) {
  SwitchNode node{.address = 1};
  for (uint64_t i = 0; i < SWITCH_BRANCHES; ++i) {
    node.child[i] = 100 + i;
    if (i > 0) node.pivot[i - 1] = 10 * i;
  }
  EXPECT_EQ(SwitchResultOf(&node, 0), 0u);
  EXPECT_EQ(SwitchChildByResult(&node, 0), 0u);
  EXPECT_EQ(SwitchResultOf(&node, 10), 0b1000000000000000u);
  EXPECT_EQ(SwitchChildByResult(&node, 10), 0u);
  EXPECT_EQ(SwitchResultOf(&node, 51), 0b1111110000000000u);
  EXPECT_EQ(SwitchChildByResult(&node, 51), 5u);
  EXPECT_EQ(SwitchResultOf(&node, ~uint64_t{0}), 0xffffu);
  for (uint64_t key = 0; key < 200; ++key) {
    ASSERT_EQ(SwitchChildByResult(&node, key), SwitchChildOf(&node, key)) << key;
  }
}

// Goal: a switch with a fat root and all layers finds the leaf of every key, in both ways of
// looking, for trees of few and many leaves.
TEST(SwitchTables, LeadToTheLeafOfTheKey) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  for (const size_t leaves : {1, 2, 15, 16, 17, 300, 3000}) {
    const IndexTree tree = MakeIndexTree(RandomLeaves(rng, 1 + rng() % 3, leaves), 16);
    const FatRoot root = BuildFatRoot(tree, 1 + leaves / 4);
    const auto layers = CacheLayers(tree, root, SWITCH_LAYERS, SWITCH_NODES_MAX);
    const auto bank = std::make_unique<SwitchBank>();
    WriteRoot(tree, root, bank.get());
    for (uint32_t i = 0; i < SWITCH_LAYERS; ++i) WriteLayer(tree, layers[i], i, bank.get());
    for (const uint64_t key : KeysFor(tree, rng)) {
      const uint32_t range = SwitchRangeOf(&bank->root, key);
      ASSERT_EQ(SwitchRangeByStages(&bank->root, key), range) << key;
      const IndexNode& leaf = tree.nodes[LeafOf(tree, key)];
      const uint64_t from = bank->root.address[range];
      ASSERT_EQ(SwitchDescend(bank.get(), 0, key, from), leaf.address) << key;
      ASSERT_EQ(SwitchDescend(bank.get(), 1, key, from), leaf.address) << key;
      ASSERT_EQ(bank->root.server[range], leaf.server) << key;
    }
  }
}

// Goal: a full layer is placed, and each node of it is found.
TEST(SwitchTables, TakeAFullLayer) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  IndexTree tree;
  Layer layer;
  for (uint32_t i = 0; i < SWITCH_NODES_MAX; ++i) {
    layer.push_back(i);
    tree.nodes.push_back({.address = rng() << 13 | (i + 1), .children = {0}});
  }
  const auto bank = std::make_unique<SwitchBank>();
  WriteLayer(tree, layer, 2, bank.get());
  for (const IndexNode& node : tree.nodes) {
    const SwitchNode* const found = SwitchFind(bank.get(), 2, node.address);
    ASSERT_NE(found, nullptr);
    ASSERT_EQ(found->address, node.address);
  }
  EXPECT_EQ(SwitchFind(bank.get(), 2, uint64_t{1} << 62), nullptr);
  EXPECT_EQ(SwitchFind(bank.get(), 1, tree.nodes[0].address), nullptr);
}

}  // namespace
}  // namespace skep::netindex
