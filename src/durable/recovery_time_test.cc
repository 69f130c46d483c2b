// Writes in the middle of a snapshot: changes of a key before its deadline are replayed on the key
// as it was then, and no keyspace is forgotten.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "durable/log_test.h"

namespace skep::durable {
namespace {

constexpr uint64_t kDeadlineMs = 1'000'000;
constexpr const char* kEngines[] = {"btree", "hash", "model"};

// Tells the time, and lets something happen first.
class HookedClock final : public Clock {
 public:
  uint64_t MonotonicNs() override { return now_ms * 1'000'000; }
  uint64_t WallUs() override {
    if (hook && --calls == 0) std::exchange(hook, nullptr)();
    return now_ms * 1'000;
  }

  uint64_t now_ms = kDeadlineMs - 10;
  int calls = 0;  // of WallUs, until the hook is called
  std::function<void()> hook;
};

class RecoveryTime : public testing::TestWithParam<const char*> {
 protected:
  // Begins with an empty directory.
  void Begin() {
    keyspaces_.reset();
    persistence_.reset();
    disk_ = std::make_unique<SimFileSystem>(1, trace_);
    Open();
  }
  // Kills the process that ran before, and starts another one.
  void Open() {
    keyspaces_.reset();
    persistence_.reset();
    std::string problem;
    auto opened = OpenKeyspaces(*disk_, clock_, store_, &problem);
    ASSERT_TRUE(opened.has_value()) << problem;
    persistence_ = std::move(opened->persistence);
    keyspaces_ = std::move(opened->keyspaces);
  }
  void Execute(uint32_t keyspace, Batch& batch) {
    batch.set_now_ms(clock_.now_ms);
    keyspaces_->at(keyspace).Execute(batch);
    persistence_->log().Publish();
  }
  // Adds one to each element; a vector that is not there begins with zeroes.
  void AddOne() {
    const Function* const add = FindFunction(FunctionKind::kUpdate, "add", Element::kI64);
    const int64_t one = 1;
    Batch batch;
    batch.UpdateElements("vector", add, {reinterpret_cast<const char*>(&one), sizeof(one)},
                         {.create = 64});
    Execute(0, batch);
  }

  HookedClock clock_;
  Trace trace_;
  std::unique_ptr<SimFileSystem> disk_;
  const Options store_{.engine = GetParam(),
                       .keyspaces = 2,
                       .directory = kTestDirectory,
                       .log_sync = LogSync::kNo,
                       .log_segment_bytes = kTestSegmentBytes};
  std::unique_ptr<Persistence> persistence_;
  std::unique_ptr<Keyspaces> keyspaces_;
};

INSTANTIATE_TEST_SUITE_P(Engines, RecoveryTime, testing::ValuesIn(kEngines));

// Goal: a vector with a deadline is changed after the snapshot has read it; the deadline passes
//   before the snapshot reads the next keyspace. After a restart the vector is gone: the change was
//   of the one that had the deadline, and did not make another one.
TEST_P(RecoveryTime, AKeyExpiresWhileASnapshotIsWritten) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  AddOne();
  Batch expire;
  expire.Expire("vector", kDeadlineMs);
  Execute(0, expire);
  Batch other;
  other.Put("other", "value");
  Execute(1, other);
  // The time is asked for when the snapshot begins, and for each keyspace.
  clock_.calls = 3;
  clock_.hook = [&] {
    AddOne();
    clock_.now_ms = kDeadlineMs + 10;
  };
  ASSERT_TRUE(persistence_->saver().Save().ok());
  ASSERT_FALSE(clock_.hook);
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(StateOf(keyspaces_->at(0), clock_.now_ms), State{});
  // Time does not go back to before the snapshot.
  clock_.now_ms = 0;
  Batch get;
  get.Get("vector");
  Execute(0, get);
  EXPECT_EQ(get.outcome(0).verdict, Verdict::kAbsent);
}

// Goal: a keyspace that is used for the first time while a snapshot begins or is written is there
// after a restart. Method: its first write comes at each of the moments at which the time is asked
// for: between the steps of the beginning, and of the keyspaces.
TEST_P(RecoveryTime, AKeyspaceIsFirstUsedWhileASnapshotIsWritten) {
  int moments = 0;
  for (bool came = true; came; ++moments) {
    SCOPED_TRACE(testing::Message() << "at moment " << moments);
    ASSERT_NO_FATAL_FAILURE(Begin());
    Batch put;
    put.Put("key", "value");
    Execute(0, put);
    clock_.calls = moments + 1;
    clock_.hook = [&] {
      Batch first;
      first.Put("first", "value");
      Execute(1, first);
    };
    ASSERT_TRUE(persistence_->saver().Save().ok());
    came = !clock_.hook;
    clock_.hook = nullptr;
    ASSERT_NO_FATAL_FAILURE(Open());
    EXPECT_EQ(StateOf(keyspaces_->at(0), clock_.now_ms).size(), 1u);
    EXPECT_EQ(StateOf(keyspaces_->at(1), clock_.now_ms).size(), came ? 1u : 0u);
  }
  EXPECT_GE(moments, 4);
}

}  // namespace
}  // namespace skep::durable
