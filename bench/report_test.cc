#include "bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace skep::bench {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

YcsbReport SampleReport() {
  YcsbReport report;
  report.options.distribution = Distribution::kUniform;
  report.run.ops = 3'000'000;
  report.run.seconds = 2;
  report.run.latency_ns.Record(1000, 990);
  report.run.latency_ns.Record(5000, 10);
  report.footprint = {.bytes_per_item = 150.5, .rss_bytes = 1 << 20};
  return report;
}

// Goal: the JSON object is one line with every option by its name and every figure.
TEST(Report, YcsbJsonHasAllKeys) {
  const std::string text = JsonOf(SampleReport());
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const json object = json::parse(text);
  for (const char* key :
       {"engine", "workload",       "scan-length", "read-percent", "dist",       "records",
        "ops",    "threads",        "batch",       "key-size",     "value-size", "seed",
        "host",   "port",           "mops",        "p50_ns",       "p99_ns",     "p999_ns",
        "max_ns", "bytes_per_item", "rss_bytes",   "errors",       "machine",    "commit"}) {
    EXPECT_TRUE(object.contains(key)) << key;
  }
  EXPECT_EQ(object["mops"], 1.5);
  EXPECT_EQ(object["dist"], "uniform");
  EXPECT_EQ(object["workload"], "a");
  EXPECT_NEAR(object["p50_ns"].get<double>(), 1000, 10);
  EXPECT_NEAR(object["p99_ns"].get<double>(), 1000, 10);
  EXPECT_EQ(object["p999_ns"], 5000);
  EXPECT_EQ(object["max_ns"], 5000);
  EXPECT_EQ(object["bytes_per_item"], 150.5);
  EXPECT_EQ(object["host"], nullptr);
}

// Goal: an unknown figure is null, and the bytes of a server's error cannot break the JSON.
TEST(Report, YcsbJsonOfAServer) {
  YcsbReport report = SampleReport();
  report.options.host = "127.0.0.1";
  report.footprint = {};
  report.run.tally.CountError("-ERR \"quoted\" \xff\n");
  const json object = json::parse(JsonOf(report));
  EXPECT_EQ(object["engine"], nullptr);
  EXPECT_EQ(object["host"], "127.0.0.1");
  EXPECT_EQ(object["port"], 6379);
  EXPECT_EQ(object["bytes_per_item"], nullptr);
  EXPECT_EQ(object["rss_bytes"], nullptr);
  EXPECT_EQ(object["errors"], 1);
  EXPECT_THAT(object["first_error"].get<std::string>(), HasSubstr("\"quoted\""));
}

TEST(Report, LimitsJsonHasAllKeys) {
  LimitsReport report;
  report.random_read_mops = 40;
  const json object = json::parse(JsonOf(report));
  for (const char* key :
       {"bytes", "random_read_mops", "random_rmw_mops", "random_read_4k_mops",
        "random_start_3200b_mops", "chase_ns", "seq_read_gbs", "loopback_rtt_us",
        "loopback_64_mops", "address_mops", "huge_fraction", "machine", "commit"}) {
    EXPECT_TRUE(object.contains(key)) << key;
  }
  EXPECT_EQ(object["random_read_mops"], 40);
}

CompareReport SampleCompareReport() {
  CompareReport report;
  report.options.engines = {"model"};
  report.options.peers = {"absl", "boost"};
  report.options.workloads = {"scan3:zipfian"};
  CompareRow row;
  row.engine = "absl";
  row.what = {FindWorkload("scan3").value(), Distribution::kZipfian};
  row.mops = {2, 4, 3};
  row.ratio = 1;
  row.latency_ns.Record(5000, 100);
  report.rows.push_back(row);
  report.rows.push_back({.engine = "boost", .what = row.what, .lacks = "order"});
  row.engine = "model";
  row.ratio = 0.25;
  row.bytes_per_item = 47.5;
  row.setting.snapshots = 1;
  row.setting_ratio = 0.9;
  row.pinned_bytes_per_item = 12.5;
  row.core_round_trip_ns = {100, 300};
  row.agrees = false;
  report.rows.push_back(row);
  report.footprints = {{.engine = "absl", .resident_bytes_per_item = 50.5}, {.engine = "model"}};
  report.agrees = false;
  return report;
}

// Goal: rows carry what a comparison needs, under the names it uses elsewhere.
TEST(Report, CompareJsonHasAllKeys) {
  CompareReport report = SampleCompareReport();
  json object = json::parse(JsonOf(report));
  for (const char* key :
       {"engines",    "peers",    "workloads",  "dist",    "items",  "ops",      "repeats", "batch",
        "threads",    "key-size", "value-size", "seed",    "apart",  "pinned",   "limits",  "rows",
        "footprints", "errors",   "agrees",     "machine", "commit", "snapshots"}) {
    EXPECT_TRUE(object.contains(key)) << key;
  }
  EXPECT_THAT(object["date"].get<std::string>(), MatchesRegex("20..-..-.."));
  EXPECT_THAT(object["command"].get<std::string>(), StartsWith("skep_bench_test"));
  EXPECT_EQ(object["items"], json::array({1'000'000}));
  EXPECT_EQ(object["key-size"], 16);
  const json& row = object["rows"][0];
  EXPECT_EQ(row["engine"], "absl");
  EXPECT_EQ(row["workload"], "scan3");
  EXPECT_EQ(row["dist"], "zipfian");
  EXPECT_EQ(row["threads"], 1);
  EXPECT_EQ(row["mops"], 3);
  EXPECT_EQ(row["p99_ns"], 5000);
  EXPECT_EQ(row["bytes_per_item"], nullptr);
  EXPECT_EQ(object["rows"][1]["mops"], nullptr);
  EXPECT_EQ(object["rows"][1]["ratio"], nullptr);
  EXPECT_EQ(object["rows"][1]["p50_ns"], nullptr);
  EXPECT_EQ(object["rows"][2]["ratio"], 0.25);
  EXPECT_EQ(object["rows"][2]["agrees"], false);
  EXPECT_EQ(object["rows"][2]["snapshots"], 1);
  EXPECT_EQ(object["rows"][2]["setting_ratio"], 0.9);
  EXPECT_EQ(object["rows"][2]["pinned_bytes_per_item"], 12.5);
  EXPECT_EQ(object["rows"][2]["core_round_trip_ns"], json::array({100, 300}));
  EXPECT_EQ(object["rows"][2]["one_placement"], false);
  EXPECT_EQ(row["one_placement"], true);
  EXPECT_EQ(object["footprints"][0]["resident_bytes_per_item"], 50.5);
  EXPECT_EQ(object["footprints"][0]["huge_fraction"], nullptr);
  EXPECT_EQ(object["limits"], nullptr);
  report.options.mixed_sizes = true;
  EXPECT_EQ(json::parse(JsonOf(report))["value-size"], "mixed");
  report.limits = LimitsReport{.random_read_mops = 40};
  object = json::parse(JsonOf(report));
  EXPECT_EQ(object["limits"]["random_read_mops"], 40);
  EXPECT_TRUE(object["limits"].contains("random_start_3200b_mops"));
}

TEST(Report, CompareTableShowsWhoDisagrees) {
  const std::string table = TableOf(SampleCompareReport());
  EXPECT_THAT(table, HasSubstr("3.000    1.00"));
  EXPECT_THAT(table, HasSubstr("0.25"));
  EXPECT_THAT(table, HasSubstr("50.5"));
  EXPECT_THAT(table, HasSubstr("answers differ"));
  EXPECT_THAT(table, HasSubstr("boost  has no order"));
  CompareReport moved = SampleCompareReport();
  moved.rows[2].agrees = true;
  moved.options.snapshots = {0, 1};
  EXPECT_THAT(
      TableOf(moved),
      HasSubstr("model, snapshots 1: 0.90 times the first, 12.5 B/item pinned  cores moved"));
}

ExpiryReport SampleExpiryReport() {
  ExpiryReport report;
  report.server = "skep 1";
  for (const uint64_t during_ns : {3000u, 2000u, 9000u}) {
    ExpiryTurn& turn = report.turns.emplace_back();
    turn.parts[0].seconds = 2;
    turn.parts[0].latency_ns.Record(1000, 6000);
    turn.parts[1].seconds = 1;
    turn.parts[1].latency_ns.Record(during_ns, 50);
    turn.reclaim_seconds = 0.5;
    turn.memory_loaded.rss_bytes = 7 << 20;
  }
  return report;
}

// Goal: the JSON object has every option and each repeat's parts; ratios are medians; a figure that
// is unknown, or not of this kind of loop, is null.
TEST(Report, ExpiryJsonHasAllKeys) {
  ExpiryReport report = SampleExpiryReport();
  json object = json::parse(JsonOf(report));
  for (const char* key : {"server",          "host",     "port",       "items",       "stay",
                          "connections",     "depth",    "rate",       "seconds",     "lead",
                          "repeats",         "key-size", "value-size", "seed",        "p99_ratio",
                          "reclaim_seconds", "turns",    "errors",     "first_error", "machine",
                          "commit"}) {
    EXPECT_TRUE(object.contains(key)) << key;
  }
  EXPECT_NEAR(object["p99_ratio"].get<double>(), 3, 0.05);
  EXPECT_EQ(object["reclaim_seconds"], 0.5);
  const json& turn = object["turns"][2];
  EXPECT_EQ(turn["before"]["ops"], 6000);
  EXPECT_EQ(turn["before"]["kops"], 3);
  EXPECT_EQ(turn["before"]["p99_ns"], 1000);
  EXPECT_EQ(turn["during"]["max_ns"], 9000);
  EXPECT_EQ(turn["memory_loaded"]["rss_bytes"], 7 << 20);
  EXPECT_EQ(turn["memory_after"]["rss_bytes"], nullptr);
  EXPECT_EQ(turn["late_p99_ns"], nullptr);
  EXPECT_EQ(object["depth"], 1);

  report.options.rate = 1000;
  report.turns[0].late_ns.Record(70);
  object = json::parse(JsonOf(report));
  EXPECT_EQ(object["depth"], nullptr);
  EXPECT_EQ(object["turns"][0]["late_p99_ns"], 70);
}

TEST(Report, TablesNameTheirFigures) {
  const std::string ycsb = TableOf(SampleReport());
  EXPECT_THAT(ycsb, HasSubstr("1.50  M operations/s"));
  EXPECT_THAT(ycsb, HasSubstr("150.5  bytes/item"));
  LimitsReport report;
  report.chase_ns = 123.4;
  EXPECT_THAT(TableOf(report), HasSubstr("123.40  ns/line"));
  const std::string expiry = TableOf(SampleExpiryReport());
  EXPECT_THAT(expiry, HasSubstr("3.00  median of the repeats"));
  EXPECT_THAT(expiry, HasSubstr("loaded 7, after -"));
}

}  // namespace
}  // namespace skep::bench
