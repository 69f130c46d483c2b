#include "bench/net/window.h"

#include <gtest/gtest.h>

#include "bench/net/schedule.h"

namespace skep::bench {
namespace {

using Phase = NetWindow::Phase;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1'000 * kMs;

// Goal: requests are evenly spaced, and a rate that does not divide a second does not drift.
TEST(OpenSchedule, DoesNotDrift) {
  const OpenSchedule thirds(5, 3, 1);
  EXPECT_EQ(thirds.MeantNs(0), 5u);
  EXPECT_EQ(thirds.MeantNs(1), 5 + kSecond / 3);
  EXPECT_EQ(thirds.MeantNs(3), 5 + kSecond);
  EXPECT_EQ(thirds.MeantNs(3'000'000), 5 + 1'000'000 * kSecond);
  const OpenSchedule groups(0, 3200, 32);
  EXPECT_EQ(groups.MeantNs(100), kSecond);
}

// Goal: operations count while measuring, latencies by their intended time; each phase ends once,
// and reading the clock late makes the measured time longer, not wrong.
TEST(NetWindow, MeasuresBetweenItsEdges) {
  NetWindow window(kSecond, 2 * kSecond, NetWindow::kNever);
  EXPECT_FALSE(window.Observe(kSecond - 1));
  EXPECT_EQ(window.edge_ns(), kSecond);
  window.Answered(kSecond - kMs, kSecond - 1, 1);
  EXPECT_EQ(window.ops(), 0u);

  EXPECT_TRUE(window.Observe(kSecond + kMs));
  EXPECT_FALSE(window.Observe(kSecond + kMs));
  EXPECT_EQ(window.edge_ns(), 3 * kSecond);
  window.Answered(kSecond - 1, kSecond + kMs, 4);  // throughput, but no latency
  window.Answered(kSecond, kSecond + 2 * kMs, 2);
  EXPECT_EQ(window.ops(), 6u);
  EXPECT_EQ(window.latency_ns().count(), 2u);
  EXPECT_EQ(window.latency_ns().max(), 2 * kMs);

  EXPECT_TRUE(window.Sends(3 * kSecond - 1));
  EXPECT_FALSE(window.Sends(3 * kSecond));
  EXPECT_TRUE(window.Observe(3 * kSecond + 2 * kMs));
  EXPECT_EQ(window.phase(), Phase::kOver);
  EXPECT_EQ(window.edge_ns(), NetWindow::kNever);
  EXPECT_DOUBLE_EQ(window.seconds(), 2.001);
  window.Answered(3 * kSecond - 1, 4 * kSecond - 1, 1);  // latency, but no throughput
  EXPECT_EQ(window.ops(), 6u);
  EXPECT_EQ(window.latency_ns().max(), kSecond);
  window.Answered(3 * kSecond, 5 * kSecond, 1);
  EXPECT_EQ(window.latency_ns().count(), 3u);
}

// Goal: the number of operations ends it, too, and requests meant for later are then not measured.
TEST(NetWindow, EndsWithTheOperations) {
  NetWindow window(0, NetWindow::kNever, 10);
  EXPECT_TRUE(window.Observe(0));
  window.Answered(1, 2, 9);
  EXPECT_FALSE(window.Observe(1'000 * kSecond));
  window.Answered(1, 3, 2);
  EXPECT_TRUE(window.Observe(1'001 * kSecond));
  EXPECT_EQ(window.ops(), 11u);
  EXPECT_FALSE(window.Sends(1'001 * kSecond));
  EXPECT_TRUE(window.Sends(1'001 * kSecond - 1));
}

// Goal: in an open loop a stall counts for all requests that it held up, whether they were sent
// before its end or not: no coordinated omission.
// Method: 1000 requests a second for three seconds, all answered after 10 us, but none during a
// stall of 200 ms; only one is under way then, the others are sent when it is answered. So
// latencies of 200, 199, 198 ... ms must occur, one each.
TEST(NetWindow, AnOpenLoopCountsWhatAStallHeldUp) {
  constexpr uint64_t kAnswerNs = 10'000;
  constexpr uint64_t kStallBegin = kSecond;
  constexpr uint64_t kStallEnd = kStallBegin + 200 * kMs;
  const OpenSchedule schedule(0, 1000, 1);
  NetWindow window(0, 3 * kSecond, NetWindow::kNever);
  window.Observe(0);
  for (uint64_t i = 0; window.Sends(schedule.MeantNs(i)); ++i) {
    const uint64_t meant_ns = schedule.MeantNs(i);
    const bool stalled = meant_ns >= kStallBegin && meant_ns < kStallEnd;
    window.Sent(meant_ns, stalled && meant_ns > kStallBegin ? kStallEnd : meant_ns);
    window.Answered(meant_ns, stalled ? kStallEnd : meant_ns + kAnswerNs, 1);
  }
  window.Observe(3 * kSecond);
  const Histogram& latency = window.latency_ns();
  ASSERT_EQ(latency.count(), 3000u);
  EXPECT_EQ(latency.max(), 200 * kMs);
  EXPECT_LE(latency.Quantile(2800.0 / 3000), kAnswerNs * 1.01);
  for (const uint64_t held_up : {1, 50, 100, 199}) {
    const auto exact = static_cast<double>(held_up * kMs);
    const auto found =
        static_cast<double>(latency.Quantile(static_cast<double>(2800 + held_up) / 3000));
    EXPECT_GE(found, exact);
    EXPECT_LE(found, exact * 1.01);
  }
  EXPECT_EQ(window.late_ns().count(), 3000u);
  EXPECT_EQ(window.late_ns().max(), 199 * kMs);
}

}  // namespace
}  // namespace skep::bench
