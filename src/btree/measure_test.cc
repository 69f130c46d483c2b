// Tests the statistics of a tree: the numbers are right, and troubles show in them.
#include "btree/measure.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "btree/testing/tree_test_within.h"

namespace skep::btree {
namespace {

using Told = std::map<std::string, uint64_t, std::less<>>;

Told Describe(TestTree& tree, uint64_t now_ms = TestTree::kNowMs) {
  Told told;
  tree.engine().Describe(now_ms, [&](std::string_view name, uint64_t value) {
    EXPECT_TRUE(told.emplace(name, value).second) << name << " comes twice";
  });
  return told;
}

std::string Key(uint32_t i) { return "key" + std::to_string(1'000'000 + i); }

void PutAll(TestTree& tree, uint32_t keys, size_t value_bytes) {
  for (uint32_t i = 0; i < keys; ++i) tree.Put(Key(i), std::string(value_bytes, 'v'));
}

class Measure : public OnEachLayout {};

// Goal: if the whole tree is looked at the numbers are exact: those of the walk, those of the
// counters and those that follow from the items.
// Method: an empty tree, one of one leaf, one of some hundred; each with its own arithmetic.
TEST_P(Measure, AgreesWithASmallTree) {
  for (const uint32_t keys : {0u, 10u, 5000u}) {
    SCOPED_TRACE(keys);
    TestTree tree;
    PutAll(tree, keys, 40);
    tree.MaintainAll();
    const TreeStatistics all = tree.Statistics();
    const Told told = Describe(tree);
    EXPECT_EQ(told.at("items"), keys);
    EXPECT_EQ(told.at("leaves"), tree.core().leaves.load());
    EXPECT_EQ(told.at("inner_nodes"), tree.core().inner_nodes.load());
    EXPECT_EQ(told.at("sampled_nodes"), all.leaves + all.inner_nodes);
    EXPECT_EQ(told.at("height"), all.height);
    EXPECT_EQ(all.height, keys < 5000 ? 1u : 3u);
    EXPECT_EQ(told.at("node_bytes"), all.node_bytes);
    EXPECT_EQ(told.at("used_bytes"), all.used_bytes);
    EXPECT_EQ(told.at("fill_percent"), 100 * all.used_bytes / all.node_bytes);
    EXPECT_EQ(told.at("log_bytes"), all.log_bytes);
    EXPECT_GE(all.used_bytes, keys * 50u);
    EXPECT_LE(all.used_bytes, all.node_bytes);
    // There are no values outside the nodes, and nothing is on its way out.
    EXPECT_EQ(told.at("arena_allocated_bytes"), all.node_bytes);
    EXPECT_EQ(
        told.at("arena_held_bytes") + told.at("table_held_bytes") + told.at("reclaim_held_bytes"),
        tree.budget().used());
    EXPECT_EQ(told.at("bytes_per_item"), keys == 0 ? 0 : tree.budget().used() / keys);
    for (const char* nothing :
         {"chain_buffers", "chain_max", "executing", "unreleased", "reader_behind", "snapshots",
          "snapshot_behind", "snapshot_age_ms", "reclaim_waiting", "reclaim_kept", "reclaim_dying",
          "reclaim_detached", "reclaim_behind"}) {
      EXPECT_EQ(told.at(nothing), 0u) << nothing;
    }
  }
}

// Goal: a sample looks at no more than it may, and comes near the truth.
// Method: a tree of many nodes, each with an older buffer or two that a snapshot holds; a fifth of
// its rows. The rows are drawn from the version, which is the same in every run.
TEST_P(Measure, ASampleIsNearTheTruth) {
  TestTree tree;
  PutAll(tree, 8000, 40);
  tree.MaintainAll();
  const SnapshotRef snapshot = tree.OpenSnapshot();
  for (uint32_t i = 0; i < 8000; i += 2) tree.Put(Key(i), std::string(40, 'w'));
  tree.MaintainAll();
  const TreeStatistics all = tree.Statistics();
  ASSERT_GT(all.chain_buffers, all.leaves / 2);
  const uint64_t rows = tree.core().table.end() - 1;
  const TreeStatistics some = SurveyNodes(tree.core(), {.rows_max = rows / 5});
  EXPECT_LE(some.sampled_nodes, rows / 5);
  EXPECT_GE(some.sampled_nodes, rows / 10);
  EXPECT_EQ(some.leaves, all.leaves);
  EXPECT_EQ(some.inner_nodes, all.inner_nodes);
  EXPECT_EQ(some.height, all.height);
  const auto expect_near = [](uint64_t estimate, uint64_t truth) {
    EXPECT_NEAR(static_cast<double>(estimate), static_cast<double>(truth),
                0.25 * static_cast<double>(truth));
  };
  expect_near(some.node_bytes, all.node_bytes);
  expect_near(some.used_bytes, all.used_bytes);
  expect_near(some.log_bytes, all.log_bytes);
  expect_near(some.chain_buffers, all.chain_buffers);
  EXPECT_LE(some.chain_max, all.chain_max);

  const TreeStatistics few = SurveyNodes(tree.core(), {.buffers_max = 20});
  EXPECT_EQ(few.chain_buffers, 20u);
  EXPECT_EQ(few.node_bytes, all.node_bytes);
  tree.CloseSnapshot(snapshot);
}

// Goal: a held snapshot shows in the statistics: that it is there, how far behind and how old it
// is, how much is kept for it; and no more once it is gone.
TEST_P(Measure, AHeldSnapshotShows) {
  TestTree tree;
  PutAll(tree, 500, 40);
  tree.MaintainAll();
  const SnapshotRef first = tree.OpenSnapshot();
  PutAll(tree, 300, 40);
  const SnapshotRef second = tree.OpenSnapshot();
  PutAll(tree, 100, 40);
  tree.MaintainAll();
  const auto behind = [&](SnapshotRef snapshot) {
    return tree.engine().gate().released() - snapshot.version;
  };
  Told told = Describe(tree, TestTree::kNowMs + 1234);
  EXPECT_EQ(told.at("snapshots"), 2u);
  EXPECT_GE(behind(first), 400u);
  EXPECT_EQ(told.at("snapshot_behind"), behind(first));
  EXPECT_EQ(told.at("snapshot_age_ms"), 1234u);
  EXPECT_GT(told.at("reclaim_kept"), 0u);
  EXPECT_GT(told.at("chain_buffers"), 0u);
  EXPECT_EQ(told.at("chain_max"), 2u);
  // A clock that was set back does not make a negative age.
  EXPECT_EQ(Describe(tree, 0).at("snapshot_age_ms"), 0u);

  tree.CloseSnapshot(first);
  EXPECT_EQ(Describe(tree).at("snapshot_behind"), behind(second));
  tree.CloseSnapshot(second);
  tree.MaintainAll();
  told = Describe(tree);
  EXPECT_EQ(told.at("snapshots") + told.at("snapshot_behind") + told.at("snapshot_age_ms"), 0u);
  EXPECT_EQ(told.at("reclaim_kept") + told.at("chain_buffers"), 0u);
}

// Goal: a reader that stalls in the middle of a scan shows, and so do the pieces it holds back.
// Method: one thread; the scan stops in its first leaf while its own thread writes.
TEST_P(Measure, AStalledReaderShows) {
  TestTree tree;
  PutAll(tree, 500, 40);
  tree.MaintainAll();
  Batch scan;
  scan.Scan(Range::All());
  RunWithin(tree, scan, SyncPoint::kReaderInLeaf, [&] {
    const Version before = tree.engine().gate().released();
    PutAll(tree, 300, 40);
    tree.MaintainAll();
    const Told told = Describe(tree);
    EXPECT_EQ(told.at("executing"), 1u);
    EXPECT_EQ(told.at("reader_behind"), tree.engine().gate().released() - before);
    EXPECT_GE(told.at("reader_behind"), 300u);
    EXPECT_GT(told.at("reclaim_waiting"), 0u);
    EXPECT_GT(told.at("reclaim_behind"), 0u);
    EXPECT_GT(told.at("chain_buffers"), 0u);
  });
  tree.MaintainAll();
  const Told told = Describe(tree);
  EXPECT_EQ(told.at("executing") + told.at("reader_behind") + told.at("reclaim_waiting"), 0u);
}

// Goal: a writer that stalls with a drawn version shows: the writes of others are not released.
// Method: one thread, too; the others write to the other end of the tree, since the leaf is locked.
TEST_P(Measure, AStalledWriterShows) {
  TestTree tree;
  PutAll(tree, 500, 40);
  Batch put;
  put.Put("a", "1");
  RunWithin(tree, put, SyncPoint::kWriterDrew, [&] {
    for (int i = 0; i < 5; ++i) tree.Put("z", "2");
    EXPECT_EQ(Describe(tree).at("unreleased"), 6u);
  });
  EXPECT_EQ(Describe(tree).at("unreleased"), 0u);
}

// Goal: the statistics can be read at any time, and the numbers are near the truth.
// Method: a thread describes a tree while two others let it grow and shrink, by points and by
// range, under ThreadSanitizer and AddressSanitizer.
TEST_P(Measure, WhileOthersWrite) {
  constexpr uint32_t kKeys = 600;
  TestTree tree;
  std::atomic<int> writing{2};
  const auto write = [&](char thread) {
    for (int round = 0; round < 4; ++round) {
      for (uint32_t i = 0; i < kKeys; ++i) tree.Put(thread + Key(i), std::string(40, 'v'));
      const SnapshotRef snapshot = tree.OpenSnapshot();
      tree.DeleteRange(Range::Between(thread + Key(50), thread + Key(kKeys - 50)));
      tree.CloseSnapshot(snapshot);
      tree.engine().Maintain(TestTree::kNowMs);
    }
    --writing;
  };
  std::thread first(write, 'a');
  std::thread second(write, 'b');
  do {
    const Told told = Describe(tree);
    EXPECT_LE(told.at("items"), 2 * kKeys);
    EXPECT_LE(told.at("executing"), 2u);
    EXPECT_LE(told.at("snapshots"), 2u);
    EXPECT_LE(told.at("used_bytes"), told.at("node_bytes"));
    // The sum holds whatever was sampled: a node that is replaced meanwhile may be missed, even the
    // only one.
    EXPECT_EQ(told.at("leaves") + told.at("inner_nodes"), told.at("sampled_nodes"));
  } while (writing > 0);
  first.join();
  second.join();
  tree.MaintainAll();
  EXPECT_EQ(Describe(tree).at("items"), 2 * 100u);
  tree.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Layouts, Measure, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
