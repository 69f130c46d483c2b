// Planted schedules: a snapshot is written while a batch on the tree has its version and is not
// released. The answers of the batch must hold after a kill.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "btree/btree_engine.h"
#include "btree/core.h"
#include "durable/log_test.h"

namespace skep::simulation {
namespace {

using btree::SyncPoint;

// A store with one tree. Owner: the test's thread, which plays all parts.
class SnapshotSchedule : public testing::Test {
 protected:
  static constexpr uint64_t kLifetimeMs = 1000;
  static constexpr std::string_view kKey = "key";

  void SetUp() override { Open(); }

  // Opens the store; the one before is killed.
  void Open() {
    keyspaces_.reset();
    persistence_.reset();
    std::string problem;
    auto opened = durable::OpenKeyspaces(disk_, clock_, options_, &problem);
    ASSERT_TRUE(opened.has_value()) << problem;
    persistence_ = std::move(opened->persistence);
    keyspaces_ = std::move(opened->keyspaces);
  }
  Outcome Do(const Request& request) {
    Batch batch;
    batch.Add(request);
    return Execute(batch);
  }
  // Returns the outcome of the batch's first request; its bytes are the batch's.
  Outcome Execute(Batch& batch) {
    batch.set_now_ms(persistence_->time().Now().ms);
    keyspaces_->at(0).Execute(batch);
    persistence_->log().Publish();
    return batch.outcome(0);
  }
  // Executes the request, and in the middle, when it has its version, writes a snapshot that begins
  // after the deadline has passed.
  Outcome DoAcrossASnapshot(const Request& request) {
    auto& durable = static_cast<durable::DurableEngine&>(keyspaces_->at(0));
    btree::Core& core = static_cast<BtreeEngine&>(durable.inner()).core();
    core.hook = {.call =
                     [](void* test, SyncPoint point) {
                       if (point != SyncPoint::kWriterDrew) return;
                       static_cast<SnapshotSchedule*>(test)->SaveAfterTheDeadline();
                     },
                 .context = this};
    const Outcome outcome = Do(request);
    core.hook = {};
    return outcome;
  }
  void SaveAfterTheDeadline() {
    if (std::exchange(is_saved_, true)) return;
    clock_.Advance(2 * kLifetimeMs * 1'000'000);
    EXPECT_TRUE(persistence_->saver().Save().ok());
  }

  Trace trace_;
  SimClock clock_;
  SimFileSystem disk_{1, trace_, {}};
  const Options options_{.engine = "btree",
                         .collection_value_bytes = 0,  // no engine around the durable one
                         .directory = durable::kTestDirectory,
                         .log_sync = LogSync::kNo,
                         .log_segment_bytes = durable::kTestSegmentBytes};
  std::unique_ptr<durable::Persistence> persistence_;
  std::unique_ptr<Keyspaces> keyspaces_;
  bool is_saved_ = false;
};

// Goal: a key that was answered to stay, or to stay longer, is found after a kill, also if the
// snapshot has found its deadline in the past.
TEST_F(SnapshotSchedule, APersistThatWasAnsweredIsThere) {
  const uint64_t deadline_ms = persistence_->time().Now().ms + kLifetimeMs;
  Do({.op = Op::kPut, .key = kKey, .value = "value", .deadline_ms = deadline_ms});
  const Outcome persisted =
      DoAcrossASnapshot({.op = Op::kExpire, .when = Request::kHasDeadline, .key = kKey});
  ASSERT_EQ(persisted.verdict, Verdict::kDone);
  ASSERT_EQ(persisted.deadline_ms, deadline_ms);
  ASSERT_TRUE(is_saved_);
  Open();
  Batch get;
  get.Get(kKey);
  const Outcome found = Execute(get);
  EXPECT_EQ(found.verdict, Verdict::kDone);
  EXPECT_EQ(found.value, "value");
  EXPECT_EQ(found.deadline_ms, 0u);
}

TEST_F(SnapshotSchedule, AnExpireThatWasAnsweredIsThere) {
  const uint64_t deadline_ms = persistence_->time().Now().ms + kLifetimeMs;
  const uint64_t later_ms = persistence_->time().Now().ms + 10 * kLifetimeMs;
  Do({.op = Op::kPut, .key = kKey, .value = "value", .deadline_ms = deadline_ms});
  const Outcome expires =
      DoAcrossASnapshot({.op = Op::kExpire, .key = kKey, .deadline_ms = later_ms});
  ASSERT_EQ(expires.verdict, Verdict::kDone);
  ASSERT_TRUE(is_saved_);
  Open();
  Batch get;
  get.Get(kKey);
  const Outcome found = Execute(get);
  EXPECT_EQ(found.verdict, Verdict::kDone);
  EXPECT_EQ(found.value, "value");
  EXPECT_EQ(found.deadline_ms, later_ms);
}

// Goal: a function that has found a key before its deadline is not repeated on an absent key: the
// key does not come back without a deadline.
TEST_F(SnapshotSchedule, AFunctionMakesNoNewKey) {
  const uint64_t deadline_ms = persistence_->time().Now().ms + kLifetimeMs;
  const std::string value(300, 'v');
  Do({.op = Op::kPut, .key = kKey, .value = value, .deadline_ms = deadline_ms});
  const Outcome appended = DoAcrossASnapshot(
      {.op = Op::kApply, .key = kKey, .value = "x", .function = functions::kAppend});
  ASSERT_EQ(appended.verdict, Verdict::kDone);
  ASSERT_TRUE(appended.present);
  ASSERT_TRUE(is_saved_);
  Open();
  EXPECT_EQ(Do({.op = Op::kGet, .key = kKey}).verdict, Verdict::kAbsent);
  keyspaces_->Maintain(persistence_->time().Now().ms + 60'000);
  EXPECT_EQ(keyspaces_->at(0).Statistics().items, 0u);
}

}  // namespace
}  // namespace skep::simulation
