// Syncs by the thread that wants one, and by the log's own step.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "durable/log_test.h"

namespace skep::durable {
namespace {

class LogSyncTest : public testing::Test {
 protected:
  LogSyncTest() { store_.log().Step(); }

  Log& log() { return store_.log(); }
  Engine& engine() { return store_.engine(0); }
  void TakeForASync(uint64_t ns) {
    store_.disk().set_options({.during_sync = [this, ns] { store_.clock().Advance(ns); }});
  }
  uint64_t syncs() { return log().statistics().syncs; }

  Version Put() {
    Batch batch;
    batch.Put("key", "value");
    return engine().Execute(batch);
  }
  bool IsSynced(Version ticket) { return engine().synced_gate().IsReleased(ticket); }
  // Whether a sync that is wanted here is done here.
  bool SyncsHere() {
    const Version ticket = Put();
    engine().WantSync(ticket, true);
    const bool is_synced = IsSynced(ticket);
    EXPECT_NE(is_synced, log().wants_step());
    log().Step();
    EXPECT_TRUE(IsSynced(ticket));
    return is_synced;
  }

  TestStore store_{{}, LogSync::kAlways, kTestSegmentBytes};
};

// Goal: WantSync() with `here` has synced when it returns, and the gate that waits for the sync is
// released.
TEST_F(LogSyncTest, Here) {
  EXPECT_TRUE(engine().syncs_to_release());
  const Version ticket = Put();
  EXPECT_FALSE(engine().gate().IsReleased(ticket));
  const uint64_t before = syncs();
  engine().WantSync(ticket, true);
  EXPECT_TRUE(IsSynced(ticket));
  EXPECT_TRUE(engine().gate().IsReleased(ticket));
  EXPECT_EQ(syncs(), before + 1);
  EXPECT_FALSE(log().wants_step());
  // There is nothing left.
  engine().WantSync(ticket, true);
  EXPECT_EQ(syncs(), before + 1);
}

// Goal: elsewhere means by the next step, not by the call.
TEST_F(LogSyncTest, Elsewhere) {
  const Version ticket = Put();
  engine().WantSync(ticket, false);
  EXPECT_FALSE(IsSynced(ticket));
  EXPECT_TRUE(log().wants_step());
  log().Step();
  EXPECT_TRUE(IsSynced(ticket));
  EXPECT_FALSE(log().wants_step());
}

// Goal: nobody else waits long for a disk that is slow, and one that gets fast again is noticed.
TEST_F(LogSyncTest, SlowDisk) {
  EXPECT_TRUE(SyncsHere());
  TakeForASync(5'000'000);
  int waited = 0;
  while (waited < 20 && SyncsHere()) ++waited;
  EXPECT_LE(waited, 2);
  TakeForASync(50'000'000);  // and much slower: it does not take long to forget
  EXPECT_FALSE(SyncsHere());
  TakeForASync(100'000);
  int left = 0;
  while (left < 100 && !SyncsHere()) ++left;
  EXPECT_LT(left, 40);
  EXPECT_TRUE(SyncsHere());
}

// Goal: a sync here that fails acknowledges nothing until the log's step has mended it.
TEST_F(LogSyncTest, Fails) {
  for (const auto operation : {SimFileSystem::Operation::kSync, SimFileSystem::Operation::kWrite}) {
    const Version ticket = Put();
    store_.disk().FailOnce(operation, 0, EIO);
    for (int i = 0; i < 2; ++i) {
      engine().WantSync(ticket, true);
      EXPECT_FALSE(IsSynced(ticket));
      EXPECT_FALSE(log().admits());
      EXPECT_TRUE(log().wants_step());
    }
    store_.clock().Advance(1'000'000'000);
    log().Step();
    EXPECT_TRUE(log().admits());
    EXPECT_TRUE(IsSynced(ticket));
  }
}

// Goal: a thread that finds another one's sync under way does not wait for a disk that hangs.
TEST_F(LogSyncTest, AnotherHangs) {
  const Version ticket = Put();
  Version late = 0;
  const auto meanwhile = [&] {
    store_.disk().set_options({});
    late = Put();
    engine().WantSync(late, true);
    EXPECT_FALSE(IsSynced(late));
    EXPECT_TRUE(log().wants_step());
  };
  store_.disk().set_options({.during_sync = meanwhile});
  engine().WantSync(ticket, true);
  EXPECT_TRUE(IsSynced(ticket));
  ASSERT_GT(late, ticket);
  EXPECT_FALSE(IsSynced(late));
  log().Step();
  EXPECT_TRUE(IsSynced(late));
}

// Goal: the log's thread does not forget who wanted a sync while a batch had not left.
TEST_F(LogSyncTest, WaitsForABatchThatGoesOn) {
  for (const bool here : {false, true}) {
    const Log::Floor floor = *log().Enter(0, {});
    const Version ticket = Put();
    engine().WantSync(ticket, here);
    EXPECT_FALSE(IsSynced(ticket));
    EXPECT_TRUE(log().wants_step());
    EXPECT_LE(log().Step(), 1);
    EXPECT_FALSE(IsSynced(ticket));
    log().Leave(0, floor, {});
    log().Step();
    EXPECT_TRUE(IsSynced(ticket));
    EXPECT_GT(log().Step(), 1);
  }
}

// A second of the clock is one of the disk's, too.
class SyncEverySecondTest : public testing::Test {
 protected:
  SyncEverySecondTest() {
    log().set_unsynced_ms_max(2'000);
    log().Step();
  }

  Log& log() { return store_.log(); }
  Engine& engine() { return store_.engine(0); }
  void Pass(uint64_t ms) { store_.clock().Advance(ms * 1'000'000); }
  Status Put(size_t bytes = 5) {
    Batch batch;
    const std::string value(bytes, 'v');
    batch.Put("key", value);
    batch.Get("key");
    engine().Execute(batch);
    engine().Release();
    EXPECT_EQ(batch.outcome(1).verdict, Verdict::kDone) << "reads go on";
    return batch.outcome(0).verdict == Verdict::kRefused ? batch.outcome(0).status : Status();
  }
  bool CanReadAll() {
    Batch batch;
    batch.Count(Range::All(), kNoLimit);
    const Version ticket = engine().Execute(batch);
    engine().Release();
    return engine().gate().IsReleased(ticket);
  }

  TestStore store_{{}, LogSync::kEverySecond, kTestSegmentBytes};
};

// Goal: while the disk does not answer a sync, writes are let in for so long as what is not synced
// may be old, and not longer; reads go on; when it has answered, all do.
TEST_F(SyncEverySecondTest, ADiskThatHangs) {
  ASSERT_TRUE(Put().ok());
  Pass(500);
  const auto meanwhile = [&] {
    store_.disk().set_options({.short_reads_ppm = 0});
    for (int i = 0; i < 15; ++i) {
      EXPECT_TRUE(Put().ok()) << i;
      Pass(100);
    }
    Pass(1);
    EXPECT_EQ(log().statistics().unsynced_ms, 2'001u);
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(Put().detail(), static_cast<uint64_t>(EBUSY));
      EXPECT_FALSE(log().admits());
      EXPECT_TRUE(CanReadAll());
      Pass(1'000);
    }
  };
  store_.disk().set_options({.short_reads_ppm = 0, .during_sync = meanwhile});
  log().Step();
  // The bytes that were written after the sync began are old by now.
  EXPECT_FALSE(log().admits());
  log().Step();
  EXPECT_TRUE(log().admits());
  EXPECT_EQ(log().statistics().unsynced_ms, 0u);
  EXPECT_TRUE(Put().ok());
}

// Goal: other policies have no such bound, nor has 0.
TEST_F(SyncEverySecondTest, NoBound) {
  ASSERT_TRUE(Put().ok());
  Pass(10'000);
  EXPECT_FALSE(Put().ok());
  log().set_unsynced_ms_max(0);
  EXPECT_TRUE(Put().ok());
  log().set_unsynced_ms_max(2'000);
  EXPECT_FALSE(Put().ok());
  log().set_policy(LogSync::kNo);
  EXPECT_TRUE(Put().ok());
}

// Goal: a sync that is due does not wait until space is taken, filled or given back. Method: a step
// that has all of it to do; what there is when it syncs.
TEST_F(SyncEverySecondTest, ComesFirst) {
  ASSERT_TRUE(Put(kTestSegmentBytes / 2).ok());
  ASSERT_TRUE(store_.persistence().saver().Save().ok());
  ASSERT_TRUE(Put(kTestSegmentBytes / 2).ok());
  const Image before = TakeImage(store_.disk());
  ASSERT_FALSE(before.contains("log-next.tmp"));
  Pass(500);
  int syncs = 0;
  const auto during_sync = [&] {
    if (syncs++ != 0) return;
    Image now = TakeImage(store_.disk());
    ASSERT_EQ(now.size(), before.size());
    for (const auto& [name, bytes] : before) EXPECT_TRUE(now.contains(name)) << name;
  };
  store_.disk().set_options({.short_reads_ppm = 0, .during_sync = during_sync});
  log().Step();
  EXPECT_GT(syncs, 0);
  EXPECT_EQ(log().statistics().unsynced_ms, 0u);
  EXPECT_TRUE(TakeImage(store_.disk()).contains("log-next.tmp"));
}

}  // namespace
}  // namespace skep::durable
