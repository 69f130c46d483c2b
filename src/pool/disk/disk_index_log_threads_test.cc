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
#include "pool/state_pieces.h"

namespace skep::pool {
namespace {

constexpr DigestKeys kKeys = {.index = {1, 2}, .tag = {3, 4}};

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
  static void AppendEmptyState(IndexLog& log) {
    IndexState state(kKeys);
    StatePieces pieces(state, {.epoch = 1, .hash_server = 1});
    while (!pieces.IsDone()) {
      const bool is_first = pieces.part() == StatePart::kBegin;
      std::string piece;
      pieces.Next(piece);
      ASSERT_NE(log.Append(is_first          ? IndexLog::Kind::kStateBegin
                           : pieces.IsDone() ? IndexLog::Kind::kStateEnd
                                             : IndexLog::Kind::kState,
                           piece),
                0u);
    }
    ASSERT_NE(log.Append(IndexLog::Kind::kOwner, std::string_view("\7\1", 2)), 0u);
  }
  // Joins `count` clients, one an entry.
  static void Join(IndexLog& log, uint64_t first_index, uint64_t count, LoggedUpTo* needed) {
    for (uint64_t i = 0; i < count; ++i) {
      LogBatch batch(first_index + i);
      batch.Add({.kind = LogEntry::Kind::kJoin, .client = static_cast<uint32_t>(first_index + i)});
      while (!AppendEntries(&log, batch, needed)) std::this_thread::yield();
    }
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
      EXPECT_EQ(found.state->keys(), kKeys);
      EXPECT_EQ(found.state->applied(), entries);
      EXPECT_EQ(found.state->sessions().size(), entries);
      EXPECT_TRUE(found.IsOwner(7));
    }
    LoggedUpTo needed;
    EXPECT_TRUE(AppendEntries(log.get(), LogBatch(entries + 1), &needed)) << "no entries";
    Join(*log, entries + 1, kEntries, &needed);
    entries += kEntries;
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
