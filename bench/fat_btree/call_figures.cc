#include "bench/fat_btree/figure_parts.h"
#include "bench/fat_btree/queueing.h"

namespace skep::bench {
namespace {

// The point of the axis, applied.
struct CallSetting {
  FigureSetting figure;
  uint32_t clients;
  double read_share;
};

CallSetting CallSettingAt(const FatBTreeOptions& options, double point) {
  CallSetting setting{SettingOf(options), options.clients, options.read_share};
  if (options.figure == "10a") setting.figure.records = static_cast<uint64_t>(point);
  if (options.figure == "10b") setting.clients = static_cast<uint32_t>(point);
  if (options.figure == "10c") setting.read_share = point;
  if (options.figure == "10d") setting.figure.alpha = point;
  return setting;
}

// The counts of the queries that one server was asked.
struct Asked {
  uint64_t queries = 0;
  uint64_t levels = 0;         // that it went down, of all queries
  uint64_t levels_hinted = 0;  // if each query has the switches' hint
};

std::vector<Asked> Count(const ModelTree& tree, const SwitchChain& chain, const Accesses& accesses,
                         uint32_t servers) {
  std::vector<Asked> asked(servers);
  for (const uint64_t key : accesses.asked) {
    Asked& server = asked[tree.ServerOf(key)];
    ++server.queries;
    server.levels += tree.LevelsFrom(0, key);
    server.levels_hinted += tree.LevelsFrom(chain.AddressOf(key), key);
  }
  return asked;
}

// `hinted`: the share of queries that have a hint.
double LevelsOf(const Asked& asked, double hinted) {
  const double queries = static_cast<double>(asked.queries);
  return queries == 0 ? 0
                      : ((1 - hinted) * static_cast<double>(asked.levels) +
                         hinted * static_cast<double>(asked.levels_hinted)) /
                            queries;
}

double LevelsOf(const std::vector<Asked>& servers, double hinted) {
  Asked all;
  for (const Asked& asked : servers) {
    all.queries += asked.queries;
    all.levels += asked.levels;
    all.levels_hinted += asked.levels_hinted;
  }
  return LevelsOf(all, hinted);
}

// Thousand queries a second.
double Throughput(const FatBTreeOptions& options, const CallSetting& setting,
                  const std::vector<Asked>& servers, double hinted) {
  const FatBTreeCosts& costs = options.costs;
  const double all = static_cast<double>(options.accesses);
  std::vector<ServerLoad> loads;
  for (const Asked& asked : servers) {
    const double work_us =
        Microseconds(*costs.message_ns) + LevelsOf(asked, hinted) * Microseconds(*costs.level_ns);
    loads.push_back({.share = static_cast<double>(asked.queries) / all, .service_us = work_us});
  }
  const double hops_us = hinted * costs.hops * Microseconds(costs.hop_ns);
  return 1e3 * ThroughputOf(setting.clients, Microseconds(*costs.round_trip_ns) + hops_us, loads);
}

}  // namespace

void FillCalls(FatBTreeReport& report) {
  const FatBTreeOptions& options = report.options;
  const int digits = options.figure == "10c" || options.figure == "10d" ? 2 : 0;
  report.label_name = "tree";
  report.columns = {{"at", digits}, {"call_kqps", 1}, {"switch_kqps", 1},
                    {"ratio", 3},   {"levels", 2},    {"levels_switch", 2}};
  for (const double point : options.points) {
    const CallSetting setting = CallSettingAt(options, point);
    const Accesses accesses(options, setting.figure);
    for (const NamedShape& named : kShapes) {
      const ModelTree tree(named.shape, accesses.keys, accesses.hits, options.servers);
      const SwitchChain chain(tree.index(), setting.figure.limits);
      const std::vector<Asked> asked = Count(tree, chain, accesses, options.servers);
      const double hinted = setting.read_share;
      const double call = Throughput(options, setting, asked, 0);
      const double by_switch = Throughput(options, setting, asked, hinted);
      report.labels.emplace_back(named.name);
      report.rows.push_back(
          {point, call, by_switch, by_switch / call, LevelsOf(asked, 0), LevelsOf(asked, hinted)});
    }
  }
}

}  // namespace skep::bench
