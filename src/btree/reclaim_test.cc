// Goal: reclaiming costs a bounded piece of work at a time, whatever readers and snapshots hold
// back, and no piece that may be freed waits for one that may not.
// Method: one thread; visits are counted (ReclaimStatistics::visits).
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "btree/testing/tree_test_tree.h"
#include "btree/upkeep.h"

namespace skep::btree {
namespace {

// Every write builds its leaf anew with these options.
constexpr BtreeOptions kMergesAlways{.node_bytes = 2048, .log_bytes = 0};

class Reclaiming : public OnEachLayout {
 protected:
  // A reader with a thread state of its own, which reads at the version that is released when it
  // begins.
  class HeldFloor {
   public:
    explicit HeldFloor(Core& core) : core_(core), thread_(core.threads.Take()) {}
    ~HeldFloor() {
      LetGo();
      core_.threads.Give(thread_);
    }
    void Hold() { HoldAt(core_.gate.released()); }
    void HoldAt(Version version) { thread_.read_floor.store(version, std::memory_order_seq_cst); }
    void LetGo() { HoldAt(ThreadState::kIdle); }

   private:
    Core& core_;
    ThreadState& thread_;
  };

  // The visits of the freer meanwhile: in all, and at most by one call.
  struct Work {
    uint64_t sum = 0;
    uint64_t most = 0;
    uint64_t calls = 0;
    double Each() const { return static_cast<double>(sum) / static_cast<double>(calls); }
  };
  static uint64_t Visits(TestTree& tree) { return tree.core().reclaimer.Statistics().visits; }
  template <typename Do>
  static void Count(TestTree& tree, Work* work, Do one) {
    const uint64_t before = Visits(tree);
    one();
    const uint64_t visits = Visits(tree) - before;
    work->sum += visits;
    work->most = std::max(work->most, visits);
    ++work->calls;
  }
  static Work CountPuts(TestTree& tree, uint32_t puts) {
    Work work;
    for (uint32_t i = 0; i < puts; ++i) {
      Count(tree, &work, [&] { tree.Put("key", std::to_string(i)); });
    }
    return work;
  }
  static uint64_t WaitsOf(TestTree& tree) {
    const ReclaimStatistics statistics = tree.core().reclaimer.Statistics();
    return statistics.waiting + statistics.dying;
  }

  // The visits of a replaced buffer: four while it is in its chain, and one when it is freed.
  static constexpr double kVisitsOfPutMax = 5.5;
  // The visits of one Put that retires one buffer: the budgets of four kinds.
  static constexpr uint64_t kVisitsOfOnePutMax = 4 * (4 + 16);
  // The visits of one Maintain: its budgets and the blocks of one node, here at most
  // kBlocksOfNodeMax.
  static constexpr uint64_t kBlocksOfNodeMax = 160;
  static constexpr uint64_t kVisitsOfMaintainMax =
      4 * Upkeep::kPiecesMaintain + 2 * kBlocksOfNodeMax;
};

// Goal: the buffers that a reader has held back for long cost each operation little when the reader
// lets go, also if another reader begins at once.
// Method: a floor is held for 5,000 merges of one leaf, let go, and held again.
TEST_P(Reclaiming, APutPaysLittleForWhatReadersHeldBack) {
  constexpr uint32_t kMerges = 5000;
  TestTree tree(kMergesAlways);
  tree.Put("key", "");
  HeldFloor reader(tree.core());
  reader.Hold();
  const Work held = CountPuts(tree, kMerges);
  EXPECT_GE(tree.Statistics().chain_buffers, kMerges);
  reader.LetGo();
  reader.Hold();
  const Work again = CountPuts(tree, kMerges);
  reader.LetGo();
  const Work after = CountPuts(tree, kMerges);
  for (const Work& work : {held, again, after}) {
    EXPECT_LE(work.Each(), 2 * kVisitsOfPutMax);  // buffers from before may be paid for now
    EXPECT_LE(work.most, kVisitsOfOnePutMax);
  }
  EXPECT_LE(held.sum + again.sum + after.sum, uint64_t(3 * kMerges * kVisitsOfPutMax));
  EXPECT_LE(tree.Statistics().chain_buffers, 2u);
  tree.ExpectNothingLeaked();
}

// Goal: readers that are always a thousand merges behind cost each merge a few visits, and the
// chain twice the memory that they hold back.
// Method: the floor follows the released version at a distance, a little at a time.
TEST_P(Reclaiming, ALateFloorCostsAFewVisitsAndTwiceTheMemory) {
  constexpr uint32_t kBehind = 1000;
  for (const uint32_t step : {1u, 7u}) {
    TestTree tree(kMergesAlways);
    HeldFloor reader(tree.core());
    std::deque<Version> released;
    Work work;
    for (uint32_t i = 0; i < 10 * kBehind; ++i) {
      Count(tree, &work, [&] { tree.Put("key", std::to_string(i)); });
      released.push_back(tree.engine().gate().released());
      if (released.size() > kBehind) released.pop_front();
      if (i % step == 0) reader.HoldAt(released.front());
      if (i % 100 == 0) {
        EXPECT_LE(tree.Statistics().chain_buffers, 2 * kBehind + 16) << i;
      }
    }
    EXPECT_LE(work.Each(), kVisitsOfPutMax);
    EXPECT_LE(work.most, kVisitsOfOnePutMax);
    reader.LetGo();
    tree.ExpectNothingLeaked();
  }
}

// Goal: buffers that a walk has left to a reader are freed when the reader lets go, also if no
// thread writes again.
// Method: the reader goes on to a later version in between, so that a walk frees some and leaves
// some.
TEST_P(Reclaiming, WhatAWalkHasLeftIsFreedLater) {
  TestTree tree(kMergesAlways);
  std::vector<Version> released;
  HeldFloor reader(tree.core());
  for (uint32_t i = 0; i < 100; ++i) {
    tree.Put("key", std::to_string(i));
    released.push_back(tree.engine().gate().released());
    if (i == 50) reader.Hold();
  }
  tree.MaintainAll();
  EXPECT_EQ(tree.Statistics().chain_buffers, 49u);
  reader.HoldAt(released[80]);
  tree.MaintainAll();
  EXPECT_EQ(tree.Statistics().chain_buffers, 19u);
  reader.LetGo();
  tree.MaintainAll();
  EXPECT_EQ(tree.Statistics().chain_buffers, 0u);
}

// Goal: the bound is not the effect of the budgets alone: a run without a budget finds as little to
// do.
TEST_P(Reclaiming, ABufferCostsFewVisitsWhateverTheBudget) {
  constexpr uint32_t kBehind = 500;
  TestTree tree(kMergesAlways);
  HeldFloor reader(tree.core());
  std::deque<Version> released;
  Work work;
  for (uint32_t i = 0; i < 10 * kBehind; ++i) {
    Count(tree, &work, [&] {
      tree.Put("key", std::to_string(i));
      tree.engine().Maintain(TestTree::kNowMs);
    });
    released.push_back(tree.engine().gate().released());
    if (released.size() > kBehind) released.pop_front();
    reader.HoldAt(released.front());
  }
  EXPECT_LE(work.Each(), kVisitsOfPutMax);
}

// Goal: a Put to a leaf whose older versions thousands of snapshots keep costs what it costs with
// one of them.
TEST_P(Reclaiming, APutPaysNothingForWhatSnapshotsKeep) {
  constexpr uint32_t kSnapshots = 10'000;
  TestTree tree(kMergesAlways);
  std::deque<SnapshotRef> snapshots;
  const auto open = [&] {
    snapshots.push_back(tree.OpenSnapshot());
    tree.Put("key", std::to_string(snapshots.size()));
  };
  open();
  const Work with_one = CountPuts(tree, 1000);
  while (snapshots.size() < kSnapshots) open();
  EXPECT_GE(tree.Statistics().chain_buffers, kSnapshots);
  const Work with_many = CountPuts(tree, 1000);
  EXPECT_LE(with_many.sum, with_one.sum + 16);
  EXPECT_EQ(tree.core().reclaimer.Statistics().kept, kSnapshots);
  // The oldest first, as snapshots go that are renewed all the time.
  Work renewing;
  for (uint32_t i = 0; i < 1000; ++i) {
    tree.CloseSnapshot(snapshots.front());
    snapshots.pop_front();
    snapshots.push_back(tree.OpenSnapshot());
    Count(tree, &renewing, [&] { tree.Put("key", std::to_string(i)); });
  }
  EXPECT_LE(renewing.most, kVisitsOfOnePutMax);
  EXPECT_LE(tree.Statistics().chain_buffers, 2 * kSnapshots);
  for (const SnapshotRef snapshot : snapshots) tree.CloseSnapshot(snapshot);
  tree.ExpectHolds({{"key", "999"}});
  tree.ExpectNothingLeaked();
}

// Goal: in any state of the tree one call of Maintain visits a bounded number of buffers and
// blocks, and its lists are bounded.
// Method: a tree of many blocks is deleted at once, with and without a snapshot that keeps it.
TEST_P(Reclaiming, MaintainIsBoundedInAnyState) {
  constexpr uint32_t kKeys = 6000;
  for (const bool pinned : {false, true}) {
    SCOPED_TRACE(pinned ? "pinned" : "not pinned");
    TestTree tree;
    for (uint32_t i = 0; i < kKeys; ++i) {
      tree.Put("key" + std::to_string(i), std::string(i % 4 == 0 ? 20 : 600, 'v'));
    }
    tree.MaintainAll();
    SnapshotRef snapshot;
    if (pinned) snapshot = tree.OpenSnapshot();
    // Some of the blocks and buffers are older than the snapshot, some younger.
    for (uint32_t i = 0; i < kKeys; i += 3) {
      tree.Put("key" + std::to_string(i), std::string(600, 'w'));
    }
    ASSERT_EQ(tree.DeleteRange(Range::All()).integer, kKeys);
    Work work;
    bool more = true;
    const auto maintain = [&] {
      Count(tree, &work, [&] { more = tree.engine().Maintain(TestTree::kNowMs); });
      EXPECT_LE(WaitsOf(tree), 8 * Upkeep::kPiecesMaintain);
    };
    for (more = true; more;) maintain();
    if (pinned) {
      EXPECT_EQ(tree.Contents(snapshot).size(), kKeys);
      tree.CloseSnapshot(snapshot);
      for (more = true; more;) maintain();
    }
    EXPECT_LE(work.most, kVisitsOfMaintainMax);
    EXPECT_GT(work.calls, 4u);
    tree.ExpectHolds({});
    tree.ExpectNothingLeaked();
  }
}

// Goal: a tree that was deleted at once is freed from the beginning on, and needs no entry for each
// block meanwhile.
// Method: ten times as many blocks as nodes, small runs; when half of the memory is back there are
// still nodes to be marked.
TEST_P(Reclaiming, ADetachedTreeIsFreedWhileItIsWalked) {
  TestTree tree;
  // Long keys, so that the delete's own run marks a few of the nodes at most.
  for (uint32_t i = 0; i < 20'000; ++i) {
    tree.Put(std::to_string(i) + std::string(80, 'k'), std::string(600, 'v'));
  }
  tree.MaintainAll();
  const uint64_t full = tree.allocated_bytes();
  const uint64_t nodes = tree.Statistics().leaves;
  tree.DeleteRange(Range::All());
  ThreadState& thread = tree.core().threads.Take();
  const auto halved = [&] { return tree.allocated_bytes() < full / 2; };
  for (bool more = true; more && !halved();) {
    more = tree.core().reclaimer.Run(thread, 16);
    EXPECT_LE(WaitsOf(tree), nodes / 2);
  }
  EXPECT_TRUE(halved());
  EXPECT_TRUE(tree.core().reclaimer.detached());
  tree.core().threads.Give(thread);
  tree.ExpectHolds({});
  tree.ExpectNothingLeaked();
}

// Goal: Maintain walks a very long chain of one leaf in pieces, since one call cannot walk it all.
TEST_P(Reclaiming, MaintainWalksALongChainInPieces) {
  TestTree tree(kMergesAlways);
  HeldFloor reader(tree.core());
  reader.Hold();
  CountPuts(tree, 10 * Upkeep::kPiecesMaintain);
  reader.LetGo();
  Work work;
  for (bool more = true; more;) {
    Count(tree, &work, [&] { more = tree.engine().Maintain(TestTree::kNowMs); });
  }
  EXPECT_LE(work.most, kVisitsOfMaintainMax);
  EXPECT_GE(work.calls, 10u);
  EXPECT_EQ(tree.Statistics().chain_buffers, 0u);
  tree.ExpectNothingLeaked();
}

// Goal: when a snapshot goes the pieces kept for it are freed, also those of nodes that have left
// the tree meanwhile, in whatever order several snapshots go.
// Method: three snapshots with changes of shape between them, closed in every order; each state is
// read until its snapshot goes.
TEST_P(Reclaiming, SnapshotsGoInAnyOrder) {
  constexpr uint32_t kKeys = 400;
  std::vector<int> order{0, 1, 2};
  do {
    TestTree tree;
    std::vector<SnapshotRef> snapshots;
    std::vector<State> states;
    State state;
    for (int round = 0; round < 3; ++round) {
      for (uint32_t i = 0; i < kKeys; ++i) {
        const std::string key = "key" + std::to_string(i * 7 % kKeys);
        const std::string value(i % 5 == 0 ? 900 : 30, static_cast<char>('a' + round));
        tree.Put(key, value);
        state[key] = value;
      }
      snapshots.push_back(tree.OpenSnapshot());
      states.push_back(state);
      for (uint32_t i = 0; i < kKeys; i += round == 1 ? 1 : 2) {
        const std::string key = "key" + std::to_string(i);
        tree.Delete(key);
        state.erase(key);
      }
    }
    tree.DeleteRange(Range::All());
    std::vector<bool> is_open(3, true);
    for (const int next : order) {
      tree.MaintainAll();
      for (size_t i = 0; i < 3; ++i) {
        if (!is_open[i]) continue;
        ASSERT_EQ(tree.Contents(snapshots[i]), states[i]);
      }
      is_open[static_cast<size_t>(next)] = false;
      tree.CloseSnapshot(snapshots[static_cast<size_t>(next)]);
    }
    tree.ExpectHolds({});
    tree.ExpectNothingLeaked();
  } while (std::ranges::next_permutation(order).found);
}

// Goal: the lists of pieces that wait, or are kept for snapshots, are charged to the budget.
// Method: as many pieces as keys, each of which a snapshot keeps.
TEST_P(Reclaiming, ListsOfWhatIsKeptAreCharged) {
  constexpr uint32_t kKeys = 3000;
  TestTree tree;
  for (uint32_t i = 0; i < kKeys; ++i) tree.Put("key" + std::to_string(i), std::string(600, 'v'));
  tree.MaintainAll();
  const auto lists = [&] {
    return tree.core().reclaimer.held_bytes() + tree.core().snapshots.held_bytes();
  };
  const uint64_t before = lists();
  const SnapshotRef snapshot = tree.OpenSnapshot();
  tree.DeleteRange(Range::All());
  tree.MaintainAll();
  const uint64_t kept = tree.core().reclaimer.Statistics().kept;
  EXPECT_GE(kept, 100u);
  EXPECT_GE(lists(), before + kept * sizeof(Retired));
  EXPECT_EQ(tree.engine().Statistics().bytes,
            tree.core().arena.Statistics().held_bytes + tree.core().table.held_bytes() + lists());
  tree.CloseSnapshot(snapshot);
  tree.ExpectNothingLeaked();
  EXPECT_LT(lists(), before + kept * sizeof(Retired));
}

INSTANTIATE_TEST_SUITE_P(Layouts, Reclaiming, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
