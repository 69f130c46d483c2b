// Tests the merges of logs that scans go through (log_merger.h).
#include "btree/log_merger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/sanitized.h"
#include "btree/heads/head_layout_search.h"
#include "btree/reader.h"
#include "btree/testing/tree_test_changes.h"

namespace skep::btree {
namespace {

using changes::Kept;

constexpr BtreeOptions kUsualNodes{};

// The items in the logs of all leaves, and in those of leaves that a merge does not leave out:
// their items fit into one node, and they are not so empty that a later erase joins them.
struct Logs {
  uint64_t items = 0;
  uint64_t mergeable = 0;
};
// Nothing else runs.
Logs LogsOf(TestTree& tree) {
  return VisitLayoutOfTest([&]<class Layout>() {
    Core& core = tree.core();
    TakenThreadState thread(core.threads);
    core.versions.EnterEpoch(thread);
    Logs logs;
    const SplitJoin<Layout> split_join(core);
    LeafIterator<Layout> leaves(core, Reader<Layout>::kNewest, Reader<Layout>::kNoTime);
    for (leaves.Seek("");; leaves.Next()) {
      const typename Layout::Leaf& leaf = leaves.leaf();
      std::vector<typename Layout::LeafItem> items;
      split_join.Gather(leaf.node(), leaf.used(), &items);
      const auto fences = Layout::FencesOf(core.codec, leaf.node());
      logs.items += leaf.log_items();
      const Geometry& geometry = core.codec.geometry;
      const bool is_sparse = Layout::LeafBytes(core.codec, items, fences) <
                             Layout::FixedBytes(geometry) + geometry.underflow_bytes();
      const bool is_root = leaf.node() == core.Node(core.table.Find(core.root));
      if (Layout::FitsLeaf(core.codec, items, fences) && (!is_sparse || is_root)) {
        logs.mergeable += leaf.log_items();
      }
      if (leaves.unbounded()) break;
    }
    core.versions.LeaveEpoch(thread);
    return logs;
  });
}

uint64_t Merges(TestTree& tree) { return tree.core().log_merges.load(); }

void ScanAll(TestTree& tree) {
  Batch batch;
  batch.Scan(Range::All());
  tree.Execute(batch);
}
void ScanAll(TestTree& tree, uint32_t times) {
  for (uint32_t i = 0; i < times; ++i) ScanAll(tree);
}

// Puts `count` keys in a random order, some of them deleted again; one value in `large_every` lies
// outside its node.
State Fill(TestTree& tree, uint32_t count, uint32_t large_every = UINT32_MAX) {
  std::mt19937 rng(7);
  std::vector<uint32_t> numbers(count);
  for (uint32_t i = 0; i < count; ++i) numbers[i] = i;
  std::ranges::shuffle(numbers, rng);
  State state;
  for (const uint32_t number : numbers) {
    const std::string key = std::to_string(100'000 + number);
    const std::string value = BytesOfSize(number % large_every == 1 ? 3000 : 8, number);
    tree.Put(key, value);
    state[key] = value;
    if (number % 50 == 0) tree.Delete(key);
    if (number % 50 == 0) state.erase(key);
  }
  return state;
}

// A tree of one leaf with so many log items that the last of kScans scans samples the leaf.
constexpr uint32_t kLogged = 10;
constexpr uint32_t kScans = (ScannedLeaves::kItemsASample + kLogged - 1) / kLogged;
State PutLogged(TestTree& tree) {
  State state;
  for (uint32_t i = 0; i < kLogged; ++i) {
    state[std::to_string(i)] = "value";
    tree.Put(std::to_string(i), "value");
  }
  return state;
}

class LogMerges : public OnEachLayout {};

// Goal: there is one merge for so many log items that scans have passed, not one more, and in the
// end no leaf has a log. No version is drawn, and the items stay what they were.
// Method: scans of everything, each of which passes the items of all logs.
TEST_P(LogMerges, AreOneForSoManyItemsThatScansPass) {
  for (const bool multi_version : {true, false}) {
    BtreeOptions options = kUsualNodes;
    options.multi_version = multi_version;
    for (const uint32_t large_every : {UINT32_MAX, 40u}) {
      TestTree tree(options);
      const State state = Fill(tree, kSanitized ? 600 : 1200, large_every);
      const Version drawn = tree.core().versions.last_drawn();
      uint64_t passed = 0;
      const bool all_fit = LogsOf(tree).mergeable == LogsOf(tree).items;
      ASSERT_GT(LogsOf(tree).mergeable, 0u);
      for (Logs logs; (logs = LogsOf(tree)).mergeable > 0;) {
        passed += logs.items;
        ScanAll(tree);
        ASSERT_LE(Merges(tree), passed / ScannedLeaves::kItemsASample);
        // A scan counts one item for each key, and the log may have two of a key.
        if (all_fit) {
          ASSERT_GE(Merges(tree) + 1, passed * 4 / 5 / ScannedLeaves::kItemsASample);
        }
        ASSERT_LT(passed, 20 * ScannedLeaves::kItemsASample * tree.core().leaves.load());
      }
      EXPECT_LE(Merges(tree), tree.core().leaves.load());
      const uint64_t merges = Merges(tree);
      ScanAll(tree, 200);
      EXPECT_EQ(Merges(tree), merges);
      EXPECT_EQ(tree.core().versions.last_drawn(), drawn);
      tree.ExpectHolds(state);
      tree.ExpectNothingLeaked();
    }
  }
}

// Goal: leaves take no more memory when their logs were merged because of scans.
TEST_P(LogMerges, TakeNoMemory) {
  TestTree tree(kUsualNodes);
  Fill(tree, 3000);
  tree.MaintainAll();
  const uint64_t before = tree.allocated_bytes();
  ScanAll(tree, 500);
  tree.MaintainAll();
  EXPECT_GT(Merges(tree), 3u);
  EXPECT_LE(tree.allocated_bytes(), before);
}

// Goal: short scans and those in reverse are counted by the log items that they pass.
TEST_P(LogMerges, FollowShortAndReverseScans) {
  for (const bool reverse : {false, true}) {
    TestTree tree(kUsualNodes);
    Fill(tree, 1200);
    std::mt19937 rng(3);
    for (uint32_t i = 0; i < 5000 && (i % 100 != 0 || LogsOf(tree).mergeable > 0); ++i) {
      Batch batch;
      const std::string from = std::to_string(100'000 + rng() % 1200);
      Range range = Range::From(from);
      if (reverse) range = Range::Between("", from);
      batch.Scan(range, {.limit = 100, .reverse = reverse});
      tree.Execute(batch);
    }
    EXPECT_LT(LogsOf(tree).mergeable, 20u);
    EXPECT_GT(Merges(tree), 0u);
  }
}

// Goal: while a snapshot is pinned no leaf is merged, and nothing is kept for it.
TEST_P(LogMerges, WaitForPinnedSnapshots) {
  TestTree tree(kUsualNodes);
  const State state = Fill(tree, 1000);
  const SnapshotRef snapshot = tree.OpenSnapshot();
  tree.MaintainAll();
  ScanAll(tree, 100);
  EXPECT_EQ(Merges(tree), 0u);
  EXPECT_EQ(tree.Statistics().chain_buffers, 0u);
  EXPECT_EQ(tree.Contents(snapshot), state);
  tree.CloseSnapshot(snapshot);
  ScanAll(tree, 100);
  EXPECT_GT(Merges(tree), 0u);
  tree.ExpectHolds(state);
}

// Goal: a leaf for which a write waits at the turnstile is left to that write.
TEST_P(LogMerges, LeaveALeafToAWriteThatHasATurn) {
  TestTree tree;
  PutLogged(tree);
  Turnstile& turnstile = tree.core().turnstiles.Of(tree.core().root.lid());
  turnstile.Draw();
  ScanAll(tree, 2 * kScans);
  EXPECT_EQ(Merges(tree), 0u);
  turnstile.Serve();
  ScanAll(tree, kScans);
  EXPECT_EQ(Merges(tree), 1u);
}

// Goal: a scan that samples leaves never waits for a stop of the writers.
TEST_P(LogMerges, DoNotWaitForAStopOfTheWriters) {
  TestTree tree(kUsualNodes);
  const Stage stage(tree.core());
  const State state = Fill(tree, 3000);
  Actor deleter(SyncPoint::kDetachStopped, 1,
                [&] { tree.DeleteRange(Range::Between("100500", "102500")); });
  ASSERT_TRUE(deleter.WaitUntilStopped());
  ScanAll(tree, 50);
  EXPECT_EQ(Merges(tree), 0u);
  deleter.Finish();
  State left = state;
  left.erase(left.lower_bound("100500"), left.lower_bound("102500"));
  tree.ExpectHolds(left);
  tree.ExpectNothingLeaked();
}

// Goal: a stop of the writers waits for the merge of a leaf that has begun (P6 of versions.h), and
// nothing of what it deletes comes back.
TEST_P(LogMerges, HoldUpAStopOfTheWriters) {
  for (const SyncPoint point : {SyncPoint::kWriterFoundLeaf, SyncPoint::kMergeBuilt,
                                SyncPoint::kMergeMapped, SyncPoint::kStructureMapped}) {
    SCOPED_TRACE(testing::Message() << "point " << static_cast<int>(point));
    TestTree tree(kUsualNodes);
    const Stage stage(tree.core());
    State state = Fill(tree, 3000);
    Actor scanner(point, 1, [&] { ScanAll(tree, 50); });
    ASSERT_TRUE(scanner.WaitUntilStopped());
    const uint64_t detached = stage.reached(SyncPoint::kDetachStopped);
    Actor deleter([&] { tree.DeleteRange(Range::Between("100010", "102990")); });
    deleter.LetRun();
    EXPECT_EQ(stage.reached(SyncPoint::kDetachStopped), detached);
    scanner.Finish();
    deleter.Finish();
    EXPECT_EQ(stage.reached(SyncPoint::kDetachStopped), detached + 1);
    state.erase(state.lower_bound("100010"), state.lower_bound("102990"));
    tree.ExpectHolds(state);
    tree.ExpectNothingLeaked();
  }
}

// Goal: leaves that lose their keys are joined, also if scans come between the deletes.
TEST_P(LogMerges, LeaveSparseLeavesToBeJoined) {
  TestTree tree(kUsualNodes);
  State state = Fill(tree, 3000);
  const uint64_t leaves = tree.core().leaves.load();
  std::vector<std::string> keys;
  for (const auto& [key, value] : state) keys.push_back(key);
  std::mt19937 rng(11);
  std::ranges::shuffle(keys, rng);
  const size_t deleted = keys.size() * 9 / 10;
  for (size_t i = 0; i < deleted; ++i) {
    tree.Delete(keys[i]);
    state.erase(keys[i]);
    if (i % 100 == 0) ScanAll(tree, 20);
  }
  EXPECT_LE(tree.core().leaves.load(), leaves / 2);
  tree.ExpectHolds(state);
}

// Goal: a merge that finds no memory is left out, and the scan is answered.
TEST_P(LogMerges, AreLeftOutWithoutMemory) {
  TestTree tree;
  const State state = PutLogged(tree);
  tree.core().arena.FailAt(1);
  ScanAll(tree, kScans);
  EXPECT_EQ(Merges(tree), 0u);
  EXPECT_EQ(tree.Contents(), state);
  ScanAll(tree, kScans);
  EXPECT_EQ(Merges(tree), 1u);
  tree.ExpectHolds(state);
  tree.ExpectNothingLeaked();
}

// Goal: a merged leaf has the deadlines of its items.
TEST_P(LogMerges, KeepDeadlines) {
  TestTree tree;
  PutLogged(tree);
  constexpr uint64_t kDeadlineMs = TestTree::kNowMs + 1000;
  tree.Do({.op = Op::kPut, .key = "expires", .value = "v", .deadline_ms = kDeadlineMs});
  ScanAll(tree, kScans);
  EXPECT_EQ(Merges(tree), 1u);
  EXPECT_EQ(LogsOf(tree).items, 0u);
  EXPECT_EQ(tree.engine().Statistics().items, kLogged + 1);
  while (tree.engine().Maintain(kDeadlineMs + 100'000)) {
  }
  EXPECT_EQ(tree.engine().Statistics().items, kLogged);
}

// Goal: wherever a merge stands, readers pass it, and a write of its leaf takes effect: if the leaf
// is not locked yet the merge gives up; else the write comes after it.
// Method: the merge is stopped at each of its steps.
TEST_P(LogMerges, AndAWriteOfTheLeaf) {
  constexpr SyncPoint kPoints[] = {SyncPoint::kWriterFoundLeaf, SyncPoint::kMergeBuilt,
                                   SyncPoint::kMergeMapped, SyncPoint::kStructureMapped};
  for (const SyncPoint point : kPoints) {
    for (const bool deletes_all : {false, true}) {
      SCOPED_TRACE(testing::Message() << "point " << static_cast<int>(point) << deletes_all);
      TestTree tree;
      const Stage stage(tree.core());
      State state = PutLogged(tree);
      Actor scanner(point, 1, [&] { ScanAll(tree, kScans); });
      ASSERT_TRUE(scanner.WaitUntilStopped());
      EXPECT_EQ(tree.Contents(), state);
      EXPECT_EQ(tree.Get("3"), "value");
      Actor writer([&] {
        Batch batch;
        deletes_all ? batch.DeleteAll() : batch.Put("3", "changed");
        tree.Execute(batch);
      });
      // A put waits for nobody before the leaf is locked.
      const bool passes = point == SyncPoint::kWriterFoundLeaf && !deletes_all;
      passes ? writer.Finish() : writer.LetRun();
      EXPECT_EQ(tree.Contents().size(), writer.finished() && deletes_all ? 0 : kLogged);
      scanner.Finish();
      writer.Finish();
      if (deletes_all) {
        state.clear();
      } else {
        state["3"] = "changed";
      }
      if (!deletes_all) {
        EXPECT_EQ(Merges(tree), point == SyncPoint::kWriterFoundLeaf ? 0u : 1u);
      }
      tree.ExpectHolds(state);
      tree.ExpectNothingLeaked();
    }
  }
}

// Goal: whatever is written beside scans and their merges, every result is that of one sequence in
// the order of versions, and nothing is left over.
// Method: threads that write, delete and scan a few leaves; all results are replayed.
TEST_P(LogMerges, AndWritesAreOneSequence) {
  constexpr int kOperations = kSanitized ? 500 : 2500;
  constexpr uint64_t kKeys = 400;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  TestTree tree;
  std::vector<History> histories(4);
  {
    std::vector<std::jthread> threads;
    for (uint64_t number = 0; number < histories.size(); ++number) {
      threads.emplace_back([&, number] {
        SeededRandom random(seed + number);
        for (int i = 0; i < kOperations * RoundsOfTests(); ++i) {
          Batch batch;
          const auto key = [&] { return Kept(batch, TestKey(uint32_t(random.Below(kKeys)))); };
          const std::string value = std::to_string(number) + "." + std::to_string(i);
          if (number % 2 == 0) {
            batch.Scan(Range::From(random.Chance(1, 2) ? key() : std::string_view()),
                       {.limit = uint32_t(1 + random.Below(kKeys))});
          } else if (random.Chance(1, 100)) {
            const std::string_view lo = key();
            batch.DeleteRange(Range::Between(lo, Kept(batch, std::string(lo) + "~")), 20);
          } else if (random.Chance(1, 4)) {
            batch.Delete(key(), Request::kReturnPrevious);
          } else {
            batch.Put(key(), Kept(batch, value), Request::kReturnPrevious);
          }
          const Version released = tree.engine().gate().released();
          const Version ticket = tree.Execute(batch);
          histories[number].Note(batch, ticket, released);
        }
      });
    }
  }
  History all;
  for (const History& history : histories) all.Join(history);
  const State state = all.Replay();
  ASSERT_FALSE(HasFailure());
  tree.ExpectHolds(state);
  while (LogsOf(tree).mergeable > 0) ScanAll(tree);
  EXPECT_GT(Merges(tree), 0u);
  tree.ExpectHolds(state);
  tree.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Layouts, LogMerges, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
