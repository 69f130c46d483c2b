#include "bench/expiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bench/expiry_test_server.h"

namespace skep::bench {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using Behaviour = ExpiryTestServer::Behaviour;

constexpr uint64_t kNsPerMs = 1'000'000;

ExpiryOptions SmallOptions(const ExpiryTestServer& server) {
  return {.port = server.port(),
          .items = 700,
          .stay = 300,
          .seconds = 0.2,
          .repeats = 1,
          .value_bytes = 20};
}

// Returns what is wrong with a run on such a server; "ran" if nothing is.
std::string ProblemOf(const Behaviour& behaviour, auto change) {
  ExpiryTestServer server(behaviour);
  ExpiryOptions options = SmallOptions(server);
  change(options);
  const auto report = RunExpiry(options);
  return report ? "ran" : report.error();
}

// Goal: a command counts in the part in which it was meant to be sent, and in none in the gap.
TEST(ExpiryTimeline, KnowsTheParts) {
  constexpr uint64_t kFirst = 10'000'000'000;
  constexpr uint64_t kPart = 3'000'000'000;
  constexpr uint64_t kGap = ExpiryTimeline::kGapNs;
  ExpiryTimeline timeline(kFirst, kPart);
  EXPECT_EQ(timeline.end_ns(), UINT64_MAX);
  EXPECT_EQ(timeline.PartOf(kFirst - kGap - kPart - 1), std::nullopt);
  EXPECT_EQ(timeline.PartOf(kFirst - kGap - kPart), ExpiryPart::kBefore);
  EXPECT_EQ(timeline.PartOf(kFirst - kGap - 1), ExpiryPart::kBefore);
  EXPECT_EQ(timeline.PartOf(kFirst - kGap), std::nullopt);
  EXPECT_EQ(timeline.PartOf(kFirst - 1), std::nullopt);
  EXPECT_EQ(timeline.PartOf(kFirst), ExpiryPart::kDuring);
  timeline.MarkReclaimed(kFirst + kPart / 2);
  EXPECT_EQ(timeline.PartOf(kFirst + kPart / 2 - 1), ExpiryPart::kDuring);
  EXPECT_EQ(timeline.PartOf(kFirst + kPart / 2), ExpiryPart::kAfter);
  EXPECT_EQ(timeline.end_ns(), kFirst + kPart / 2 + kPart);
  EXPECT_DOUBLE_EQ(timeline.SecondsOf(ExpiryPart::kBefore), 3);
  EXPECT_DOUBLE_EQ(timeline.SecondsOf(ExpiryPart::kDuring), 1.5);
  timeline.Stop();
  EXPECT_EQ(timeline.end_ns(), 0u);
}

// Goal: a closed loop on several connections measures all parts of all repeats, by the server's
// clock, and leaves the keys that stay.
// Method: a server whose clock is an hour ahead and that reclaims late.
TEST(Expiry, MeasuresAllParts) {
  ExpiryTestServer server({.clock_lead_ms = 3'600'000, .reclaim_delay_ms = 400});
  ExpiryOptions options = SmallOptions(server);
  options.connections = 3;
  options.depth = 4;
  options.seconds = 0.5;
  options.repeats = 2;
  const auto report = RunExpiry(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  EXPECT_EQ(report->errors, 0u) << report->first_error;
  EXPECT_EQ(report->server, "redis fake");
  ASSERT_EQ(report->turns.size(), 2u);
  for (const ExpiryTurn& turn : report->turns) {
    for (const ExpiryPartReport& part : turn.parts) EXPECT_GT(part.latency_ns.count(), 0u);
    EXPECT_GT(turn.p99_ratio(), 0);
    EXPECT_GE(turn.reclaim_seconds, 0.2);
    EXPECT_GE(turn.part(ExpiryPart::kDuring).seconds, 1.2);
    EXPECT_EQ(turn.memory_before.used_bytes, options.stay * 100);
    EXPECT_EQ(turn.memory_loaded.rss_bytes, (options.stay + options.items) * 200);
    EXPECT_EQ(turn.memory_after.used_bytes, options.stay * 100);
    EXPECT_EQ(turn.late_ns.count(), 0u);
  }
  server.Stop();
  EXPECT_EQ(server.keys(), options.stay);
  EXPECT_EQ(server.keys_with_deadline(), 0u);
}

// Goal: in an open loop a stall slows every command that was meant to be sent during it, and no
// command is left out.
// Method: one command a millisecond and a stall of 200 ms: of the commands meant for its first half
// each must have taken at least 100 ms, however fast or slow the machine is.
TEST(Expiry, AnOpenLoopCountsWhatAStallHeldUp) {
  constexpr uint64_t kStallMs = 200;
  ExpiryTestServer server({.stall_ms = kStallMs});
  ExpiryOptions options = SmallOptions(server);
  options.rate = 1000;
  options.connections = 2;
  const auto report = RunExpiry(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  const ExpiryTurn& turn = report->turns[0];
  EXPECT_NEAR(static_cast<double>(turn.part(ExpiryPart::kBefore).latency_ns.count()), 200, 1);
  const ExpiryPartReport& during = turn.part(ExpiryPart::kDuring);
  const auto commands = static_cast<double>(during.latency_ns.count());
  EXPECT_GE(commands, during.seconds * 1e3 - 1);
  constexpr double kHeldUp = kStallMs / 2 - 2;
  EXPECT_GE(during.latency_ns.Quantile(1 - kHeldUp / commands), kStallMs / 2 * kNsPerMs);
  EXPECT_GT(turn.late_ns.count(), 0u);
}

// Goal: in a closed loop the same stall is one slow command for each that may be under way.
TEST(Expiry, AClosedLoopFeelsAStallOnce) {
  constexpr uint64_t kStallMs = 200;
  ExpiryTestServer server({.stall_ms = kStallMs});
  const auto report = RunExpiry(SmallOptions(server));
  ASSERT_TRUE(report.has_value()) << report.error();
  const Histogram& during = report->turns[0].part(ExpiryPart::kDuring).latency_ns;
  EXPECT_GE(during.max(), (kStallMs - 10) * kNsPerMs);
}

// Goal: answers that cannot be right are errors.
TEST(Expiry, CountsWrongAnswers) {
  ExpiryTestServer server({.loses_keys = true});
  const auto report = RunExpiry(SmallOptions(server));
  ASSERT_TRUE(report.has_value()) << report.error();
  EXPECT_GT(report->errors, 0u);
  EXPECT_THAT(report->first_error, HasSubstr("absent"));
}

// Goal: an impossible run ends at once, with the reason.
TEST(Expiry, SaysWhyARunIsImpossible) {
  const auto unchanged = [](ExpiryOptions&) {};
  EXPECT_THAT(ProblemOf({.hangs_up = true}, unchanged),
              AnyOf(HasSubstr("closed"), HasSubstr("reset")));
  EXPECT_THAT(ProblemOf({.refuses_deadlines = true}, unchanged), HasSubstr("SET"));
  EXPECT_THAT(ProblemOf({.first_deadline_pause_ms = 700},
                        [](ExpiryOptions& options) { options.lead_seconds = 0.01; }),
              HasSubstr("--lead"));
  ExpiryTestServer server({});
  server.AddForeignDeadline();
  const auto report = RunExpiry(SmallOptions(server));
  EXPECT_THAT(report ? "" : report.error(), HasSubstr("deadline already"));
}

// Goal: wrong options are named, not run.
TEST(Expiry, RefusesWrongOptions) {
  const auto problem = [](auto change) { return ProblemOf({}, change); };
  EXPECT_THAT(problem([](auto& o) { o.items = 0; }), HasSubstr("--items"));
  EXPECT_THAT(problem([](auto& o) { o.stay = 0; }), HasSubstr("--stay"));
  EXPECT_THAT(problem([](auto& o) { o.connections = 0; }), HasSubstr("--connections"));
  EXPECT_THAT(problem([](auto& o) { o.depth = 0; }), HasSubstr("--depth"));
  EXPECT_THAT(problem([](auto& o) { o.depth = ExpiryClient::kInFlightMax + 1; }),
              HasSubstr("--depth"));
  EXPECT_THAT(problem([](auto& o) { o.rate = o.depth = 2; }), HasSubstr("--rate"));
  EXPECT_THAT(problem([](auto& o) { o.seconds = 0; }), HasSubstr("--seconds"));
  EXPECT_THAT(problem([](auto& o) { o.lead_seconds = -1; }), HasSubstr("--lead"));
  EXPECT_THAT(problem([](auto& o) { o.repeats = 0; }), HasSubstr("--repeats"));
  EXPECT_THAT(problem([](auto& o) { o.key_bytes = 7; }), HasSubstr("--key-size"));
}

}  // namespace
}  // namespace skep::bench
