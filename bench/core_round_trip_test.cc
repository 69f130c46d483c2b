#include "bench/core_round_trip.h"

#include <gtest/gtest.h>

#include "base/cpu.h"

namespace skep::bench {
namespace {

// Goal: a round trip takes some time, and the calling thread may run where it could before.
TEST(CoreRoundTrip, TakesTime) {
  const std::vector<int> cores = AllowedCores();
  const auto ns = CoreRoundTripNs(cores);
  EXPECT_EQ(ns.has_value(), cores.size() > 1);
  EXPECT_GT(ns.value_or(1), 0);
  EXPECT_EQ(AllowedCores(), cores);
}

// Goal: one core alone, or a core that does not exist, gives no figure.
TEST(CoreRoundTrip, NeedsTwoCores) {
  const int core = AllowedCores().front();
  EXPECT_FALSE(CoreRoundTripNs({core}));
  EXPECT_FALSE(CoreRoundTripNs({core, 100'000}));
}

}  // namespace
}  // namespace skep::bench
