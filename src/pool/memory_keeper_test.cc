// The node of a memory server under a coordinator that is slow, loses answers and ends sessions.
#include "pool/memory_keeper.h"

#include <gtest/gtest.h>

#include <memory>

#include "pool/watched_coordinator_test.h"
#include "sim/seeds.h"
#include "sim/sim_coordinator.h"

namespace skep::pool {
namespace {

class MemoryKeeperTest : public testing::Test {
 protected:
  void Begin(uint64_t seed) {
    keeper_.reset();
    watched_.reset();
    clock_ = std::make_unique<SimClock>();
    coordinator_ = std::make_unique<SimCoordinator>(seed, *clock_, trace_);
    watched_ = std::make_unique<WatchedCoordinator>(*coordinator_);
    keeper_ = std::make_unique<MemoryKeeper>(
        *watched_, *clock_, MemoryKeeperOptions{.pool = "p", .id = 7, .address = "here"});
  }
  // False: it has not come about in a minute.
  bool RunUntil(bool is_registered) {
    for (int i = 0; i < 60'000 && keeper_->is_registered() != is_registered; ++i) {
      keeper_->Turn();
      clock_->Advance(5'000'000);
    }
    return keeper_->is_registered() == is_registered;
  }
  // The bytes of the server's node, as another session reads them.
  std::string NodeBytes() {
    auto session = *coordinator_->Open({});
    for (int i = 0; i < 12'000; ++i) {
      for (const CoordinatorEvent& event : session->TakeEvents()) {
        if (event.kind == CoordinatorEvent::Kind::kConnected) {
          session->Get(1, "/skep/p/memory/7", CoordinatorWatch::kNone);
        }
        if (event.kind == CoordinatorEvent::Kind::kAnswer) return event.bytes;
      }
      clock_->Advance(5'000'000);
    }
    return "no answer";
  }

  Trace trace_;
  std::unique_ptr<SimClock> clock_;
  std::unique_ptr<SimCoordinator> coordinator_;
  std::unique_ptr<WatchedCoordinator> watched_;
  std::unique_ptr<MemoryKeeper> keeper_;
};

TEST_F(MemoryKeeperTest, MakesItsNode) {
  Begin(1);
  ASSERT_TRUE(RunUntil(true));
  EXPECT_EQ(NodeBytes(), "here");
}

TEST_F(MemoryKeeperTest, MakesItAgainWhenItsSessionHasEnded) {
  Begin(1);
  ASSERT_TRUE(RunUntil(true));
  coordinator_->Expire(*watched_->last);
  ASSERT_TRUE(RunUntil(false));
  ASSERT_TRUE(RunUntil(true));
  EXPECT_EQ(NodeBytes(), "here");
}

// Also where its answers take longer than the keeper waits before it does again what was not done,
// and where many messages are lost.
TEST_F(MemoryKeeperTest, AServiceMayBeSlowAndLoseAnswers) {
  for (const uint64_t seed : Seeds(20)) {
    Begin(seed);
    coordinator_->set_options({.delay_ns_min = KeptSession::kRetryNs,
                               .delay_ns_max = 2 * KeptSession::kRetryNs,
                               .losses_ppm = seed % 2 == 0 ? 0u : 200'000u});
    ASSERT_TRUE(RunUntil(true)) << "seed " << seed;
    coordinator_->set_options({});
    EXPECT_EQ(NodeBytes(), "here") << "seed " << seed;
  }
}

// The connection breaks at every time: also when the node was made and the answer is on its way.
// Then it is there, and its owner is asked for.
TEST_F(MemoryKeeperTest, AnAnswerMayBeLost) {
  for (int turns = 1; turns < 200; ++turns) {
    Begin(static_cast<uint64_t>(turns));
    coordinator_->set_options({.delay_ns_min = 40'000'000, .delay_ns_max = 50'000'000});
    for (int i = 0; i < turns; ++i) {
      keeper_->Turn();
      clock_->Advance(5'000'000);
    }
    coordinator_->Reset(*watched_->last);
    ASSERT_TRUE(RunUntil(true)) << "after " << turns << " turns";
  }
}

}  // namespace
}  // namespace skep::pool
