// Who syncs: those who want it, or the log's own step.
#include <gtest/gtest.h>

#include "durable/log_test.h"

namespace skep::durable {
namespace {

class LogSyncTest : public testing::Test {
 protected:
  LogSyncTest() { store_.log().Step(); }

  Log& log() { return store_.log(); }
  Engine& engine() { return store_.engine(0); }
  void TakeForASync(uint64_t ns) {
    store_.disk().set_options({.clock = &store_.clock(), .sync_ns = ns});
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
    const bool is_asked = engine().WantSync(ticket, true) < 0;
    const bool is_synced = IsSynced(ticket);
    EXPECT_NE(is_synced, is_asked);
    EXPECT_EQ(is_asked, log().wants_step());
    log().Step();
    EXPECT_TRUE(IsSynced(ticket));
    return is_synced;
  }

  TestStore store_{{}, LogSync::kAlways, kTestSegmentBytes};
};

// Goal: who wants a sync here has it when the call returns; a gate that waits for it is open, too.
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
  EXPECT_EQ(engine().WantSync(ticket, false), -1);
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
    EXPECT_EQ(engine().WantSync(ticket, true), -1);
    EXPECT_FALSE(IsSynced(ticket));
    EXPECT_FALSE(log().admits());
    EXPECT_EQ(engine().WantSync(ticket, true), -1);
    EXPECT_FALSE(IsSynced(ticket));
    store_.clock().Advance(1'000'000'000);
    log().Step();
    EXPECT_TRUE(log().admits());
    EXPECT_TRUE(IsSynced(ticket));
  }
}

// Goal: a version that waits for a batch which has not ended is asked for again.
TEST_F(LogSyncTest, WaitsForABatchThatGoesOn) {
  const Log::Floor floor = log().Enter(0);
  const Version ticket = Put();
  EXPECT_GE(engine().WantSync(ticket, true), 0);
  EXPECT_FALSE(IsSynced(ticket));
  log().Leave(0, floor, {});
  EXPECT_GE(engine().WantSync(ticket, true), 0);
  EXPECT_TRUE(IsSynced(ticket));
}

// Goal: the log's thread does not forget who wanted a sync while a batch had not left.
TEST_F(LogSyncTest, TheThreadWaitsForABatchThatGoesOn) {
  const Log::Floor floor = log().Enter(0);
  const Version ticket = Put();
  EXPECT_EQ(engine().WantSync(ticket, false), -1);
  EXPECT_LE(log().Step(), 1);
  EXPECT_FALSE(IsSynced(ticket));
  log().Leave(0, floor, {});
  log().Step();
  EXPECT_TRUE(IsSynced(ticket));
  EXPECT_GT(log().Step(), 1);
}

}  // namespace
}  // namespace skep::durable
