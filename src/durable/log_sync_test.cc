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

// Goal: who finds another's sync under way does not wait for a disk that hangs.
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
    const Log::Floor floor = log().Enter(0);
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

}  // namespace
}  // namespace skep::durable
