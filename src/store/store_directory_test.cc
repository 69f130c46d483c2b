// A store that is kept in a directory of the machine.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/temporary_directory_test.h"
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
