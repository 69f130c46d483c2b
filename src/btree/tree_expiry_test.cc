// Tests deadlines together with other changes of a tree, each at one fixed interleaving.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "btree/expirer.h"
#include "btree/testing/tree_test_changes.h"
#include "btree/testing/tree_test_within.h"

namespace skep::btree {
namespace {

using changes::Kept;

constexpr uint64_t kNow = TestTree::kNowMs;
constexpr uint64_t kDeadline = kNow + 1000;

Outcome DoAt(TestTree& tree, const Request& request, uint64_t now_ms) {
  Batch batch;
  batch.set_now_ms(now_ms);
  batch.Add(request);
  tree.engine().Execute(batch);
  return batch.outcome(0);
}
Verdict GetAt(TestTree& tree, std::string_view key, uint64_t now_ms) {
  return DoAt(tree, {.op = Op::kGet, .key = key, .other = {}}, now_ms).verdict;
}

Request PutUntil(Batch& batch, uint32_t number, uint64_t deadline_ms) {
  return {.op = Op::kPut,
          .key = Kept(batch, TestKey(number)),
          .value = Kept(batch, TestValue("v")),
          .other = {},
          .deadline_ms = deadline_ms};
}
void PutUntil(TestTree& tree, uint32_t number, uint64_t deadline_ms) {
  Batch batch;
  batch.Add(PutUntil(batch, number, deadline_ms));
  tree.Execute(batch);
}

// Puts keys in order, until the next one would split a leaf; returns the number of that one.
uint32_t FillUntilSplit(TestTree& tree, uint32_t leaves, uint64_t deadline_ms) {
  TestTree trial;
  uint32_t next = 0;
  for (; trial.core().leaves.load() <= leaves; ++next) PutUntil(trial, next, deadline_ms);
  for (uint32_t i = 0; i + 1 < next; ++i) PutUntil(tree, i, deadline_ms);
  return next - 1;
}

void MaintainAllAt(TestTree& tree, uint64_t now_ms) {
  while (tree.engine().Maintain(now_ms)) {
  }
}

class Expiry : public OnEachLayout {};

// Goal: no leaf loses its place in the expiry queue, so that its memory comes back, also if its
// entry is taken before the tree leads to it.
// Method: the root, or a leaf below it, is split while all its keys are due; upkeep runs when the
// first half is mapped.
TEST_P(Expiry, UpkeepInTheMiddleOfASplitForgetsNoLeaf) {
  for (const uint32_t leaves : {1u, 4u}) {
    SCOPED_TRACE(testing::Message() << leaves << " leaves");
    TestTree tree;
    Batch batch;
    batch.Add(PutUntil(batch, FillUntilSplit(tree, leaves, kDeadline), kDeadline));
    RunWithin(tree, batch, SyncPoint::kMergeMapped, [&] { tree.engine().Maintain(kDeadline); });
    EXPECT_GT(tree.core().leaves.load(), leaves);
    EXPECT_STREQ(tree.engine().Verify(), nullptr);
    MaintainAllAt(tree, kDeadline);
    EXPECT_EQ(tree.engine().Statistics().items, 0u);
  }
}

// Goal: a range delete whose keys expire after it has seen one, and before it has locked, deletes
// none of them, and they stay counted until the upkeep removes them.
// Method: ranges of one leaf and of several, with a limit and without; time passes during the look.
TEST_P(Expiry, ADeleteOfKeysThatExpireMeanwhileCountsNone) {
  for (const uint32_t keys : {5u, 500u}) {
    for (const uint32_t limit : {kNoLimit, 3u, 100u}) {
      SCOPED_TRACE(testing::Message() << keys << " keys, limit " << limit);
      TestTree tree;
      for (uint32_t i = 0; i < keys; ++i) PutUntil(tree, i, kDeadline);
      Batch batch;
      batch.DeleteRange(Range::All(), limit);
      RunWithin(tree, batch, SyncPoint::kReaderInLeaf, [&] { GetAt(tree, "", kDeadline); });
      EXPECT_EQ(batch.outcome(0).integer, 0);
      EXPECT_STREQ(tree.engine().Verify(), nullptr);
      MaintainAllAt(tree, kDeadline);
      EXPECT_EQ(tree.engine().Statistics().items, 0u);
      EXPECT_STREQ(tree.engine().Verify(), nullptr);
    }
  }
}

// Goal: a short scan over keys that have expired sees the writes behind them.
// Method: scans of a few items from each key, side by side, of a leaf whose sorted block begins
// with keys that expire; the log's writes lie behind those. The results are compared with a model.
TEST_P(Expiry, ShortScansSeeWhatIsWrittenBehindExpiredKeys) {
  TestTree tree(BtreeOptions{.log_bytes = 1024});
  State state;
  for (uint32_t i = 0; i < 40; ++i) PutUntil(tree, i, i < 20 ? kDeadline : 0);
  for (uint32_t i = 20; i < 40; ++i) state[TestKey(i)] = TestValue("v");
  for (const uint32_t i : {21u, 23u}) {
    tree.Delete(TestKey(i));
    state.erase(TestKey(i));
  }
  tree.Put(TestKeyBetween(22, 1), "new");
  state[TestKeyBetween(22, 1)] = "new";

  Batch batch;
  batch.set_now_ms(kDeadline);
  for (uint32_t i = 0; i < 24; ++i) {
    batch.Scan(Range::From(Kept(batch, TestKey(i))), {.limit = 5});
  }
  tree.engine().Execute(batch);
  for (uint32_t i = 0; i < 24; ++i) {
    auto expected = state.lower_bound(TestKey(i));
    ASSERT_EQ(batch.items(i).size(), 5u);
    for (const Item& item : batch.items(i)) EXPECT_EQ(item.key, (expected++)->first) << i;
  }
}

// Goal: a write does not bring back a key that some reader has seen as gone.
// Method: between looking at the key and locking its leaf the write meets a reader whose clock is
// ahead of its own, past the deadline. The write goes by the log, and by a merge.
TEST_P(Expiry, WhatWasSeenAsGoneIsGoneForAWriteOnItsWay) {
  constexpr std::string_view kKey = "key";
  const Request writes[] = {
      {.op = Op::kExpire, .when = Request::kHasDeadline, .key = kKey, .other = {}},
      {.op = Op::kUpdate, .key = kKey, .value = "new", .other = {}},
      {.op = Op::kPut, .when = Request::kEquals, .key = kKey, .value = "new", .other = "old"},
      {.op = Op::kApply, .key = kKey, .value = "x", .function = functions::kAppend},
  };
  for (const uint32_t log_bytes : {320u, 0u}) {
    for (const Request& write : writes) {
      SCOPED_TRACE(testing::Message()
                   << log_bytes << " bytes of log, op " << static_cast<int>(write.op));
      TestTree tree(BtreeOptions{.node_bytes = 2048, .log_bytes = log_bytes});
      tree.Do({.op = Op::kPut, .key = kKey, .value = "old", .other = {}, .deadline_ms = kDeadline});
      Batch batch;
      batch.Add(write);
      batch.Get(kKey);
      RunWithin(tree, batch, SyncPoint::kWriterFoundLeaf,
                [&] { EXPECT_EQ(GetAt(tree, kKey, kDeadline), Verdict::kAbsent); });
      EXPECT_FALSE(batch.outcome(0).present);
      if (write.op == Op::kApply) continue;  // kApply makes a new value of an absent key
      EXPECT_EQ(batch.outcome(0).verdict, Verdict::kAbsent);
      EXPECT_EQ(batch.outcome(1).verdict, Verdict::kAbsent);
      EXPECT_EQ(GetAt(tree, kKey, kDeadline), Verdict::kAbsent);
    }
  }
}

// Goal: a walk at a version has each key that a write above it has found there, though a deadline
// has passed between the two.
// Method: the walk is opened while the write has its version and is not released, and at a time
// behind the deadline that the write has found to be ahead. The write goes by the log, and by a
// merge.
TEST_P(Expiry, AWalkHasWhatAWriteOnItsWayHasFound) {
  constexpr std::string_view kKey = "key";
  const Request writes[] = {
      {.op = Op::kExpire, .when = Request::kHasDeadline, .key = kKey, .other = {}},
      {.op = Op::kExpire, .key = kKey, .other = {}, .deadline_ms = 2 * kDeadline},
      {.op = Op::kUpdate, .key = kKey, .value = "new", .deadline_ms = kKeepDeadline},
      {.op = Op::kApply, .key = kKey, .value = "x", .function = functions::kAppend},
  };
  for (const uint32_t log_bytes : {320u, 0u}) {
    for (const Request& write : writes) {
      SCOPED_TRACE(testing::Message()
                   << log_bytes << " bytes of log, op " << static_cast<int>(write.op));
      TestTree tree(BtreeOptions{.node_bytes = 2048, .log_bytes = log_bytes});
      tree.Do({.op = Op::kPut, .key = kKey, .value = "old", .other = {}, .deadline_ms = kDeadline});
      std::unique_ptr<PairIterator> walk;
      Batch batch;
      batch.Add(write);
      RunWithin(tree, batch, log_bytes > 0 ? SyncPoint::kWriterDrew : SyncPoint::kMergeMapped,
                [&] { walk = std::move(*tree.engine().OpenPairIterator(kDeadline)); });
      ASSERT_NE(walk, nullptr);
      EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone);
      EXPECT_TRUE(batch.outcome(0).present);
      EXPECT_GT(batch.outcome(0).version, walk->version());
      const auto pairs = walk->Next();
      ASSERT_TRUE(pairs.has_value());
      ASSERT_EQ(pairs->size(), 1u);
      EXPECT_EQ((*pairs)[0].key, kKey);
      EXPECT_EQ((*pairs)[0].value, "old");
      EXPECT_EQ((*pairs)[0].deadline_ms, kDeadline);
    }
  }
}

// Goal: upkeep reads no leaf that has left the tree: its outside blocks may be freed while it is
// still in the page table. AddressSanitizer reports such a read.
// Method: keys, and so fences, that lie outside the nodes; all are deleted at once. After each
// piece that is reclaimed all LIDs are put into the expiry queue.
TEST_P(Expiry, UpkeepDoesNotReadTheFencesOfLeavesThatHaveLeft) {
  const std::string begin(200, 'k');
  TestTree tree;
  {
    Batch batch;
    for (uint32_t i = 0; i < 200; ++i) {
      batch.Put(Kept(batch, begin + TestKey(i)), Kept(batch, TestValue("v")));
    }
    tree.Execute(batch);
  }
  tree.Do({.op = Op::kDeleteAll});
  ThreadState& thread = tree.core().threads.Take();
  VisitLayoutOfTest([&]<class Layout>() {
    Expirer<Layout> expirer(tree.core());
    while (tree.core().reclaimer.Run(thread, 1)) {
      const Lid end = tree.core().table.end();
      for (Lid lid = 1; lid < end; ++lid) tree.core().expiry.Add(lid, 1);
      while (expirer.Run(thread, kNow, 0)) {
      }
    }
  });
  tree.core().threads.Give(thread);
  EXPECT_EQ(tree.core().expiry.size(), 0u);
  tree.ExpectNothingLeaked();
}

// Goal: a look whether a range has a key does not go on behind the range, through any number of
// leaves whose keys have all expired; some such looks happen while the other writers are stopped.
// Method: behind an empty range lie many such leaves; the visited leaves are counted.
TEST_P(Expiry, AnEmptyRangeCostsNothingBehindIt) {
  TestTree tree;
  for (uint32_t i = 0; i < 1000; ++i) PutUntil(tree, i, kDeadline);
  ASSERT_GT(tree.core().leaves.load(), 50u);
  const Stage stage(tree.core());
  const auto visits_of = [&](Batch::Kind kind, Op op, uint8_t flags) {
    const std::string lo = TestKeyBetween(500, 1);
    const std::string hi = TestKeyBetween(500, 2);
    const uint64_t before =
        stage.reached(SyncPoint::kReaderInLeaf) + stage.reached(SyncPoint::kReaderAtSibling);
    Batch batch(kind);
    batch.set_now_ms(kDeadline);
    batch.Add({.op = op, .flags = flags, .key = lo, .other = hi, .deadline_ms = 0});
    batch.Add({.op = Op::kPut, .key = "a", .value = "", .other = {}});
    tree.engine().Execute(batch);
    EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone);
    return stage.reached(SyncPoint::kReaderInLeaf) + stage.reached(SyncPoint::kReaderAtSibling) -
           before;
  };
  constexpr auto kUnordered = Batch::Kind::kUnordered;
  constexpr auto kAtomic = Batch::Kind::kAtomic;
  EXPECT_LT(visits_of(kUnordered, Op::kDeleteRange, 0), 10u);
  EXPECT_LT(visits_of(kUnordered, Op::kExpireRange, 0), 10u);
  EXPECT_LT(visits_of(kAtomic, Op::kDeleteRange, 0), 10u);
  EXPECT_LT(visits_of(kAtomic, Op::kRequireEmpty, 0), 10u);
  EXPECT_LT(visits_of(kAtomic, Op::kScan, 0), 10u);
  EXPECT_LT(visits_of(kAtomic, Op::kScan, Request::kReverse), 10u);
  Batch reads(kAtomic);
  reads.set_now_ms(kDeadline);
  const std::string lo = TestKeyBetween(500, 1);
  const std::string hi = TestKeyBetween(500, 2);
  reads.RequireEmpty(Range::Between(lo, hi));
  const uint64_t before = stage.reached(SyncPoint::kReaderAtSibling);
  tree.engine().Execute(reads);
  EXPECT_TRUE(reads.applied());
  EXPECT_LT(stage.reached(SyncPoint::kReaderAtSibling) - before, 10u);
}

// Goal: a range that gets a deadline says how far it came, if memory ends in the middle; a refused
// request has changed nothing.
// Method: a tree that is full to its limit, so that leaves of short keys cannot take eight bytes
// more for each.
TEST_P(Expiry, ARangeThatMeetsTheMemoryLimitSaysHowFarItCame) {
  TestTree tree(kSmallNodes, 4 << 20);
  uint32_t keys = 0;
  while (tree.Put(TestKey(keys), TestValue("v")).verdict == Verdict::kDone) ++keys;
  int64_t changed = 0;
  std::string lo;
  while (true) {
    Batch batch;
    batch.ExpireRange(Range::From(lo), kDeadline);
    tree.Execute(batch);
    const Outcome& outcome = batch.outcome(0);
    if (outcome.verdict == Verdict::kRefused) break;
    changed += outcome.integer;
    ASSERT_TRUE(outcome.more) << "there was room";
    ASSERT_GT(outcome.integer, 0);
    lo = outcome.value;
  }
  int64_t with_deadline = 0;
  for (uint32_t i = 0; i < keys; ++i) {
    const std::string key = TestKey(i);
    if (tree.Do({.op = Op::kGet, .key = key, .other = {}}).deadline_ms != 0) ++with_deadline;
  }
  EXPECT_GT(with_deadline, 0);
  EXPECT_EQ(changed, with_deadline);
}

// Goal: leaves from which writes have removed most keys, as expired, are joined, too.
// Method: each write of a tree without logs is a merge. All keys but a few of each leaf expire, and
// those few are written again.
TEST_P(Expiry, LeavesThatWritesHaveCleanedAreJoined) {
  constexpr uint32_t kKeys = 1000;
  TestTree tree(BtreeOptions{.node_bytes = 2048, .log_bytes = 0});
  for (uint32_t i = 0; i < kKeys; ++i) PutUntil(tree, i, kDeadline);
  const uint64_t leaves = tree.core().leaves.load();
  for (uint32_t i = 0; i < kKeys; i += 5) {
    const std::string key = TestKey(i);
    DoAt(tree, {.op = Op::kPut, .key = key, .value = "", .other = {}}, kDeadline);
  }
  MaintainAllAt(tree, kDeadline);
  EXPECT_EQ(tree.engine().Statistics().items, kKeys / 5);
  EXPECT_LT(tree.core().leaves.load(), leaves / 2);
}

// Goal: the reply of a range that gets a deadline waits for the writes it has seen, also for
// deletes.
// Method: the range's only key is gone for the newest readers, and not yet for readers of the
// released state.
TEST_P(Expiry, ARangeWaitsForTheDeletesItHasSeen) {
  TestTree tree;
  tree.Put("key", "v");
  Batch batch;
  batch.Delete("key");
  RunWithin(tree, batch, SyncPoint::kWriterPublished, [&] {
    Batch range;
    range.ExpireRange(Range::All(), kDeadline);
    const Version ticket = tree.Execute(range);
    EXPECT_EQ(range.outcome(0).integer, 0);
    EXPECT_EQ(tree.Contents().size(), 1u);
    EXPECT_FALSE(tree.engine().gate().IsReleased(ticket));
  });
}

class ToldKeys final : public ExpiryObserver {
 public:
  bool wants_expired() const noexcept override { return wants; }
  void HasExpired(std::string_view key) noexcept override { keys.emplace_back(key); }

  bool wants = true;
  std::vector<std::string> keys;
};

// Goal: the observer is told of each key that expires once, whoever removes it, and of no other.
// Method: of keys with a deadline, among others, a third is written over, one by one or in an
// atomic batch, once the deadline has passed; merges and the upkeep remove the rest. Then the same
// where the observer does not want to know.
TEST_P(Expiry, EachKeyThatExpiresIsToldOnce) {
  constexpr uint32_t kKeys = 300;
  TestTree tree;
  ToldKeys told;
  ObserveExpiryOf(tree.engine(), &told);
  for (const uint64_t deadline_ms : {kDeadline, kDeadline + 1000}) {
    told.wants = deadline_ms == kDeadline;
    told.keys.clear();
    std::vector<std::string> expected;
    for (uint32_t i = 0; i < kKeys; ++i) {
      const bool expires = i % 4 != 0;
      PutUntil(tree, i, expires ? deadline_ms : 0);
      if (expires && told.wants) expected.push_back(TestKey(i));
    }
    Batch atomic(Batch::Kind::kAtomic);
    atomic.set_now_ms(deadline_ms);
    for (uint32_t i = 0; i < kKeys; ++i) {
      const std::string key = TestKey(i);
      if (i % 6 == 1) DoAt(tree, {.op = Op::kPut, .key = key, .value = "w"}, deadline_ms);
      if (i % 6 == 2) atomic.Put(Kept(atomic, key), "w");
      if (i % 6 == 3) DoAt(tree, {.op = Op::kDelete, .key = key}, deadline_ms);
    }
    tree.engine().Execute(atomic);
    MaintainAllAt(tree, deadline_ms);
    std::ranges::sort(told.keys);
    std::ranges::sort(expected);
    EXPECT_EQ(told.keys, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Expiry, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
