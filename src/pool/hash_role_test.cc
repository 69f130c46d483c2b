// What a hash server ships, and whom it forgets.
#include "pool/hash_role.h"

#include <gtest/gtest.h>

#include <memory>

#include "pool/commit_client_test.h"
#include "pool/coordinated_pool_test.h"

namespace skep::pool {
namespace {

constexpr uint32_t kHash = 5;
constexpr uint32_t kSorted = 9;

class HashRoleTest : public testing::Test {
 protected:
  HashRoleTest() {
    pool_.each_turn = [this] {
      client_->Turn();
      if (other_ != nullptr) other_->Turn();
    };
    pool_.Start(kHash);
    pool_.Start(kSorted);
  }
  bool RunUntilDone(uint64_t count) {
    const uint64_t end = client_->done() + count;
    return pool_.RunUntil([&] { return client_->done() >= end; });
  }

  CoordinatedPool pool_{1};
  std::unique_ptr<CommitClient> client_ = std::make_unique<CommitClient>(pool_, 1);
  std::unique_ptr<CommitClient> other_;
};

// B1: the sorted server may have a group whose acknowledgement is lost, so what comes meanwhile is
// none of that group. The connection breaks instead of the acknowledgement; another client joins
// before it is made again.
TEST_F(HashRoleTest, AGroupThatWasShippedDoesNotGrow) {
  ASSERT_TRUE(RunUntilDone(20));
  for (int i = 0; i < 20; ++i) {
    MessageCount& messages = pool_.at(kSorted).messages;
    messages.breaks_after = messages.sent;
    ASSERT_TRUE(pool_.RunUntil([&] { return messages.breaks_after == UINT64_MAX; }));
    other_ = std::make_unique<CommitClient>(pool_, 2);
    other_->Rest(true);
    ASSERT_TRUE(RunUntilDone(2));
    ASSERT_TRUE(pool_.RunUntil([&] { return other_->HasJoined(); }));
  }
}

// Two servers that do not reach each other while both their sessions live: the sorted server is not
// heard of, and the coordinator has nothing to tell. The hash server goes on alone.
TEST_F(HashRoleTest, GoesOnAloneWhenTheTwoAreParted) {
  ASSERT_TRUE(RunUntilDone(20));
  pool_.at(kSorted).is_paused = true;
  ASSERT_TRUE(pool_.RunUntil([&] { return pool_.HasRoles(kHash, 0); }));
  EXPECT_TRUE(pool_.coordinator().Lives(*pool_.at(kSorted).coordinator->last));
  ASSERT_TRUE(RunUntilDone(20));
}

// A hash server that was stopped itself has had no authority for long, but knows it only since its
// own last turn.
TEST_F(HashRoleTest, StaysPairedAfterAPauseOfItsOwn) {
  ASSERT_TRUE(RunUntilDone(20));
  pool_.at(kHash).is_paused = pool_.at(kSorted).is_paused = true;
  for (int i = 0; i < 1000; ++i) pool_.Turn();
  pool_.at(kHash).is_paused = pool_.at(kSorted).is_paused = false;
  ASSERT_TRUE(RunUntilDone(20));
  EXPECT_TRUE(pool_.HasRoles(kHash, kSorted));
}

// Goal: a server that builds its table does one small step of it a turn, and not more; and it does
// not wait for messages meanwhile.
TEST_F(HashRoleTest, OneStepOfATableIsBuiltATurn) {
  ASSERT_TRUE(RunUntilDone(500));
  const IndexState& state = *pool_.at(kSorted).index->state();
  pool_.Kill(kHash);
  ASSERT_TRUE(pool_.RunUntil([&] { return pool_.HasRoles(kSorted, 0) && state.keeps_hash(); }));
  uint64_t turns = 1;
  for (; state.hash() == nullptr; ++turns) {
    pool_.at(kSorted).index->Turn(1);
    EXPECT_EQ(pool_.at(kSorted).messages.wait_ms, 0);
  }
  EXPECT_GE(turns, client_->items().size() / CoordinatedPool::kKeysPerStep);
  EXPECT_GT(client_->items().size(), 2 * CoordinatedPool::kKeysPerStep);
}

// A join that is sent again makes one client more, which nobody is: it is forgotten as one that is
// silent.
TEST_F(HashRoleTest, AClientThatNobodyIsIsForgotten) {
  ASSERT_TRUE(RunUntilDone(20));
  other_ = std::make_unique<CommitClient>(pool_, 2);
  other_->Rest(true);
  ASSERT_TRUE(pool_.RunUntil([&] { return other_->HasJoined(); }));
  const IndexState& state = *pool_.at(kHash).index->state();
  EXPECT_EQ(state.sessions().size(), 2u);
  other_.reset();
  EXPECT_TRUE(pool_.RunUntil([&] { return state.sessions().size() == 1; }));
  ASSERT_TRUE(RunUntilDone(20)) << "the other one is known still";
}

// Goal: where the sorted server applies before it acknowledges, the hash server, which applies what
// was acknowledged, applies nothing that the sorted server had not when it sent that; where it does
// not, it does.
TEST(SyncPair, TheSortedServerAppliesBeforeItAcknowledges) {
  for (const bool applies_first : {false, true}) {
    CoordinatedPool pool(1);
    pool.applies_first = applies_first;
    CommitClient client(pool, 1);
    pool.Start(kHash);
    pool.Start(kSorted);
    const auto applied = [&](uint32_t id) {
      const IndexState* const state = pool.at(id).index->state();
      return state == nullptr ? 0 : state->applied();
    };
    uint64_t applied_when_sent = 0;
    pool.at(kSorted).messages.before_each = [&] { applied_when_sent = applied(kSorted); };
    uint64_t turns_ahead = 0;
    pool.each_turn = [&] {
      client.Turn();
      if (applied(kHash) > applied_when_sent) ++turns_ahead;
    };
    ASSERT_TRUE(pool.RunUntil([&] { return client.done() >= 200; }));
    EXPECT_EQ(turns_ahead == 0, applies_first);
  }
}

}  // namespace
}  // namespace skep::pool
