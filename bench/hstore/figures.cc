#include "bench/hstore/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/figure_list.h"
#include "bench/hstore/figure_parts.h"

namespace skep::bench {
namespace {

constexpr uint64_t kItemsOfMem = 20'000'000;
constexpr uint64_t kItemsElsewhere = 100'000;
constexpr uint64_t kOpsOfMem = 200'000;
constexpr uint64_t kOpsElsewhere = 20'000;
constexpr uint64_t kItemsMin = 1'000;
constexpr uint64_t kItemsMax = 200'000'000;
constexpr uint32_t kClientsMax = 256;
constexpr uint64_t kOpsOfScan = 20;  // as in the paper: one scan for twenty other operations

struct Figure {
  const char* name;
  const char* title;
  std::string (*fill)(HStoreReport&);
  std::vector<uint32_t> clients;  // the paper's
  bool can_be_modelled;           // else its times are processors'
};

const Figure kFigures[] = {
    {"2a", "figure 2a, dependent accesses of a lookup one-sided", &FillAccesses, {1}, true},
    {"7", "figure 7, thousands of operations a second", &FillBasic, {4, 8, 16, 32}, true},
    {"8", "figure 8, latency", &FillBasic, {4, 8, 16, 32}, true},
    {"9", "figure 9, where the time of an operation goes", &FillBreakdown, {32}, false},
    {"10", "figure 10, YCSB, thousands of operations a second", &FillBasic, {16}, true},
    {"11a", "figure 11a, recovery of one index from the other", &FillRecovery, {1}, false},
    {"11b", "figure 11b and c, GETs while an index server dies", &FillFailure, {4}, false},
    {"scan",
     "a scan whose items are read side by side, and one after the other",
     &FillScan,
     {1},
     true},
};

HStoreOptions WithoutZeros(HStoreOptions options, const Figure& figure) {
  const bool is_ycsb = options.figure == "10";
  const bool is_mem = options.fabric == "mem";
  if (options.items == 0) options.items = is_mem ? kItemsOfMem : kItemsElsewhere;
  if (options.ops == 0) options.ops = is_mem ? kOpsOfMem : kOpsElsewhere;
  if (options.clients.empty()) options.clients = figure.clients;
  if (options.key_bytes == 0) options.key_bytes = is_ycsb ? 20 : 16;
  if (options.value_bytes == 0) options.value_bytes = is_ycsb ? 200 : 32;
  return options;
}

std::string Complaint(const HStoreOptions& options, const Figure& figure) {
  if (!FindPoolFabric(options.fabric)) return "there are --fabric mem, tcp and sim";
  if (options.items < kItemsMin || options.items > kItemsMax) {
    return fmt::format("--items must be {} to {}", kItemsMin, kItemsMax);
  }
  for (const uint32_t clients : options.clients) {
    if (clients == 0 || clients > kClientsMax) {
      return fmt::format("--clients must be 1 to {}", kClientsMax);
    }
    if (options.ops / kOpsOfScan < clients) return "--ops must be at least 20 for each client";
  }
  if (options.depth == 0 || options.depth > 1024) return "--depth must be 1 to 1024";
  if (options.key_bytes < KeyFormat::kBytesMin || options.key_bytes > 1024) {
    return "--key-size must be 8 to 1024";
  }
  if (options.value_bytes > 65'536) return "--value-size must be at most 65536";
  if (options.costs.bytes_per_us == 0) return "--bytes-per-us must be at least 1";
  if (!(options.seconds > 0)) return "--seconds must be above 0";
  if (options.fabric == "sim" && !figure.can_be_modelled) {
    return fmt::format("--figure {} is the work of processors, which --fabric sim does not model",
                       figure.name);
  }
  return {};
}

// Every constant that the figures depend on.
std::vector<std::string> NotesOf(const HStoreOptions& options) {
  std::vector<std::string> notes = {
      fmt::format("{} items of {} + {} bytes in 1 memory server, {} operations a measurement, {} "
                  "at a time, seed {}",
                  options.items, options.key_bytes, options.value_bytes, options.ops, options.depth,
                  options.seed)};
  if (options.figure == "7" || options.figure == "8" || options.figure == "10") {
    notes.emplace_back(
        "tree: tree-only mode, stands in for Sherman. hash: hash-only mode, stands in for Clover");
  }
  if (options.fabric == "sim") {
    const SimCosts& costs = options.costs;
    notes.push_back(
        fmt::format("modelled: {} ns there and back, {} bytes a us, {} ns of an index server a "
                    "message, {} more an "
                    "entry where it applies before it acknowledges; nothing else takes time",
                    costs.round_trip_ns, costs.bytes_per_us, costs.message_ns, costs.apply_ns));
  } else {
    notes.push_back("measured: servers and clients are threads of this process");
  }
  return notes;
}

}  // namespace

FigurePoolOptions PoolOptionsOf(const HStoreOptions& options, PoolKind kind, const Records& records,
                                uint64_t runs) {
  uint32_t clients = 0;
  for (const uint32_t some : options.clients) clients += some;
  const uint64_t items = options.items + runs * options.ops;
  return {.kind = kind,
          .fabric = *FindPoolFabric(options.fabric),
          .items = items,
          .item_bytes = items * records.item_bytes(),
          .clients = clients * 16,
          .costs = options.costs};
}

ClientsPlan PlanOf(const HStoreOptions& options, const Workload& workload, uint32_t clients) {
  return {.workload = {.workload = workload,
                       .distribution = workload.distribution,
                       .records = options.items,
                       .ops = options.ops / (workload.scan > 0 ? kOpsOfScan : 1),
                       .threads = clients,
                       .seed = options.seed},
          .depth = options.depth,
          .engine = {.cache_entries = 0}};
}

std::expected<HStoreReport, std::string> RunHStore(const HStoreOptions& options) {
  const auto found = FindFigure(kFigures, options.figure);
  if (!found) return std::unexpected(found.error());
  const Figure* const figure = *found;
  HStoreReport report;
  report.options = WithoutZeros(options, *figure);
  if (std::string complaint = Complaint(report.options, *figure); !complaint.empty()) {
    return std::unexpected(complaint);
  }
  report.title = fmt::format("{}, over {} ({})", figure->title, report.options.fabric,
                             report.options.fabric == "sim" ? "modelled" : "measured");
  report.notes = NotesOf(report.options);
  if (std::string problem = figure->fill(report); !problem.empty()) return std::unexpected(problem);
  return report;
}

}  // namespace skep::bench
