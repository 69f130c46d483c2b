#include "bench/fat_btree/figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/fat_btree/figure_parts.h"
#include "bench/figure_list.h"

namespace skep::bench {
namespace {

constexpr uint64_t kRecordsMin = 1'000;
constexpr uint64_t kRecordsMax = 20'000'000;  // some 100 bytes of memory each

// The range that the points of a figure lie in.
struct Axis {
  double low, high;
  bool is_whole;
};
constexpr Axis kRecordsAxis = {kRecordsMin, kRecordsMax, true};
constexpr Axis kShareAxis = {0, 1, false};
constexpr Axis kAlphaAxis = {0.01, 5, false};

struct Figure {
  const char* name;
  const char* title;
  void (*fill)(FatBTreeReport&);
  uint64_t records;
  std::vector<double> points;
  Axis axis;
};

const Figure kFigures[] = {
    {"5", "figure 5, queries by keys", &FillReads, 10'000'000, {}, kRecordsAxis},
    {"6",
     "figure 6, by the share of accesses that training did not see",
     &FillReads,
     2'000'000,
     {0, 0.25, 0.5, 0.75, 1},
     kShareAxis},
    {"7", "figure 7, by the skew", &FillReads, 2'000'000, {0.9, 0.95, 0.99}, kAlphaAxis},
    {"8",
     "figure 8, by nodes a layer",
     &FillReads,
     2'000'000,
     {300, 900, 1'500, 2'100, 2'700, 3'300, 3'900},
     {0, SWITCH_NODES_MAX, true}},
    {"9", "figure 9, by layers", &FillReads, 2'000'000, {0, 1, 2, 3}, {0, 9, true}},
    {"10a", "figure 10a, servers by keys", &FillCalls, 10'000'000, {}, kRecordsAxis},
    {"10b",
     "figure 10b, servers by clients",
     &FillCalls,
     10'000'000,
     {1, 2, 4, 8, 12, 16},
     {1, 1'000, true}},
    {"10c",
     "figure 10c, servers by the share of reads",
     &FillCalls,
     10'000'000,
     {0.5, 0.6, 0.7, 0.8, 0.9, 1},
     kShareAxis},
    {"10d",
     "figure 10d, servers by the skew",
     &FillCalls,
     10'000'000,
     {0.9, 0.95, 0.99},
     kAlphaAxis},
    {"inserts",
     "insertions, by their share of the keys",
     &FillInserts,
     1'000'000,
     {0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1},
     {0, 10, false}},
    {"ranges",
     "a range of 100 keys, by parts",
     &FillRanges,
     2'000'000,
     {1, 2, 5, 10, 20},
     {1, 100, true}},
};

bool IsOfCalls(const FatBTreeOptions& options) { return options.figure.starts_with("10"); }

// The figures by keys, which have no points of their own, go up to all records.
std::vector<double> PointsOf(const Figure& figure, uint64_t records) {
  std::vector<double> points = figure.points;
  if (!points.empty()) return points;
  for (const uint64_t tenths : {1, 2, 3, 5, 7, 10}) {
    points.push_back(static_cast<double>(records * tenths / 10));
  }
  return points;
}

FatBTreeOptions WithDefaults(FatBTreeOptions options, const Figure& figure) {
  const bool is_of_calls = IsOfCalls(options);
  if (options.records == 0) options.records = figure.records;
  if (options.points.empty()) options.points = PointsOf(figure, options.records);
  if (!options.layers) options.layers = is_of_calls ? 4 : 3;
  FatBTreeCosts& costs = options.costs;
  if (!costs.round_trip_ns) costs.round_trip_ns = is_of_calls ? 14'000 : 2'000;
  if (!costs.message_ns) costs.message_ns = is_of_calls ? 4'000 : 1'000;
  if (!costs.level_ns) costs.level_ns = is_of_calls ? 350 : 100;
  return options;
}

bool IsOn(const Axis& axis, double point) {
  const bool is_whole = point == static_cast<double>(static_cast<int64_t>(point));
  return point >= axis.low && point <= axis.high && (is_whole || !axis.is_whole);
}

std::string Complaint(const FatBTreeOptions& options, const Figure& figure) {
  for (const double point : options.points) {
    const bool is_no_law = figure.axis.low == kAlphaAxis.low && point == 1;
    if (!IsOn(figure.axis, point) || is_no_law) {
      return fmt::format("--points of figure {} must be {}{} to {}", figure.name,
                         figure.axis.is_whole ? "whole numbers, " : "", figure.axis.low,
                         figure.axis.high);
    }
  }
  if (!std::ranges::is_sorted(options.points)) return "--points must rise";
  if (options.records < kRecordsMin || options.records > kRecordsMax) {
    return fmt::format("--records must be {} to {}", kRecordsMin, kRecordsMax);
  }
  if (options.training == 0 || options.accesses == 0) return "there must be accesses";
  if (!IsOn(kAlphaAxis, options.alpha) || options.alpha == 1)
    return "--alpha must be above 0, not 1";
  if (options.ranges < options.servers || options.ranges > SWITCH_RANGES_MAX) {
    return fmt::format("--ranges must be the number of servers to {}", SWITCH_RANGES_MAX);
  }
  if (options.nodes > SWITCH_NODES_MAX) {
    return fmt::format("--nodes must be at most {}", SWITCH_NODES_MAX);
  }
  if (*options.layers > 9) return "--layers must be at most 9";
  if (options.leaf_trips == 0) return "--leaf-trips must be at least 1";
  if (options.clients == 0 || options.clients > 1'000) return "--clients must be 1 to 1000";
  if (options.servers == 0 || options.servers > SWITCH_SERVERS_MAX) {
    return fmt::format("--servers must be 1 to {}", SWITCH_SERVERS_MAX);
  }
  if (!IsOn(kShareAxis, options.read_share)) return "--read-share must be 0 to 1";
  if (*options.costs.round_trip_ns == 0) return "--round-trip-ns must be at least 1";
  return {};
}

// Every constant that the figure depends on.
std::vector<std::string> NotesOf(const FatBTreeOptions& options) {
  const FatBTreeCosts& costs = options.costs;
  std::vector<std::string> notes = {
      "counted: nodes read, on drawn accesses by the switches' own tables. Modelled: all times",
      fmt::format("{} keys, Zipf {}, {} accesses after {} of training, seed {}", options.records,
                  options.alpha, options.accesses, options.training, options.seed),
      fmt::format("switches: {} ranges and {} layers of {} nodes", options.ranges, *options.layers,
                  options.nodes)};
  if (IsOfCalls(options)) {
    notes.push_back(
        fmt::format("{} clients, {} servers, {} of the queries are reads, and have a hint",
                    options.clients, options.servers, options.read_share));
  }
  notes.push_back(fmt::format(
      "{} ns a round trip, {} one that wakes a client; {} more in each of {} switches; a server "
      "works {} ns on a call and {} on a node",
      *costs.round_trip_ns, costs.interrupt_ns, costs.hop_ns, costs.hops, *costs.message_ns,
      *costs.level_ns));
  return notes;
}

}  // namespace

FigureSetting SettingOf(const FatBTreeOptions& options) {
  return {.records = options.records,
          .alpha = options.alpha,
          .limits = {.ranges = options.ranges, .layers = *options.layers, .nodes = options.nodes}};
}

Accesses::Accesses(const FatBTreeOptions& options, const FigureSetting& setting)
    : keys(setting.records),
      hits(HitsOf(keys, DrawRecords(setting.records, {.accesses = options.training,
                                                      .alpha = setting.alpha,
                                                      .seed = options.seed}))),
      asked(KeysOf(DrawRecords(setting.records, {.accesses = options.accesses,
                                                 .alpha = setting.alpha,
                                                 .drift = setting.drift,
                                                 .seed = options.seed + 1}))) {}

std::expected<FatBTreeReport, std::string> RunFatBTree(const FatBTreeOptions& options) {
  const auto found = FindFigure(kFigures, options.figure);
  if (!found) return std::unexpected(found.error());
  const Figure* const figure = *found;
  FatBTreeReport report;
  report.options = WithDefaults(options, *figure);
  if (std::string complaint = Complaint(report.options, *figure); !complaint.empty()) {
    return std::unexpected(complaint);
  }
  report.title = fmt::format("{} (modelled)", figure->title);
  report.notes = NotesOf(report.options);
  figure->fill(report);
  return report;
}

}  // namespace skep::bench
