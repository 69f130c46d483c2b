// Goal: no operation is held up without need, and every one ends after a bounded number of tries,
// whatever the others do.
// Method: events are counted: stops of the writers, tries of a write, steps while the writers are
// stopped. Where threads run beside each other, the counts are bounds for any schedule.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "btree/testing/tree_test_changes.h"
#include "btree/upkeep.h"

namespace skep::btree {
namespace {

using changes::Kept;
constexpr auto kAtomic = Batch::Kind::kAtomic;
constexpr auto kUnordered = Batch::Kind::kUnordered;

// Calls watch(point) in every thread that comes to a sync point. Made while nothing else runs.
class Watcher {
 public:
  Watcher(Core& core, std::function<void(SyncPoint)> watch)
      : core_(core), watch_(std::move(watch)) {
    core.hook = {
        .call = [](void* self, SyncPoint point) { static_cast<Watcher*>(self)->watch_(point); },
        .context = this};
  }
  ~Watcher() { core_.hook = {}; }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 private:
  Core& core_;
  const std::function<void(SyncPoint)> watch_;
};

class Stops : public OnEachLayout {
 protected:
  static constexpr uint32_t kKeys = 2000;

  // Puts the even keys from 0 to 2 * kKeys.
  static void Fill(TestTree& tree) {
    Batch batch;
    for (uint32_t i = 0; i < kKeys; ++i) {
      batch.Put(Kept(batch, TestKey(2 * i)), Kept(batch, TestValue("v")));
    }
    tree.Execute(batch);
    ASSERT_GT(tree.core().leaves.load(), 50u);
  }
  static Range BetweenKeys(Batch& batch, uint32_t lo, uint32_t hi) {
    return Range::Between(Kept(batch, TestKey(lo)), Kept(batch, TestKey(hi)));
  }
  // Executes the batch that `fill` makes, and returns how often it stops the writers.
  template <typename Fill>
  static uint64_t StopsOf(TestTree& tree, Batch::Kind kind, Fill fill) {
    Batch batch(kind);
    fill(batch);
    const uint64_t before = tree.core().versions.stops();
    tree.Execute(batch);
    for (uint32_t i = 0; i < batch.size(); ++i) {
      EXPECT_NE(batch.outcome(i).verdict, Verdict::kRefused) << i;
    }
    return tree.core().versions.stops() - before;
  }
};

// Goal: a delete or count of an empty range, or of a range within a leaf, stops no writers; nor
// does an atomic batch of points and small ranges.
TEST_P(Stops, NobodyIsStoppedForNothing) {
  TestTree tree;
  Fill(tree);
  const auto stops = [&](Batch::Kind kind, auto fill) { return StopsOf(tree, kind, fill); };
  for (const Batch::Kind kind : {kUnordered, kAtomic}) {
    EXPECT_EQ(stops(kind, [](Batch& b) { b.DeleteRange(Range::Between("x", "y")); }), 0u);
    EXPECT_EQ(stops(kind, [](Batch& b) { b.DeleteRange(BetweenKeys(b, 401, 402)); }), 0u);
    EXPECT_EQ(stops(kind, [](Batch& b) { b.DeleteRange(Range::Between("x", "y"), 7); }), 0u);
    EXPECT_EQ(stops(kind, [](Batch& b) { b.DeleteRange(BetweenKeys(b, 402, 403)); }), 0u);
    EXPECT_EQ(stops(kind, [](Batch& b) { b.DeleteRange(BetweenKeys(b, 0, 3000), 1); }), 0u);
  }
  const auto put = [](Batch& b) { b.Put("key", "value"); };
  EXPECT_EQ(stops(kAtomic,
                  [&](Batch& b) {
                    b.Count(Range::Between("x", "y"));
                    put(b);
                  }),
            0u);
  EXPECT_EQ(stops(kAtomic,
                  [&](Batch& b) {
                    b.RequireEmpty(Range::Between("x", "y"));
                    put(b);
                  }),
            0u);
  EXPECT_EQ(stops(kAtomic,
                  [&](Batch& b) {
                    b.DeleteRange(BetweenKeys(b, 500, 800));
                    put(b);
                    b.Scan(Range::From(Kept(b, TestKey(900))), {.limit = 10});
                  }),
            0u);
  EXPECT_EQ(tree.Contents().size(), kKeys - 1 - 1 - 1 - 150 + 1);
  // Subtrees that are detached are the reason for a stop.
  EXPECT_EQ(stops(kUnordered, [](Batch& b) { b.DeleteRange(BetweenKeys(b, 1000, 3000)); }), 1u);
  EXPECT_EQ(stops(kUnordered, [](Batch& b) { b.DeleteAll(); }), 1u);
  EXPECT_EQ(stops(kUnordered, [](Batch& b) { b.DeleteAll(); }), 0u);
  tree.ExpectHolds({});
  tree.ExpectNothingLeaked();
}

// Goal: a range whose keys have all expired, over many leaves, is an empty one.
TEST_P(Stops, NobodyIsStoppedForWhatHasExpired) {
  constexpr uint64_t kDeadline = TestTree::kNowMs + 1000;
  TestTree tree;
  Fill(tree);
  Batch expire;
  expire.ExpireRange(BetweenKeys(expire, 1000, 3000), kDeadline);
  tree.Execute(expire);
  EXPECT_EQ(expire.outcome(0).integer, 1000);
  for (const uint32_t limit : {UINT32_MAX, 5u}) {
    Batch batch;
    batch.set_now_ms(kDeadline);
    batch.DeleteRange(BetweenKeys(batch, 1100, 2900), limit);
    tree.engine().Execute(batch);
    EXPECT_EQ(batch.outcome(0).integer, 0);
    EXPECT_FALSE(batch.outcome(0).more);
  }
  EXPECT_EQ(tree.core().versions.stops(), 0u);
}

// Goal: an atomic batch that deletes keys that its own limited range had counted sees the keys
// behind them, although those are not locked.
TEST_P(Stops, ALimitReachesBeyondWhatTheBatchDeletes) {
  TestTree tree;
  Fill(tree);
  Batch batch(kAtomic);
  batch.DeleteRange(BetweenKeys(batch, 0, 2000));
  batch.Scan(Range::All(), {.limit = 3});
  batch.Count(Range::All(), 5);
  tree.Execute(batch);
  EXPECT_EQ(batch.outcome(0).integer, 1000);
  ASSERT_EQ(batch.items(1).size(), 3u);
  EXPECT_EQ((*batch.items(1).begin()).key, TestKey(2000));
  EXPECT_EQ(batch.outcome(2).integer, 5);
  EXPECT_TRUE(batch.outcome(2).more);
}

// Goal: the work while the writers are stopped does not depend on the number of keys, nor on how
// many have expired, nor on a limit.
// Method: the steps from node to node are counted between the two ends of the stop.
TEST_P(Stops, AreAsShortForManyKeys) {
  constexpr uint64_t kDeadline = TestTree::kNowMs + 1000;
  struct Way {
    uint32_t limit;
    bool expired;
  };
  for (const Way way : {Way{UINT32_MAX, false}, Way{900, false}, Way{UINT32_MAX, true}}) {
    SCOPED_TRACE(testing::Message() << way.limit << (way.expired ? " expired" : ""));
    TestTree tree;
    Fill(tree);
    if (way.expired) {
      for (uint32_t i = 0; i + 1 < kKeys; ++i) {
        tree.Do({.op = Op::kExpire, .key = TestKey(2 * i), .other = {}, .deadline_ms = kDeadline});
      }
    }
    uint64_t steps = 0;
    bool is_stopped = false;
    const Watcher watcher(tree.core(), [&](SyncPoint point) {
      if (point == SyncPoint::kDetachStopped) is_stopped = true;
      if (point == SyncPoint::kDetachMapped) is_stopped = false;
      const bool is_step = point == SyncPoint::kReaderAtRoot ||
                           point == SyncPoint::kReaderAtChild ||
                           point == SyncPoint::kReaderAtSibling;
      if (is_stopped && is_step) ++steps;
    });
    Batch batch;
    batch.set_now_ms(way.expired ? kDeadline : TestTree::kNowMs);
    way.limit == UINT32_MAX ? batch.DeleteRange(Range::All())
                            : batch.DeleteRange(Range::All(), way.limit);
    tree.engine().Execute(batch);
    EXPECT_EQ(batch.outcome(0).integer, way.expired ? 1 : std::min(way.limit, kKeys));
    EXPECT_GT(steps, 0u);
    EXPECT_LE(steps, 6u * 4);  // two ways down, two links, each of two ways: a few nodes each
  }
}

// Goal: a write that has drawn its version before the writers are stopped is done, not begun again.
// Method: the write stands between its drawing and its end while a range delete stops the writers.
TEST_P(Stops, AWriteThatDrewBeforeIsDone) {
  TestTree tree;
  Fill(tree);
  const Stage stage(tree.core());
  const uint64_t found = stage.reached(SyncPoint::kWriterFoundLeaf);
  Batch put;
  put.Put(Kept(put, TestKey(1)), "value");
  Batch tail;
  tail.DeleteRange(Range::From(Kept(tail, TestKey(1000))));
  // The delete has looked whether there is a key, and is about to stop the writers.
  const uint64_t ways = stage.reached(SyncPoint::kReaderAtRoot);
  Actor deleter(SyncPoint::kReaderAtRoot, 2, [&] { tree.Execute(tail); });
  ASSERT_TRUE(deleter.WaitUntilStopped());
  Actor writer(SyncPoint::kWriterDrew, 1, [&] { tree.Execute(put); });
  ASSERT_TRUE(writer.WaitUntilStopped());
  EXPECT_GT(stage.reached(SyncPoint::kReaderAtRoot), ways);
  const uint64_t stops = tree.core().versions.stops();
  Actor finisher([&] { deleter.Finish(); });
  while (tree.core().versions.stops() == stops) std::this_thread::yield();
  EXPECT_EQ(stage.reached(SyncPoint::kDetachStopped), 0u);
  writer.Finish();
  finisher.Finish();
  EXPECT_EQ(stage.reached(SyncPoint::kWriterFoundLeaf) - found, 1u);
  EXPECT_EQ(tree.Get(TestKey(1)), "value");
  EXPECT_EQ(tail.outcome(0).integer, kKeys - 500);
}

// Goal: writers and threads that stop them alternate: a write is held up by two stops at most.
// Method: threads that stop the writers all the time, and writers that count the tries of each of
// their Puts. Each writer has a leaf of its own, so that only a stop makes it begin again.
TEST_P(Stops, AWriteWaitsForTwoOfThemAtMost) {
  constexpr uint32_t kPuts = 300;
  constexpr uint32_t kThreads = 3;
  TestTree tree;
  Fill(tree);
  thread_local uint32_t tries;
  const Watcher watcher(tree.core(), [](SyncPoint point) {
    if (point == SyncPoint::kWriterFoundLeaf) ++tries;
  });
  std::atomic<uint32_t> writing = kThreads;
  std::atomic<uint32_t> most = 0;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string key = TestKey(1000 + 1000 * t);
      while (tree.core().versions.stops() == 0) std::this_thread::yield();
      for (uint32_t i = 0; i < kPuts; ++i) {
        tries = 0;
        tree.Put(key, std::to_string(i));
        uint32_t seen = most.load();
        while (seen < tries && !most.compare_exchange_weak(seen, tries)) {
        }
      }
      --writing;
    });
  }
  for (uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const std::string lo = "a" + std::to_string(t);
      const std::string hi = "a" + std::to_string(t) + "~";
      while (writing > 0) {
        // Samples may be of any key, so such a batch stops the writers.
        Batch batch(kAtomic);
        batch.Sample(1);
        batch.Put(lo, hi);
        tree.Execute(batch);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // One try that finds its place, and one more for each stop.
  EXPECT_LE(most.load(), 3u);
  EXPECT_STREQ(tree.engine().Verify(), nullptr);
}

// Goal: a batch that has stopped the writers does not wait for a write that it holds up and that
// has the turn at a leaf of the batch.
// Method: a ticket that no thread serves; to wait for it would never end.
TEST_P(Stops, WaitForNoTurn) {
  TestTree tree;
  tree.Put("key", "old");
  tree.core().turnstiles.Of(tree.core().root.lid()).Draw();
  Batch batch(kAtomic);
  batch.Sample(1);
  batch.Put("key", "new");
  tree.Execute(batch);
  EXPECT_EQ(tree.core().versions.stops(), 1u);
  EXPECT_EQ(tree.Get("key"), "new");
}

// Goal: a long batch of reads at one version does not get slower because others write in its
// leaves: it holds back only what it sees.
// Method: one thread plays both: at each look of the batch at the leaf, keys of that are written.
// The chain is measured each time.
TEST_P(Stops, NoReaderForWritesInItsLeaf) {
  constexpr uint32_t kGets = 10'000;
  TestTree tree({.node_bytes = 2048, .log_bytes = 0});
  tree.Put("a", "old");
  const std::string value(200, 'v');
  uint32_t looks = 0;
  uint64_t longest = 0;
  {
    bool is_inside = false;
    const Watcher watcher(tree.core(), [&](SyncPoint point) {
      if (point != SyncPoint::kReaderInLeaf || is_inside) return;
      is_inside = true;
      tree.Put("b", value);
      tree.Put("a", value);
      ++looks;
      longest = std::max(longest, tree.Statistics().chain_buffers);
      is_inside = false;
    });
    Batch batch(kAtomic);
    for (uint32_t i = 0; i < kGets; ++i) batch.Get("a");
    tree.Execute(batch);
    for (uint32_t i = 0; i < kGets; ++i) ASSERT_EQ(batch.outcome(i).value, "old") << i;
  }
  EXPECT_GT(looks, 300u);
  EXPECT_LT(longest, 1000u);  // the writes between two of its rests
  tree.MaintainAll();
  EXPECT_LE(tree.Statistics().chain_buffers, 2u);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Stops, EachLayout(), LayoutName);

class TriesOfWrites : public OnEachLayout {};

// Goal: a write that meets others in its leaf makes the block of its value once, and takes a turn
// after a few tries.
// Method: one thread plays both: at each try of the large Put, once it has found its place, a small
// Put is done in the same leaf, until the large one has its turn.
TEST_P(TriesOfWrites, KeepTheBlockAndTakeATurn) {
  constexpr size_t kBytes = 1 << 20;
  TestTree tree;
  tree.Put("large", "");
  tree.Put("small", "");
  Core& core = tree.core();
  const Lid leaf = core.root.lid();
  const std::string large(kBytes, 'l');
  uint32_t tries = 0;
  bool is_inside = false;
  std::vector<uint64_t> allocated;
  const uint64_t before = tree.allocated_bytes();
  {
    const Watcher watcher(core, [&](SyncPoint point) {
      if (point != SyncPoint::kWriterFoundLeaf || is_inside) return;
      ++tries;
      allocated.push_back(tree.allocated_bytes());
      if (!core.turnstiles.Of(leaf).IsFree()) return;  // the large Put has its turn
      is_inside = true;
      tree.Put("small", std::to_string(tries));
      is_inside = false;
    });
    EXPECT_EQ(tree.Put("large", large).verdict, Verdict::kDone);
  }
  EXPECT_EQ(tries, Tries::kOptimistic + 1);
  EXPECT_LT(allocated[0], before + kBytes);
  for (size_t i = 1; i < allocated.size(); ++i) {
    EXPECT_GE(allocated[i], before + kBytes) << i;
    EXPECT_LT(allocated[i], before + 2 * kBytes) << i;
  }
  EXPECT_TRUE(core.turnstiles.Of(leaf).IsFree());
  EXPECT_EQ(tree.Get("large"), large);
  EXPECT_EQ(tree.Get("small"), std::to_string(Tries::kOptimistic));
  tree.ExpectNothingLeaked();
}

// Goal: a write leaves its epoch between two tries.
TEST_P(TriesOfWrites, LeaveTheirEpochBetweenTwo) {
  TestTree tree;
  tree.Put("a", "");
  Core& core = tree.core();
  std::vector<uint64_t> epochs;
  bool is_inside = false;
  const Watcher watcher(core, [&](SyncPoint point) {
    if (point != SyncPoint::kWriterFoundLeaf || is_inside || epochs.size() == 4) return;
    epochs.push_back(core.versions.LowestEpoch());
    is_inside = true;
    core.versions.AdvanceEpoch();
    tree.Put("b", std::to_string(epochs.size()));
    is_inside = false;
  });
  tree.Put("a", "a");
  ASSERT_EQ(epochs.size(), 4u);
  for (size_t i = 1; i < epochs.size(); ++i) EXPECT_GT(epochs[i], epochs[i - 1]);
}

// Goal: a write in a leaf where others write all the time is done after a bounded number of tries,
// with more threads than processors.
// Method: the tries of each Put of large values are counted beside threads of small ones: the
// optimistic tries, one to wait for the turn, and one for each write that was under way then; and
// as many again for a leaf that has another LID, after a split.
TEST_P(TriesOfWrites, AreBounded) {
  constexpr uint32_t kNeighbours = 5;
  constexpr uint32_t kPuts = 40;
  TestTree tree;
  thread_local uint32_t tries;
  const Watcher watcher(tree.core(), [](SyncPoint point) {
    if (point == SyncPoint::kWriterFoundLeaf) ++tries;
  });
  std::atomic<bool> is_over = false;
  std::vector<std::thread> neighbours;
  for (uint32_t t = 0; t < kNeighbours; ++t) {
    neighbours.emplace_back([&, t] {
      for (uint32_t i = 0; !is_over; ++i) tree.Put("n" + std::to_string(t), std::to_string(i));
    });
  }
  const std::string large(1 << 18, 'l');
  uint32_t most = 0;
  for (uint32_t i = 0; i < kPuts; ++i) {
    tries = 0;
    tree.Put("large", large);
    most = std::max(most, tries);
  }
  is_over = true;
  for (std::thread& thread : neighbours) thread.join();
  EXPECT_LE(most, 2 * (Tries::kOptimistic + 1 + kNeighbours));
  tree.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Layouts, TriesOfWrites, EachLayout(), LayoutName);

class LongBatches : public OnEachLayout {
 protected:
  // How many epochs the batch lags behind at most, if the epoch advances whenever the batch goes
  // down from the root.
  static uint64_t EpochsBehind(TestTree& tree, Batch& batch, uint64_t* epochs) {
    Core& core = tree.core();
    uint64_t most = 0;
    *epochs = 0;
    const Watcher watcher(core, [&](SyncPoint point) {
      if (point != SyncPoint::kReaderAtRoot) return;
      most = std::max(most, core.versions.AdvanceEpoch() + 1 - core.versions.LowestEpoch());
      ++*epochs;
    });
    tree.Execute(batch);
    return most;
  }
};

// Goal: a batch of many reads holds back the freeing of memory for a part of its time only: a batch
// that reads the newest state, one that reads all at a version, and one at a snapshot.
// Method: windows of 32 requests go down from the root together.
TEST_P(LongBatches, LeaveTheirEpoch) {
  constexpr uint32_t kRequests = 2000;
  TestTree tree;
  for (uint32_t i = 0; i < 400; ++i) tree.Put(TestKey(i), TestValue("v"));
  const SnapshotRef snapshot = tree.OpenSnapshot();
  for (const int way : {0, 1, 2}) {
    SCOPED_TRACE(way);
    Batch batch(way == 1 ? kAtomic : kUnordered);
    if (way == 2) batch.set_snapshot(snapshot);
    for (uint32_t i = 0; i < kRequests; ++i) batch.Get(Kept(batch, TestKey(i * 37 % 400)));
    uint64_t epochs = 0;
    EXPECT_LE(EpochsBehind(tree, batch, &epochs), 256u / 32 + 2);
    EXPECT_GE(epochs, kRequests / 32);
    for (uint32_t i = 0; i < kRequests; ++i) EXPECT_TRUE(batch.outcome(i).present);
  }
  tree.CloseSnapshot(snapshot);
}

// Goal: one request that changes many keys, or finds none to change, leaves its epoch, too.
TEST_P(LongBatches, LeaveTheirEpochInARange) {
  constexpr uint32_t kKeys = 400;
  TestTree tree;
  for (uint32_t i = 0; i < kKeys; ++i) tree.Put(TestKey(i), TestValue("v"));
  for (const int64_t changed : {int64_t{kKeys}, int64_t{0}}) {
    Batch batch;
    batch.Add({.op = Op::kExpireRange,
               .flags = Request::kNoUpperBound,
               .when = Request::kHasNoDeadline,
               .key = {},
               .other = {},
               .deadline_ms = TestTree::kNowMs + 1000});
    uint64_t epochs = 0;
    EXPECT_LE(EpochsBehind(tree, batch, &epochs), 64u + 16) << changed;
    EXPECT_GE(epochs, kKeys);
    EXPECT_EQ(batch.outcome(0).integer, changed);
  }
}

// Goal: the scans of a long unordered batch do not hold back all that was replaced since the first.
TEST_P(LongBatches, ReadAtLaterVersionsAfterARest) {
  constexpr uint32_t kRequests = 2000;
  TestTree tree(BtreeOptions{.node_bytes = 2048, .log_bytes = 0});
  tree.Put("key", "");
  Batch batch;
  for (uint32_t i = 0; i < kRequests; ++i) batch.Scan(Range::From("key"), {.limit = 1});
  uint64_t most = 0;
  uint32_t writes = 0;
  bool is_inside = false;
  const Watcher watcher(tree.core(), [&](SyncPoint point) {
    if (point != SyncPoint::kReaderInLeaf || is_inside) return;
    is_inside = true;
    tree.Put("key", std::to_string(++writes));
    most = std::max(most, tree.Statistics().chain_buffers);
    is_inside = false;
  });
  tree.Execute(batch);
  EXPECT_GE(writes, kRequests / 32);
  EXPECT_LE(most, 2 * (256u + 256u / 32) + 2);
  EXPECT_LT(most, writes / 2);
}

// Goal: the finished writes of others are released while a long batch writes, not when it ends.
// Method: in the middle of the first write of the batch another write is finished; the test counts
// how many more of the batch's writes are done until that is released.
TEST_P(LongBatches, ReleaseWhatOthersHaveFinished) {
  TestTree tree(BtreeOptions{});  // few merges, as the batch would release after many of them, too
  Batch batch;
  for (uint32_t i = 0; i < 2000; ++i) batch.Put(Kept(batch, TestKey(i % 100)), "value");
  Version ticket = 0;
  uint32_t writes = 0;
  bool is_inside = false;
  const Watcher watcher(tree.core(), [&](SyncPoint point) {
    if (point != SyncPoint::kWriterPublished || is_inside) return;
    if (ticket == 0) {
      is_inside = true;
      Batch other;
      other.Put("other", "value");
      ticket = tree.Execute(other);
      is_inside = false;
    }
    if (!tree.engine().gate().IsReleased(ticket)) ++writes;
  });
  tree.Execute(batch);
  EXPECT_GT(writes, 0u);
  EXPECT_LE(writes, 256u);
}

// Goal: a batch that reads at a snapshot holds back what the snapshot sees and nothing else, also
// if the snapshot is dropped meanwhile.
// Method: a reader stands in a leaf; meanwhile the leaf is built anew many times.
TEST_P(LongBatches, AtASnapshotHoldBackWhatItSees) {
  TestTree tree(BtreeOptions{.node_bytes = 2048, .log_bytes = 0});
  const Stage stage(tree.core());
  tree.Put("key", "old");
  const SnapshotRef snapshot = tree.OpenSnapshot();
  std::optional<std::string> seen;
  Actor reader(SyncPoint::kReaderInLeaf, 1, [&] {
    Batch batch;
    batch.set_snapshot(snapshot);
    batch.Get("key");
    batch.Get("key");
    tree.Execute(batch);
    seen = std::string(batch.outcome(1).value);
  });
  ASSERT_TRUE(reader.WaitUntilStopped());
  for (uint32_t i = 0; i < 500; ++i) tree.Put("key", std::to_string(i));
  EXPECT_LE(tree.Statistics().chain_buffers, 2u);
  tree.CloseSnapshot(snapshot);
  for (uint32_t i = 0; i < 10; ++i) tree.Put("key", std::to_string(i));
  EXPECT_EQ(tree.Statistics().chain_buffers, 1u);
  reader.Finish();
  EXPECT_EQ(seen, "old");
  tree.ExpectHolds({{"key", "9"}});
  tree.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Layouts, LongBatches, EachLayout(), LayoutName);

// Goal: as many batches as there are thread states run at the same time; one more waits for one to
// end.
TEST(ThreadStatesOfBatches, AreWaitedForBeyondTheirNumber) {
  ThreadStates states;
  std::vector<ThreadState*> taken;
  for (uint32_t i = 0; i < ThreadStates::kThreadsMax; ++i) taken.push_back(&states.Take());
  EXPECT_EQ(std::set<ThreadState*>(taken.begin(), taken.end()).size(), ThreadStates::kThreadsMax);
  std::atomic<ThreadState*> got = nullptr;
  std::thread waiter([&] { got = &states.Take(); });
  std::this_thread::yield();
  EXPECT_EQ(got.load(), nullptr);
  states.Give(*taken[7]);
  waiter.join();
  EXPECT_EQ(got.load(), taken[7]);
}

class MakingRoom : public OnEachLayout {
 protected:
  static constexpr size_t kMiB = 1 << 20;

  static Verdict Put(TestTree& tree, Batch::Kind kind, std::string_view key, size_t bytes) {
    Batch batch(kind);
    batch.Put(key, Kept(batch, std::string(bytes, 'v')));
    tree.Execute(batch);
    if (batch.outcome(0).verdict == Verdict::kRefused) {
      EXPECT_EQ(batch.outcome(0).status.code(), Code::kOutOfMemory);
    }
    return batch.outcome(0).verdict;
  }
};

// Goal: a write that can never fit gives up no snapshot; a write that fits when some are given up
// gives up those and no more.
// Method: snapshots each of which keeps a large value of its own.
TEST_P(MakingRoom, GivesUpNoSnapshotForNothing) {
  for (const Batch::Kind kind : {kUnordered, kAtomic}) {
    TestTree tree(kSmallNodes, 16 * kMiB);
    std::vector<SnapshotRef> snapshots;
    for (uint32_t i = 0; i < 10; ++i) {
      ASSERT_EQ(Put(tree, kind, "key", kMiB), Verdict::kDone);
      snapshots.push_back(tree.OpenSnapshot());
    }
    ASSERT_EQ(Put(tree, kind, "key", kMiB), Verdict::kDone);
    EXPECT_EQ(Put(tree, kind, "large", 17 * kMiB), Verdict::kRefused);
    EXPECT_EQ(tree.Statistics().snapshots, 10u);
    // Eleven MiB are used, so some four snapshots have to go.
    EXPECT_EQ(Put(tree, kind, "large", 8 * kMiB), Verdict::kDone);
    EXPECT_LE(tree.Statistics().snapshots, 7u);
    EXPECT_GT(tree.Statistics().snapshots, 0u);
    for (const SnapshotRef snapshot : snapshots) tree.CloseSnapshot(snapshot);
    tree.ExpectNothingLeaked();
  }
}

// Goal: a snapshot that a batch is reading at is not given up, as that would free nothing now.
TEST_P(MakingRoom, GivesUpNoSnapshotThatIsReadAt) {
  TestTree tree(kSmallNodes, 16 * kMiB);
  const Stage stage(tree.core());
  ASSERT_EQ(Put(tree, kUnordered, "key", 6 * kMiB), Verdict::kDone);
  const SnapshotRef snapshot = tree.OpenSnapshot();
  std::optional<size_t> seen;
  Actor reader(SyncPoint::kReaderInLeaf, 1, [&] {
    Batch batch;
    batch.set_snapshot(snapshot);
    batch.Get("key");
    tree.Execute(batch);
    if (batch.outcome(0).present) seen = batch.outcome(0).value.size();
  });
  ASSERT_TRUE(reader.WaitUntilStopped());
  ASSERT_EQ(Put(tree, kUnordered, "key", 1), Verdict::kDone);
  tree.MaintainAll();
  EXPECT_EQ(Put(tree, kUnordered, "large", 12 * kMiB), Verdict::kRefused);
  EXPECT_EQ(tree.Statistics().snapshots, 1u);
  reader.Finish();
  EXPECT_EQ(seen, 6 * kMiB);
  EXPECT_EQ(Put(tree, kUnordered, "large", 12 * kMiB), Verdict::kDone);
  EXPECT_EQ(tree.Statistics().snapshots, 0u);
  tree.ExpectNothingLeaked();
}

// Goal: a write that does not fit is refused after a bounded number of tries, although others free
// and take memory all the time.
// Method: at each try another write replaces a value, so that something was always freed.
TEST_P(MakingRoom, IsRefusedWhileOthersFreeAndTake) {
  for (const Batch::Kind kind : {kUnordered, kAtomic}) {
    TestTree tree(kSmallNodes, 16 * kMiB);
    // Leaves between the two keys, so that neither write waits for the other.
    for (uint32_t i = 0; i < 100; ++i) tree.Put("m" + TestKey(i), TestValue("v"));
    const std::string other = "a";
    const std::string large = "z";
    ASSERT_EQ(Put(tree, kUnordered, other, 64 * 1024), Verdict::kDone);
    uint32_t tries = 0;
    bool is_inside = false;
    const Watcher watcher(tree.core(), [&](SyncPoint point) {
      if (point != SyncPoint::kReaderAtRoot || is_inside || tries == 1000) return;
      ++tries;
      is_inside = true;
      EXPECT_EQ(Put(tree, kUnordered, other, 64 * 1024), Verdict::kDone);
      is_inside = false;
    });
    EXPECT_EQ(Put(tree, kind, large, 17 * kMiB), Verdict::kRefused);
    EXPECT_GT(tries, Upkeep::kRoomsMax);
    EXPECT_LE(tries, 2 * Upkeep::kRoomsMax);
  }
}

// Goal: a write at the limit reclaims the bytes it wants and a little more, and not all garbage.
// Method: a tree of some 16 MiB was deleted at once.
TEST_P(MakingRoom, ReclaimsNoMoreThanIsWanted) {
  TestTree tree;
  for (uint32_t i = 0; i < 20'000; ++i) {
    tree.Put(std::to_string(i) + std::string(80, 'k'), std::string(600, 'v'));
  }
  tree.MaintainAll();
  tree.DeleteRange(Range::All());
  tree.budget().set_limit(tree.budget().used());
  const uint64_t before = tree.allocated_bytes();
  EXPECT_EQ(Put(tree, kUnordered, "large", kMiB), Verdict::kDone);
  EXPECT_GT(tree.allocated_bytes(), before - 8 * kMiB);
  EXPECT_TRUE(tree.core().reclaimer.detached());
  tree.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Layouts, MakingRoom, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
