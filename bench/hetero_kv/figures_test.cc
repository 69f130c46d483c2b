#include "bench/hetero_kv/figures.h"

#include <gtest/gtest.h>

#include <utility>

namespace skep::bench {
namespace {

HeteroKvOptions Small(const char* figure) {
  return {.figure = figure, .records = 10'000, .repeats = 1, .seconds = 0.002};
}

// Goal: figures that do not exist and options that make no sense are refused.
TEST(HeteroKvFigures, RefusesWhatThereIsNot) {
  const auto refuses = [](auto change) {
    HeteroKvOptions options = Small("wait");
    change(options);
    return !RunHeteroKv(options).has_value();
  };
  EXPECT_TRUE(refuses([](auto& o) { o.figure = ""; }));
  EXPECT_TRUE(refuses([](auto& o) { o.figure = "waits"; }));
  EXPECT_TRUE(refuses([](auto& o) { o.records = 9'999; }));
  EXPECT_TRUE(refuses([](auto& o) {
    o.figure = "scans";
    o.records = 10'000'000;  // keys of four bytes cannot be a thousand apart then
  }));
  EXPECT_TRUE(refuses([](auto& o) { o.key_bytes = 5; }));
  EXPECT_TRUE(refuses([](auto& o) { o.value_bytes = 0; }));
  EXPECT_TRUE(refuses([](auto& o) { o.repeats = 0; }));
  EXPECT_TRUE(refuses([](auto& o) { o.seconds = 0; }));
  EXPECT_TRUE(refuses([](auto& o) { o.wanted = 0; }));
}

// Goal: every row has every column, and there are keys of each size.
TEST(HeteroKvFigures, FillsEveryColumn) {
  const std::pair<const char*, uint32_t> kRuns[] = {{"sorters", 4}, {"scans", 8}, {"wait", 16}};
  for (const auto& [figure, key_bytes] : kRuns) {
    HeteroKvOptions options = Small(figure);
    options.key_bytes = key_bytes;
    const auto report = RunHeteroKv(options);
    ASSERT_TRUE(report.has_value()) << report.error();
    EXPECT_FALSE(report->rows.empty());
    for (const auto& row : report->rows) {
      ASSERT_EQ(row.size(), report->columns.size());
      for (const auto& number : row) EXPECT_TRUE(number.has_value() && *number >= 0);
    }
  }
}

}  // namespace
}  // namespace skep::bench
