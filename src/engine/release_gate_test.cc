#include "engine/release_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace skep {
namespace {

// Goal: a ticket passes exactly from its release on, and releases never go back.
// Method: one thread, every case.
TEST(ReleaseGate, OpensInOrder) {
  ReleaseGate gate;
  EXPECT_TRUE(gate.IsReleased(0));
  EXPECT_FALSE(gate.IsReleased(1));
  std::vector<int> called;
  gate.CallWhenReleased(0, [&] { called.push_back(0); });
  EXPECT_EQ(called, (std::vector<int>{0})) << "released already: at once";
  gate.CallWhenReleased(5, [&] { called.push_back(5); });
  gate.CallWhenReleased(3, [&] { called.push_back(3); });
  gate.CallWhenReleased(4, [&] { called.push_back(4); });
  gate.Release(2);
  EXPECT_EQ(called.size(), 1u);
  gate.Release(4);
  std::ranges::sort(called);
  EXPECT_EQ(called, (std::vector<int>{0, 3, 4}));
  gate.Release(1);
  EXPECT_EQ(gate.released(), 4u);
  gate.Release(9);
  EXPECT_EQ(called.back(), 5);
  gate.Release(10);
  EXPECT_EQ(called.size(), 4u) << "each is called once";
}

// Goal: no wake-up is lost, and none comes early.
// Method: a writer releases 1..n while waiters, some blocking and some by call, wait for random
// tickets. A lost wake-up hangs the test; an early one is seen by the check.
TEST(ReleaseGate, WakesEveryWaiter) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  constexpr Version kLast = 20'000;
  ReleaseGate gate;
  std::atomic<int> early{0};
  std::atomic<int> asked{0};
  std::atomic<int> called{0};
  std::vector<std::thread> waiters;
  constexpr int kWaits = 500;
  for (unsigned t = 0; t < 3; ++t) {
    waiters.emplace_back([&, t] {
      std::mt19937 rng(seed + t);
      for (int i = 0; i < kWaits; ++i) {
        const Version ticket = std::min<Version>(kLast, gate.released() + rng() % 20);
        if (rng() % 2 == 0) {
          gate.Wait(ticket);
          if (!gate.IsReleased(ticket)) ++early;
        } else {
          ++asked;
          gate.CallWhenReleased(ticket, [&gate, &early, &called, ticket] {
            if (!gate.IsReleased(ticket)) ++early;
            ++called;
          });
        }
      }
    });
  }
  std::thread writer([&] {
    for (Version v = 1; v <= kLast; ++v) gate.Release(v);
  });
  writer.join();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(early.load(), 0);
  EXPECT_EQ(called.load(), asked.load());
}

}  // namespace
}  // namespace skep
