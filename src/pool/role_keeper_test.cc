// Roles of index servers under a coordinator that delays, loses, parts and expires.
#include "pool/role_keeper.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "pool/watched_coordinator_test.h"
#include "sim/seeds.h"
#include "sim/sim_coordinator.h"

namespace skep::pool {
namespace {

class RoleKeeperTest : public testing::Test {
 protected:
  struct Server {
    std::unique_ptr<WatchedCoordinator> coordinator;
    std::unique_ptr<RoleKeeper> keeper;  // null: it was killed
    uint64_t epoch = 0;                  // of its last map
  };

  void Begin(uint64_t seed) {
    servers_.clear();
    given_.clear();
    clock_ = std::make_unique<SimClock>();
    coordinator_ = std::make_unique<SimCoordinator>(seed, *clock_, trace_);
    random_ = std::make_unique<SeededRandom>(seed);
  }
  void Start(uint32_t id) {
    Server& server = servers_[id];
    server.coordinator = std::make_unique<WatchedCoordinator>(*coordinator_);
    server.keeper = std::make_unique<RoleKeeper>(
        *server.coordinator, *clock_, *random_,
        RoleKeeperOptions{
            .pool = "p", .id = id, .address = "at " + std::to_string(id), .wake = {}});
  }
  void Kill(uint32_t id) {
    coordinator_->SetLink(*servers_[id].coordinator->last, SimCoordinator::Link::kParted);
    servers_[id].keeper.reset();
  }
  const PoolMap& MapOf(uint32_t id) { return servers_[id].keeper->map(); }

  // One turn of every server. What each epoch gives is the same for all who hear of it.
  void Turn() {
    for (auto& [id, server] : servers_) {
      if (server.keeper == nullptr || !server.keeper->Turn()) continue;
      const PoolMap& map = server.keeper->map();
      EXPECT_GE(map.epoch, server.epoch);
      server.epoch = map.epoch;
      const PoolRoles roles = {map.epoch, map.hash_server, map.sorted_server};
      const auto [at, is_new] = given_.try_emplace(map.epoch, roles);
      EXPECT_EQ(at->second, roles);
    }
    clock_->Advance(5'000'000);
  }
  // False: it has not come about in a minute.
  bool RunUntil(const std::function<bool()>& done) {
    for (int i = 0; i < 12'000 && !done(); ++i) Turn();
    return done();
  }

  Trace trace_;
  std::unique_ptr<SimClock> clock_;
  std::unique_ptr<SimCoordinator> coordinator_;
  std::unique_ptr<SeededRandom> random_;
  std::map<uint32_t, Server> servers_;
  std::map<uint64_t, PoolRoles> given_;
};

TEST_F(RoleKeeperTest, TwoServersShareTheRoles) {
  Begin(1);
  Start(5);
  EXPECT_FALSE(RunUntil([&] { return MapOf(5).epoch != 0; })) << "one alone is no pair";
  Start(9);
  ASSERT_TRUE(RunUntil([&] { return MapOf(5).epoch == 1 && MapOf(9) == MapOf(5); }));
  EXPECT_EQ(MapOf(5).hash_server, 5u);
  EXPECT_EQ(MapOf(5).sorted_server, 9u);
  EXPECT_EQ(MapOf(9).index_servers.at(5), "at 5");
}

TEST_F(RoleKeeperTest, TheOtherOneIsSolo) {
  for (const uint32_t killed : {5u, 9u}) {
    const uint32_t other = 14 - killed;
    Begin(killed);
    Start(5);
    Start(9);
    ASSERT_TRUE(RunUntil([&] { return MapOf(5).epoch == 1 && MapOf(9).epoch == 1; }));
    Kill(killed);
    ASSERT_TRUE(RunUntil([&] { return MapOf(other).epoch == 2; }));
    EXPECT_EQ(MapOf(other).hash_server, other);
    EXPECT_EQ(MapOf(other).sorted_server, 0u);
  }
}

// Both sessions end at once: each server may find the other one gone.
TEST_F(RoleKeeperTest, OneOfTwoIsElected) {
  for (const uint64_t seed : Seeds(15)) {
    Begin(seed);
    Start(5);
    Start(9);
    ASSERT_TRUE(RunUntil([&] { return MapOf(5).epoch == 1 && MapOf(9).epoch == 1; }));
    for (auto& [id, server] : servers_) coordinator_->Expire(*server.coordinator->last);
    for (int i = 0; i < 2000; ++i) Turn();
    ASSERT_EQ(MapOf(5), MapOf(9)) << "seed " << seed;
    ASSERT_LE(MapOf(5).epoch, 2u);
  }
}

// A service whose answers take longer than a server waits before it does again what was not done.
TEST_F(RoleKeeperTest, AServiceMayBeSlow) {
  for (const uint64_t seed : Seeds(10)) {
    Begin(seed);
    coordinator_->set_options(
        {.delay_ns_min = KeptSession::kRetryNs, .delay_ns_max = 2 * KeptSession::kRetryNs});
    Start(5);
    Start(9);
    ASSERT_TRUE(RunUntil([&] { return MapOf(5).epoch == 1 && MapOf(9) == MapOf(5); }))
        << "seed " << seed;
  }
}

// A hash server has the roles set that it wants, once: a pair, and to be solo where the two are
// parted.
TEST_F(RoleKeeperTest, SetsWhatIsWanted) {
  Begin(1);
  Start(5);
  Start(9);
  ASSERT_TRUE(RunUntil([&] { return MapOf(5).epoch == 1; }));
  PoolRoles pair = {.epoch = 1, .hash_server = 5, .sorted_server = 12};
  servers_[5].keeper->Want(pair);
  Start(12);
  Kill(9);
  EXPECT_FALSE(RunUntil([&] { return MapOf(5).epoch > 2; }));
  EXPECT_EQ(MapOf(5).sorted_server, 0u) << "what was wanted is over";
  pair.epoch = 3;
  servers_[5].keeper->Want(pair);
  ASSERT_TRUE(RunUntil([&] { return MapOf(5).epoch == 3; }));
  EXPECT_EQ(MapOf(5).sorted_server, 12u);
  EXPECT_TRUE(MapOf(5).index_servers.contains(12));
  EXPECT_FALSE(MapOf(5).index_servers.contains(9)) << "it is gone";
  EXPECT_FALSE(RunUntil([&] { return MapOf(12).epoch > 3; }));
  servers_[5].keeper->Want(PoolRoles{.epoch = 4, .hash_server = 5, .sorted_server = 0});
  ASSERT_TRUE(RunUntil([&] { return MapOf(5).epoch == 4; }));
  EXPECT_EQ(MapOf(5).sorted_server, 0u);
}

// T4 of state_transfer.h: what is wanted changes while answers are lost. One of both is set (Turn
// checks that no epoch gives two), and everybody hears which.
TEST_F(RoleKeeperTest, OfTwoWishesOneComesTrue) {
  std::set<uint32_t> sorted;
  constexpr int kSeedsMin = 40;
  int seeds = 0;
  // Each of the two comes true in one of some ten.
  for (const uint64_t seed : Seeds(10 * kSeedsMin)) {
    if (++seeds > kSeedsMin && sorted.size() == 2) break;
    Begin(seed);
    Start(5);
    Start(9);
    ASSERT_TRUE(RunUntil([&] { return MapOf(5).epoch == 1; }));
    Start(12);
    Kill(9);
    ASSERT_TRUE(RunUntil([&] { return MapOf(5).epoch == 2 && MapOf(12).epoch == 2; }));
    servers_[5].keeper->Want(PoolRoles{.epoch = 3, .hash_server = 5, .sorted_server = 12});
    servers_[5].keeper->Turn();
    if (random_->Chance(1, 2)) clock_->Advance(random_->Below(3'000'000));
    coordinator_->Reset(*servers_[5].coordinator->last);
    servers_[5].keeper->Want(PoolRoles{.epoch = 3, .hash_server = 5, .sorted_server = 0});
    ASSERT_TRUE(RunUntil([&] { return MapOf(5).epoch == 3 && MapOf(12).epoch == 3; }));
    sorted.insert(MapOf(5).sorted_server);
  }
  if (seeds < kSeedsMin) return;
  EXPECT_EQ(sorted, (std::set<uint32_t>{0, 12}));
}

// Whatever happens to the sessions, an epoch gives the roles once (Turn checks it), and when all is
// well again both servers know the same.
TEST_F(RoleKeeperTest, AnEpochGivesTheRolesOnce) {
  for (const uint64_t seed : Seeds(15)) {
    Begin(seed);
    Start(5);
    Start(9);
    for (int i = 0; i < 4000; ++i) {
      Turn();
      if (!random_->Chance(1, 200)) continue;
      CoordinatorSession* const session = servers_[random_->Chance(1, 2) ? 5 : 9].coordinator->last;
      switch (random_->Below(4)) {
        case 0:
          coordinator_->Reset(*session);
          break;
        case 1:
          coordinator_->Expire(*session);
          break;
        case 2:
          coordinator_->SetLink(*session, SimCoordinator::Link::kParted);
          break;
        default:
          coordinator_->SetLink(*session, SimCoordinator::Link::kOpen);
          break;
      }
    }
    for (auto& [id, server] : servers_) {
      coordinator_->SetLink(*server.coordinator->last, SimCoordinator::Link::kOpen);
    }
    ASSERT_TRUE(RunUntil([&] { return MapOf(5).epoch != 0 && MapOf(5) == MapOf(9); }))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace skep::pool
