// Tests where parts of the tree meet: outside blocks and splits, hints and reclamation, counters
// and sampling, memory and snapshots. Each test fixes one interleaving and looks at one promise.
#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "btree/reader.h"
#include "btree/testing/tree_test_changes.h"

namespace skep::btree {
namespace {

using changes::kAtomic;
using changes::Kept;
using changes::kUnordered;

// A key whose order is that of `number`.
std::string NumberedKey(std::string_view prefix, uint32_t number) {
  char text[16];
  std::snprintf(text, sizeof text, "%06u", number);
  return std::string(prefix) + text;
}

void Fill(TestTree& tree, const State& state) {
  Batch batch;
  for (const auto& [key, value] : state) batch.Put(key, value);
  tree.Execute(batch);
}

State TestKeys(uint32_t count) {
  State state;
  for (uint32_t i = 0; i < count; ++i) state[TestKey(i)] = TestValue("old");
  return state;
}

class AtomicBatches : public OnEachLayout {};

// Goal: an atomic batch stores its keys by what the leaf holds under the lock, also if the batch
// has split the leaf since it first looked.
// Method: the leaf knows a key with an outside block only as a delete marker, which the split drops
// with the block. Then freed blocks are taken again, by keys of the same size.
TEST_P(AtomicBatches, DoNotCarryOverBlocksThatASplitDropped) {
  TestTree tree(BtreeOptions{});
  State state;
  for (uint32_t i = 0; i < 15; ++i) state[NumberedKey("a", i)] = std::string(60, 'x');
  const std::string long_key = "m" + std::string(599, 'L');
  tree.Put(long_key, "old");
  Fill(tree, state);
  tree.Delete(long_key);

  Batch batch(kAtomic);
  batch.Count(Range::Between("zz", "zzz"));
  const auto put = [&](const std::string& key, const std::string& value) {
    batch.Put(Kept(batch, key), Kept(batch, value));
    state[key] = value;
  };
  put(long_key, "new");
  for (uint32_t i = 0; i < 140; ++i) put(NumberedKey("b", i), std::string(60, 'y'));
  tree.Execute(batch);
  EXPECT_TRUE(batch.applied());
  EXPECT_GT(tree.core().leaves.load(), 1u);

  tree.MaintainAll();
  State reuse;
  for (uint32_t i = 0; i < 50; ++i) reuse["q" + std::string(598, 'Q') + std::to_string(i)] = "z";
  Fill(tree, reuse);
  state.merge(reuse);
  tree.engine().gate().Wait(tree.core().versions.last_drawn());
  tree.ExpectHolds(state);
  tree.ExpectNothingLeaked();
}

// A way to a node that does not come from the root.
struct Shortcut {
  const char* name;
  void (*fill)(Batch& batch, Hint hint, std::string_view begin);  // `begin`: in the leaf before
};

constexpr Shortcut kShortcuts[] = {
    {"ReadByHint",
     [](Batch& batch, Hint hint, std::string_view) {
       batch.Add({.op = Op::kGet, .key = Kept(batch, TestKey(kMiddle)), .hint = hint});
     }},
    {"WriteByHint",
     [](Batch& batch, Hint hint, std::string_view) {
       batch.Add({.op = Op::kPut,
                  .flags = Request::kReturnPrevious,
                  .key = Kept(batch, TestKey(kMiddle)),
                  .value = Kept(batch, TestValue("hinted")),
                  .hint = hint});
     }},
    {"ScanBySibling",
     [](Batch& batch, Hint, std::string_view begin) {
       batch.Scan(Range::From(Kept(batch, std::string(begin))));
     }},
};

void PrintTo(const Shortcut& shortcut, std::ostream* os) { *os << shortcut.name; }

class DyingNodes : public OnEachLayoutWith<Shortcut> {
 protected:
  // Whether the arena may hand out this buffer.
  static bool IsFree(Arena& arena, ArenaAddress buffer, size_t bytes) {
    Arena::Cache cache;
    std::vector<ArenaAddress> taken;
    bool found = false;
    while (!found && taken.size() < 2000) {
      taken.push_back(arena.Allocate(cache, bytes, Arena::Limit::kObey));
      found = taken.back() == buffer;
    }
    for (const ArenaAddress at : taken) arena.Free(cache, at, bytes);
    arena.Flush(cache);
    return found;
  }
};

// Goal: a node that a reader has found in the page table is not freed under it, also if the node
// had begun to leave the tree before.
// Method: an older reader holds the node back while it dies; a younger one finds it by a hint, or
// by a sibling link that is late, and stands before its first look; then the older one leaves.
TEST_P(DyingNodes, StayUntilTheLastReaderHasLeft) {
  TestTree tree;
  Core& core = tree.core();
  const Stage stage(core);
  History history;
  const auto run = [&](Batch& batch) { history.Note(batch, tree.Execute(batch)); };
  Batch fill;
  for (uint32_t i = 0; i < 400; ++i) {
    fill.Put(Kept(fill, TestKey(i)), Kept(fill, TestValue("old")));
  }
  run(fill);
  tree.MaintainAll();

  const auto leaf_of = [&](std::string_view key, bool below) {
    return VisitLayoutOfTest([&]<class Layout>() {
      const Reader<Layout> reader(core);
      return below ? reader.FindBelow(key, Reader<Layout>::kNewest)
                   : reader.Find(key, Reader<Layout>::kNewest);
    });
  };
  const auto lower_of = [&](const LeafPlace& place) {
    Scratch scratch;
    const StoredKey lower = VisitLayoutOfTest(
        [&]<class Layout>() { return Layout::FencesOf(core.codec, place.node).lower; });
    return std::string(core.codec.Whole(lower, scratch));
  };
  const LeafPlace node = leaf_of(TestKey(kMiddle), false);
  const LeafPlace before = leaf_of(lower_of(node), true);

  Actor older(SyncPoint::kReaderInLeaf, 1, [&] { tree.Get(TestKey(0)); });
  ASSERT_TRUE(older.WaitUntilStopped());
  Batch split;
  for (uint32_t part = 0; part < 30; ++part) {
    split.Put(Kept(split, TestKeyBetween(kMiddle, part)), Kept(split, TestValue("split")));
  }
  run(split);
  tree.MaintainAll();
  const ArenaAddress buffer = core.table.Find(node.link);
  ASSERT_TRUE(buffer);
  const size_t bytes = core.Node(buffer)->buffer_bytes();
  ASSERT_TRUE(NodeWord{core.Node(buffer)->word.load()}.retired());
  core.Head(before.link)->right.store(node.link.bits);  // a late link

  Batch batch;
  GetCase().fill(batch, Hint{node.link.bits}, lower_of(before));
  Version ticket = 0;
  Actor younger(SyncPoint::kReaderAtHint, 1, [&] { ticket = tree.Execute(batch); });
  ASSERT_TRUE(younger.WaitUntilStopped());
  older.Finish();
  tree.MaintainAll();
  EXPECT_FALSE(IsFree(core.arena, buffer, bytes));
  younger.Finish();
  history.Note(batch, ticket);

  tree.MaintainAll();
  EXPECT_TRUE(IsFree(core.arena, buffer, bytes));
  const State state = history.Replay();
  tree.engine().gate().Wait(core.versions.last_drawn());
  tree.ExpectHolds(state);
  tree.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(All, DyingNodes, EachLayoutWith(kShortcuts), LayoutAndCaseName<Shortcut>);

// Goal: atomic batches that need the same leaf split at the same keys split it once; each is
// applied whole, and no leaf has an empty key range.
// Method: the first batch is stopped at each of its ways down, among them those between two splits;
// the second one runs as far as it can.
TEST_P(AtomicBatches, SplitAtTheSameKeysOnce) {
  const auto batch_of = [](char value) {
    Batch batch(kAtomic);
    for (uint32_t i = 0; i < 120; ++i) {
      batch.Put(Kept(batch, TestKeyBetween(kMiddle, i)), Kept(batch, std::string(60, value)),
                Request::kReturnPrevious);
    }
    return batch;
  };
  uint32_t stops = 0;
  for (uint32_t nth = 1;; ++nth) {
    SCOPED_TRACE(testing::Message() << "way down " << nth);
    TestTree tree;
    const Stage stage(tree.core());
    Batch first = batch_of('1');
    Batch second = batch_of('2');
    Version tickets[2] = {};
    Actor stopped(SyncPoint::kReaderAtRoot, nth, [&] { tickets[0] = tree.Execute(first); });
    if (!stopped.WaitUntilStopped()) break;
    ++stops;
    Actor other([&] { tickets[1] = tree.Execute(second); });
    other.LetRun();
    stopped.Finish();
    other.Finish();
    // If key ranges are wrong a scan may not end.
    ASSERT_STREQ(tree.engine().Verify(), nullptr);
    History history;
    history.Note(first, tickets[0]);
    history.Note(second, tickets[1]);
    const State state = history.Replay();
    ASSERT_EQ(state.size(), 120u);
    tree.ExpectHolds(state);
    tree.ExpectNothingLeaked();
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(stops, 10u);
}

class Sampling : public OnEachLayout {};

// Goal: sampling finds keys after most of the tree was deleted, each with the same chance.
// Method: few keys are left, far apart. The random numbers have a fixed seed.
TEST_P(Sampling, FindsWhatIsLeft) {
  TestTree tree(BtreeOptions{});
  State state;
  for (uint32_t i = 0; i < 20000; ++i) state[NumberedKey("k", i)] = "v";
  Fill(tree, state);
  std::map<std::string, uint32_t, std::less<>> seen;
  for (const uint32_t left : {100u, 9000u, 9001u, 19999u}) seen[NumberedKey("k", left)] = 0;
  Batch deletes;
  for (const auto& [key, value] : state) {
    if (!seen.contains(key)) deletes.Delete(key);
  }
  tree.Execute(deletes);
  tree.MaintainAll();

  constexpr uint32_t kDraws = 400;
  Batch samples;
  for (uint32_t i = 0; i < kDraws; ++i) samples.Sample(i);
  tree.Execute(samples);
  for (uint32_t i = 0; i < kDraws; ++i) {
    ASSERT_EQ(samples.outcome(i).verdict, Verdict::kDone) << i;
    ++seen.at(std::string(samples.items(i).front().key));
  }
  for (const auto& [key, times] : seen) {
    EXPECT_GT(times, kDraws / 8) << key;
    EXPECT_LT(times, kDraws / 2) << key;
  }
}

// Goal: a key that never leaves is found, whatever keys other threads add and delete.
// Method: a put is visible and not counted yet when another thread deletes its key: for a moment
// the counters say that the tree is empty.
TEST_P(Sampling, DoesNotTrustTheCounters) {
  TestTree tree;
  const Stage stage(tree.core());
  tree.Put("stays", "v");
  Actor putter(SyncPoint::kWriterPublished, 1, [&] { tree.Put("passes", "v"); });
  ASSERT_TRUE(putter.WaitUntilStopped());
  ASSERT_EQ(tree.Delete("passes").verdict, Verdict::kDone);
  ASSERT_EQ(tree.core().ItemCount(), 0u);
  Batch batch;
  batch.Sample(5);
  tree.Execute(batch);
  ASSERT_EQ(batch.outcome(0).verdict, Verdict::kDone);
  EXPECT_EQ(batch.items(0).front().key, "stays");
  putter.Finish();
  tree.ExpectHolds({{"stays", "v"}});
}

class CountingOfRangeDelete : public OnEachLayout {
 protected:
  static constexpr uint32_t kKeys = 400;

  static void DeleteAll(TestTree& tree) {
    Batch batch;
    batch.DeleteAll();
    tree.Execute(batch);
    EXPECT_EQ(batch.outcome(0).integer, kKeys);
  }
  // The delete's ways down until the keys are gone. The next one is for counting.
  static uint32_t WaysDownBeforeCounting() {
    TestTree tree;
    const Stage stage(tree.core());
    Fill(tree, TestKeys(kKeys));
    const uint64_t before = stage.reached(SyncPoint::kReaderAtRoot);
    Actor deleter(SyncPoint::kDetachMapped, 1, [&] { DeleteAll(tree); });
    EXPECT_TRUE(deleter.WaitUntilStopped());
    return static_cast<uint32_t>(stage.reached(SyncPoint::kReaderAtRoot) - before);
  }
};

// Goal: while a range delete counts the keys it has deleted, others write, their versions are
// released, and another range delete has its turn.
// Method: the range delete is stopped on its way to the first leaf that it counts.
TEST_P(CountingOfRangeDelete, HoldsUpNobody) {
  const uint32_t ways_down = WaysDownBeforeCounting();
  TestTree tree;
  const Stage stage(tree.core());
  Fill(tree, TestKeys(kKeys));
  Actor deleter(SyncPoint::kReaderAtRoot, ways_down + 1, [&] { DeleteAll(tree); });
  ASSERT_TRUE(deleter.WaitUntilStopped());
  ASSERT_EQ(stage.reached(SyncPoint::kDetachMapped), 1u);
  const Version put = tree.Put("one", "1").version;
  ASSERT_TRUE(tree.engine().gate().IsReleased(put));
  EXPECT_EQ(tree.DeleteRange(Range::Between("o", "p")).integer, 1);
  tree.Put("two", "2");
  EXPECT_EQ(tree.Contents(), (State{{"two", "2"}}));
  EXPECT_FALSE(deleter.finished());
  deleter.Finish();
  tree.ExpectHolds({{"two", "2"}});
  tree.ExpectNothingLeaked();
}

class RangeDeletes : public OnEachLayout {};

// Goal: a range delete with a limit that has to begin again looks for its end again.
// Method: its first attempt finds no memory. While it makes room, another thread deletes half of
// the range, so that the limit reaches further.
TEST_P(RangeDeletes, WithALimitFindTheirEndAnew) {
  TestTree tree;
  Core& core = tree.core();
  const Stage stage(core);
  Fill(tree, TestKeys(100));
  // Garbage to be freed, more than the other thread frees on its way.
  State garbage;
  for (uint32_t i = 0; i < 500; ++i) garbage[NumberedKey("g", i)] = std::string(3000, 'g');
  Fill(tree, garbage);
  const SnapshotRef snapshot = tree.OpenSnapshot();
  Fill(tree, garbage);
  tree.CloseSnapshot(snapshot);

  Batch batch;
  batch.DeleteRange(Range::Between("k", "l"), 55);
  Actor deleter(SyncPoint::kDetachStopped, 1, [&] { tree.Execute(batch); });
  ASSERT_TRUE(deleter.WaitUntilStopped());
  core.arena.FailAt(1);
  tree.engine().gate().CallWhenReleased(core.versions.last_drawn(), [&] {
    Batch deletes;
    for (uint32_t i = 10; i < 60; ++i) deletes.Delete(Kept(deletes, TestKey(i)));
    std::thread([&] { tree.Execute(deletes); }).join();
  });
  deleter.Finish();
  EXPECT_EQ(stage.reached(SyncPoint::kDetachStopped), 2u);
  EXPECT_EQ(batch.outcome(0).integer, 50);
  EXPECT_FALSE(batch.outcome(0).more);
  Batch count;
  count.Count(Range::Between("k", "l"));
  tree.Execute(count);
  EXPECT_EQ(count.outcome(0).integer, 0);
  tree.ExpectNothingLeaked();
}

// Goal: an atomic batch that is refused says that it was not applied, also if it is nothing but a
// range delete.
// Method: there is no memory, and nothing that could be freed.
TEST_P(RangeDeletes, SayWhetherTheAtomicBatchWasApplied) {
  TestTree tree;
  const State state = TestKeys(100);
  for (const bool all : {false, true}) {
    Fill(tree, state);
    tree.MaintainAll();
    Batch batch(kAtomic);
    all ? batch.DeleteAll() : batch.DeleteRange(Range::All());
    tree.core().arena.FailAt(1);
    tree.Execute(batch);
    EXPECT_EQ(batch.outcome(0).verdict, Verdict::kRefused);
    EXPECT_FALSE(batch.applied());
    tree.ExpectHolds(state);
    tree.Execute(batch);
    EXPECT_EQ(batch.outcome(0).integer, static_cast<int64_t>(state.size()));
    EXPECT_TRUE(batch.applied());
  }
}

class MemoryLimit : public OnEachLayout {};

// Goal: deletes work at the memory limit, also in atomic batches, and also where a leaf must be
// split before a delete marker finds room.
// Method: the budget is over its limit and every free thread is taken, so that each allocation
// needs a span of its own; all keys are deleted.
TEST_P(MemoryLimit, DoesNotStopAtomicDeletes) {
  TestTree tree;
  std::vector<std::string> keys;
  for (uint32_t i = 0; i < 1000; ++i) {
    keys.push_back(TestKey(i * 37 % 1000));
    tree.Put(keys.back(), std::string(20 + i % 60, 'v'));
  }
  tree.MaintainAll();
  tree.budget().set_limit(1);
  Core& core = tree.core();
  Arena::Cache cache;
  std::vector<std::pair<ArenaAddress, size_t>> taken;
  for (size_t bytes = 256; bytes <= core.codec.geometry.node_bytes; bytes += 256) {
    while (const ArenaAddress at = core.arena.Allocate(cache, bytes, Arena::Limit::kObey)) {
      taken.emplace_back(at, bytes);
    }
  }
  EXPECT_EQ(tree.Put("x", "y").verdict, Verdict::kRefused);
  uint32_t splits = 0;
  for (const std::string& key : keys) {
    const uint64_t leaves = core.leaves.load();
    Batch batch(kAtomic);
    batch.Delete(key);
    tree.Execute(batch);
    EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone) << key;
    if (HasFailure()) break;
    splits += core.leaves.load() > leaves ? 1 : 0;
  }
  EXPECT_GT(splits, 0u);
  for (const auto& [at, bytes] : taken) core.arena.Free(cache, at, bytes);
  core.arena.Flush(cache);
  tree.ExpectHolds({});
  tree.ExpectNothingLeaked();
}

// Goal: a write at the memory limit does not give up snapshots that free nothing now.
// Method: a reader stands in an old epoch, so that no snapshot that is given up frees anything.
TEST_P(MemoryLimit, KeepsSnapshotsWhileAReaderStandsInTheWay) {
  TestTree tree(BtreeOptions{.log_bytes = 512});
  const Stage stage(tree.core());
  Fill(tree, TestKeys(1000));
  std::vector<SnapshotRef> snapshots;
  for (int round = 0; round < 20; ++round) {
    snapshots.push_back(tree.OpenSnapshot());
    for (uint32_t i = 0; i < 1000; i += 10) tree.Put(TestKey(i), TestValue("newer"));
  }
  tree.MaintainAll();
  ASSERT_GT(tree.Statistics().reclaim_kept, 20u);
  Actor reader(SyncPoint::kReaderInLeaf, 1, [&] { tree.Get(TestKey(1)); });
  ASSERT_TRUE(reader.WaitUntilStopped());
  tree.budget().set_limit(1);
  EXPECT_EQ(tree.Put(TestKey(0), "x").verdict, Verdict::kRefused);
  EXPECT_GE(tree.Statistics().snapshots, snapshots.size() - 1);
  reader.Finish();
  for (const SnapshotRef snapshot : snapshots) tree.CloseSnapshot(snapshot);
  tree.ExpectNothingLeaked();
}

// Goal: values that a batch's writes replace make room for its later writes, also behind a scan.
// Method: little room, and values each of which one write replaces.
TEST_P(MemoryLimit, IsNotReachedByWhatAScanOfTheBatchHoldsBack) {
  constexpr size_t kBytes = 1 << 20;
  TestTree tree;
  for (uint32_t i = 0; i < 8; ++i) tree.Put(TestKey(i), std::string(kBytes, 'a'));
  tree.MaintainAll();
  tree.budget().set_limit(tree.budget().used() + 5 * kBytes);
  const std::string value(kBytes, 'b');
  Batch batch;
  for (uint32_t i = 0; i < 24; ++i) {
    batch.Scan(Range::All(), {.limit = 1, .keys_only = true});
    batch.Put(Kept(batch, TestKey(i % 8)), value);
  }
  tree.Execute(batch);
  for (uint32_t i = 0; i < batch.size(); ++i) {
    EXPECT_EQ(batch.outcome(i).verdict, Verdict::kDone) << i;
  }
  tree.ExpectNothingLeaked();
}

class BigAtomicBatches : public OnEachLayoutWith<bool> {};

// Goal: an atomic batch of many keys takes work in proportion to their number, wherever they go.
// Method: all keys go into one gap. The ways down are counted: for a batch that stops the writers
// one a key, for looking; beyond that some for each leaf, for locking and splitting.
TEST_P(BigAtomicBatches, TakeLinearWork) {
  const bool with_range = GetCase();
  for (const uint32_t keys : {8000u, 64000u}) {
    TestTree tree(BtreeOptions{});
    const Stage stage(tree.core());
    tree.Put("a", "v");
    tree.Put("z", "v");
    Batch batch(kAtomic);
    if (with_range) batch.Count(Range::Between("y", "z"));
    const std::string value(60, 'v');
    for (uint32_t i = 0; i < keys; ++i) batch.Put(Kept(batch, NumberedKey("k", i)), value);
    tree.Execute(batch);
    ASSERT_TRUE(batch.applied());
    const uint64_t leaves = tree.core().leaves.load();
    ASSERT_LT(leaves, keys / 40);
    ASSERT_LT(stage.reached(SyncPoint::kReaderAtRoot), (with_range ? keys : 0) + 16 * leaves);
    ASSERT_LT(stage.reached(SyncPoint::kStructureBuilt), 4 * leaves);
    ASSERT_STREQ(tree.engine().Verify(), nullptr);
    Batch count;
    count.Count(Range::Between("k", "l"));
    tree.Execute(count);
    EXPECT_EQ(count.outcome(0).integer, keys);
  }
}

std::string BigBatchName(const testing::TestParamInfo<LayoutAndCase<bool>>& info) {
  const auto& [layout, with_range] = info.param;
  return std::string(with_range ? "WithRange_" : "Points_") + NameOf(layout);
}

INSTANTIATE_TEST_SUITE_P(All, BigAtomicBatches, testing::Combine(EachLayout(), testing::Bool()),
                         BigBatchName);

// Goal: an atomic batch that writes, and counts a large range, copies none of it.
// Method: the bytes that the batch has allocated, beside those of the tree.
TEST_P(AtomicBatches, CountWithoutCopying) {
  TestTree tree(BtreeOptions{});
  State state;
  for (uint32_t i = 0; i < 3000; ++i) state[NumberedKey("k", i)] = std::string(1000, 'v');
  Fill(tree, state);
  Batch batch(kAtomic);
  batch.Put("z", "v");
  batch.Count(Range::All());
  tree.Execute(batch);
  EXPECT_EQ(batch.outcome(1).integer, 3001);
  EXPECT_LT(batch.scratch().used(), 1000u);
}

class LeavesOfOneForm : public OnEachLayout {};

// Goal: a leaf whose items have one form, with keys and values of the largest size, is merged
// right, however large its node is.
// Method: values of the largest inline size for each node size, each written more than once.
TEST_P(LeavesOfOneForm, MayHaveTheLongestValues) {
  for (const uint32_t node_bytes : {8192u, 16384u, 32768u}) {
    SCOPED_TRACE(testing::Message() << "node bytes " << node_bytes);
    const Geometry geometry{.node_bytes = node_bytes};
    TestTree tree({.node_bytes = node_bytes, .log_bytes = node_bytes / 4});
    State state;
    for (uint32_t i = 0; i < 400; ++i) {
      const std::string key = NumberedKey("k", i * 7 % 100);
      state[key] = NumberedKey(std::string(geometry.value_inline_max() - 6, 'v'), i);
      tree.Put(key, state[key]);
    }
    tree.ExpectHolds(state);
  }
}

// Goal: a leaf full of small items of one form finds room, in halves, when some get another form.
// Method: many keys of few bytes in random order, so that some leaves are full; then every 50th
// gets a longer value.
TEST_P(LeavesOfOneForm, HaveRoomForOtherForms) {
  constexpr uint32_t kKeys = 6000;
  for (const uint32_t key_bytes : {2u, 3u, 4u, 6u}) {
    for (const uint32_t node_bytes : {2048u, 8192u}) {
      SCOPED_TRACE(testing::Message() << key_bytes << " bytes a key, node bytes " << node_bytes);
      TestTree tree({.node_bytes = node_bytes, .log_bytes = node_bytes / 4});
      State state;
      Batch batch;
      const auto put = [&](uint32_t i, std::string_view value) {
        const std::string key = std::string(key_bytes - 2, 'k') +
                                std::string{static_cast<char>(i >> 8), static_cast<char>(i)};
        batch.Put(Kept(batch, key), value);
        state[key] = value;
      };
      for (uint32_t i = 0; i < kKeys; ++i) put(i * 1019 % kKeys, "");
      for (uint32_t i = 0; i < kKeys; i += 50) put(i, "longer");
      tree.Execute(batch);
      tree.ExpectHolds(state);
    }
  }
}

// Goal: a leaf that a range delete has rewritten has room for its log.
// Method: leaves and logs as large as they may be; deletes of one key at a time between writes.
TEST_P(LeavesOfOneForm, HaveRoomForTheirLogAfterRangeDeletes) {
  TestTree tree({.node_bytes = 32768, .log_bytes = 8192});
  State state;
  for (uint32_t i = 0; i < 4000; ++i) {
    const std::string key = NumberedKey("k", i * 1103 % 4000);
    state[key] = std::string(i % 3 == 0 ? 300 : 299, 'v');
    tree.Put(key, state[key]);
    if (i % 5 != 4) continue;
    const auto gone = state.lower_bound(NumberedKey("k", i * 1103 % 4000 / 2));
    tree.DeleteRange(Range::Between(gone->first, gone->first + "."));
    state.erase(gone);
    if (i % 50 == 49) {
      ASSERT_STREQ(tree.engine().Verify(), nullptr) << i;
    }
  }
  tree.ExpectHolds(state);
}

INSTANTIATE_TEST_SUITE_P(Layouts, LeavesOfOneForm, EachLayout(), LayoutName);

class ScansOfAWindow : public OnEachLayout {
 protected:
  static constexpr uint64_t kDeadline = TestTree::kNowMs + 1;
  static constexpr uint32_t kKeys = 700;

  std::string RandomKey() {
    return NumberedKey("k", static_cast<uint32_t>(rng_() % kKeys)).substr(0, rng_() % 8 + 1);
  }

  // Writes one key. Some values are of another size, some expire before the scans.
  void Write(TestTree& tree) {
    const std::string key = NumberedKey("k", static_cast<uint32_t>(rng_() % kKeys));
    const uint64_t lot = rng_() % 100;
    state_.erase(key);
    if (lot < 30) {
      tree.Delete(key);
    } else if (lot >= 100 - expiring_) {
      tree.Do({.op = Op::kPut, .key = key, .value = "expiring", .deadline_ms = kDeadline});
    } else {
      state_[key] =
          lot < 30 + others_ ? std::string(lot, 'o') : std::to_string(rng_()).substr(0, 9);
      tree.Put(key, state_[key]);
    }
  }

  // Expects that the scan of [lo, hi) returned its first keys, ended where it must, and said so.
  void ExpectGiven(const Batch& batch, uint32_t i, std::string_view hi, size_t bytes_max) const {
    const Request& r = batch.requests()[i];
    const Outcome& outcome = batch.outcome(i);
    const bool keys_only = r.has(Request::kKeysOnly);
    auto at = state_.lower_bound(r.key);
    const auto end = r.key < hi ? state_.lower_bound(hi) : at;
    size_t bytes = 0;
    uint32_t given = 0;
    auto next = batch.items(i).begin();
    for (; at != end && given < r.limit && bytes <= bytes_max; ++at, ++given) {
      ASSERT_LT(given, batch.items(i).size());
      const Item item = *next++;
      ASSERT_EQ(item.key, at->first);
      ASSERT_EQ(item.value, keys_only ? "" : at->second);
      bytes += item.key.size() + item.value.size();
    }
    ASSERT_EQ(batch.items(i).size(), given);
    ASSERT_TRUE(at == end || outcome.more);
    if (!outcome.more) return;
    ASSERT_TRUE(at == end || outcome.value <= at->first);
    if (given > 0) {
      ASSERT_GT(outcome.value, std::prev(at)->first);
    }
  }

  std::mt19937_64 rng_;
  State state_;
  uint64_t others_ = 0;    // of 100 writes, those with another size
  uint64_t expiring_ = 0;  // of 100 writes, those with a deadline
};

// Goal: scans of a batch return the items there are, up to their limits of items and bytes.
// Method: random writes of items of one form, some of others, some that expire; scans of random
// ranges and limits, 0 and the largest ones among them, side by side, compared with a model.
TEST_P(ScansOfAWindow, GiveWhatTheirLimitsAllow) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  rng_.seed(seed);
  constexpr uint32_t kLimits[] = {0, 1, 2, 3, 5, 24, 100, 1000, kNoLimit};
  constexpr size_t kBytes[] = {0, 1, 15, 16, 17, 100, 1000, SIZE_MAX};
  for (const auto& [others, expiring] : {std::pair(0, 0), std::pair(5, 0), std::pair(5, 20)}) {
    TestTree tree(BtreeOptions{.node_bytes = 4096});
    state_.clear();
    others_ = static_cast<uint64_t>(others);
    expiring_ = static_cast<uint64_t>(expiring);
    for (uint32_t i = 0; i < 1000; ++i) Write(tree);
    for (uint32_t round = 0; round < 100; ++round) {
      for (uint32_t i = rng_() % 8; i > 0; --i) Write(tree);
      Batch batch;
      std::vector<std::string> ends;
      for (uint32_t i = 0; i < 40; ++i) {
        ends.push_back(RandomKey());
        batch.Scan(Range::Between(Kept(batch, RandomKey()), Kept(batch, ends.back())),
                   {.limit = kLimits[rng_() % std::size(kLimits)], .keys_only = rng_() % 4 == 0});
      }
      const size_t bytes_max = kBytes[rng_() % std::size(kBytes)];
      batch.set_scan_bytes_max(bytes_max);
      batch.set_now_ms(kDeadline);
      tree.engine().Execute(batch);
      for (uint32_t i = 0; i < batch.size(); ++i) {
        SCOPED_TRACE(testing::Message() << others << " " << expiring << " " << round << " " << i);
        ExpectGiven(batch, i, ends[i], bytes_max);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, ScansOfAWindow, EachLayout(), LayoutName);

INSTANTIATE_TEST_SUITE_P(Layouts, AtomicBatches, EachLayout(), LayoutName);

INSTANTIATE_TEST_SUITE_P(Layouts, Sampling, EachLayout(), LayoutName);

INSTANTIATE_TEST_SUITE_P(Layouts, RangeDeletes, EachLayout(), LayoutName);

INSTANTIATE_TEST_SUITE_P(Layouts, MemoryLimit, EachLayout(), LayoutName);

INSTANTIATE_TEST_SUITE_P(Layouts, CountingOfRangeDelete, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
