#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "base/histogram.h"
#include "bench/hstore/figure_parts.h"

namespace skep::bench {
namespace {

using pool::IndexServer;

constexpr double kNsOfSecond = 1e9;
// Figure 11b: instants at which it is looked, and when the server dies.
constexpr size_t kSlices = 24;
constexpr size_t kDeathSlice = 6;

double Seconds(uint64_t ns) { return static_cast<double>(ns) / kNsOfSecond; }

std::unique_ptr<FigurePool> LoadedPool(const HStoreOptions& options, const Records& records,
                                       uint64_t items, std::string* problem) {
  HStoreOptions sized = options;
  sized.items = items;
  auto pool = FigurePool::Open(PoolOptionsOf(sized, PoolKind::kPair, records, 0));
  const Tally loaded = LoadRecords(*pool, records, items);
  if (loaded.errors != 0) *problem = loaded.first_error;
  return pool;
}

// How long an index server, which the other one leaves alone, takes until it has both indexes.
struct Recovery {
  double wait_s = 0;   // until it may begin: the dead server's authority has to end
  double build_s = 0;  // from then on
  uint64_t items = 0;  // in the index that was built
};

// `begins` and `is_whole` are asked of the server that is left.
Recovery Recover(FigurePool& pool, uint32_t dies, const std::function<bool(IndexServer&)>& begins,
                 const std::function<bool(IndexServer&)>& is_whole) {
  const uint32_t stays = FigurePool::kHashServer + FigurePool::kSortedServer - dies;
  const uint64_t death_ns = pool.clock().MonotonicNs();
  pool.Kill(dies);
  pool.Await(stays, begins);
  const uint64_t begin_ns = pool.clock().MonotonicNs();
  pool.Await(stays, is_whole);
  return {.wait_s = Seconds(begin_ns - death_ns),
          .build_s = Seconds(pool.clock().MonotonicNs() - begin_ns)};
}

Recovery RecoverHash(FigurePool& pool) {
  Recovery recovery = Recover(
      pool, FigurePool::kHashServer,
      [](IndexServer& server) { return server.state()->keeps_hash(); },
      [](IndexServer& server) { return server.state()->hash() != nullptr; });
  pool.Do(FigurePool::kSortedServer,
          [&](IndexServer& server) { recovery.items = server.state()->hash()->items(); });
  return recovery;
}

Recovery RecoverOrder(FigurePool& pool) {
  Recovery recovery = Recover(
      pool, FigurePool::kSortedServer, [](IndexServer&) { return true; },
      [](IndexServer& server) { return server.state()->tree() != nullptr; });
  pool.Do(FigurePool::kHashServer, [&](IndexServer& server) {
    recovery.items = server.state()->tree()->Statistics().items;
  });
  return recovery;
}

// Some of all items, to see how a figure grows with them.
std::vector<uint64_t> StepsTo(uint64_t items) {
  std::vector<uint64_t> steps;
  for (const uint64_t part : {20, 4, 1}) steps.push_back(std::max<uint64_t>(1, items / part));
  return steps;
}

// GETs of all clients until a server has died and some time has passed.
class Timeline {
 public:
  Timeline(const HStoreOptions& options, const Records& records, FigurePool& pool)
      : options_(options), records_(records), pool_(pool), slice_ns_(SliceNs(options)) {}

  std::string Run(uint32_t dies) {
    const uint32_t clients = options_.clients[0];
    for (uint32_t i = 0; i < clients; ++i) slices_.emplace_back(kSlices);
    for (uint32_t i = 0; i < clients; ++i)
      engines_.push_back(pool_.OpenEngine({.cache_entries = 0}));
    begin_ns_ = pool_.clock().MonotonicNs();
    pool_.RunSideBySide(clients + 1, [&](uint32_t i) { i < clients ? RunClient(i) : Kill(dies); });
    return failed_ ? "a GET failed while a server died" : "";
  }

  // Returns the latencies of all clients in this slice of time.
  Histogram At(size_t slice) const {
    Histogram all;
    for (const auto& of_client : slices_) all.Merge(of_client[slice]);
    return all;
  }
  double SliceSeconds() const { return Seconds(slice_ns_); }
  // Since the begin: when the clients read one-sided again, of the hash server's death.
  double recovered_s() const { return recovered_s_; }

 private:
  static uint64_t SliceNs(const HStoreOptions& options) {
    return static_cast<uint64_t>(options.seconds * kNsOfSecond) / kSlices;
  }

  void RunClient(uint32_t number) {
    const ClientsPlan plan = PlanOf(options_, *FindWorkload("get"), options_.clients[0]);
    OpStream stream(records_.format);
    OpGenerator(plan.workload, number).Fill(stream, options_.ops);
    Batch batch;
    for (size_t at = 0;; at = (at + 1) % stream.size()) {
      const uint64_t from_ns = pool_.clock().MonotonicNs();
      batch.Clear();
      batch.Get(stream.at(at).key);
      engines_[number]->Execute(batch);
      if (batch.outcome(0).verdict != Verdict::kDone) failed_ = true;
      const uint64_t now_ns = pool_.clock().MonotonicNs();
      const uint64_t slice = (now_ns - begin_ns_) / slice_ns_;
      if (slice >= kSlices) return;
      slices_[number][slice].Record(now_ns - from_ns);
    }
  }

  void Kill(uint32_t dies) {
    pool_.Sleep(kDeathSlice * slice_ns_);
    dies == FigurePool::kHashServer ? RecoverHash(pool_) : RecoverOrder(pool_);
    recovered_s_ = Seconds(pool_.clock().MonotonicNs() - begin_ns_);
  }

  const HStoreOptions& options_;
  const Records& records_;
  FigurePool& pool_;
  const uint64_t slice_ns_;
  uint64_t begin_ns_ = 0;
  std::vector<std::vector<Histogram>> slices_;  // by client: its own thread's
  std::vector<std::unique_ptr<pool::PoolEngine>> engines_;
  std::atomic<bool> failed_{false};
  double recovered_s_ = 0;
};

}  // namespace

std::string FillAccesses(HStoreReport& report) {
  const HStoreOptions& options = report.options;
  const Records records(options.key_bytes, options.value_bytes, options.seed);
  report.columns = {{"items", 0}, {"tree", 2}, {"hash", 2}};
  for (const uint64_t items : StepsTo(options.items)) {
    std::string problem;
    const auto pool = LoadedPool(options, records, items, &problem);
    if (!problem.empty()) return problem;
    ClientsPlan plan = PlanOf(options, *FindWorkload("get"), 1);
    plan.workload.records = items;
    plan.depth = 1;
    const ClientsRun run = RunClients(*pool, records, plan);
    if (run.tally.errors != 0) return run.tally.first_error;
    double levels = 0;
    pool->Do(FigurePool::kSortedServer, [&](IndexServer& server) {
      server.state()->tree()->Describe(0, [&](std::string_view name, uint64_t value) {
        if (name == "height") levels = static_cast<double>(value);
      });
    });
    // The last round of a lookup reads its item.
    const double rounds = static_cast<double>(run.traffic.rounds) / static_cast<double>(run.ops);
    report.rows.push_back({static_cast<double>(items), levels, rounds - 1});
  }
  return {};
}

std::string FillRecovery(HStoreReport& report) {
  const HStoreOptions& options = report.options;
  const Records records(options.key_bytes, options.value_bytes, options.seed);
  report.columns = {{"items", 0}, {"hash_s", 3}, {"hash_wait_s", 3}, {"order_s", 3}};
  for (const uint64_t items : StepsTo(options.items)) {
    std::string problem;
    auto pool = LoadedPool(options, records, items, &problem);
    if (!problem.empty()) return problem;
    const Recovery hash = RecoverHash(*pool);
    pool.reset();
    pool = LoadedPool(options, records, items, &problem);
    if (!problem.empty()) return problem;
    const Recovery order = RecoverOrder(*pool);
    if (hash.items != items || order.items != items) {
      return fmt::format("of {} items {} were recovered in the table, and {} in the order", items,
                         hash.items, order.items);
    }
    report.rows.push_back(
        {static_cast<double>(items), hash.build_s, hash.wait_s, order.wait_s + order.build_s});
  }
  return {};
}

std::string FillFailure(HStoreReport& report) {
  const HStoreOptions& options = report.options;
  const Records records(options.key_bytes, options.value_bytes, options.seed);
  report.columns = {{"second", 2}};
  report.rows.resize(kSlices);
  const std::pair<const char*, uint32_t> deaths[] = {{"hash", FigurePool::kHashServer},
                                                     {"sorted", FigurePool::kSortedServer}};
  for (const auto& [name, dies] : deaths) {
    std::string problem;
    const auto pool = LoadedPool(options, records, options.items, &problem);
    if (!problem.empty()) return problem;
    Timeline timeline(options, records, *pool);
    if (problem = timeline.Run(dies); !problem.empty()) return problem;
    report.notes.push_back(fmt::format("the {} server dies at {:.2f} s; recovered at {:.2f} s",
                                       name, kDeathSlice * timeline.SliceSeconds(),
                                       timeline.recovered_s()));
    report.columns.push_back({fmt::format("{}_kops", name), 1});
    report.columns.push_back({fmt::format("{}_p50_us", name), 1});
    report.columns.push_back({fmt::format("{}_p99_us", name), 1});
    for (size_t slice = 0; slice < kSlices; ++slice) {
      const Histogram latencies = timeline.At(slice);
      auto& row = report.rows[slice];
      if (row.empty()) row.emplace_back(static_cast<double>(slice) * timeline.SliceSeconds());
      row.emplace_back(static_cast<double>(latencies.count()) / timeline.SliceSeconds() / 1e3);
      row.emplace_back(static_cast<double>(latencies.Quantile(0.5)) / 1e3);
      row.emplace_back(static_cast<double>(latencies.Quantile(0.99)) / 1e3);
    }
  }
  return {};
}

}  // namespace skep::bench
