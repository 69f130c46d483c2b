// A compaction that is given up half-way does not stand in the way of the next one, and is passed
// over when the log is read.
//
// Method: the log has no thread of its own, so each interleaving is fixed. The disk refuses to give
// space for one piece of the state, which is longer than a segment, after shorter ones were taken.
#include "pool/disk/disk_index_log.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/model_engine.h"
#include "pool/disk/logged_states_test.h"
#include "sim/sim_clock.h"
#include "sim/sim_file.h"

namespace skep::pool {
namespace {

class DiskIndexLogTest : public testing::Test {
 protected:
  // Their state is longer than what two segments have room for.
  static constexpr uint64_t kManyClients = 6000;

  void Open() {
    log_.reset();
    std::string problem;
    auto log = DiskIndexLog::Open(disk(), clock_,
                                  {.directory = "/index",
                                   .segment_bytes = 4 * 1024,
                                   .compact_bytes_min = 16 * 1024,
                                   .make_tree = [this] { return MakeTree(); },
                                   .wake = {}},
                                  &problem);
    ASSERT_TRUE(log.has_value()) << problem;
    log_ = std::move(*log);
  }
  std::unique_ptr<Engine> MakeTree() {
    EngineOptions options;
    options.budget = &budget_;
    return ModelEngine::kInfo.make(options);
  }
  // A new log, on a new disk, of a state with so many clients; all of it is synced.
  void Begin(uint64_t clients) {
    log_.reset();
    disk_ = std::make_unique<SimFileSystem>(1, trace_);
    Open();
    log_->TakeFound();
    AppendEmptyState(*log_);
    state_ = std::make_unique<IndexState>(kLoggedKeys);
    tree_ = MakeTree();
    state_->set_tree(tree_.get(), true);
    clients_ = clients;
    LoggedUpTo needed;
    std::vector<CommitVerdict> verdicts;
    for (uint64_t index = 1; index <= clients; ++index) {
      const LogBatch batch = JoinOf(index);
      ASSERT_TRUE(AppendEntries(log_.get(), batch, &needed));
      log_->Step();
      state_->Apply(batch, &verdicts);
    }
    while (!needed.IsReached(log_.get())) log_->Step();
  }
  // What the log has of a compaction that was given up is part of a state.
  void CompactHalfWay() {
    Begin(kManyClients);
    ASSERT_TRUE(log_->IsLong());
    const uint64_t records = log_->statistics().records;
    disk().Plan({.call = SimFileSystem::Call::kAllocate, .error = ENOSPC, .is_for_ever = true});
    EXPECT_FALSE(log_->Compact().value_or(false));
    disk().ClearFaults();
    ASSERT_GT(log_->statistics().records, records);
    log_->Step();
  }
  // As the owner; calls after() after each piece.
  void AppendPieces(StatePieces& pieces, const std::function<void()>& after) {
    while (!pieces.IsDone()) {
      const IndexLog::Kind kind = KindOfNext(pieces);
      std::string piece;
      pieces.Next(piece);
      ASSERT_NE(log_->Append(kind, piece), 0u);
      after();
    }
  }
  void ExpectAllIsFound() {
    Open();
    ASSERT_NE(log_, nullptr);
    const FoundState found = log_->TakeFound();
    ASSERT_NE(found.state, nullptr);
    EXPECT_EQ(found.state->applied(), clients_);
    EXPECT_EQ(found.state->sessions().size(), clients_);
    EXPECT_TRUE(found.IsOwner(7));
  }
  SimFileSystem& disk() { return *disk_; }

  MemoryBudget budget_;
  SimClock clock_;
  Trace trace_;
  std::unique_ptr<SimFileSystem> disk_;
  std::unique_ptr<Engine> tree_;
  std::unique_ptr<IndexState> state_;
  uint64_t clients_ = 0;
  std::unique_ptr<DiskIndexLog> log_;
};

TEST_F(DiskIndexLogTest, ACompactionThatWasRefusedIsMadeLater) {
  CompactHalfWay();
  EXPECT_TRUE(log_->IsLong());
  EXPECT_TRUE(log_->Compact().value_or(false));
  EXPECT_FALSE(log_->IsLong());
  ExpectAllIsFound();
}

TEST_F(DiskIndexLogTest, AnOwnerMayComeWhileAStateIsHalfAppended) {
  CompactHalfWay();
  ASSERT_NE(AppendOwner(*log_), 0u);
  EXPECT_TRUE(log_->Compact().value_or(false));
  EXPECT_FALSE(log_->IsLong());
  ExpectAllIsFound();
}

TEST_F(DiskIndexLogTest, ACompactionThatWasRefusedIsPassedOver) {
  CompactHalfWay();
  ExpectAllIsFound();
}

// A segment that is needed by the newest state alone may begin with the end of an earlier state,
// whose beginning is dropped. Entries before the earlier state move it over the border of segments.
TEST_F(DiskIndexLogTest, TheEndOfAnEarlierStateMayBeLeft) {
  constexpr uint64_t kPaddings = 120;
  int halves = 0;
  for (uint64_t padding = 0; padding < kPaddings && !HasFailure(); ++padding) {
    SCOPED_TRACE(padding);
    Begin(padding + 1);
    const uint64_t begun = log_->statistics().position;
    StatePieces pieces(*state_, {.epoch = 2, .hash_server = 1});
    AppendPieces(pieces, [&] {
      log_->Flush(true);
      log_->Step();
    });
    const uint64_t ended = log_->statistics().position;
    ASSERT_TRUE(log_->Compact().value_or(false));
    for (int step = 0; step < 10; ++step) log_->Step();
    const uint64_t first = durable::ListStoreFiles(disk(), "/index")->segments.front().begin;
    if (begun < first && first < ended) ++halves;
    ExpectAllIsFound();
  }
  EXPECT_GT(halves, 0);
}

// Pieces of two states may not be mixed.
TEST_F(DiskIndexLogTest, IsNotCompactedWhileItsOwnerAppendsAState) {
  Begin(10);
  StatePieces pieces(*state_, {.epoch = 2, .hash_server = 1});
  AppendPieces(pieces, [&] {
    const uint64_t records = log_->statistics().records;
    EXPECT_EQ(log_->Compact().value_or(false), pieces.IsDone());
    if (!pieces.IsDone()) {
      EXPECT_EQ(log_->statistics().records, records);
    }
  });
}

}  // namespace
}  // namespace skep::pool
