#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "bench/hstore/figure_parts.h"

namespace skep::bench {
namespace {

// A column: a pool, and how its clients use it.
struct Subject {
  const char* name;
  PoolKind kind;
  bool is_cached = false;
  bool is_serial = false;
};
constexpr Subject kSubjects[] = {
    {.name = "hstore", .kind = PoolKind::kPair},
    {.name = "cached", .kind = PoolKind::kPair, .is_cached = true},
    {.name = "serial", .kind = PoolKind::kPair, .is_serial = true},
    {.name = "sync", .kind = PoolKind::kSyncPair},
    {.name = "tree", .kind = PoolKind::kTreeOnly},
    {.name = "hash", .kind = PoolKind::kHashOnly},
};

bool ReadsPoints(const Workload& workload) {
  return workload.read + workload.read_modify_write > 0;
}

// Whether the subject does something in the workload that others do not.
bool IsWanted(const Subject& subject, const Workload& workload) {
  if (subject.is_cached) return ReadsPoints(workload);
  if (subject.is_serial) return workload.scan > 0;
  if (subject.kind == PoolKind::kSyncPair) return workload.writes();
  return subject.kind != PoolKind::kHashOnly || workload.scan == 0;
}

Workload Named(const char* name, const char* label) {
  Workload workload = *FindWorkload(name);
  workload.name = label;
  return workload;
}

std::vector<Workload> WorkloadsOf(const HStoreOptions& options) {
  if (options.figure == "10") {
    std::vector<Workload> all = {InsertsOnly()};
    for (const Workload& workload : CoreWorkloads()) all.push_back(workload);
    return all;
  }
  return {Named("update", "put"), Named("get", "get"), Named("scan100", "scan")};
}

class BasicFigure {
 public:
  explicit BasicFigure(HStoreReport& report)
      : report_(report),
        records_(report.options.key_bytes, report.options.value_bytes, report.options.seed),
        workloads_(WorkloadsOf(report.options)),
        has_latency_(report.options.figure == "8") {}

  std::string Fill() {
    AddHeads();
    for (const PoolKind kind :
         {PoolKind::kPair, PoolKind::kSyncPair, PoolKind::kTreeOnly, PoolKind::kHashOnly}) {
      if (std::string problem = FillPool(kind); !problem.empty()) return problem;
    }
    return {};
  }

 private:
  size_t FiguresOfSubject() const { return has_latency_ ? 2 : 1; }

  void AddHeads() {
    report_.label_name = "workload";
    report_.columns = {{"clients", 0}};
    for (const Subject& subject : kSubjects) {
      if (has_latency_) {
        report_.columns.push_back({subject.name + std::string("_us"), 1});
        report_.columns.push_back({subject.name + std::string("_p99"), 1});
      } else {
        report_.columns.push_back({subject.name + std::string("_kops"), 1});
      }
    }
    for (const Workload& workload : workloads_) {
      for (const uint32_t clients : report_.options.clients) {
        report_.labels.push_back(workload.name);
        report_.rows.emplace_back(report_.columns.size());
        report_.rows.back()[0] = clients;
      }
    }
  }

  // The records that are loaded before the first workload, which inserts the others if it is the
  // load.
  uint64_t LoadedBefore() const {
    const HStoreOptions& options = report_.options;
    return workloads_[0].insert == 100 ? options.items - std::min(options.ops, options.items / 2)
                                       : options.items;
  }

  std::string FillPool(PoolKind kind) {
    const HStoreOptions& options = report_.options;
    const auto pool = FigurePool::Open(
        PoolOptionsOf(options, kind, records_, workloads_.size() * options.clients.size() * 2));
    const Tally loaded = LoadRecords(*pool, records_, LoadedBefore());
    if (loaded.errors != 0) return loaded.first_error;
    for (size_t row = 0; row < report_.rows.size(); ++row) {
      for (size_t i = 0; i < std::size(kSubjects); ++i) {
        if (kSubjects[i].kind != kind) continue;
        if (std::string problem = FillCell(*pool, i, row); !problem.empty()) return problem;
      }
    }
    return {};
  }

  std::string FillCell(FigurePool& pool, size_t subject, size_t row) {
    const HStoreOptions& options = report_.options;
    const Workload& workload = workloads_[row / options.clients.size()];
    const bool is_load = workload.insert == 100;
    // A pool is loaded once.
    if (!IsWanted(kSubjects[subject], workload) || (is_load && row > 0)) return {};
    ClientsPlan plan = PlanOf(options, workload, static_cast<uint32_t>(*report_.rows[row][0]));
    if (is_load) {
      plan.workload.records = LoadedBefore();
      plan.workload.ops = options.items - LoadedBefore();
    }
    if (kSubjects[subject].is_cached) plan.engine.cache_entries = options.cache;
    if (kSubjects[subject].is_serial) plan.engine.scan_window = 1;
    const ClientsRun run = RunClients(pool, records_, plan);
    if (run.tally.errors != 0) return run.tally.first_error;
    const size_t column = 1 + subject * FiguresOfSubject();
    report_.rows[row][column] = has_latency_ ? run.mean_us() : run.kops();
    if (has_latency_) report_.rows[row][column + 1] = run.p99_us();
    return {};
  }

  HStoreReport& report_;
  const Records records_;
  const std::vector<Workload> workloads_;
  const bool has_latency_;
};

}  // namespace

std::string FillBasic(HStoreReport& report) { return BasicFigure(report).Fill(); }

std::string FillScan(HStoreReport& report) {
  const HStoreOptions& options = report.options;
  const Records records(options.key_bytes, options.value_bytes, options.seed);
  report.columns = {{"clients", 0}, {"items", 0},          {"batched_us", 2},   {"serial_us", 2},
                    {"ratio", 1},   {"batched_rounds", 2}, {"serial_rounds", 2}};
  const auto pool = FigurePool::Open(PoolOptionsOf(options, PoolKind::kPair, records, 0));
  const Tally loaded = LoadRecords(*pool, records, options.items);
  if (loaded.errors != 0) return loaded.first_error;
  for (const uint32_t clients : options.clients) {
    for (const uint32_t items : {1u, 10u, 100u, 1000u}) {
      std::array<double, 2> us;
      std::array<double, 2> rounds;
      for (const bool is_serial : {false, true}) {
        const Workload workload = {
            .name = "scan", .scan = 100, .scan_items_min = items, .scan_items_max = items};
        ClientsPlan plan = PlanOf(options, workload, clients);
        if (is_serial) plan.engine.scan_window = 1;
        const ClientsRun run = RunClients(*pool, records, plan);
        if (run.tally.errors != 0) return run.tally.first_error;
        us[is_serial] = run.mean_us();
        rounds[is_serial] = static_cast<double>(run.traffic.rounds + run.traffic.calls) /
                            static_cast<double>(run.ops);
      }
      report.rows.push_back({static_cast<double>(clients), static_cast<double>(items), us[0], us[1],
                             us[1] / us[0], rounds[0], rounds[1]});
    }
  }
  return {};
}

}  // namespace skep::bench
