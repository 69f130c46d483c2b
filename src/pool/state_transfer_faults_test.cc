// What becomes of a transfer when either of its servers is killed, or stopped, before any of its
// messages, or their connection breaks, or anything happens in any order.
#include <gtest/gtest.h>

#include <vector>

#include "pool/solo_pool_test.h"
#include "sim/seeds.h"

namespace skep::pool {
namespace {

// More than they send until the roles have changed.
constexpr uint64_t kMessagesOfNewcomer = 50;
constexpr uint64_t kMessagesOfHashServer = 100;

class StateTransferFaultsTest : public SoloPoolTest {
 protected:
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
  void ExpectAPairThatWorks();
  void Stops(uint32_t id, uint64_t k);
  bool MayGo(uint32_t id);
  void Disturb(Random& random, uint32_t* next_id);
};

// What is there when the newcomer dies before its k-th message, is still there when the next
// newcomer has taken over. False: it does not send so many.
bool StateTransferFaultsTest::LosesNewcomer(uint64_t k) {
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

TEST_F(StateTransferFaultsTest, TheNewcomerMayDieBeforeAnyMessage) {
  uint64_t k = 0;
  while (!HasFailure() && LosesNewcomer(k)) ++k;
  EXPECT_GT(k, 20u);
}

// The hash server dies before its k-th message: the newcomer takes over if the roles name it, and
// else never has a role. False: it does not send so many.
bool StateTransferFaultsTest::LosesHashServer(uint64_t k, int* takeovers) {
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

TEST_F(StateTransferFaultsTest, TheHashServerMayDieBeforeAnyMessage) {
  uint64_t k = 0;
  int takeovers = 0;
  while (!HasFailure() && LosesHashServer(k, &takeovers)) ++k;
  EXPECT_GT(k, 50u);
  EXPECT_GT(takeovers, 10);
}

// In the end there is a pair, and when it loses its hash server nothing is lost.
void StateTransferFaultsTest::ExpectAPairThatWorks() {
  const auto is_paired = [&] { return pool_->IsPaired(); };
  ASSERT_TRUE(pool_->RunUntil(is_paired));
  ASSERT_TRUE(RunUntilDone(30));
  ASSERT_TRUE(pool_->RunUntil(is_paired));
  const uint32_t last = pool_->map().sorted_server;
  for (const uint32_t id : pool_->ids()) {
    if (id != last && pool_->at(id).runs()) pool_->Kill(id);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectAllIsThere(last));
}

// A server that is stopped after any of its messages, for longer than its session, comes back late.
void StateTransferFaultsTest::Stops(uint32_t id, uint64_t k) {
  CoordinatedPool::Server& server = pool_->at(id);
  server.pauses_after = server.messages.sent + k;
  ASSERT_TRUE(pool_->RunUntil([&] { return server.is_paused; }));
  for (int i = 0; i < 200; ++i) pool_->Turn();
  pool_->Resume(id);
  ASSERT_NO_FATAL_FAILURE(ExpectAPairThatWorks());
}

TEST_F(StateTransferFaultsTest, TheNewcomerMayStopAfterAnyMessage) {
  for (uint64_t k = 1; k < kMessagesOfNewcomer && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    BeginSolo(k, kFirst);
    pool_->Start(kNewcomer);
    Stops(kNewcomer, k);
  }
}

TEST_F(StateTransferFaultsTest, TheHashServerMayStopAfterAnyMessage) {
  for (uint64_t k = 1; k < kMessagesOfHashServer && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    BeginSolo(k, kFirst);
    pool_->Start(kNewcomer);
    Stops(kFirst, k);
  }
}

// Both servers live, and so do their sessions: whatever roles were set, they come to terms.
TEST_F(StateTransferFaultsTest, TheirConnectionMayBreakInsteadOfAnyReply) {
  for (uint64_t k = 0; k < kMessagesOfNewcomer && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    BeginSolo(k, kFirst);
    pool_->Start(kNewcomer);
    MessageCount& messages = pool_->at(kNewcomer).messages;
    messages.breaks_after = k;
    ASSERT_TRUE(pool_->RunUntil([&] { return messages.sent > k; }));
    ASSERT_NO_FATAL_FAILURE(ExpectAPairThatWorks());
  }
}

// Whether the server may go: it has no role, or the servers have known for longer than a session
// lasts that they are a pair.
bool StateTransferFaultsTest::MayGo(uint32_t id) {
  const auto has_role = [&] {
    return id == pool_->map().hash_server || id == pool_->map().sorted_server;
  };
  if (!has_role()) return true;
  for (int i = 0; i < 150; ++i) pool_->Turn();
  return pool_->at(id).runs() && (!has_role() || pool_->IsPaired());
}

// Answers of the coordinator are lost, sessions end, newcomers come and go, servers die and stop.
void StateTransferFaultsTest::Disturb(Random& random, uint32_t* next_id) {
  std::vector<uint32_t> running;
  for (const uint32_t id : pool_->ids()) {
    if (pool_->at(id).is_paused && random.Chance(1, 3)) pool_->Resume(id);
    if (pool_->at(id).runs()) running.push_back(id);
  }
  const uint32_t id = running[random.Below(running.size())];
  CoordinatorSession* const session = pool_->at(id).coordinator->last;
  switch (random.Below(7)) {
    case 0:
      if (running.size() < 4) pool_->Start((*next_id)++);
      break;
    case 1:
    case 2:
      if (session != nullptr) pool_->coordinator().Reset(*session);
      break;
    case 3:
      pool_->at(id).messages.breaks_after = pool_->at(id).messages.sent;
      break;
    case 4:
      if (session != nullptr && MayGo(id)) pool_->Expire(id);
      break;
    case 5:
      if (MayGo(id)) pool_->Pause(id);
      break;
    default:
      if (MayGo(id)) pool_->Kill(id);
  }
}

TEST_F(StateTransferFaultsTest, NothingIsLostWhateverHappens) {
  for (const uint64_t seed : Seeds(10)) {
    SCOPED_TRACE(seed);
    SeededRandom random(seed);
    BeginSolo(seed, kFirst);
    uint32_t next_id = kNewcomer;
    pool_->Start(next_id++);
    for (int i = 0; i < 60; ++i) {
      for (uint64_t turns = random.Below(60); turns > 0; --turns) pool_->Turn();
      Disturb(random, &next_id);
    }
    for (const uint32_t id : pool_->ids()) {
      if (pool_->at(id).is_paused) pool_->Resume(id);
    }
    pool_->Start(next_id++);
    ASSERT_NO_FATAL_FAILURE(ExpectAPairThatWorks());
  }
}

}  // namespace
}  // namespace skep::pool
