// Goal: operations take the right ways, which their results do not tell: a scan goes on by sibling
// links, a hint leads straight to its leaf, a batch goes down once, and the memory of a node is
// marked dead before it is used again.
// Method: trees at rest; the visits of sync points are counted.
#include <gtest/gtest.h>

#include "base/poison.h"
#include "btree/heads/head_layout_search.h"
#include "btree/testing/tree_test_stage.h"
#include "btree/testing/tree_test_tree.h"

namespace skep::btree {
namespace {

constexpr uint32_t kKeys = 400;

std::string KeyOf(uint32_t number) { return "key" + std::to_string(1000 + number); }

// A tree of three levels, and a count of how often one batch reaches each point.
class TreeWay : public OnEachLayout {
 protected:
  TreeWay() {
    const std::string value(20, 'v');
    for (uint32_t i = 0; i < kKeys; ++i) tree_.Put(KeyOf(i * 7 % kKeys), value);
    tree_.MaintainAll();
    leaves_ = tree_.Statistics().leaves;
    EXPECT_GT(leaves_, 4u);
    EXPECT_GT(tree_.Statistics().height, 1u);
  }

  // How often the batch reaches each of the points.
  std::vector<uint64_t> Reached(Batch& batch, const std::vector<SyncPoint>& points) {
    std::vector<uint64_t> reached;
    for (const SyncPoint point : points) reached.push_back(stage_.reached(point));
    tree_.Execute(batch);
    for (size_t i = 0; i < points.size(); ++i) {
      reached[i] = stage_.reached(points[i]) - reached[i];
    }
    return reached;
  }

  TestTree tree_;
  Stage stage_{tree_.core()};
  uint64_t leaves_ = 0;
};

using Counts = std::vector<uint64_t>;
constexpr SyncPoint kRoot = SyncPoint::kReaderAtRoot;
constexpr SyncPoint kSibling = SyncPoint::kReaderAtSibling;
constexpr SyncPoint kHint = SyncPoint::kReaderAtHint;

// Goal: a scan or count goes down once, and from leaf to leaf by their links, a scan also
// backwards.
TEST_P(TreeWay, ScansFollowSiblingLinks) {
  for (const bool reverse : {false, true}) {
    Batch batch;
    batch.Scan(Range::All(), {.reverse = reverse});
    EXPECT_EQ(Reached(batch, {kRoot, kSibling, kHint}), (Counts{1, leaves_ - 1, leaves_ - 1}))
        << (reverse ? "backwards" : "forward");
    EXPECT_EQ(batch.items(0).size(), kKeys);
  }
  Batch count;
  count.Count(Range::All());
  EXPECT_EQ(Reached(count, {kRoot, kSibling}), (Counts{1, leaves_ - 1}));
  EXPECT_EQ(count.outcome(0).integer, kKeys);
}

// Goal: a request with a hint does not go down; one with a stale hint does.
TEST_P(TreeWay, HintsLeadStraightToTheLeaf) {
  const std::string key = KeyOf(200);
  const Hint hint = tree_.Do({.op = Op::kGet, .flags = Request::kWantHint, .key = key}).hint;
  Batch with_hint;
  with_hint.Add({.op = Op::kGet, .key = key, .hint = hint});
  EXPECT_EQ(Reached(with_hint, {kRoot, kHint}), (Counts{0, 1}));
  EXPECT_TRUE(with_hint.outcome(0).present);
  EXPECT_EQ(with_hint.outcome(0).hint.bits, 0u);
  const std::string far = KeyOf(0);
  Batch to_another_leaf;
  to_another_leaf.Add({.op = Op::kGet, .key = far, .hint = hint});
  EXPECT_EQ(Reached(to_another_leaf, {kRoot, kHint}), (Counts{1, 1}));
  EXPECT_TRUE(to_another_leaf.outcome(0).present);
  // The answer to a stale hint has the right one, unasked.
  const Hint right = tree_.Do({.op = Op::kGet, .flags = Request::kWantHint, .key = far}).hint;
  EXPECT_EQ(to_another_leaf.outcome(0).hint.bits, right.bits);
  EXPECT_NE(right.bits, hint.bits);
}

// Goal: a hint of an inner node saves the way down to that node.
TEST_P(TreeWay, HintsOfInnerNodesLeadDown) {
  const std::string key = KeyOf(200);
  const Core& core = tree_.core();
  // Long keys, of which an inner node has few.
  std::string far;
  for (uint32_t i = 0; core.Head(core.root)->level < 2; ++i) {
    far = std::string(200, 'k') + KeyOf(i);
    tree_.Put(far, "v");
  }
  const Link child = VisitLayoutOfTest([&]<class Layout>() {
    return typename Layout::Inner(core.codec, core.Head(core.root)).ChildOf(key);
  });
  const uint64_t levels = core.Head(child)->level;
  ASSERT_GT(levels, 0u);
  for (const Op op : {Op::kGet, Op::kPut}) {
    Batch batch;
    batch.Add({.op = op, .key = key, .value = "v", .hint = {child.bits}});
    EXPECT_EQ(Reached(batch, {kRoot, kHint, SyncPoint::kReaderAtChild}), (Counts{0, 1, levels}));
    EXPECT_TRUE(batch.outcome(0).present);
  }
  Batch to_another_node;
  to_another_node.Add({.op = Op::kGet, .key = far, .hint = {child.bits}});
  EXPECT_EQ(Reached(to_another_node, {kRoot, kHint}), (Counts{1, 1}));
  EXPECT_TRUE(to_another_node.outcome(0).present);
}

// Goal: a scan at a snapshot comes by sibling links to a leaf that was split since, through its
// halves.
// Method: the neighbours of the split leaf are as they were, and lead to its halves now.
TEST_P(TreeWay, WhatWasSplitIsFoundByItsHalves) {
  const SnapshotRef snapshot = tree_.OpenSnapshot();
  for (uint32_t i = 0; tree_.Statistics().leaves == leaves_; ++i) {
    tree_.Put(KeyOf(200) + "x" + std::to_string(i), "v");
  }
  ASSERT_EQ(tree_.Statistics().leaves, leaves_ + 1);
  for (const bool reverse : {false, true}) {
    Batch batch;
    batch.set_snapshot(snapshot);
    batch.Scan(Range::All(), {.reverse = reverse});
    EXPECT_EQ(Reached(batch, {kRoot, kSibling}), (Counts{1, leaves_ - 1}))
        << (reverse ? "backwards" : "forward");
    EXPECT_EQ(batch.items(0).size(), kKeys);
  }
  tree_.CloseSnapshot(snapshot);
}

// Goal: 32 requests of a batch go down side by side: the root is looked at once for all of them.
TEST_P(TreeWay, AWindowGoesDownOnce) {
  std::vector<std::string> keys;
  for (uint32_t i = 0; i < 96; ++i) keys.push_back(KeyOf(i * 31 % kKeys));
  Batch batch;
  for (const std::string& key : keys) batch.Get(key);
  EXPECT_EQ(Reached(batch, {kRoot}), Counts{3});
  for (uint32_t slot = 0; slot < batch.size(); ++slot) EXPECT_TRUE(batch.outcome(slot).present);
  Batch alone;
  alone.Get(keys[0]);
  EXPECT_EQ(Reached(alone, {kRoot}), Counts{1});
}

// Goal: the buffer of a replaced node is marked before its memory is used again, for readers
// outside the epochs.
// Method: a leaf is written until it has been built anew and the old buffer is freed; its word is
// read between batches. A buffer that is used again is alive, so the mark cannot come from there.
TEST_P(TreeWay, FreedBuffersAreMarkedDead) {
  const std::string key = KeyOf(200);
  const Hint hint = tree_.Do({.op = Op::kGet, .flags = Request::kWantHint, .key = key}).hint;
  const ArenaAddress first = tree_.core().table.Find(Link{hint.bits});
  ASSERT_TRUE(first);
  const NodeHeader* const buffer = tree_.core().Node(first);
  bool was_dead = false;
  for (uint32_t i = 0; i < 200 && !was_dead; ++i) {
    const std::string value = std::to_string(100000 + i);
    tree_.Put(key, value);
    if (kPoisons) Unpoison(reinterpret_cast<const std::byte*>(buffer), sizeof(NodeHeader));
    const NodeWord word{buffer->word.load(std::memory_order_acquire)};
    // A buffer that waits to be freed is marked replaced, but not retired.
    was_dead = word.retired() && word.replaced();
  }
  EXPECT_TRUE(was_dead);
}

INSTANTIATE_TEST_SUITE_P(Layouts, TreeWay, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
