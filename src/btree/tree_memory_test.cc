// Tests the memory of the tree: allocations that fail, garbage that is freed, the cost of
// snapshots.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "btree/testing/tree_test_changes.h"

namespace skep::btree {
namespace {

using changes::kAtomic;
using changes::Kept;
using changes::kUnordered;

void PutBigValues(Batch& batch, uint32_t step) {
  for (const uint32_t key : {11u, 12u, kMiddle}) {
    batch.Put(Kept(batch, TestKey(key)),
              Kept(batch, std::string(5000, static_cast<char>('a' + step % 26))));
  }
}
void PutLongKeys(Batch& batch, uint32_t step) {
  for (uint32_t i = 0; i < 12; ++i) {
    const std::string key = TestKey(kMiddle) + std::string(900, 'x') + std::to_string(step + i);
    batch.Put(Kept(batch, key), Kept(batch, std::string(100 * i, 'v')));
  }
}

void PutPieces(Batch& batch, uint32_t) {
  batch.Put(Kept(batch, TestKey(11)), Kept(batch, std::string(kContiguousMax + 1, 'p')));
}

// Changes that tree_test_changes.h does not have: values and keys outside the nodes.
constexpr TreeChange kOutside[] = {
    {"BigValues", 200, kUnordered, PutBigValues, [](const Effect&) { return true; }},
    {"BigValuesAtomic", 200, kAtomic, PutBigValues, [](const Effect&) { return true; }},
    {"Pieces", 20, kUnordered, PutPieces, [](const Effect&) { return true; }},
    {"PiecesAtomic", 20, kAtomic, PutPieces, [](const Effect&) { return true; }},
    {"LongKeys", 200, kUnordered, PutLongKeys, [](const Effect& e) { return e.leaves > 0; }},
    {"LongKeysAtomic", 200, kAtomic, PutLongKeys, [](const Effect& e) { return e.leaves > 0; }},
};

std::vector<TreeChange> AllChanges() {
  std::vector<TreeChange> all(std::begin(changes::kAll), std::end(changes::kAll));
  all.insert(all.end(), std::begin(kOutside), std::end(kOutside));
  return all;
}

// How many allocations `run` makes.
template <typename Run>
uint64_t AllocationsOf(Arena& arena, Run run) {
  constexpr uint64_t kMany = 4096;
  arena.FailAt(kMany);
  run();
  Arena::Cache cache;
  uint64_t left = 1;
  for (;; ++left) {
    const ArenaAddress at = arena.Allocate(cache, 64, Arena::Limit::kObey);
    if (!at) break;
    arena.Free(cache, at, 64);
  }
  arena.Flush(cache);
  return kMany - left;
}

class FailingAllocation : public OnEachLayoutWith<TreeChange> {
 protected:
  // Does the change while its n-th allocation fails, then again. Returns how many requests were
  // refused.
  static uint32_t FailAt(uint64_t n, bool with_snapshot) {
    Scene scene(GetCase());
    scene.tree().MaintainAll();
    SnapshotRef snapshot;
    if (with_snapshot) snapshot = scene.tree().OpenSnapshot();
    Batch batch = scene.NextBatch();
    scene.tree().core().arena.FailAt(n);
    scene.Run(batch);
    scene.tree().core().arena.FailAt(0);
    uint32_t refused = 0;
    for (uint32_t i = 0; i < batch.size(); ++i) {
      if (batch.outcome(i).verdict != Verdict::kRefused) continue;
      ++refused;
      EXPECT_EQ(batch.outcome(i).status.code(), Code::kOutOfMemory);
    }
    EXPECT_STREQ(scene.tree().engine().Verify(), nullptr);
    scene.tree().MaintainAll();
    const State now = scene.tree().Contents();
    EXPECT_EQ(now, History(scene.history()).Replay());
    scene.Run(batch);
    if (with_snapshot) scene.tree().CloseSnapshot(snapshot);
    scene.End();
    return refused;
  }
};

// Goal: whichever allocation of a change fails, each request is done or refused as a whole; the
// tree goes on, and nothing is lost.
// Method: every allocation of every change fails once; with a snapshot the old nodes cannot be
// freed to make room, until the snapshot is given up.
TEST_P(FailingAllocation, IsDoneOrRefused) {
  Scene scene(GetCase());
  const uint64_t allocations = AllocationsOf(scene.tree().core().arena, [&] { scene.Step(); });
  uint32_t refused = 0;
  for (uint64_t n = 1; n <= allocations && !HasFailure(); ++n) {
    SCOPED_TRACE(testing::Message() << "allocation " << n << " of " << allocations);
    refused += FailAt(n, false);
    FailAt(n, true);
  }
  if (allocations > 0) {
    EXPECT_GT(refused, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FailingAllocation, EachLayoutWith(AllChanges()),
                         LayoutAndCaseName<TreeChange>);

class FullTree : public OnEachLayout {};

// Goal: at the memory limit the parts of an atomic batch that store something are refused, each for
// itself, and no others: deletes never are.
// Method: a full tree; parts of both kinds, and one that stores and deletes. Also without parts.
TEST_P(FullTree, PartsThatStoreAreRefusedAndNoOthers) {
  TestTree tree(kSmallNodes, 4 << 20);
  State state;
  for (uint32_t i = 0; tree.Put(TestKey(i), TestValue("v")).verdict == Verdict::kDone; ++i) {
    state[TestKey(i)] = TestValue("v");
  }
  const std::string big(1 << 20, 'b');
  Batch parts(kAtomic);
  for (uint32_t i = 0; i < 4; ++i) {
    parts.BeginPart();
    if (i % 2 == 1) parts.Put("big", big);
    parts.Delete(Kept(parts, TestKey(i)));
  }
  tree.Execute(parts);
  EXPECT_TRUE(parts.applied());
  const Verdict verdicts[] = {Verdict::kDone, Verdict::kRefused, Verdict::kAborted,
                              Verdict::kDone, Verdict::kRefused, Verdict::kAborted};
  for (uint32_t thread = 0; thread < parts.size(); ++thread) {
    EXPECT_EQ(parts.outcome(thread).verdict, verdicts[thread]) << thread;
  }
  EXPECT_EQ(parts.outcome(1).status.code(), Code::kOutOfMemory);
  for (const uint32_t i : {0u, 2u}) state.erase(TestKey(i));
  Batch whole(kAtomic);
  whole.Delete(Kept(whole, TestKey(1)));
  whole.Put("big", big);
  tree.Execute(whole);
  EXPECT_FALSE(whole.applied());
  EXPECT_EQ(whole.outcome(0).verdict, Verdict::kAborted);
  EXPECT_EQ(whole.outcome(1).status.code(), Code::kOutOfMemory);
  tree.ExpectHolds(state);
  tree.ExpectNothingLeaked();
}

class TreeMemory : public OnEachLayoutWith<BtreeOptions> {
 protected:
  // Short and long keys with small and big values.
  static State Assorted(uint32_t count) {
    State state;
    for (uint32_t i = 0; i < count; ++i) {
      std::string key = TestKey(i);
      if (i % 7 == 0) key += std::string(1000, 'x') + std::to_string(i);
      state[key] = std::string(i % 5 == 0 ? 3000 : i % 100, 'v');
    }
    return state;
  }
};

// Goal: deleted keys give all their bytes back, by points and by range, also if a snapshot held
// them.
// Method: the bytes of an empty tree before and after. The last leaf may keep a delete marker for
// want of a merge, so by points the bound is one node.
TEST_P(TreeMemory, ADeletedTreeIsOneEmptyLeaf) {
  const uint64_t empty = TestTree::EmptyBytes(GetCase());
  for (const bool by_range : {false, true}) {
    SCOPED_TRACE(by_range ? "by range" : "by points");
    TestTree tree(GetCase());
    const State state = Assorted(2000);
    for (const auto& [key, value] : state) tree.Put(key, value);
    tree.ExpectHolds(state);
    const SnapshotRef snapshot = tree.OpenSnapshot();
    if (by_range) {
      ASSERT_EQ(tree.DeleteRange(Range::All()).integer, static_cast<int64_t>(state.size()));
    } else {
      for (const auto& [key, value] : state) ASSERT_EQ(tree.Delete(key).verdict, Verdict::kDone);
    }
    ASSERT_EQ(tree.Contents(snapshot), state);
    tree.CloseSnapshot(snapshot);
    tree.ExpectHolds({});
    tree.ExpectNothingLeaked();
    EXPECT_EQ(tree.Statistics().leaves, 1u);
    EXPECT_EQ(tree.Statistics().inner_nodes, 0u);
    if (by_range) {
      EXPECT_EQ(tree.allocated_bytes(), empty);
    } else {
      EXPECT_LE(tree.allocated_bytes(), GetCase().node_bytes);
    }
  }
}

// Goal: a deadline costs 8 bytes of its item, and the free bytes of nodes with them; an item
// without one pays nothing for those that have one.
// Method: the bytes in use of two trees with the same keys, the keys of one with deadlines.
TEST_P(TreeMemory, ADeadlineCostsFewBytes) {
  constexpr uint32_t kKeys = 20'000;
  // In small nodes, few items share the fixed bytes that a leaf of the layout for CPUs has.
  const bool is_shared_by_few =
      LayoutOfTest::current() == NodeLayout::kHeads && GetCase().node_bytes == 2048;
  const uint64_t bytes_max = is_shared_by_few ? 24 : 14;
  const auto bytes_with = [](uint64_t deadline_ms) {
    TestTree tree(GetCase());
    for (uint32_t i = 0; i < kKeys; ++i) {
      Batch batch;
      batch.Add({.op = Op::kPut,
                 .key = Kept(batch, TestKey(i)),
                 .value = "some value",
                 .other = {},
                 .deadline_ms = deadline_ms == 0 ? 0 : deadline_ms + i});
      tree.Execute(batch);
    }
    tree.MaintainAll();
    return tree.allocated_bytes();
  };
  const uint64_t without = bytes_with(0);
  const uint64_t with = bytes_with(2 * TestTree::kNowMs);
  std::printf("%.1f bytes an item more\n", (double(with) - double(without)) / kKeys);
  EXPECT_GE(with, without + 7 * kKeys);
  EXPECT_LE(with, without + bytes_max * kKeys);
}

// Goal: a version whose difference from its leaf's is too large for a delta is not lost: the leaf
// is merged first.
// Method: the counter skips as far as a delta reaches, before a point write, a delete and an atomic
// batch on the same leaves, and a little less, so that the last delta that fits is used too.
TEST_P(TreeMemory, DeltasOfVersionsDoNotOverflow) {
  const uint64_t reach = 1 + VisitLayoutOfTest([]<class Layout>() { return Layout::kDeltaMax; });
  for (const uint64_t skip : {reach, reach - 3, uint64_t{1} << 50}) {
    TestTree tree(GetCase());
    History history;
    const auto run = [&](Batch& batch) { history.Note(batch, tree.Execute(batch)); };
    Batch fill;
    for (uint32_t i = 0; i < 60; ++i) {
      fill.Put(Kept(fill, TestKey(i)), Kept(fill, TestValue("old")));
    }
    run(fill);
    const SnapshotRef snapshot = tree.OpenSnapshot();
    for (const Batch::Kind kind : {kUnordered, kAtomic, kUnordered}) {
      tree.core().versions.StartAfter(tree.core().versions.last_drawn() + skip);
      for (uint32_t i = 0; i < 4; ++i) {
        Batch batch(kind);
        batch.Put(Kept(batch, TestKey(i)), Kept(batch, TestValue("new")), Request::kReturnPrevious);
        batch.Delete(Kept(batch, TestKey(30 + i)), Request::kReturnPrevious);
        batch.Put(Kept(batch, TestKey(50 + i)), Kept(batch, TestValue("newer")));
        run(batch);
        Batch scan;
        scan.Scan(Range::All());
        run(scan);
      }
    }
    Batch old;
    old.set_snapshot(snapshot);
    old.Scan(Range::All());
    run(old);
    tree.CloseSnapshot(snapshot);
    const State state = history.Replay();
    EXPECT_GT(tree.core().versions.last_drawn(), 3 * skip);
    tree.ExpectHolds(state);
    tree.ExpectNothingLeaked();
  }
}

constexpr BtreeOptions kNodes[] = {kSmallNodes, {.node_bytes = 2048, .log_bytes = 0}, {}};

std::string NodesName(const testing::TestParamInfo<LayoutAndCase<BtreeOptions>>& info) {
  const auto& [layout, options] = info.param;
  return std::to_string(options.node_bytes) + "_" + std::to_string(options.log_bytes) + "_" +
         NameOf(layout);
}

INSTANTIATE_TEST_SUITE_P(Nodes, TreeMemory, EachLayoutWith(kNodes), NodesName);

class HeldSnapshots : public OnEachLayout {};

// Goal: a snapshot costs one copy of the data that changes after it, not one for each change.
// Method: the bytes beyond the data's own, after each of 20 rounds of updates of all keys, each in
// an order of its own; for one snapshot, and for two of which the second is younger.
TEST_P(HeldSnapshots, CostOneCopyOfTheData) {
  constexpr uint32_t kKeys = 5000;
  for (const uint32_t snapshots_max : {1u, 2u}) {
    TestTree tree(BtreeOptions{});
    std::mt19937_64 rng(1);
    std::vector<uint32_t> keys(kKeys);
    for (uint32_t i = 0; i < kKeys; ++i) keys[i] = i;
    const auto update = [&](char c) {
      std::ranges::shuffle(keys, rng);
      for (const uint32_t key : keys) tree.Put("key" + std::to_string(key), std::string(64, c));
    };
    update('a');
    tree.MaintainAll();
    const uint64_t data = tree.allocated_bytes();
    std::vector<SnapshotRef> snapshots;
    for (int round = 0; round < 20; ++round) {
      if (round % 10 == 0 && snapshots.size() < snapshots_max) {
        snapshots.push_back(tree.OpenSnapshot());
      }
      update(static_cast<char>('b' + round));
      EXPECT_LE(tree.allocated_bytes() - data, data * 12 / 10 * snapshots.size()) << round;
    }
    for (const SnapshotRef snapshot : snapshots) tree.CloseSnapshot(snapshot);
    tree.ExpectNothingLeaked();
    EXPECT_LE(tree.allocated_bytes(), data * 12 / 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, FullTree, EachLayout(), LayoutName);

INSTANTIATE_TEST_SUITE_P(Layouts, HeldSnapshots, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
