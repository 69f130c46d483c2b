#include <algorithm>
#include <utility>

#include "bench/hstore/figure_parts.h"

namespace skep::bench {

std::string FillBreakdown(HStoreReport& report) {
  const HStoreOptions& options = report.options;
  const Records records(options.key_bytes, options.value_bytes, options.seed);
  report.label_name = "operation";
  report.columns = {{"clients", 0},       {"mean_us", 2},     {"kv_access_us", 2},
                    {"index_read_us", 2}, {"rpc_us", 2},      {"queue_wait_us", 2},
                    {"log_sync_us", 2},   {"index_op_us", 2}, {"client_us", 2}};
  FigurePoolOptions pool_options = PoolOptionsOf(options, PoolKind::kPair, records, 1);
  pool_options.has_stopwatch = true;
  const auto pool = FigurePool::Open(pool_options);
  const Tally loaded = LoadRecords(*pool, records, options.items);
  if (loaded.errors != 0) return loaded.first_error;
  const std::pair<const char*, const char*> operations[] = {
      {"put", "update"}, {"get", "get"}, {"scan", "scan100"}};
  for (const auto& [label, workload] : operations) {
    for (const uint32_t clients : options.clients) {
      const ClientsRun run =
          RunClients(*pool, records, PlanOf(options, *FindWorkload(workload), clients));
      if (run.tally.errors != 0) return run.tally.first_error;
      const auto us = [&](uint64_t ns) {
        return static_cast<double>(ns) / static_cast<double>(run.ops) / 1e3;
      };
      const TimeParts& parts = run.parts;
      const double outside = us(parts.kv_access + parts.index_read + parts.calls);
      report.labels.emplace_back(label);
      report.rows.push_back({static_cast<double>(clients), run.mean_us(), us(parts.kv_access),
                             us(parts.index_read), us(parts.rpc()), us(parts.queue_wait),
                             us(parts.log_sync), us(parts.index_op),
                             std::max(0.0, run.mean_us() - outside)});
    }
  }
  return {};
}

}  // namespace skep::bench
