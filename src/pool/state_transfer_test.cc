// A solo hash server gives its state to a newcomer while a client writes, and what becomes of that
// when either of them is killed, or stopped, before any of its messages.
#include "pool/state_transfer.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pool/commit_client_test.h"
#include "pool/sim_pool_test.h"

namespace skep::pool {
namespace {

constexpr uint32_t kFirst = 5;
constexpr uint32_t kSecond = 9;
constexpr uint32_t kNewcomer = 20;
constexpr uint32_t kAnother = 30;
// More than they send until the roles have changed.
constexpr uint64_t kMessagesOfNewcomer = 50;
constexpr uint64_t kMessagesOfHashServer = 100;

class StateTransferTest : public testing::Test {
 protected:
  // A pool whose `solo` server has lost the other one, and has some state.
  void BeginSolo(uint64_t seed, uint32_t solo) {
    client_.reset();
    pool_ = std::make_unique<SimPool>(seed);
    client_ = std::make_unique<CommitClient>(*pool_, seed);
    pool_->each_turn = [this] { client_->Turn(); };
    pool_->Start(kFirst);
    pool_->Start(kSecond);
    ASSERT_TRUE(RunUntilDone(100));
    pool_->Kill(kFirst + kSecond - solo);
    ASSERT_TRUE(pool_->RunUntil([&] { return pool_->HasRoles(solo, 0); }));
    solo_ = solo;
    ASSERT_TRUE(pool_->RunUntil([&] {
      const IndexState* const state = StateOf(solo);
      return state->hash() != nullptr && state->tree() != nullptr;
    }));
  }
  // So many operations more.
  bool RunUntilDone(uint64_t count) {
    const uint64_t end = client_->done() + count;
    return pool_->RunUntil([&] { return client_->done() >= end; });
  }
  bool RunUntilPaired(uint32_t hash_server, uint32_t sorted_server) {
    return pool_->RunUntil([&] { return pool_->HasRoles(hash_server, sorted_server); });
  }
  // Until the server has sent all that it may. False: the roles have changed, and many operations
  // were done, and it has not.
  bool RunUntilDead(uint32_t id) {
    const auto is_dead = [&] { return pool_->at(id).keeper == nullptr; };
    const uint64_t end = client_->done() + 60;
    EXPECT_TRUE(pool_->RunUntil([&] {
      return is_dead() || (pool_->HasRoles(solo_, kNewcomer) && client_->done() >= end);
    }));
    return is_dead();
  }
  bool LosesNewcomer(uint64_t k);
  bool LosesHashServer(uint64_t k, int* takeovers);
  void Stops(uint32_t id, uint64_t k);
  void Settle() {
    client_->Rest(true);
    ASSERT_TRUE(pool_->RunUntil([&] { return client_->IsIdle(); }));
  }
  IndexState* StateOf(uint32_t id) { return pool_->at(id).index->state(); }

  // The server is solo, or becomes so, and has what the client has been told: in both indexes, once
  // it has built them. What the client sends again comes to what it came to before.
  void ExpectAllIsThere(uint32_t id) {
    Settle();
    IndexState& state = *StateOf(id);
    ASSERT_TRUE(pool_->RunUntil([&] {
      return pool_->HasRoles(id, 0) && state.hash() != nullptr && state.tree() != nullptr;
    }));
    ExpectKeys(state);
    client_->SendOldOnesAgain();
    ASSERT_TRUE(pool_->RunUntil([&] { return client_->IsIdle(); }));
    ExpectKeys(state);
    client_->Rest(false);
    ASSERT_TRUE(RunUntilDone(20));
  }
  void ExpectKeys(IndexState& state) {
    const auto& items = client_->items();
    EXPECT_EQ(state.hash()->Verify(), nullptr);
    EXPECT_EQ(state.hash()->items(), items.size());
    Batch batch;
    batch.Scan(Range::All());
    state.tree()->Execute(batch);
    ASSERT_EQ(batch.outcome(0).item_count, items.size());
    auto expected = items.begin();
    for (const Item& item : batch.items(0)) {
      EXPECT_EQ(item.key, expected->first);
      EXPECT_EQ(SlotOf(item.value), expected->second);
      EXPECT_EQ(state.hash()->Find(DigestOf(state.keys(), item.key)), expected->second);
      ++expected;
    }
    std::map<uint32_t, uint32_t> items_of_chunk;
    for (const auto& [key, slot] : items) ++items_of_chunk[slot.chunk()];
    const auto& chunks = state.chunks().all();
    for (uint32_t i = 0; i < chunks.size(); ++i) EXPECT_EQ(chunks[i].items, items_of_chunk[i]);
  }

  std::unique_ptr<SimPool> pool_;
  std::unique_ptr<CommitClient> client_;
  uint32_t solo_ = 0;
};

TEST_F(StateTransferTest, ANewcomerTakesOver) {
  for (const uint32_t solo : {kFirst, kSecond}) {
    BeginSolo(solo, solo);
    pool_->Start(kNewcomer);
    ASSERT_TRUE(RunUntilPaired(solo, kNewcomer));
    ASSERT_TRUE(RunUntilDone(50));
    pool_->Kill(solo);
    ASSERT_NO_FATAL_FAILURE(ExpectAllIsThere(kNewcomer));
  }
}

// What is there when the newcomer dies before its k-th message, is still there when the next
// newcomer has taken over. False: it does not send so many.
bool StateTransferTest::LosesNewcomer(uint64_t k) {
  BeginSolo(k, k % 2 == 0 ? kFirst : kSecond);
  pool_->Start(kNewcomer);
  pool_->at(kNewcomer).messages.sent_max = k;
  if (!RunUntilDead(kNewcomer)) return false;
  EXPECT_TRUE(RunUntilDone(20));
  pool_->Start(kAnother);
  EXPECT_TRUE(RunUntilPaired(solo_, kAnother));
  EXPECT_TRUE(RunUntilDone(20));
  pool_->Kill(solo_);
  ExpectAllIsThere(kAnother);
  return true;
}

TEST_F(StateTransferTest, TheNewcomerMayDieBeforeAnyMessage) {
  uint64_t k = 0;
  while (!HasFailure() && LosesNewcomer(k)) ++k;
  EXPECT_GT(k, 20u);
}

// The hash server dies before its k-th message: the newcomer takes over if the roles name it, and
// else never has a role. False: it does not send so many.
bool StateTransferTest::LosesHashServer(uint64_t k, int* takeovers) {
  BeginSolo(k, k % 2 == 0 ? kFirst : kSecond);
  MessageCount& messages = pool_->at(solo_).messages;
  messages.sent_max = messages.sent + k;
  pool_->Start(kNewcomer);
  if (!RunUntilDead(solo_)) return false;
  for (int i = 0; i < 300; ++i) pool_->Turn();
  if (pool_->HasRoles(kNewcomer, 0)) {
    ++*takeovers;
    ExpectAllIsThere(kNewcomer);
  } else {
    EXPECT_TRUE(pool_->HasRoles(solo_, 0) || pool_->map().epoch == 0);
  }
  return true;
}

TEST_F(StateTransferTest, TheHashServerMayDieBeforeAnyMessage) {
  uint64_t k = 0;
  int takeovers = 0;
  while (!HasFailure() && LosesHashServer(k, &takeovers)) ++k;
  EXPECT_GT(k, 50u);
  EXPECT_GT(takeovers, 10);
}

// A server that is stopped after any of its messages, for longer than its session, comes back late:
// nothing is lost, and in the end there is a pair.
void StateTransferTest::Stops(uint32_t id, uint64_t k) {
  SimPool::Server& server = pool_->at(id);
  server.pauses_after = server.messages.sent + k;
  ASSERT_TRUE(pool_->RunUntil([&] { return server.is_paused; }));
  for (int i = 0; i < 200; ++i) pool_->Turn();
  pool_->Resume(id);
  ASSERT_TRUE(pool_->RunUntil([&] { return pool_->IsPaired(); }));
  ASSERT_TRUE(RunUntilDone(30));
  ASSERT_TRUE(pool_->IsPaired());
  const PoolMap map = pool_->map();
  pool_->Kill(map.hash_server);
  ASSERT_NO_FATAL_FAILURE(ExpectAllIsThere(map.sorted_server));
}

TEST_F(StateTransferTest, TheNewcomerMayStopAfterAnyMessage) {
  for (uint64_t k = 1; k < kMessagesOfNewcomer && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    BeginSolo(k, kFirst);
    pool_->Start(kNewcomer);
    Stops(kNewcomer, k);
  }
}

TEST_F(StateTransferTest, TheHashServerMayStopAfterAnyMessage) {
  for (uint64_t k = 1; k < kMessagesOfHashServer && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    BeginSolo(k, kFirst);
    pool_->Start(kNewcomer);
    Stops(kFirst, k);
  }
}

}  // namespace
}  // namespace skep::pool
