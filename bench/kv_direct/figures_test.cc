#include "bench/kv_direct/figures.h"

#include <gtest/gtest.h>

namespace skep::bench {
namespace {

constexpr uint64_t kSmallBytes = 128 << 10;

KvDirectReport ReportOf(const KvDirectOptions& options) {
  const auto report = RunKvDirect(options);
  if (!report) {
    ADD_FAILURE() << report.error();
    return {};
  }
  return *report;
}

// Goal: figures that do not exist and options that make no sense are refused.
TEST(KvDirectFigures, RefusesWhatThereIsNot) {
  for (const KvDirectOptions& options :
       {KvDirectOptions{}, KvDirectOptions{.table = 7}, KvDirectOptions{.figure = 5},
        KvDirectOptions{.table = 5, .figure = 6}, KvDirectOptions{.figure = 6, .bytes = 1000},
        KvDirectOptions{.figure = 12, .slots = 100},
        KvDirectOptions{.figure = 12, .slots = uint64_t{1} << 33}}) {
    EXPECT_FALSE(RunKvDirect(options));
  }
}

// Goal: every row has every column, and each table is computed in the requested mode.
TEST(KvDirectFigures, FillsEveryColumn) {
  for (KvDirectOptions options :
       {KvDirectOptions{.table = 5}, KvDirectOptions{.table = 6}, KvDirectOptions{.figure = 9},
        KvDirectOptions{.figure = 12, .slots = 1024}}) {
    options.bytes = kSmallBytes;
    const KvDirectReport report = ReportOf(options);
    EXPECT_FALSE(report.rows.empty());
    for (const auto& row : report.rows) EXPECT_EQ(row.size(), report.columns.size());
  }
  const auto corner = [](DispatchMode mode) {
    return *ReportOf({.table = 6, .mode = mode}).rows[4][1];
  };
  EXPECT_NEAR(corner(DispatchMode::kPaper), 7.99, 0.01);
  EXPECT_NEAR(corner(DispatchMode::kExact), 3.32, 0.01);
}

// Goal: figure 6. Accesses grow with utilisation, and more steeply where more pairs lie inline: the
// largest limit is the best where memory is plenty.
TEST(KvDirectFigures, AHigherInlineLimitGrowsSteeper) {
  const KvDirectReport report = ReportOf({.figure = 6, .bytes = 512 << 10});
  ASSERT_EQ(report.columns.size(), 5u);
  constexpr size_t kPlenty = 0;
  constexpr size_t kScarce = 5;
  ASSERT_EQ(report.rows[kScarce][0], 0.5);
  double least_growth = 0;
  double before = 1e9;
  for (size_t column = 1; column < 5; ++column) {
    const double plenty = *report.rows[kPlenty][column];
    const double growth = *report.rows[kScarce][column] - plenty;
    EXPECT_LT(plenty, before);
    EXPECT_GT(growth, least_growth);
    before = plenty;
    least_growth = growth;
  }
}

// Goal: figure 10. The higher the wanted utilisation, the smaller the index.
TEST(KvDirectFigures, MoreUtilisationLeavesASmallerIndex) {
  const KvDirectReport report = ReportOf({.figure = 10, .bytes = kSmallBytes});
  for (size_t column = 1; column < report.columns.size(); ++column) {
    double more = 1;
    EXPECT_GT(report.rows.front()[column].value_or(0), 0.5) << report.columns[column].name;
    for (const auto& row : report.rows) {
      if (!row[column]) break;
      EXPECT_LE(*row[column], more) << report.columns[column].name;
      more = *row[column];
    }
    EXPECT_LT(more, 0.6);
  }
}

}  // namespace
}  // namespace skep::bench
