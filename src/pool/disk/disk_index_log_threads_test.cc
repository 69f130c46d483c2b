// The log of an index server with its threads, on real files: an owner appends while the log is
// written, synced and compacted.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "base/temporary_directory_test.h"
#include "model/model_engine.h"
#include "pool/disk/disk_index_log.h"
#include "pool/disk/logged_states_test.h"

namespace skep::pool {
namespace {

class DiskIndexLogTest : public testing::TestWithParam<LogSync> {
 protected:
  std::unique_ptr<DiskIndexLog> Open() {
    std::string problem;
    auto log = DiskIndexLog::Open(PosixFileSystem(), SystemClock(),
                                  {.directory = directory_.path() + "/index",
                                   .sync = GetParam(),
                                   .segment_bytes = 64 * 1024,
                                   .compact_bytes_min = 16 * 1024,
                                   .make_tree = [this] { return MakeTree(); },
                                   .wake = [this] { wakes_.fetch_add(1); }},
                                  &problem);
    EXPECT_TRUE(log.has_value()) << problem;
    return log ? std::move(*log) : nullptr;
  }
  std::unique_ptr<Engine> MakeTree() {
    EngineOptions options;
    options.budget = &budget_;
    return ModelEngine::kInfo.make(options);
  }

  TemporaryDirectory directory_;
  MemoryBudget budget_;
  std::atomic<uint64_t> wakes_ = 0;
};

TEST_P(DiskIndexLogTest, KeepsAllWhileItIsCompacted) {
  constexpr uint64_t kEntries = 3000;
  uint64_t entries = 0;
  for (int round = 0; round < 3; ++round) {
    const auto log = Open();
    ASSERT_NE(log, nullptr);
    const FoundState found = log->TakeFound();
    if (round == 0) {
      ASSERT_EQ(found.state, nullptr);
      AppendEmptyState(*log);
    } else {
      ASSERT_NE(found.state, nullptr);
      EXPECT_EQ(found.state->keys(), kLoggedKeys);
      EXPECT_EQ(found.state->applied(), entries);
      EXPECT_EQ(found.state->sessions().size(), entries);
      EXPECT_TRUE(found.IsOwner(7));
    }
    LoggedUpTo needed;
    EXPECT_TRUE(AppendEntries(log.get(), LogBatch(entries + 1), &needed)) << "no entries";
    for (const uint64_t end = entries + kEntries; entries < end; ++entries) {
      const LogBatch batch = JoinOf(entries + 1);
      while (!AppendEntries(log.get(), batch, &needed)) std::this_thread::yield();
    }
    while (!needed.IsReached(log.get())) std::this_thread::yield();
    // Until it is compacted, which takes no longer than the test may.
    while (log->IsLong()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (round == 1) {
      EXPECT_TRUE(log->Close().ok());
    }
  }
  EXPECT_GT(wakes_, 0u);
}

INSTANTIATE_TEST_SUITE_P(Policies, DiskIndexLogTest,
                         testing::Values(LogSync::kNo, LogSync::kEverySecond, LogSync::kAlways));

}  // namespace
}  // namespace skep::pool
