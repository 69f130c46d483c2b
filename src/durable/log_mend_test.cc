// One fault of the disk, and what is acknowledged afterwards: the log goes on in a new segment, and
// a reader takes that one, whatever others lie about.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "durable/directory.h"
#include "durable/log_check.h"
#include "durable/log_format.h"
#include "durable/log_test.h"

namespace skep::durable {
namespace {

using Operation = SimFileSystem::Operation;

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kMendSegmentBytes = 8 * 1024;

class LogMendTest : public testing::TestWithParam<LogSync> {
 protected:
  LogMendTest() { Begin(); }

  // A store in a directory of its own.
  void Begin() {
    store_ = std::make_unique<TestStore>(Image(), GetParam(), kMendSegmentBytes);
    puts_ = acknowledged_ = ticket_ = 0;
    Step();
  }

  // The log's thread, a second later.
  void Step() {
    store_->clock().Advance(kSecondNs);
    store_->log().Step();
    NoteAcknowledged();
  }

  // Acknowledged as the policy says, unless it is refused.
  void Put(size_t bytes) {
    Batch batch;
    const std::string key = "key " + std::to_string(puts_);
    batch.Put(batch.scratch().Copy(key), batch.scratch().Copy(std::string(bytes, 'v')));
    const Version ticket = store_->engine(0).Execute(batch);
    if (batch.outcome(0).verdict == Verdict::kRefused) return;
    ++puts_;
    ticket_ = ticket;
    if (GetParam() == LogSync::kAlways) {
      store_->engine(0).WantSync(ticket_, true);
    } else {
      store_->log().Publish();
    }
    NoteAcknowledged();
  }
  void PutMany(int count, size_t bytes) {
    for (int i = 0; i < count; ++i) Put(bytes);
  }
  bool IsAcknowledged() { return acknowledged_ == puts_; }
  // The log's thread, until it has mended what there is.
  void Settle() {
    for (int i = 0; i < 5; ++i) Step();
    ASSERT_TRUE(store_->log().admits());
  }
  // Writes until the log has a second segment, of which nothing is synced.
  void FillASegment() {
    Step();
    const uint64_t begin = store_->log().statistics().position;
    while (store_->log().statistics().position < begin + kMendSegmentBytes) Put(400);
  }
  void Sync() {
    store_->engine(0).WantSync(ticket_, false);
    Step();
  }

  // Two fail, as one may be that of the segment which is prepared.
  void FailASync() {
    for (int i = 0; i < 2; ++i) store_->disk().FailOnce(Operation::kSync, 0, EIO);
    Put(400);
    if (GetParam() != LogSync::kAlways) Sync();
    ASSERT_FALSE(store_->log().admits());
  }

  // A process is killed and another one started; nothing that was acknowledged is missing, and a
  // check finds nothing wrong.
  void CheckAfterAKill(const Image& image) {
    SimFileSystem files(1, trace_, {.short_reads_ppm = 0});
    StoreImage(files, image);
    std::string file;
    const auto snapshots = ListStoreFiles(files, kTestDirectory)->snapshots;
    const uint64_t needed = snapshots.empty() ? 0 : snapshots.back();
    const auto check = CheckLog(files, kTestDirectory, needed, {}, &file);
    ASSERT_TRUE(check.has_value()) << file;
    for (const Damage& damage : check->damage) {
      ADD_FAILURE() << damage.file << " at " << damage.offset << ": " << damage.what;
    }
    TestStore next(image, GetParam(), kMendSegmentBytes);
    ASSERT_TRUE(next.status().ok()) << next.problem();
    const size_t found = next.States()[0].size();
    EXPECT_GE(found, acknowledged_);
    EXPECT_LE(found, puts_);
  }
  void CheckAfterAKill() { CheckAfterAKill(TakeImage(store_->disk())); }

  void NoteAcknowledged() {
    if (store_->engine(0).gate().IsReleased(ticket_)) acknowledged_ = puts_;
  }

  Trace trace_;
  std::unique_ptr<TestStore> store_;
  uint64_t puts_ = 0;
  uint64_t acknowledged_ = 0;  // so many of them
  Version ticket_ = 0;
};

// Goal: a sync that fails just after a segment was begun costs nothing that is acknowledged after
// it, nor before.
// Method: the part that is not synced begins in a segment and ends in the next one.
TEST_P(LogMendTest, ASyncFailsAfterARotation) {
  FillASegment();
  FailASync();
  Settle();
  PutMany(40, 400);
  Sync();
  EXPECT_TRUE(IsAcknowledged());
  CheckAfterAKill();
}

// Goal: after any write that fails the log goes on in a new segment.
TEST_P(LogMendTest, AWriteFails) {
  for (uint64_t successes = 0; successes < 40; successes += 3) {
    FillASegment();
    store_->disk().FailOnce(Operation::kWrite, successes, EIO);
    PutMany(20, 400);
    Settle();
    PutMany(20, 400);
    Sync();
    EXPECT_TRUE(IsAcknowledged());
    CheckAfterAKill();
  }
}

// Goal: what is acknowledged behind a snapshot that was written after a failure is not lost either:
// the segment that the log is written to is never dropped.
TEST_P(LogMendTest, ASnapshotAfterAFailure) {
  FillASegment();
  FailASync();
  Settle();
  PutMany(3, 400);
  ASSERT_TRUE(store_->persistence().saver().Save().ok());
  Step();
  PutMany(3, 400);
  Sync();
  EXPECT_TRUE(IsAcknowledged());
  CheckAfterAKill();
}

// Goal: a disk that fills, and has room again, costs nothing.
TEST_P(LogMendTest, TheDiskFills) {
  FillASegment();
  for (int round = 0; round < 5; ++round) {
    store_->disk().set_options({.short_reads_ppm = 0, .capacity_bytes = 0});
    PutMany(25, 400);
    Step();
    store_->disk().FailOnce(Operation::kWrite, 0, ENOSPC);
    PutMany(5, 400);
    Step();
    store_->disk().set_options({.short_reads_ppm = 0});
    Settle();
    PutMany(15, 400);
    Sync();
    EXPECT_TRUE(IsAcknowledged());
    CheckAfterAKill();
  }
}

// Goal: a mending that fails half-way, at whatever call, is no worse than one that waits.
// Method: the sync fails, then the n-th call of each kind of what mends; the directory is looked at
// as it is then, and after the next mending, which has at least so many of each.
TEST_P(LogMendTest, TheMendingFails) {
  const std::vector<std::pair<Operation, uint64_t>> calls = {
      {Operation::kWrite, 1}, {Operation::kSync, 3}, {Operation::kDirectory, 2}};
  for (const auto& [operation, count] : calls) {
    for (uint64_t successes = 0; successes < count; ++successes) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(operation) << " " << successes);
      Begin();
      FillASegment();
      FailASync();
      store_->disk().FailOnce(operation, successes, EIO);
      for (int i = 0; i < 3; ++i) Step();
      const Image image = TakeImage(store_->disk());
      CheckAfterAKill(image);
      Settle();
      PutMany(30, 400);
      Sync();
      EXPECT_TRUE(IsAcknowledged());
      CheckAfterAKill();
    }
  }
}

// Goal: a sync that fails while the log is ended is done again: everything is there, and the end.
TEST_P(LogMendTest, TheEndFails) {
  for (const Operation operation : {Operation::kWrite, Operation::kSync}) {
    for (uint64_t successes = 0; successes < 2; ++successes) {
      TestStore store({}, GetParam(), kMendSegmentBytes);
      store.log().Step();
      Batch batch;
      batch.Put("key", "value");
      store.engine(0).Execute(batch);
      store.disk().FailOnce(operation, successes, EIO);
      EXPECT_TRUE(store.persistence().Close().ok());
      store.disk().Crash();
      TestStore next(TakeImage(store.disk()), GetParam(), kMendSegmentBytes);
      EXPECT_EQ(next.States()[0].size(), 1u);
    }
  }
}

std::string NameOfPolicy(const testing::TestParamInfo<LogSync>& policy) {
  switch (policy.param) {
    case LogSync::kNo:
      return "No";
    case LogSync::kEverySecond:
      return "EverySecond";
    case LogSync::kAlways:
      return "Always";
  }
  return "";
}

// Goal: a check says where segments of one epoch overlap, and only there: one that a new epoch has
// cut may go on, and one that is superseded may lie about.
TEST(LogCheckOfTheChain, Overlap) {
  std::string first;
  const auto append = [](std::string& to, uint64_t begin, std::string_view payload) {
    const uint64_t at = to.size();
    AppendRecord(to, begin + at, payload);
    return begin + at;
  };
  append(first, 0, "\x04");
  const uint64_t begin = append(first, 0, "\x04");
  std::string second;
  append(second, begin, "\x04");
  for (const uint64_t epoch : {2, 3}) {
    Trace trace;
    SimFileSystem files(1, trace);
    StoreImage(files, {{SegmentName({.begin = 0, .epoch = 2}), first},
                       {SegmentName({.begin = begin, .epoch = epoch}), second},
                       {SegmentName({.begin = begin, .epoch = 1}), first}});
    std::string file;
    const auto check = CheckLog(files, kTestDirectory, 0, {}, &file);
    ASSERT_TRUE(check.has_value());
    EXPECT_EQ(check->segments.size(), 2u);
    EXPECT_EQ(check->superseded.size(), 1u);
    ASSERT_EQ(check->damage.size(), epoch == 2 ? 1u : 0u);
    if (epoch != 2) continue;
    EXPECT_EQ(check->damage[0].file,
              std::string(kTestDirectory) + "/" + SegmentName({.begin = 0, .epoch = 2}));
    EXPECT_EQ(check->damage[0].offset, begin);
    EXPECT_EQ(check->damage[0].bytes, kRecordHeaderBytes + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, LogMendTest,
                         testing::Values(LogSync::kAlways, LogSync::kEverySecond, LogSync::kNo),
                         NameOfPolicy);

}  // namespace
}  // namespace skep::durable
