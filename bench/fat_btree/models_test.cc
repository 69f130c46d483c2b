#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "bench/fat_btree/growing_tree.h"
#include "bench/fat_btree/model_tree.h"
#include "bench/fat_btree/placements.h"
#include "bench/fat_btree/queueing.h"
#include "bench/fat_btree/range_query.h"
#include "bench/fat_btree/trip_counts.h"

namespace skep::bench {
namespace {

// Goal: the paper's two examples (IV-C): 170 / 107 and 120 / 102.
TEST(RangeQuery, HasThePapersOverheads) {
  EXPECT_DOUBLE_EQ(OverheadOf(10, 7, 100), 170.0 / 107);
  EXPECT_NEAR(OverheadOf(10, 7, 100), 1.59, 0.005);
  EXPECT_DOUBLE_EQ(OverheadOf(10, 2, 100), 120.0 / 102);
  EXPECT_NEAR(OverheadOf(10, 2, 100), 1.18, 0.005);
  EXPECT_DOUBLE_EQ(OverheadOf(1, 7, 100), 1);
}

TEST(TripCounts, AreSummedAndRanked) {
  TripCounts counts;
  for (int i = 0; i < 98; ++i) counts.Add(2);
  counts.Add(3);
  counts.Add(7);
  EXPECT_DOUBLE_EQ(counts.mean(), 2.06);
  EXPECT_EQ(counts.Quantile(0.98), 2u);
  EXPECT_EQ(counts.Quantile(0.99), 3u);
  EXPECT_EQ(counts.Quantile(1), 7u);
  EXPECT_EQ(counts.max(), 7u);
  EXPECT_DOUBLE_EQ((TripTimes{.trip_us = 16, .fixed_us = 1}.Of(2.5)), 41);
}

// Goal: one client waits for nobody; many clients keep the slowest server busy; and in between
// stands what the recursion gives by hand: one server, one us here and there, two clients.
TEST(Queueing, IsRightAtBothEnds) {
  const ServerLoad one[] = {{.share = 1, .service_us = 1}};
  EXPECT_DOUBLE_EQ(ThroughputOf(1, 1, one), 0.5);
  EXPECT_DOUBLE_EQ(ThroughputOf(2, 1, one), 0.8);  // a time of 1.5 at the server
  const ServerLoad two[] = {{.share = 0.75, .service_us = 2}, {.share = 0.25, .service_us = 2}};
  EXPECT_DOUBLE_EQ(ThroughputOf(1, 3, two), 0.2);
  EXPECT_NEAR(ThroughputOf(1'000, 3, two), 1 / 1.5, 0.001);
}

// A tree of eight keys by hand: nodes of 2 branches, 8 values below 3 levels.
class SmallTree : public testing::Test {
 protected:
  static constexpr TreeShape kShape = {.branches = 2};

  const RecordKeys keys_{8};
  const std::vector<uint64_t> hits_ = {8, 0, 0, 0, 1, 0, 2, 0};
  const ModelTree tree_{kShape, keys_, hits_};

  uint32_t LevelsBy(const SwitchLimits& limits, size_t place) const {
    const uint64_t key = keys_.sorted()[place];
    return tree_.LevelsFrom(SwitchChain(tree_.index(), limits).AddressOf(key), key);
  }
};

TEST_F(SmallTree, IsAsDeepAsItHasNodes) {
  EXPECT_EQ(tree_.LevelsOf(0), 4u);
  for (const uint64_t key : keys_.sorted()) EXPECT_EQ(tree_.LevelsFrom(0, key), 4u);
}

// Goal: what switches hold is skipped, no more. Three ranges: the root and its hotter child are
// merged. A layer of one node: that of the hottest grandchild.
TEST_F(SmallTree, LevelsAreSkippedWhereSwitchesHoldNodes) {
  const SwitchLimits root = {.ranges = 3, .layers = 0, .nodes = 0};
  EXPECT_EQ(LevelsBy(root, 0), 2u);
  EXPECT_EQ(LevelsBy(root, 3), 2u);
  EXPECT_EQ(LevelsBy(root, 4), 3u);
  const SwitchLimits layer = {.ranges = 3, .layers = 1, .nodes = 1};
  EXPECT_EQ(LevelsBy(layer, 0), 1u) << "the address of the value";
  EXPECT_EQ(LevelsBy(layer, 2), 2u);
  EXPECT_EQ(LevelsBy(layer, 7), 3u);
}

TEST_F(SmallTree, ACacheHasTheSameRangesInItsBytes) {
  const ClientCache cache(tree_.index(), 3 * kRangeBytes);
  const auto levels = [&](size_t place) {
    const uint64_t key = keys_.sorted()[place];
    return tree_.LevelsFrom(cache.AddressOf(key), key);
  };
  EXPECT_EQ(levels(0), 2u);
  EXPECT_EQ(levels(7), 3u);
  EXPECT_EQ(SwitchChain(tree_.index(), {.ranges = 3, .layers = 1, .nodes = 1}).bytes(),
            3 * kRangeBytes + sizeof(SwitchNode));
}

// Goal: by one part a range of four keys from the second on reads 3 nodes to its leaf, two more
// leaves, and four values; by two, the second part goes down by itself.
TEST_F(SmallTree, ARangeReadsLeavesAndValues) {
  const auto root = [](uint64_t) { return uint64_t{0}; };
  const RangeReads one = CountRange(tree_, keys_.sorted(), 1, 4, 1, root);
  EXPECT_EQ(one.reads, 3u + 2 + 4);
  EXPECT_EQ(one.rounds, one.reads);
  const RangeReads many = CountRange(tree_, keys_.sorted(), 1, 4, 50, root);
  EXPECT_GE(many.reads, 50u * 3 + 4);
  EXPECT_LE(many.rounds, 3u + 1 + 2);
}

// Goal: of our tree a leaf's address is all that the server knows.
TEST(OurTree, IsReadFromALeafOrFromTheRoot) {
  const RecordKeys keys(30'000);
  const ModelTree tree(kOurShape, keys, std::vector<uint64_t>(30'000, 1));
  EXPECT_EQ(tree.LevelsOf(0), 3u) << "300 leaves, 3 nodes, the root";
  const uint64_t key = keys.sorted()[12'345];
  const ClientCache all(tree.index(), 300 * kRangeBytes);
  EXPECT_EQ(tree.LevelsFrom(all.AddressOf(key), key), 1u);
  const ClientCache none(tree.index(), 16 * kRangeBytes);
  EXPECT_EQ(tree.LevelsFrom(none.AddressOf(key), key), 3u);
}

// Goal: each server has the keys of its range, and addresses lead to its own nodes.
TEST(ModelTree, DividesKeysAmongServers) {
  const RecordKeys keys(4'000);
  const ModelTree tree(kPaperShape, keys, std::vector<uint64_t>(4'000, 1), 4);
  const SwitchChain chain(tree.index(), {.ranges = 28, .layers = 1, .nodes = 28});
  EXPECT_EQ(tree.ServerOf(0), 0u);
  for (uint64_t place = 0; place < 4'000; ++place) {
    const uint64_t key = keys.sorted()[place];
    ASSERT_EQ(tree.ServerOf(key), place / 1'000);
    ASSERT_EQ(tree.LevelsFrom(0, key), 4u) << "1,000 values, 84, 7 nodes, the root";
    ASSERT_EQ(tree.LevelsFrom(chain.AddressOf(key), key), 1u + 1);
  }
}

// Goal: half of the accesses of a stream that drifts by half go to other records.
TEST(Accesses, DriftMovesThatShareOfTheHotRecords) {
  const auto hottest = [](double drift) {
    const auto drawn =
        DrawRecords(1'000, {.accesses = 20'000, .alpha = 1.2, .drift = drift, .seed = 3});
    std::vector<double> shares(1'000);
    for (const uint64_t record : drawn) shares[record] += 1.0 / 20'000;
    return shares;
  };
  const auto before = hottest(0), after = hottest(0.5), other = hottest(1);
  const auto hot = static_cast<size_t>(std::ranges::max_element(before) - before.begin());
  EXPECT_NEAR(after[hot], before[hot] / 2, 0.02);
  EXPECT_LT(other[hot], 0.02);
  EXPECT_NEAR(std::ranges::max(other), before[hot], 0.02);
}

// Goal: whichever way nodes are split, every key is in its leaf and leaves are no larger than
// allowed; only a tree with fixed nodes gets deeper for them.
TEST(GrowingTree, KeepsTheAddressesOfFixedNodesAndGetsDeeper) {
  GrowingTree retiring(4, 4);
  std::vector<uint64_t> keys;
  for (uint64_t i = 1; i <= 300; ++i) keys.push_back(KeyOfRecord(i));
  for (const uint64_t key : keys) retiring.Insert(key);
  GrowingTree pushing = retiring;
  std::set<GrowingTree::Id> leaves;
  for (const uint64_t key : keys) leaves.insert(pushing.LeafOf(key));
  for (const GrowingTree::Id leaf : leaves) pushing.Fix(leaf);
  std::vector<GrowingTree::Id> remembered;
  for (const uint64_t key : keys) remembered.push_back(retiring.LeafOf(key));
  for (uint64_t i = 301; i <= 3'000; ++i) {
    retiring.Insert(KeyOfRecord(i));
    pushing.Insert(KeyOfRecord(i));
  }
  EXPECT_EQ(retiring.pushed_down(), 0u);
  EXPECT_GE(pushing.pushed_down(), leaves.size() / 2);
  uint32_t deepest = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_FALSE(pushing.IsRetired(remembered[i]));
    deepest = std::max(deepest, pushing.LevelsFrom(remembered[i], keys[i]));
    if (retiring.IsRetired(remembered[i])) continue;
    ASSERT_EQ(retiring.LevelsFrom(remembered[i], keys[i]), 1u);
    ASSERT_EQ(retiring.LeafOf(keys[i]), remembered[i]);
  }
  EXPECT_GT(deepest, 2u);
}

// Goal: a leaf splits in the middle when it has one key too many, and not before.
TEST(GrowingTree, SplitsALeafThatIsTooLarge) {
  GrowingTree tree(4, 4);
  for (const uint64_t key : {10, 20, 30, 40}) tree.Insert(key);
  EXPECT_EQ(tree.LeafOf(10), GrowingTree::kRoot);
  tree.Insert(50);
  EXPECT_EQ(tree.LeafOf(10), tree.LeafOf(20));
  EXPECT_NE(tree.LeafOf(20), tree.LeafOf(30));
  EXPECT_EQ(tree.LeafOf(30), tree.LeafOf(50));
  EXPECT_EQ(tree.LevelsFrom(GrowingTree::kRoot, 30), 2u);
  const auto index = tree.Index(std::vector<uint64_t>{10, 30, 30});
  ASSERT_EQ(index.nodes.size(), 3u);
  const netindex::IndexNode& root = index.nodes[index.roots.front()];
  EXPECT_EQ(root.hits, 3u);
  EXPECT_EQ(index.nodes[root.children[1]].pivot, 29u);
  EXPECT_EQ(index.nodes[root.children[1]].hits, 2u);
}

}  // namespace
}  // namespace skep::bench
