// A solo hash server gives its state to a newcomer while a client writes: the rules, one by one.
#include "pool/state_transfer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "pool/solo_pool_test.h"

namespace skep::pool {
namespace {

// More than a newcomer sends until the roles have changed.
constexpr uint64_t kMessagesMax = 50;

class StateTransferTest : public SoloPoolTest {};

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

// Once all is applied, both servers have the same of all that is not an index, and the newcomer's
// tree has what the hash server's hash index has.
TEST_F(StateTransferTest, BothHaveTheSame) {
  BeginSolo(1, kFirst);
  const auto is_recycled = [](const Chunks::Chunk& chunk) { return chunk.gen > 0; };
  ASSERT_TRUE(pool_->RunUntil(
      [&] { return std::ranges::any_of(StateOf(kFirst)->chunks().all(), is_recycled); }));
  pool_->Start(kNewcomer);
  ASSERT_TRUE(RunUntilPaired(kFirst, kNewcomer));
  Settle();
  for (int i = 0; i < 20; ++i) pool_->Turn();
  const IndexState& first = *StateOf(kFirst);
  const IndexState& second = *StateOf(kNewcomer);
  EXPECT_EQ(first.tree(), nullptr);
  EXPECT_EQ(first.applied(), second.applied());
  EXPECT_EQ(first.next_client(), second.next_client());
  EXPECT_EQ(first.keys(), second.keys());
  EXPECT_EQ(first.items(), second.items());
  EXPECT_EQ(first.chunks().all(), second.chunks().all());
  EXPECT_EQ(first.chunks().free_count(), second.chunks().free_count());
  EXPECT_EQ(first.chunks().empty(), second.chunks().empty());
  std::set<Chunks::State> states;
  for (const Chunks::Chunk& chunk : second.chunks().all()) states.insert(chunk.state);
  EXPECT_EQ(states.size(), 3u) << "a test of all states";
  std::string sessions[2];
  first.sessions().EncodeClient(1, sessions[0]);
  second.sessions().EncodeClient(1, sessions[1]);
  EXPECT_EQ(sessions[0], sessions[1]);
  for (const auto& [key, slot] : client_->items()) {
    EXPECT_EQ(StateOf(kNewcomer)->Find(key), slot) << key;
  }
}

// T3: a hash server that does not know that another one has taken over, because it was stopped
// when it asked for the roles, answers nothing by itself.
TEST_F(StateTransferTest, AuthorityEndsWithoutAMap) {
  BeginSolo(1, kFirst);
  const uint64_t epoch = pool_->map().epoch;
  pool_->Start(kNewcomer);
  CoordinatedPool::Server& first = pool_->at(kFirst);
  ASSERT_TRUE(pool_->RunUntil([&] { return first.index->wanted_roles().has_value(); }));
  first.keeper->Turn();
  first.keeper->Turn();
  first.is_paused = true;
  ASSERT_TRUE(RunUntilPaired(kFirst, kNewcomer));
  pool_->Pause(kFirst);
  ASSERT_TRUE(pool_->RunUntil([&] { return pool_->HasRoles(kNewcomer, 0); }));
  ASSERT_TRUE(RunUntilDone(20));

  const auto endpoint = pool_->fabric().Open({}).value();
  const rma::PeerId peer = endpoint->Connect(first.index->address(), 1000).value();
  std::string scan(1, static_cast<char>(MessageKind::kScan));
  EncodeScan({.epoch = epoch}, scan);
  std::string find(1, static_cast<char>(MessageKind::kFind));
  AppendVarint(find, epoch);
  AppendVarint(find, 0);
  std::vector<ReplyCode> codes;
  for (bool has_called = false; codes.size() < 2;) {
    for (const rma::Event& event : endpoint->Poll(0)) {
      if (event.kind == rma::Event::Kind::kReply) codes.push_back(ReplyCode(event.bytes[0]));
      if (event.kind != rma::Event::Kind::kJoined || has_called) continue;
      has_called = true;
      endpoint->Call(peer, 1, scan);
      endpoint->Call(peer, 2, find);
    }
    // Only this server goes on, not what keeps its roles.
    first.index->Turn(0);
  }
  EXPECT_EQ(codes, std::vector(2, ReplyCode::kNotServing));
}

// T4: the roles may be set whatever the hash server hears of it, so once it has wanted them it
// applies nothing that the newcomer has not, also if that is lost, until a map says what it is.
TEST_F(StateTransferTest, TheHoldEndsByAMapAlone) {
  BeginSolo(1, kFirst);
  pool_->Start(kNewcomer);
  CoordinatedPool::Server& first = pool_->at(kFirst);
  ASSERT_TRUE(pool_->RunUntil([&] { return first.index->wanted_roles().has_value(); }));
  first.keeper->Turn();
  // It does not hear what became of that, and the newcomer does not acknowledge any more.
  first.hears_nothing = pool_->at(kNewcomer).is_paused = true;
  pool_->Turn();
  const uint64_t done = client_->done();
  for (int i = 0; i < 100; ++i) pool_->Turn();
  EXPECT_EQ(client_->done(), done);
  EXPECT_EQ(first.index->wanted_roles()->sorted_server, 0u);
  first.hears_nothing = pool_->at(kNewcomer).is_paused = false;
  ASSERT_TRUE(RunUntilDone(20));
  ASSERT_TRUE(pool_->RunUntil([&] { return pool_->IsPaired(); }));
  const uint32_t sorted = pool_->map().sorted_server;
  pool_->Kill(kFirst);
  ASSERT_NO_FATAL_FAILURE(ExpectAllIsThere(sorted));
}

// Progress: what waits for a newcomer that does not answer any more goes on without it after
// lease_ns, and no more than kUnackedMax pieces are sent to it.
TEST_F(StateTransferTest, ANewcomerThatHangsIsLeft) {
  constexpr auto kLeaseTurns =
      static_cast<int>(CoordinatedPool::kTimes.lease_ns / CoordinatedPool::kTurnNs);
  for (uint64_t k = 1; k < kMessagesMax && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    BeginSolo(k, kFirst);
    pool_->Start(kNewcomer);
    CoordinatedPool::Server& newcomer = pool_->at(kNewcomer);
    ASSERT_TRUE(pool_->RunUntil([&] { return newcomer.messages.sent >= k; }));
    if (pool_->at(kFirst).index->wanted_roles() || pool_->map().sorted_server != 0) break;
    newcomer.is_paused = true;
    const uint64_t done = client_->done();
    for (int i = 0; i < kLeaseTurns + 20; ++i) pool_->Turn();
    EXPECT_GT(client_->done(), done);
  }
}

TEST_F(StateTransferTest, FewPiecesAreUnderWay) {
  BeginSolo(1, kFirst);
  Settle();
  pool_->Start(kNewcomer);
  ASSERT_TRUE(pool_->RunUntil([&] { return pool_->at(kNewcomer).messages.sent == 1; }));
  pool_->at(kNewcomer).is_paused = true;
  const uint64_t sent = pool_->at(kFirst).messages.sent;
  for (int i = 0; i < 20; ++i) pool_->Turn();
  EXPECT_LE(pool_->at(kFirst).messages.sent - sent, StateSender::kUnackedMax);
}

// A server that was given a role and no state, as by a mistake of whoever sets roles, takes none.
TEST_F(StateTransferTest, RolesOfALaterEpochNeedAState) {
  BeginSolo(1, kFirst);
  pool_->Start(kNewcomer);
  IndexServer& newcomer = *pool_->at(kNewcomer).index;
  PoolMap map = pool_->map();
  ++map.epoch;
  map.sorted_server = kNewcomer;
  newcomer.SetMap(map);
  EXPECT_EQ(newcomer.state(), nullptr);
  map.hash_server = kNewcomer;
  map.sorted_server = 0;
  newcomer.SetMap(map);
  EXPECT_EQ(newcomer.state(), nullptr);
}

}  // namespace
}  // namespace skep::pool
