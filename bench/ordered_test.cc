#include "bench/ordered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/absl_target.h"
#include "engine/keyspaces.h"

namespace skep::bench {
namespace {

using testing::HasSubstr;

OrderedOptions SmallOptions() {
  return {.engines = {"absl", "model"},
          .loads = {"insert", "get", "get_zipf", "scan3", "update_zipf", "scan100", "delete"},
          .items = 500,
          .ops = 1000,
          .batch = 16,
          .repeats = 3};
}

// Goal: every load runs on the peer and on every ordered engine of this build without an error, and
// all of them give the same answers.
TEST(Ordered, SubjectsAgree) {
  OrderedOptions options = SmallOptions();
  options.engines = {kAbslName};
  for (const EngineInfo& info : AllEngines()) {
    if ((*Keyspaces::Make({.keyspaces = 1}, info))->traits().ordered)
      options.engines.emplace_back(info.name);
  }
  const auto report = RunOrdered(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  EXPECT_TRUE(report->sound());
  ASSERT_EQ(report->rows.size(), options.engines.size() * options.loads.size());
  for (size_t i = 0; i < report->rows.size(); ++i) {
    const OrderedRow& row = report->rows[i];
    SCOPED_TRACE(row.engine + " " + row.load.name);
    EXPECT_EQ(row.engine, options.engines[i % options.engines.size()]);
    EXPECT_EQ(row.load.name, options.loads[i / options.engines.size()]);
    EXPECT_EQ(row.mops.size(), 3u);
    EXPECT_GT(row.median_mops(), 0);
    EXPECT_GT(row.ratio, 0);
    EXPECT_TRUE(row.agrees);
    EXPECT_EQ(row.errors, 0u) << row.first_error;
    EXPECT_GT(row.bytes_per_item.value_or(0), 16 + 16);
    const bool is_insert = row.load.kind == OpKind::kInsert;
    const bool is_delete = row.load.kind == OpKind::kDelete;
    EXPECT_EQ(row.latency_ns.count(), 3 * (is_insert || is_delete ? options.items : options.ops));
    EXPECT_EQ(row.checksum != 0, row.load.kind == OpKind::kRead || row.load.kind == OpKind::kScan);
  }
  ASSERT_EQ(report->footprints.size(), options.engines.size());
  for (const OrderedFootprint& footprint : report->footprints) {
    EXPECT_TRUE(footprint.agrees);
    EXPECT_NE(footprint.contents_checksum, 0u);
  }
}

// Goal: threads share the work and the index; the answers are those of one run after the other.
TEST(Ordered, ThreadsShareOneIndex) {
  OrderedOptions options = SmallOptions();
  options.engines = {"model", "model"};
  options.threads = 3;
  const auto report = RunOrdered(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  EXPECT_TRUE(report->sound());
}

// Goal: other seeds and repeats make other operations; equal ones the same.
TEST(Ordered, ChecksumsFollowTheSeed) {
  const auto checksum = [](uint64_t seed, int repeats) {
    OrderedOptions options = SmallOptions();
    options.engines = {"absl"};
    options.loads = {"get"};
    options.seed = seed;
    options.repeats = repeats;
    return RunOrdered(options)->rows[0].checksum;
  };
  EXPECT_EQ(checksum(1, 2), checksum(1, 2));
  EXPECT_NE(checksum(1, 2), checksum(2, 2));
  EXPECT_NE(checksum(1, 2), checksum(1, 3));
  EXPECT_NE(checksum(1, 2), 2 * checksum(1, 1)) << "repeats do the same operations";
}

// Goal: loads need no insert before them, and the order in which they are named does not matter.
TEST(Ordered, LoadsStandAlone) {
  for (const char* load : {"get", "scan24", "update", "delete"}) {
    OrderedOptions options = SmallOptions();
    options.loads = {load, "insert", load};
    const auto report = RunOrdered(options);
    ASSERT_TRUE(report.has_value()) << report.error();
    EXPECT_TRUE(report->sound()) << load;
  }
}

// Goal: the limits are measured if they are asked for.
TEST(Ordered, MeasuresLimits) {
  OrderedOptions options = SmallOptions();
  options.loads = {"get"};
  EXPECT_FALSE(RunOrdered(options)->limits);
  options.limits_bytes = 1 << 20;
  const auto report = RunOrdered(options);
  ASSERT_TRUE(report->limits);
  EXPECT_GT(report->limits->random_read_mops, 0);
}

// Goal: wrong options are named, not run.
TEST(Ordered, RefusesWrongOptions) {
  const auto complaint = [](auto change) {
    OrderedOptions options = SmallOptions();
    options.loads = {"get"};
    change(options);
    const auto report = RunOrdered(options);
    return report ? std::string("ran") : report.error();
  };
  EXPECT_THAT(complaint([](auto& o) { o.engines = {}; }), HasSubstr("--engine"));
  EXPECT_THAT(complaint([](auto& o) { o.engines = {"none"}; }), HasSubstr("this build has absl"));
  EXPECT_THAT(complaint([](auto& o) { o.loads = {}; }), HasSubstr("--loads"));
  EXPECT_THAT(complaint([](auto& o) { o.loads = {"put"}; }), HasSubstr("put"));
  EXPECT_THAT(complaint([](auto& o) { o.items = 0; }), HasSubstr("--items"));
  EXPECT_THAT(complaint([](auto& o) { o.ops = 0; }), HasSubstr("--ops"));
  EXPECT_THAT(complaint([](auto& o) { o.threads = 0; }), HasSubstr("--threads"));
  EXPECT_THAT(complaint([](auto& o) { o.threads = 2; }), HasSubstr("no threads"));
  EXPECT_THAT(complaint([](auto& o) { o.batch = 0; }), HasSubstr("--batch"));
  EXPECT_THAT(complaint([](auto& o) { o.repeats = 0; }), HasSubstr("--repeats"));
  EXPECT_THAT(complaint([](auto& o) { o.key_bytes = 7; }), HasSubstr("--key-size"));
  EXPECT_THAT(complaint([](auto& o) { o.value_bytes = 100; }), HasSubstr("absl"));
  EXPECT_THAT(complaint([](auto& o) { o.limits_bytes = 1; }), HasSubstr("too few bytes"));
  EXPECT_EQ(complaint([](auto&) {}), "ran");
}

}  // namespace
}  // namespace skep::bench
