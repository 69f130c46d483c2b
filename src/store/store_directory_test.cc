// A store that is kept in a directory of the machine.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/temporary_directory_test.h"
#include "durable/open_keyspaces.h"
#include "keyspace/keyspaces.h"
#include "skep/store.h"

namespace skep {
namespace {

class StoreDirectory : public testing::TestWithParam<LogSync> {
 protected:
  StoreDirectory() {
    options_.directory = directory_.path();
    options_.log_sync = GetParam();
    options_.log_segment_bytes = uint64_t{1} << 20;
    options_.keyspace_engines[1] = "hash";
  }

  std::unique_ptr<Store> Open() {
    std::string problem;
    auto store = Store::Open(options_, &problem);
    EXPECT_TRUE(store.has_value()) << problem;
    return store ? std::move(*store) : nullptr;
  }

  TemporaryDirectory directory_;
  Options options_;
};

TEST_P(StoreDirectory, KeepsWhatIsWritten) {
  {
    const auto store = Open();
    EXPECT_TRUE(store->Put("a", "1").ok());
    EXPECT_TRUE(store->Put("b", "2").ok());
    EXPECT_TRUE(store->PutUntil("soon", "x", DeadlineAfter(std::chrono::hours(1))).ok());
    EXPECT_TRUE(store->Put("c", "3", 1).ok());
    EXPECT_TRUE(store->SaveSnapshot().ok());
    EXPECT_TRUE(*store->Delete("a"));
    EXPECT_TRUE(*store->CompareAndSet("b", "2", "20"));
  }
  const auto store = Open();
  EXPECT_EQ(*store->Get("a"), std::nullopt);
  EXPECT_EQ(*store->Get("b"), "20");
  EXPECT_EQ(*store->Get("c", 1), "3");
  EXPECT_NE(store->DeadlineOf("soon")->value(), kNever);
}

// The machine's clocks, with the wall clock a day ahead.
class ClockThatIsAhead final : public Clock {
 public:
  static constexpr auto kAhead = std::chrono::hours(24);
  uint64_t MonotonicNs() override { return SystemClock().MonotonicNs(); }
  uint64_t WallUs() override {
    return SystemClock().WallUs() +
           static_cast<uint64_t>(std::chrono::microseconds(kAhead).count());
  }
};

// Goal: on a directory that was written while the clock was ahead a program's deadlines are those
// of the clock as it is, for points and batches, and a batch stays as the program has made it.
TEST_P(StoreDirectory, DeadlinesAreThoseOfTheClockAlsoWhenItIsBehind) {
  {
    ClockThatIsAhead clock;
    std::string problem;
    const auto opened = durable::OpenKeyspaces(PosixFileSystem(), clock, options_, &problem);
    ASSERT_TRUE(opened.has_value()) << problem;
    EXPECT_EQ(opened->report.clock_behind_ms, 0u);
    Batch batch;
    batch.set_now_ms(opened->persistence->time().Now().ms);
    batch.Put("a", "1");
    opened->keyspaces->at(0).Execute(batch);
    ASSERT_TRUE(opened->persistence->Close().ok());
  }
  const auto store = Open();
  const Deadline deadline = DeadlineAfter(std::chrono::hours(1));
  EXPECT_TRUE(store->PutUntil("b", "2", deadline).ok());
  EXPECT_TRUE(*store->Expire("a", deadline));
  EXPECT_EQ(*store->Get("b"), "2");
  for (const char* const key : {"a", "b"}) EXPECT_EQ(store->DeadlineOf(key)->value(), deadline);

  const auto deadline_ms = static_cast<uint64_t>(deadline.time_since_epoch().count());
  Batch batch;
  batch.set_notes_effects(true);
  batch.Expire("a", deadline_ms);
  batch.ExpireRange(Range::From("b"), deadline_ms);
  batch.Persist("absent");
  ASSERT_TRUE(store->Execute(batch).ok());
  EXPECT_EQ(batch.requests()[0].deadline_ms, deadline_ms);
  EXPECT_EQ(batch.outcome(0).deadline_ms, deadline_ms);
  EXPECT_EQ(batch.requests()[1].deadline_ms, deadline_ms);
  ASSERT_EQ(batch.effects().size(), 1u);
  EXPECT_EQ(batch.effects()[0].deadline_ms, deadline_ms);
  EXPECT_EQ(batch.requests()[2].deadline_ms, 0u);
  ASSERT_TRUE(store->Begin(batch).Wait().ok());
  EXPECT_EQ(batch.requests()[0].deadline_ms, deadline_ms);
  EXPECT_TRUE(*store->Expire("b", DeadlineAfter(-std::chrono::minutes(1))));
  EXPECT_EQ(*store->Get("b"), std::nullopt);
}

TEST_P(StoreDirectory, BelongsToOneStore) {
  const auto store = Open();
  std::string problem;
  const auto second = Store::Open(options_, &problem);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  EXPECT_NE(problem.find(options_.directory), std::string::npos) << problem;
}

TEST_P(StoreDirectory, RefusesAnotherEngine) {
  {
    EXPECT_TRUE(Open()->Put("c", "3", 1).ok());
  }
  options_.keyspace_engines.clear();
  std::string problem;
  const auto store = Store::Open(options_, &problem);
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code(), Code::kInvalidArgument);
  EXPECT_NE(problem.find("keyspace 1 is of the engine hash, the configuration says btree"),
            std::string::npos)
      << problem;
}

// Goal: what threads write at the same time, batches and snapshots in between, is all there.
// Method: each thread counts up under keys of its own, in transactions, and checks at the next
// start that both keys of a pair agree and have its last number; versions go on.
TEST_P(StoreDirectory, ThreadsAndSnapshots) {
  constexpr int kThreads = 3;
  constexpr int kCounts = 300;
  uint64_t version = 0;
  for (int life = 1; life <= 3; ++life) {
    const auto store = Open();
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kCounts; ++i) {
          for (const uint32_t keyspace : {0u, 1u}) {
            const std::string number = std::to_string(life * kCounts + i);
            const std::string key = "t" + std::to_string(t);
            const std::string other = key + "'";
            Batch batch(Batch::Kind::kAtomic);
            batch.Put(key, number);
            batch.Put(other, number);
            EXPECT_TRUE(store->Execute(batch, keyspace).ok());
            EXPECT_TRUE(batch.applied());
          }
        }
      });
    }
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(store->SaveSnapshot().ok());
    for (std::thread& thread : threads) thread.join();
    const Version now = store->Statistics().keyspaces[0].released;
    EXPECT_GT(now, version);
    version = now;
  }
  const auto store = Open();
  EXPECT_GE(store->Statistics().keyspaces[0].released, version);
  for (int t = 0; t < kThreads; ++t) {
    for (const uint32_t keyspace : {0u, 1u}) {
      const std::string key = "t" + std::to_string(t);
      EXPECT_EQ(*store->Get(key, keyspace), std::to_string(4 * kCounts - 1));
      EXPECT_EQ(*store->Get(key + "'", keyspace), std::to_string(4 * kCounts - 1));
    }
  }
}

std::string NameOfSync(const testing::TestParamInfo<LogSync>& sync) {
  constexpr const char* kNames[] = {"No", "EverySecond", "Always"};
  return kNames[static_cast<int>(sync.param)];
}

INSTANTIATE_TEST_SUITE_P(Sync, StoreDirectory,
                         testing::Values(LogSync::kNo, LogSync::kEverySecond, LogSync::kAlways),
                         NameOfSync);

}  // namespace
}  // namespace skep
