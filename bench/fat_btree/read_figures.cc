#include <functional>

#include "bench/fat_btree/figure_parts.h"
#include "bench/fat_btree/trip_counts.h"

namespace skep::bench {
namespace {

// Round trips of the same queries by each way.
struct WayCounts {
  TripCounts from_root, client, by_switch, call;
};

WayCounts CountTrips(const ModelTree& tree, const FigureSetting& setting, const Accesses& accesses,
                     uint32_t more_trips) {
  const SwitchChain chain(tree.index(), setting.limits);
  const ClientCache cache(tree.index(), chain.bytes());
  WayCounts counts;
  for (const uint64_t key : accesses.asked) {
    counts.from_root.Add(tree.LevelsFrom(0, key) + more_trips);
    counts.client.Add(tree.LevelsFrom(cache.AddressOf(key), key) + more_trips);
    counts.by_switch.Add(tree.LevelsFrom(chain.AddressOf(key), key) + more_trips);
    counts.call.Add(1);
  }
  return counts;
}

// A column of a figure.
struct Way {
  const TripCounts* trips;
  TripTimes times;
};

std::vector<Way> WaysOf(const WayCounts& counts, const FatBTreeCosts& costs, uint32_t levels) {
  const double interrupt = Microseconds(costs.interrupt_ns);
  const double round_trip = Microseconds(*costs.round_trip_ns);
  const double hops = costs.hops * Microseconds(costs.hop_ns);
  const double work = Microseconds(*costs.message_ns + levels * *costs.level_ns);
  return {{&counts.from_root, {interrupt, 0}}, {&counts.from_root, {round_trip, 0}},
          {&counts.client, {round_trip, 0}},   {&counts.by_switch, {round_trip, hops}},
          {&counts.call, {round_trip, work}},  {&counts.by_switch, {interrupt, hops}}};
}

using Measure = std::function<double(const Way&)>;

void AddRow(FatBTreeReport& report, std::string label, double x, const std::vector<Way>& ways,
            const Measure& measure) {
  std::vector<std::optional<double>> row = {x};
  for (const Way& way : ways) row.emplace_back(measure(way));
  report.labels.push_back(std::move(label));
  report.rows.push_back(std::move(row));
}

void AddRows(FatBTreeReport& report, const std::string& name, double x,
             const std::vector<Way>& ways) {
  const auto mean_us = [](const Way& way) { return way.times.Of(way.trips->mean()); };
  AddRow(report, name + ", round trips", x, ways, [](const Way& way) { return way.trips->mean(); });
  AddRow(report, name + ", mean us", x, ways, mean_us);
  AddRow(report, name + ", p99 us", x, ways,
         [](const Way& way) { return way.times.Of(way.trips->Quantile(0.99)); });
  AddRow(report, name + ", thousand/s", x, ways,
         [&](const Way& way) { return 1e3 / mean_us(way); });
}

FigureSetting ReadSettingAt(const FatBTreeOptions& options, double point) {
  FigureSetting setting = SettingOf(options);
  if (options.figure == "5") setting.records = static_cast<uint64_t>(point);
  if (options.figure == "6") setting.drift = point;
  if (options.figure == "7") setting.alpha = point;
  if (options.figure == "8") setting.limits.nodes = static_cast<size_t>(point);
  if (options.figure == "9") setting.limits.layers = static_cast<size_t>(point);
  return setting;
}

}  // namespace

void FillReads(FatBTreeReport& report) {
  const FatBTreeOptions& options = report.options;
  const int digits = options.figure == "6" || options.figure == "7" ? 2 : 0;
  report.label_name = "tree, what";
  report.columns = {{"at", digits}, {"interrupt", 2}, {"polled", 2}, {"client", 2},
                    {"switch", 2},  {"call", 2},      {"paper", 2}};
  for (const double point : options.points) {
    const FigureSetting setting = ReadSettingAt(options, point);
    const Accesses accesses(options, setting);
    for (const NamedShape& named : kShapes) {
      const ModelTree tree(named.shape, accesses.keys, accesses.hits);
      const uint32_t more_trips = named.shape.is_ours ? options.leaf_trips - 1 : 0;
      const WayCounts counts = CountTrips(tree, setting, accesses, more_trips);
      AddRows(report, named.name, point, WaysOf(counts, options.costs, tree.LevelsOf(0)));
    }
  }
}

}  // namespace skep::bench
