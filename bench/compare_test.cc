#include "bench/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "bench/compare_subject.h"
#include "bench/peer.h"
#include "keyspace/keyspaces.h"

namespace skep::bench {
namespace {

using testing::HasSubstr;

CompareOptions SmallOptions() {
  return {
      .engines = {"model"},
      .peers = {"absl"},
      .workloads = {"load", "get", "get:zipfian", "a", "b", "c", "d", "e", "f", "scan3", "scan100",
                    "cloud95", "cloud50", "hot1", "hot32", "update:zipfian", "churn", "delete"},
      .items = {500},
      .batches = {16},
      .ops = 1000,
      .repeats = 3};
}

// Returns every ordered engine of this build.
std::vector<std::string> OrderedEngines() {
  std::vector<std::string> names;
  for (const EngineInfo& info : AllEngines()) {
    if (info.external) continue;
    if ((*Keyspaces::Make({.keyspaces = 1}, &info))->at(0).traits().ordered)
      names.emplace_back(info.name);
  }
  return names;
}

uint64_t OpsOf(const CompareRow& row, const CompareOptions& options) {
  return 3 * (row.what.workload.sweep ? options.items[0] : options.ops);
}

void ExpectSound(const CompareReport& report, const CompareOptions& options) {
  EXPECT_TRUE(report.sound());
  const size_t subjects = options.peers.size() + options.engines.size();
  ASSERT_EQ(report.rows.size(), subjects * options.workloads.size());
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const CompareRow& row = report.rows[i];
    SCOPED_TRACE(row.engine + " " + row.what.workload.name);
    const std::string& workload = options.workloads[i / subjects];
    EXPECT_EQ(row.what.workload.name, workload.substr(0, workload.find(':')));
    EXPECT_EQ(row.mops.size(), 3u);
    EXPECT_GT(row.median_mops().value_or(0), 0);
    EXPECT_GT(row.ratio.value_or(0), 0);
    EXPECT_TRUE(row.agrees);
    EXPECT_EQ(row.errors, 0u) << row.first_error;
    // The workload `delete` leaves no item.
    if (workload != "delete") {
      EXPECT_GT(row.bytes_per_item.value_or(0), 16 + 16);
    }
    EXPECT_EQ(row.latency_ns.count(), OpsOf(row, options));
    const Workload& mix = row.what.workload;
    EXPECT_EQ(row.checksum != 0, mix.read + mix.read_modify_write + mix.scan > 0);
  }
  ASSERT_EQ(report.footprints.size(), subjects);
  for (const CompareFootprint& footprint : report.footprints) {
    EXPECT_TRUE(footprint.agrees);
    EXPECT_NE(footprint.contents_checksum, 0u);
  }
}

// Goal: every workload runs on the peer and on every ordered engine of this build without an error,
// and all of them give the same answers, together in memory or apart.
TEST(Compare, SubjectsAgree) {
  for (const bool apart : {false, true}) {
    SCOPED_TRACE(apart);
    CompareOptions options = SmallOptions();
    options.engines = OrderedEngines();
    options.apart = apart;
    const auto report = RunCompare(options);
    ASSERT_TRUE(report.has_value()) << report.error();
    ExpectSound(*report, options);
    EXPECT_EQ(report->rows[0].engine, "absl");
    EXPECT_EQ(report->rows[0].ratio, 1);
    EXPECT_EQ(report->rows[2 + options.engines.size()].what.distribution, Distribution::kUniform);
  }
}

// Goal: every workload runs with the keys of a file, of several sizes, and a file with too few is
// refused before anything is measured.
TEST(Compare, TakesTheKeysOfAFile) {
  const std::string path = testing::TempDir() + "/keys_of_comparison";
  std::ofstream file(path);
  constexpr uint64_t kKeys = 500 + 1000 + 1;
  for (uint64_t i = 0; i < kKeys; ++i) {
    file << std::string(i * 7 % 30, 'k') << "/" << i * 7919 % kKeys << "\n";
  }
  file.close();
  CompareOptions options = SmallOptions();
  options.peers = {};
  options.engines = {"model", "btree"};
  auto keys = KeyFile::Read(path);
  ASSERT_TRUE(keys) << keys.error();
  options.key_file = std::make_shared<const KeyFile>(std::move(*keys));
  const auto report = RunCompare(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  ExpectSound(*report, options);

  options.ops = 1001;
  options.workloads = {"get", "e"};
  const auto refused = RunCompare(options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error(), HasSubstr("the file has 1501 keys, and e takes 1502"));
  options.workloads = {"get"};
  EXPECT_TRUE(RunCompare(options).has_value());
  options.items = {1502};
  EXPECT_FALSE(RunCompare(options).has_value());
}

// Goal: threads share the work and the index; two subjects of one engine answer alike.
TEST(Compare, ThreadsShareOneIndex) {
  CompareOptions options = SmallOptions();
  options.engines = {"model", "model"};
  options.peers = {};
  options.threads = {3};
  const auto report = RunCompare(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  EXPECT_TRUE(report->sound());
}

// Goal: every combination of settings has its rows, in their order, with their figures; subjects
// that lack something for one have no figures there, and their answers are compared all the same
// where they had the same turns.
TEST(Compare, RunsAllSettings) {
  for (const bool apart : {false, true}) {
    CompareOptions options = SmallOptions();
    options.engines = {"btree", "model"};
    options.workloads = {"churn", "get"};
    options.items = {300, 900};
    options.ops = 200;
    options.batches = {1, 16};
    options.threads = {1, 2};
    options.snapshots = {0, 1};
    options.repeats = 1;
    options.apart = apart;
    const auto report = RunCompare(options);
    ASSERT_TRUE(report.has_value()) << report.error();
    EXPECT_TRUE(report->sound());
    const std::vector<CompareSetting> settings = SettingsOf(options);
    ASSERT_EQ(settings.size(), 16u);
    ASSERT_EQ(report->rows.size(), 2 * settings.size() * 3);
    for (size_t i = 0; i < report->rows.size(); ++i) {
      const CompareRow& row = report->rows[i];
      const CompareSetting& setting = settings[i / 3 % settings.size()];
      SCOPED_TRACE(testing::Message() << i << row.engine << row.what.workload.name);
      EXPECT_EQ(row.setting.items, setting.items);
      EXPECT_EQ(row.setting.batch, setting.batch);
      EXPECT_EQ(row.setting.threads, setting.threads);
      EXPECT_EQ(row.setting.snapshots, setting.snapshots);
      const bool runs = row.engine != "absl" || setting.threads + setting.snapshots == 1;
      EXPECT_EQ(row.median_mops().has_value(), runs);
      EXPECT_EQ(row.lacks == nullptr, runs);
      const CompareRow& first = report->rows[i - i % (3 * settings.size()) + i % 3];
      EXPECT_EQ(row.setting_ratio.value_or(0), runs ? row.mops[0] / first.mops[0] : 0);
      EXPECT_EQ(row.pinned_bytes_per_item.has_value(), setting.snapshots == 1 && runs);
      EXPECT_TRUE(setting.threads == 2 || row.core_round_trip_ns.empty());
    }
    ASSERT_EQ(report->footprints.size(), 6u);
    EXPECT_EQ(report->footprints[2].items, 300u);
    EXPECT_EQ(report->footprints[3].items, 900u);
  }
}

// Goal: a held snapshot shows in the pinned bytes, which are not counted as the items'.
// Method: updates of nearly all items, so that about a copy of 32 bytes an item stays.
TEST(Compare, SnapshotsPinWhatChanges) {
  CompareOptions options = SmallOptions();
  options.peers = {};
  options.engines = {"btree"};
  options.workloads = {"update"};
  options.items = {20'000};
  options.ops = 40'000;
  options.repeats = 1;
  options.snapshots = {0, 1};
  const auto report = RunCompare(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  EXPECT_TRUE(report->sound());
  EXPECT_FALSE(report->rows[0].pinned_bytes_per_item);
  EXPECT_GT(report->rows[1].pinned_bytes_per_item.value_or(0), 16);
}

// Goal: subjects that have mixed sizes agree on them as well.
TEST(Compare, SizesMayBeMixed) {
  CompareOptions options = SmallOptions();
  options.engines = OrderedEngines();
  std::erase(options.engines, "hashleaf");
  options.mixed_sizes = true;
  const auto report = RunCompare(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  EXPECT_TRUE(report->sound());
}

// Goal: every turn begins with the same items: a workload that inserts leaves none of its items.
// Method: a scan of everything answers alike with the inserting workloads before it and without.
TEST(Compare, TurnsLeaveNoItemsBehind) {
  const auto scans = [](std::vector<std::string> workloads) {
    CompareOptions options = SmallOptions();
    options.workloads = std::move(workloads);
    const auto report = RunCompare(options);
    EXPECT_TRUE(report->sound());
    return report->rows.back().checksum;
  };
  EXPECT_EQ(scans({"scan1000"}), scans({"d", "e", "cloud50", "cloud0", "scan1000"}));
}

// Goal: other seeds and repeats make other operations; equal ones the same.
TEST(Compare, ChecksumsFollowTheSeed) {
  const auto checksum = [](uint64_t seed, int repeats) {
    CompareOptions options = SmallOptions();
    options.engines = {};
    options.workloads = {"get"};
    options.seed = seed;
    options.repeats = repeats;
    return RunCompare(options)->rows[0].checksum;
  };
  EXPECT_EQ(checksum(1, 2), checksum(1, 2));
  EXPECT_NE(checksum(1, 2), checksum(2, 2));
  EXPECT_NE(checksum(1, 2), checksum(1, 3));
  EXPECT_NE(checksum(1, 2), 2 * checksum(1, 1)) << "repeats do the same operations";
}

// Goal: workloads need no load before them, and the order in which they are named does not matter.
TEST(Compare, WorkloadsStandAlone) {
  for (const char* workload : {"get", "scan24", "e", "update", "delete"}) {
    CompareOptions options = SmallOptions();
    options.workloads = {workload, "load", workload};
    const auto report = RunCompare(options);
    ASSERT_TRUE(report.has_value()) << report.error();
    EXPECT_TRUE(report->sound()) << workload;
  }
}

// Goal: a subject without order answers points, and has no figures for scans; ratios are left out
// if the first subject has none.
TEST(Compare, SubjectsWithoutOrderAnswerPoints) {
  const auto found =
      std::ranges::find_if(AllPeers(), [](auto& p) { return p.open != nullptr && !p.ordered; });
  if (found == AllPeers().end()) GTEST_SKIP() << "no such peer in this build";
  CompareOptions options = SmallOptions();
  options.peers = {std::string(found->name)};
  options.workloads = {"scan3", "e", "get"};
  const auto report = RunCompare(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  EXPECT_TRUE(report->sound());
  EXPECT_FALSE(report->rows[0].median_mops());
  EXPECT_FALSE(report->rows[1].ratio);
  EXPECT_TRUE(report->rows[1].median_mops());
  EXPECT_TRUE(report->rows[5].ratio);
  options.workloads = {"scan3"};
  EXPECT_TRUE(RunCompare(options).has_value());
}

// Goal: a peer that this build lacks is named with its package.
TEST(Compare, NamesThePackageOfAMissingPeer) {
  for (const PeerInfo& peer : AllPeers()) {
    const auto kind = SubjectKind::OfPeer(std::string(peer.name));
    ASSERT_EQ(kind.has_value(), peer.open != nullptr);
    if (!kind) {
      EXPECT_THAT(kind.error(), HasSubstr(std::string(peer.package)));
    }
  }
}

// Goal: the limits are measured if they are asked for.
TEST(Compare, MeasuresLimits) {
  CompareOptions options = SmallOptions();
  options.workloads = {"get"};
  EXPECT_FALSE(RunCompare(options)->limits);
  options.limits_bytes = 1 << 20;
  const auto report = RunCompare(options);
  ASSERT_TRUE(report->limits);
  EXPECT_GT(report->limits->random_read_mops, 0);
}

// Goal: wrong options are named, not run.
TEST(Compare, RefusesWrongOptions) {
  const auto complaint = [](auto change) {
    CompareOptions options = SmallOptions();
    options.workloads = {"get"};
    change(options);
    const auto report = RunCompare(options);
    return report ? std::string("ran") : report.error();
  };
  EXPECT_THAT(complaint([](auto& o) { o.engines = o.peers = {}; }), HasSubstr("--engines"));
  EXPECT_THAT(complaint([](auto& o) { o.engines = {"none"}; }), HasSubstr("this build has"));
  EXPECT_THAT(complaint([](auto& o) { o.engines = {"btree:x=1"}; }), HasSubstr("x=1"));
  EXPECT_THAT(complaint([](auto& o) { o.engines = {"btree:node=1000"}; }),
              HasSubstr("power of two"));
  EXPECT_THAT(complaint([](auto& o) { o.peers = {"redis"}; }), HasSubstr("this build has absl"));
  EXPECT_THAT(complaint([](auto& o) { o.workloads = {}; }), HasSubstr("--workloads"));
  for (const char* name : {"put", "scan0", "scan", "scan3x", "cloud101", "scan4294967299",
                           "get:", "get:normal", "load:zipfian", "insert", "hot0"}) {
    EXPECT_THAT(complaint([&](auto& o) { o.workloads = {name}; }), HasSubstr(name));
  }
  EXPECT_THAT(complaint([](auto& o) { o.items = {0}; }), HasSubstr("--items"));
  EXPECT_THAT(complaint([](auto& o) { o.items = {9}; }), HasSubstr("--items"));
  EXPECT_THAT(complaint([](auto& o) { o.ops = 0; }), HasSubstr("--ops"));
  EXPECT_THAT(complaint([](auto& o) { o.threads = {0}; }), HasSubstr("--threads"));
  EXPECT_THAT(complaint([](auto& o) { o.threads = {2}; }), HasSubstr("no threads"));
  EXPECT_THAT(complaint([](auto& o) { o.batches = {0}; }), HasSubstr("--batch"));
  EXPECT_THAT(complaint([](auto& o) { o.batches = {}; }), HasSubstr("--batch"));
  EXPECT_THAT(complaint([](auto& o) { o.snapshots = {}; }), HasSubstr("--snapshots"));
  EXPECT_THAT(complaint([](auto& o) { o.repeats = 0; }), HasSubstr("--repeats"));
  EXPECT_THAT(complaint([](auto& o) { o.key_bytes = 3; }), HasSubstr("--key-size"));
  EXPECT_THAT(complaint([](auto& o) { o.value_bytes = 100; }), HasSubstr("absl"));
  EXPECT_THAT(complaint([](auto& o) { o.limits_bytes = 1; }), HasSubstr("too few bytes"));
  EXPECT_EQ(complaint([](auto&) {}), "ran");
}

}  // namespace
}  // namespace skep::bench
