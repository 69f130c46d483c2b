#include "bench/ycsb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/cpu.h"
#include "bench/engine_target.h"
#include "bench/op_generator.h"

namespace skep::bench {
namespace {

using testing::HasSubstr;

// Sessions and sources that count, and fail when told to.
class CountingSession final : public YcsbSession {
 public:
  Status Execute(const OpStream& stream, size_t first, size_t count, Tally& tally) override {
    if (batches == fail_at) return Status(Code::kUnavailable, "planted");
    ++batches;
    largest = std::max(largest, count);
    ops += count;
    EXPECT_LE(first + count, stream.size());
    if (refuse) tally.CountError("planted refusal");
    return {};
  }

  uint64_t fail_at = UINT64_MAX;
  bool refuse = false;
  uint64_t batches = 0;
  uint64_t ops = 0;
  size_t largest = 0;
};

class CountingSource final : public OpSource {
 public:
  void Fill(OpStream& stream, size_t count) override {
    largest = std::max(largest, count);
    for (size_t i = 0; i < count; ++i) stream.Add(OpKind::kRead, filled++);
  }

  uint64_t filled = 0;
  size_t largest = 0;
};

// Goal: every lane does all of its operations in batches of the size asked for, in bounded rounds,
// and the histogram has one entry for each operation.
// Method: keys so long that a round holds few of them; lanes of unequal length, one of them empty.
TEST(Phase, RunsEveryLaneToItsEnd) {
  const KeyFormat format(1 << 20);
  constexpr uint32_t kBatch = 7;
  const uint64_t round_ops_max = kStreamBytesMax / OpStream::BytesPerOp(format) / 3;
  std::vector<CountingSession> sessions(3);
  std::vector<CountingSource> sources(3);
  const std::vector<uint64_t> ops = {0, 5, 2 * round_ops_max + 3};
  std::vector<Lane> lanes;
  for (size_t i = 0; i < ops.size(); ++i) lanes.push_back({&sessions[i], &sources[i], ops[i]});
  Progress progress("test", 0, lanes.size(), /*show=*/false);
  const PhaseReport report = RunPhase(lanes, format, kBatch, progress);

  EXPECT_TRUE(report.status.ok());
  EXPECT_EQ(report.ops, ops[1] + ops[2]);
  EXPECT_EQ(report.latency_ns.count(), report.ops);
  EXPECT_GT(report.seconds, 0);
  for (size_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(sessions[i].ops, ops[i]);
    EXPECT_EQ(sources[i].filled, ops[i]);
    EXPECT_LE(sessions[i].largest, kBatch);
    EXPECT_LE(sources[i].largest, round_ops_max);
  }
}

// Goal: a lane stays on the core it asks for, and the phase says so; the other lanes may run
// anywhere.
// Method: sessions that look on which cores they may run.
TEST(Phase, PinsLanesThatAsk) {
  class LookingSession final : public YcsbSession {
   public:
    Status Execute(const OpStream&, size_t, size_t, Tally&) override {
      cores = AllowedCores();
      return {};
    }
    std::vector<int> cores;
  };
  const std::vector<int> allowed = AllowedCores();
  std::vector<LookingSession> sessions(2);
  std::vector<CountingSource> sources(2);
  const std::vector<Lane> lanes = {{&sessions[0], &sources[0], 10, allowed.back()},
                                   {&sessions[1], &sources[1], 10}};
  Progress progress("test", 0, lanes.size(), /*show=*/false);
  EXPECT_TRUE(RunPhase(lanes, KeyFormat(8), 5, progress).pinned);
  EXPECT_EQ(sessions[0].cores, std::vector<int>{allowed.back()});
  EXPECT_EQ(sessions[1].cores, allowed);
}

// Goal: with a rate, a phase takes as long as the rate says, and a batch that comes late is counted
// late.
// Method: one session that stalls in the first of a hundred batches.
TEST(Phase, KeepsItsRate) {
  class StallingSession final : public YcsbSession {
   public:
    Status Execute(const OpStream&, size_t first, size_t, Tally&) override {
      if (first == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return {};
    }
  };
  StallingSession session;
  CountingSource source;
  const Lane lane{&session, &source, 1000};
  Progress progress("test", 0, 1, /*show=*/false);
  const PhaseReport report = RunPhase(std::span(&lane, 1), KeyFormat(8), 10, progress, 10'000);
  EXPECT_GE(report.seconds, 0.099);  // 100 batches, a millisecond apart
  // The batches of the first 50 ms waited: the middle one of them for 25 ms.
  EXPECT_GE(report.latency_ns.Quantile(0.75), 20'000'000u);
  EXPECT_EQ(report.latency_ns.count(), 1000u);
}

// Goal: a session that breaks ends the phase for all lanes, with its status, and no thread hangs.
TEST(Phase, StopsWhenALaneFails) {
  const KeyFormat format(1 << 20);
  std::vector<CountingSession> sessions(2);
  std::vector<CountingSource> sources(2);
  sessions[1].fail_at = 1;
  std::vector<Lane> lanes;
  for (size_t i = 0; i < 2; ++i) lanes.push_back({&sessions[i], &sources[i], 1000});
  Progress progress("test", 0, lanes.size(), /*show=*/false);
  const PhaseReport report = RunPhase(lanes, format, 3, progress);
  EXPECT_EQ(report.status.code(), Code::kUnavailable);
  EXPECT_LT(report.ops, 2000u);
  EXPECT_EQ(report.latency_ns.count(), report.ops);
}

// Goal: errors are counted over all lanes, the first is kept.
TEST(Phase, AddsUpErrors) {
  std::vector<CountingSession> sessions(2);
  std::vector<CountingSource> sources(2);
  sessions[1].refuse = true;
  std::vector<Lane> lanes;
  for (size_t i = 0; i < 2; ++i) lanes.push_back({&sessions[i], &sources[i], 10});
  Progress progress("test", 0, lanes.size(), /*show=*/false);
  const PhaseReport report = RunPhase(lanes, KeyFormat(8), 5, progress);
  EXPECT_EQ(report.tally.errors, 2u);
  EXPECT_EQ(report.tally.first_error, "planted refusal");
}

YcsbOptions SmallOptions(const std::string& workload) {
  return {.workload = workload,
          .records = 500,
          .ops = 3000,
          .threads = 2,
          .batch = 16,
          .value_bytes = 32};
}

// Goal: every workload, with every distribution, runs on the oracle engine without a single error:
// the checks of the sessions and invariant G1 hold end to end.
TEST(Ycsb, RunsOnTheModelEngine) {
  for (const char* name : {"a", "b", "c", "d", "e", "f", "get", "update", "scan", "cloud"}) {
    const bool scans = std::set<std::string>{"e", "scan", "cloud"}.contains(name);
    for (auto distribution :
         {Distribution::kUniform, Distribution::kZipfian, Distribution::kLatest}) {
      SCOPED_TRACE(testing::Message() << name << " " << NameOf(distribution));
      YcsbOptions options = SmallOptions(name);
      options.distribution = distribution;
      const auto report = RunYcsb(options);
      ASSERT_TRUE(report.has_value()) << report.error();
      EXPECT_EQ(report->load.ops, options.records);
      EXPECT_EQ(report->run.ops, options.ops);
      EXPECT_EQ(report->run.tally.errors, 0u) << report->run.tally.first_error;
      EXPECT_EQ(report->run.tally.items_scanned > 0, scans);
      EXPECT_GT(report->footprint.bytes_per_item.value_or(0), 23 + 32);
      EXPECT_GT(report->footprint.rss_bytes.value_or(0), 0u);
    }
  }
}

// Goal: the distribution is the workload's own unless one is given.
TEST(Ycsb, DistributionDefaultsToTheWorkloads) {
  EXPECT_EQ(RunYcsb(SmallOptions("d"))->options.distribution, Distribution::kLatest);
  EXPECT_EQ(RunYcsb(SmallOptions("e"))->options.distribution, Distribution::kZipfian);
}

// Goal: scans are as long as asked for, and the cloud's share of them is as asked for.
// Method: without insertions every scan that does not meet the end has its length.
TEST(Ycsb, ScansAreAsLongAsAskedFor) {
  YcsbOptions options = SmallOptions("scan");
  options.scan_length = 7;
  const auto scans = RunYcsb(options);
  EXPECT_GT(scans->run.tally.items_scanned, 6.8 * 3000);
  EXPECT_LE(scans->run.tally.items_scanned, 7 * 3000u);
  options.workload = "cloud";
  options.read_percent = 60;
  const auto cloud = RunYcsb(options);
  EXPECT_EQ(cloud->run.tally.errors, 0u) << cloud->run.tally.first_error;
  EXPECT_NEAR(static_cast<double>(cloud->run.tally.items_scanned), 0.6 * 3.5 * 3000, 500);
}

// Goal: the workload `load` is the loading itself.
TEST(Ycsb, LoadsFromEmpty) {
  const auto report = RunYcsb(SmallOptions("load"));
  ASSERT_TRUE(report.has_value()) << report.error();
  EXPECT_EQ(report->run.ops, 500u);
  EXPECT_EQ(report->options.ops, 500u);
  EXPECT_EQ(report->run.mops(), report->load.mops());
}

// Goal: wrong options are named, not run.
TEST(Ycsb, RefusesWrongOptions) {
  const auto complaint = [](auto change) {
    YcsbOptions options = SmallOptions("e");
    change(options);
    const auto report = RunYcsb(options);
    return report ? std::string("ran") : report.error();
  };
  EXPECT_THAT(complaint([](auto& o) { o.workload = "g"; }), HasSubstr("--workload"));
  EXPECT_THAT(complaint([](auto& o) { o.workload = "delete"; }), HasSubstr("--workload"));
  EXPECT_THAT(complaint([](auto& o) {
                o.workload = "scan";
                o.scan_length = 0;
              }),
              HasSubstr("--scan-length"));
  EXPECT_THAT(complaint([](auto& o) {
                o.workload = "cloud";
                o.read_percent = 101;
              }),
              HasSubstr("--read-percent"));
  EXPECT_THAT(complaint([](auto& o) { o.engine = "btree:none=1"; }), HasSubstr("none=1"));
  EXPECT_THAT(complaint([](auto& o) { o.records = 0; }), HasSubstr("--records"));
  EXPECT_THAT(complaint([](auto& o) { o.threads = 0; }), HasSubstr("--threads"));
  EXPECT_THAT(complaint([](auto& o) { o.batch = 0; }), HasSubstr("--batch"));
  EXPECT_THAT(complaint([](auto& o) { o.key_bytes = 3; }), HasSubstr("--key-size"));
  EXPECT_THAT(complaint([](auto& o) { o.records = 1; }), HasSubstr("insertions"));
  EXPECT_THAT(complaint([](auto& o) { o.engine = "none"; }), HasSubstr("this build has"));
  EXPECT_EQ(complaint([](auto&) {}), "ran");
}

// Goal: a session in this process counts wrong outcomes, once for each operation.
// Method: an empty store: reads, scans and read-modify-writes find nothing; then the value that the
// read-modify-write stored is inserted again, and read with the wrong size.
TEST(EngineTarget, CountsWrongOutcomes) {
  const ValuePool values(10, 1);
  auto target = EngineTarget::Open({.engine = "model"}, values);
  ASSERT_TRUE(target);
  auto session = (*target)->Connect();
  ASSERT_TRUE(session);
  const auto errors = [&](OpKind kind, uint64_t number, uint32_t items = 0) {
    OpStream stream{KeyFormat(24)};
    stream.Add(kind, number, items);
    Tally tally;
    EXPECT_TRUE((*session)->Execute(stream, 0, 1, tally).ok());
    return tally.errors;
  };
  EXPECT_EQ(errors(OpKind::kRead, 1), 1u);
  EXPECT_EQ(errors(OpKind::kScan, 1, 5), 1u);
  EXPECT_EQ(errors(OpKind::kReadModifyWrite, 1), 1u);
  EXPECT_EQ(errors(OpKind::kInsert, 1), 1u);
  EXPECT_EQ(errors(OpKind::kInsert, 2), 0u);
  EXPECT_EQ(errors(OpKind::kUpdate, 2), 0u);
  EXPECT_EQ(errors(OpKind::kRead, 2), 0u);
  EXPECT_EQ(errors(OpKind::kReadModifyWrite, 2), 0u);
  EXPECT_EQ(errors(OpKind::kScan, 2, 5), 0u);
}

}  // namespace
}  // namespace skep::bench
