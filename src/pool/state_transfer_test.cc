// A solo hash server gives its state to a newcomer while a client writes, and what becomes of that
// when either of them is killed, or stopped, before any of its messages.
#include "pool/state_transfer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pool/commit_client_test.h"
#include "pool/sim_pool_test.h"
#include "sim/seeds.h"

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
  bool MayGo(uint32_t id);
  void Disturb(Random& random, uint32_t* next_id);
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
    for (uint32_t i = 0; i < chunks.size(); ++i) {
      EXPECT_EQ(chunks[i].items, items_of_chunk[i]);
      const bool is_empty = chunks[i].state == Chunks::State::kSealed && chunks[i].items == 0;
      EXPECT_EQ(state.chunks().empty().contains(i), is_empty);
    }
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
  SimPool::Server& first = pool_->at(kFirst);
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
  SimPool::Server& first = pool_->at(kFirst);
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
  constexpr auto kLeaseTurns = static_cast<int>(SimPool::kTimes.lease_ns / SimPool::kTurnNs);
  for (uint64_t k = 1; k < kMessagesOfNewcomer && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    BeginSolo(k, kFirst);
    pool_->Start(kNewcomer);
    SimPool::Server& newcomer = pool_->at(kNewcomer);
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

// Whether the server may go: it has no role, or the servers have known for longer than a session
// lasts that they are a pair.
bool StateTransferTest::MayGo(uint32_t id) {
  const auto has_role = [&] {
    return id == pool_->map().hash_server || id == pool_->map().sorted_server;
  };
  if (!has_role()) return true;
  for (int i = 0; i < 150; ++i) pool_->Turn();
  return pool_->at(id).runs() && (!has_role() || pool_->IsPaired());
}

// Answers of the coordinator are lost, sessions end, newcomers come and go, servers die and stop.
void StateTransferTest::Disturb(Random& random, uint32_t* next_id) {
  std::vector<uint32_t> running;
  for (const uint32_t id : pool_->ids()) {
    if (pool_->at(id).is_paused && random.Chance(1, 3)) pool_->Resume(id);
    if (pool_->at(id).runs()) running.push_back(id);
  }
  const uint32_t id = running[random.Below(running.size())];
  CoordinatorSession* const session = pool_->at(id).coordinator->last;
  switch (random.Below(6)) {
    case 0:
      if (running.size() < 4) pool_->Start((*next_id)++);
      break;
    case 1:
    case 2:
      if (session != nullptr) pool_->coordinator().Reset(*session);
      break;
    case 3:
      if (session != nullptr && MayGo(id)) pool_->Expire(id);
      break;
    case 4:
      if (MayGo(id)) pool_->Pause(id);
      break;
    default:
      if (MayGo(id)) pool_->Kill(id);
  }
}

TEST_F(StateTransferTest, NothingIsLostWhateverHappens) {
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
    ASSERT_TRUE(pool_->RunUntil([&] { return pool_->IsPaired(); }));
    ASSERT_TRUE(RunUntilDone(30));
    ASSERT_TRUE(pool_->RunUntil([&] { return pool_->IsPaired(); }));
    const uint32_t last = pool_->map().sorted_server;
    for (const uint32_t id : pool_->ids()) {
      if (id != last && pool_->at(id).runs()) pool_->Kill(id);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAllIsThere(last));
  }
}

}  // namespace
}  // namespace skep::pool
