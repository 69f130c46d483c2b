#include "server/slow_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/command_statistics.h"
#include "server/worker_statistics.h"

namespace skep {
namespace {

// Goal: the newest entries come first, and the oldest make room.
TEST(SlowLog, KeepsTheNewest) {
  SlowLog log;
  for (uint64_t us = 0; us < 5; ++us) log.Add({.us = us}, 3);
  const auto newest = log.Newest(2);
  ASSERT_EQ(newest.size(), 2u);
  EXPECT_EQ(newest[0].us, 4u);
  EXPECT_EQ(newest[0].id, 4u);
  EXPECT_EQ(newest[1].us, 3u);
  EXPECT_EQ(log.size(), 3u);
  log.Clear();
  EXPECT_EQ(log.size(), 0u);
  log.Add({}, 3);
  EXPECT_EQ(log.Newest(9)[0].id, 5u) << "ids go on";
}

// Goal: what is kept of a command is bounded, and has no password.
TEST(SlowLog, WordsAreShort) {
  using Words = std::vector<std::string>;
  const std::string long_word(130, 'x');
  std::vector<std::string_view> words(33, "w");
  words[0] = long_word;
  const Words told = WordsToLog(words);
  ASSERT_EQ(told.size(), 32u);
  EXPECT_TRUE(told[0].starts_with(std::string(128, 'x')));
  EXPECT_EQ(told[0].substr(128), "... (2 more bytes)");
  EXPECT_EQ(told[31], "... (2 more arguments)");
  words.resize(32);
  EXPECT_EQ(WordsToLog(words)[31], "w");

  const auto log = [](const std::vector<std::string_view>& args) { return WordsToLog(args); };
  EXPECT_EQ(log({"auth", "user", "secret"}), (Words{"auth", "(redacted)", "(redacted)"}));
  EXPECT_EQ(log({"HELLO", "3", "AUTH", "secret"}),
            (Words{"HELLO", "3", "(redacted)", "(redacted)"}));
  EXPECT_EQ(log({"CONFIG", "SET", "timeout", "1", "RequirePass", "secret"}),
            (Words{"CONFIG", "SET", "timeout", "1", "RequirePass", "(redacted)"}));
  EXPECT_EQ(log({"SET", "requirepass", "1"}), (Words{"SET", "requirepass", "1"}));
}

// Goal: one point a second, the longest of it; old points make room; the maximum stays.
TEST(LatencyMonitor, KeepsPoints) {
  LatencyMonitor monitor;
  monitor.Add("command", 1, 50);
  monitor.Add("command", 1, 70);
  monitor.Add("command", 1, 60);
  ASSERT_EQ(monitor.History("command").size(), 1u);
  EXPECT_EQ(monitor.History("command")[0].ms, 70u);
  for (uint64_t s = 2; s <= 2 + LatencyMonitor::kPointsMax; ++s) monitor.Add("command", s, s);
  const auto history = monitor.History("command");
  ASSERT_EQ(history.size(), LatencyMonitor::kPointsMax);
  EXPECT_EQ(history.front().unix_s, 3u);
  const auto latest = monitor.Latest();
  ASSERT_EQ(latest.size(), 1u);
  EXPECT_EQ(latest[0].latest.unix_s, 2 + LatencyMonitor::kPointsMax);
  EXPECT_EQ(latest[0].ms_max, 2 + LatencyMonitor::kPointsMax);
  EXPECT_TRUE(monitor.History("nosuch").empty());
  const std::string_view names[] = {"nosuch", "command"};
  EXPECT_EQ(monitor.Reset(names), 1u);
  monitor.Add("a", 1, 1);
  EXPECT_EQ(monitor.Reset({}), 1u);
  EXPECT_TRUE(monitor.Latest().empty());
}

// Goal: each time is in the bucket whose bound it is below, and no lower one.
TEST(CommandStatistics, Buckets) {
  EXPECT_EQ(LatencyBucketOf(0), 0u);
  for (size_t bucket = 0; bucket + 1 < kLatencyBuckets; ++bucket) {
    EXPECT_EQ(LatencyBucketOf(LatencyBoundNs(bucket) - 1), bucket);
    EXPECT_EQ(LatencyBucketOf(LatencyBoundNs(bucket)), bucket + 1);
  }
  EXPECT_EQ(LatencyBucketOf(UINT64_MAX), kLatencyBuckets - 1);
}

size_t PlaceOf(std::initializer_list<std::string_view> words) {
  return CountedPlace(*FindCommand(*words.begin()), std::span(words.begin(), words.size()));
}

std::string_view NameCounted(std::initializer_list<std::string_view> words) {
  return CountedCommands()[PlaceOf(words)].name;
}

// Goal: a command is counted under its name, a call with a subcommand under that of the subcommand,
// and one that does not stand in the table nowhere.
TEST(CommandStatistics, Counts) {
  CommandStatistics statistics;
  static constexpr Command kOther{};
  const size_t get = PlaceOf({"get", "client"});
  const size_t other = CountedPlace(kOther, {});
  statistics.Count(get, 3000, Ending::kDone);
  statistics.Count(get, 1, Ending::kFailed);
  statistics.Count(other, 1, Ending::kFailed);
  statistics.CountRejected(get);
  statistics.CountRejected(other);
  statistics.CountError("OOM command not allowed");
  statistics.CountError("SOMETHING else");
  EXPECT_EQ(NameCounted({"get", "client"}), "get");
  const CommandCounts counts = statistics.Of(get);
  EXPECT_EQ(counts.calls, 2u);
  EXPECT_EQ(counts.ns, 3001u);
  EXPECT_EQ(counts.failed, 1u);
  EXPECT_EQ(counts.rejected, 1u);
  EXPECT_EQ(counts.latency[LatencyBucketOf(3000)], 1u);
  uint64_t all = 0;
  for (size_t i = 0; i < CountedCommands().size(); ++i) all += statistics.Of(i).calls;
  EXPECT_EQ(all, 2u);
  EXPECT_EQ(statistics.errors(ErrorCodeOf("OOM x")), 1u);
  EXPECT_EQ(statistics.errors(ErrorCodeOf("ERR x")), 1u);
  EXPECT_EQ(NameCounted({"config", "GET"}), "config|get");
  EXPECT_EQ(NameCounted({"config", "set", "a"}), "config|set");
  EXPECT_EQ(NameCounted({"config", "help"}), "config|help");
  EXPECT_EQ(NameCounted({"config", "nosuch"}), "config");
  EXPECT_EQ(NameCounted({"config"}), "config");
  EXPECT_EQ(NameCounted({"zunionstore"}), "zunionstore");
}

// Goal: a rate is over the samples that are kept, and 0 before there is one.
TEST(RateMeter, IsOverTheLastSamples) {
  RateMeter rate;
  uint64_t count = 0;
  for (size_t i = 0; i < RateMeter::kSamples; ++i) rate.Sample(100 * (i + 1), count += 10);
  EXPECT_EQ(rate.per_second(), 0u);
  for (size_t i = 0; i < RateMeter::kSamples; ++i) {
    rate.Sample(100 * (RateMeter::kSamples + i + 1), count += 10);
  }
  EXPECT_EQ(rate.per_second(), 100u);
}

}  // namespace
}  // namespace skep
