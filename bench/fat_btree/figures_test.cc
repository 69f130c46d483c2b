#include "bench/fat_btree/figures.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace skep::bench {
namespace {

FatBTreeOptions Small(const char* figure) {
  FatBTreeOptions options;
  options.figure = figure;
  options.records = 20'000;
  options.training = 20'000;
  options.accesses = 5'000;
  options.ranges = 20;
  options.nodes = 200;
  return options;
}

FatBTreeReport ReportOf(const FatBTreeOptions& options) {
  const auto report = RunFatBTree(options);
  if (!report) {
    ADD_FAILURE() << options.figure << ": " << report.error();
    return {};
  }
  return *report;
}

// The figures of a column, of the rows with this label, in their order.
std::vector<double> Column(const FatBTreeReport& report, std::string_view label,
                           std::string_view name) {
  std::vector<double> found;
  for (size_t row = 0; row < report.rows.size(); ++row) {
    for (size_t i = 0; i < report.columns.size(); ++i) {
      if (report.labels[row] != label || report.columns[i].name != name) continue;
      found.push_back(report.rows[row][i].value());
    }
  }
  EXPECT_FALSE(found.empty()) << label << " " << name;
  return found;
}

void ExpectRising(const std::vector<double>& figures) {
  for (size_t i = 1; i < figures.size(); ++i) EXPECT_GE(figures[i], figures[i - 1]) << i;
  EXPECT_GT(figures.back(), figures.front());
}

void ExpectFalling(std::vector<double> figures) {
  std::ranges::reverse(figures);
  ExpectRising(figures);
}

TEST(FatBTreeFigures, RefusesWhatThereIsNot) {
  const auto refuses = [](const char* figure, auto change) {
    FatBTreeOptions options = Small(figure);
    change(options);
    return !RunFatBTree(options).has_value();
  };
  EXPECT_TRUE(refuses("", [](auto&) {}));
  EXPECT_TRUE(refuses("11", [](auto&) {}));
  EXPECT_TRUE(refuses("5", [](auto& o) { o.records = 999; }));
  EXPECT_TRUE(refuses("5", [](auto& o) { o.points = {2'000.5}; }));
  EXPECT_TRUE(refuses("6", [](auto& o) { o.points = {1.5}; }));
  EXPECT_TRUE(refuses("7", [](auto& o) { o.points = {0.9, 1}; }));
  EXPECT_TRUE(refuses("8", [](auto& o) { o.points = {4'097}; }));
  EXPECT_TRUE(refuses("8", [](auto& o) { o.points = {20, 10}; }));
  EXPECT_TRUE(refuses("9", [](auto& o) { o.ranges = 1'025; }));
  EXPECT_TRUE(refuses("9", [](auto& o) { o.nodes = 4'097; }));
  EXPECT_TRUE(refuses("9", [](auto& o) { o.layers = 10; }));
  EXPECT_TRUE(refuses("9", [](auto& o) { o.alpha = 1; }));
  EXPECT_TRUE(refuses("9", [](auto& o) { o.leaf_trips = 0; }));
  EXPECT_TRUE(refuses("9", [](auto& o) { o.accesses = 0; }));
  EXPECT_TRUE(refuses("9", [](auto& o) { o.costs.round_trip_ns = 0; }));
  EXPECT_TRUE(refuses("10a", [](auto& o) { o.servers = 65; }));
  EXPECT_TRUE(refuses("10b", [](auto& o) { o.points = {0}; }));
  EXPECT_TRUE(refuses("10c", [](auto& o) { o.read_share = -0.1; }));
  EXPECT_TRUE(refuses("10d", [](auto& o) { o.clients = 0; }));
}

// Goal: each figure has all its rows and columns, equal ones for equal seeds, and says that it is
// modelled.
TEST(FatBTreeFigures, FillEveryColumn) {
  for (const char* const figure :
       {"5", "6", "7", "8", "9", "10a", "10b", "10c", "10d", "inserts", "ranges"}) {
    FatBTreeOptions options = Small(figure);
    if (options.figure == "5" || options.figure == "10a") options.points = {1'000, 20'000};
    const FatBTreeReport report = ReportOf(options);
    EXPECT_TRUE(report.title.ends_with("(modelled)"));
    EXPECT_EQ(report.labels.size(), report.rows.size());
    ASSERT_FALSE(report.rows.empty());
    for (const auto& row : report.rows) EXPECT_EQ(row.size(), report.columns.size());
    EXPECT_EQ(report.rows, ReportOf(options).rows);
  }
}

// Goal: times are what the counts and the constants give.
TEST(FatBTreeFigures, TimesAreTripsByTheirConstants) {
  FatBTreeOptions options = Small("9");
  options.points = {3};
  options.costs = {.interrupt_ns = 10'000,
                   .round_trip_ns = 3'000,
                   .hop_ns = 500,
                   .hops = 4,
                   .message_ns = 7'000,
                   .level_ns = 200};
  const FatBTreeReport report = ReportOf(options);
  const auto at = [&](const char* what, const char* column) {
    return Column(report, std::string("fan-out 16, ") + what, column)[0];
  };
  const double root = at("round trips", "polled"), left = at("round trips", "switch");
  EXPECT_EQ(root, 4 + 1) << "12^4 is 20,736: four levels, and the value";
  EXPECT_LT(left, root);
  EXPECT_DOUBLE_EQ(at("mean us", "interrupt"), root * 10);
  EXPECT_DOUBLE_EQ(at("mean us", "polled"), root * 3);
  EXPECT_DOUBLE_EQ(at("mean us", "switch"), left * 3 + 2);
  EXPECT_DOUBLE_EQ(at("mean us", "paper"), left * 10 + 2);
  EXPECT_DOUBLE_EQ(at("mean us", "call"), 3 + 7 + root * 0.2);
  EXPECT_DOUBLE_EQ(at("thousand/s", "switch"), 1000 / at("mean us", "switch"));
  EXPECT_DOUBLE_EQ(at("p99 us", "polled"), root * 3);
}

// Goal: more layers, more nodes, more skew: fewer round trips; more drift, more keys: more.
TEST(FatBTreeFigures, SwitchesHelpMoreWhereTheyHoldMore) {
  const auto trips = [](const char* figure, std::vector<double> points) {
    FatBTreeOptions options = Small(figure);
    options.points = std::move(points);
    return Column(ReportOf(options), "fan-out 16, round trips", "switch");
  };
  ExpectFalling(trips("9", {0, 1, 2, 3}));
  ExpectFalling(trips("8", {10, 50, 200}));
  ExpectFalling(trips("7", {0.5, 0.9, 1.2}));
  ExpectRising(trips("6", {0, 0.5, 1}));
  ExpectRising(trips("5", {2'000, 20'000}));
}

// Goal: a client's cache of as many bytes saves most of what switches save, and the mean trip of
// each is at least one.
TEST(FatBTreeFigures, ACacheOfAsManyBytesSavesAsMuch) {
  const FatBTreeReport report = ReportOf(Small("9"));
  for (const char* const label : {"fan-out 16, round trips", "ours, round trips"}) {
    const auto polled = Column(report, label, "polled"), client = Column(report, label, "client");
    const auto by_switch = Column(report, label, "switch");
    for (size_t i = 0; i < polled.size(); ++i) {
      EXPECT_LE(client[i], polled[i]);
      EXPECT_GE(client[i], 1);
      EXPECT_LE(by_switch[i], polled[i]);
      EXPECT_GE(by_switch[i], 1);
    }
    EXPECT_LE(client.back(), by_switch.back() + 0.5);
  }
}

// Goal: of 10 a hint saves a server nodes, so it answers more; without reads there is no hint.
TEST(FatBTreeFigures, HintsSaveServersWork) {
  FatBTreeOptions options = Small("10c");
  options.points = {0, 0.5, 1};
  options.costs.hop_ns = 0;
  const FatBTreeReport report = ReportOf(options);
  const auto ratio = Column(report, "fan-out 16", "ratio");
  EXPECT_DOUBLE_EQ(ratio[0], 1);
  ExpectRising(ratio);
  ExpectFalling(Column(report, "fan-out 16", "levels_switch"));
  options.figure = "10b";
  options.points = {1, 4, 16};
  ExpectRising(Column(ReportOf(options), "ours", "call_kqps"));
}

// Goal: with insertions temporary roots make the way longer, and hints are missed; at first
// neither.
TEST(FatBTreeFigures, InsertionsCostLevelsOrHints) {
  FatBTreeOptions options = Small("inserts");
  options.points = {0, 0.1, 0.5, 2};
  const FatBTreeReport report = ReportOf(options);
  for (const char* const label : {"fan-out 16", "ours"}) {
    ExpectRising(Column(report, label, "temporary_levels"));
    ExpectFalling(Column(report, label, "hit_rate"));
    ExpectRising(Column(report, label, "hint_levels"));
    EXPECT_EQ(Column(report, label, "hit_rate")[0], 1);
    EXPECT_EQ(Column(report, label, "temporary_roots")[0], 0);
  }
}

// Goal: a part pays for its way down, less of it with switches; and it shortens the longest wait.
TEST(FatBTreeFigures, PartsPayForTheirWays) {
  FatBTreeOptions options = Small("ranges");
  options.accesses = 500;
  options.points = {1, 10};
  const FatBTreeReport report = ReportOf(options);
  for (const char* const label : {"fan-out 16", "ours"}) {
    const auto whole = Column(report, label, "overhead");
    const auto hinted = Column(report, label, "overhead_switch");
    EXPECT_DOUBLE_EQ(whole[0], 1);
    EXPECT_GT(hinted[1], 1);
    EXPECT_LT(Column(report, label, "reads_switch")[1], Column(report, label, "reads")[1]);
  }
  ExpectFalling(Column(report, "fan-out 16", "rounds"));
  EXPECT_NEAR(Column(report, "ours", "formula")[1], 1.59, 0.005);
  EXPECT_NEAR(Column(report, "ours", "formula_switch")[1], 1.18, 0.005);
}

}  // namespace
}  // namespace skep::bench
