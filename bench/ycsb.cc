#include "bench/ycsb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <vector>

#include "bench/engine_spec.h"
#include "bench/engine_target.h"
#include "bench/op_generator.h"
#include "bench/server_target.h"

namespace skep::bench {
namespace {

using Problem = std::unexpected<std::string>;

constexpr uint32_t kLoadBatch = 256;

// YCSB draws a key again until it is one that exists: with more inserts that would take for ever.
constexpr uint64_t kInsertsForEachRecordMax = 100;

// Returns null, or what is wrong with the options.
const char* Complaint(const YcsbOptions& options, const WorkloadPlan& plan) {
  if (options.records == 0) return "--records must be at least 1";
  if (options.is_loaded && (options.host.empty() || plan.workload.sweep)) {
    return "--loaded needs --host, and a workload that is not `load`";
  }
  if (options.rate < 0) return "--rate must be at least 0";
  if (options.threads == 0) return "--threads must be at least 1";
  if (options.batch == 0) return "--batch must be at least 1";
  if (options.key_bytes < KeyFormat::kShortBytesMin) return "--key-size must be at least 4";
  if (options.key_bytes < KeyFormat::kBytesMin &&
      plan.records + plan.InsertsForeseen() > uint64_t{UINT32_MAX}) {
    return "--key-size must be at least 8 for so many records";
  }
  if (plan.InsertsForeseen() / kInsertsForEachRecordMax > options.records) {
    return "--records are too few for so many insertions";
  }
  return nullptr;
}

std::optional<Workload> WorkloadOf(const YcsbOptions& options) {
  if (options.workload == "scan") return FindWorkload(fmt::format("scan{}", options.scan_length));
  if (options.workload == "cloud")
    return FindWorkload(fmt::format("cloud{}", options.read_percent));
  const auto workload = FindWorkload(options.workload);
  if (workload && workload->is_for_compare()) return std::nullopt;
  return workload;
}

std::expected<std::unique_ptr<YcsbTarget>, std::string> OpenTarget(const YcsbOptions& options,
                                                                   const ValuePool& values) {
  if (!options.host.empty()) {
    return std::make_unique<ServerTarget>(options.host, options.port, values);
  }
  auto store = ParseEngineSpec(options.engine);
  if (!store) return Problem(store.error());
  store->hashleaf.key_bytes = static_cast<uint32_t>(options.key_bytes);
  store->hashleaf.value_bytes = static_cast<uint32_t>(options.value_bytes);
  auto target = EngineTarget::Open(*store, values);
  if (!target) {
    return Problem(fmt::format("{}; this build has: {}", target.error().ToString(),
                               fmt::join(EngineNames(), ", ")));
  }
  return std::move(*target);
}

class YcsbRun {
 public:
  YcsbRun(YcsbTarget& target, const YcsbOptions& options, const WorkloadPlan& plan)
      : target_(target), options_(options), plan_(plan) {}

  Status ConnectAll() {
    for (uint32_t thread = 0; thread < plan_.threads; ++thread) {
      auto session = target_.Connect();
      if (!session) return session.error();
      sessions_.push_back(std::move(*session));
    }
    return {};
  }

  // Runs `total` operations of a `Source`, shared out among the threads.
  template <typename Source>
  PhaseReport Run(const char* what, uint64_t total, uint32_t batch, double rate = 0) {
    std::vector<std::unique_ptr<Source>> sources;
    std::vector<Lane> lanes;
    for (uint32_t thread = 0; thread < plan_.threads; ++thread) {
      sources.push_back(std::make_unique<Source>(plan_, thread));
      lanes.push_back({.session = sessions_[thread].get(),
                       .source = sources.back().get(),
                       .ops = plan_.ShareOf(thread, total)});
    }
    Progress progress(what, total, lanes.size(), options_.show_progress);
    return RunPhase(lanes, KeyFormat(options_.key_bytes), batch, progress, rate);
  }

 private:
  YcsbTarget& target_;
  const YcsbOptions& options_;
  const WorkloadPlan& plan_;
  std::vector<std::unique_ptr<YcsbSession>> sessions_;
};

std::expected<YcsbReport, std::string> RunOn(YcsbTarget& target, const YcsbOptions& options,
                                             const WorkloadPlan& plan) {
  YcsbRun run(target, options, plan);
  if (Status status = run.ConnectAll(); !status.ok()) return Problem(status.ToString());
  YcsbReport report = {.options = options};
  const bool load_only = plan.workload.sweep.has_value();
  if (!options.is_loaded) {
    report.load =
        run.Run<LoadGenerator>("load", plan.records, load_only ? options.batch : kLoadBatch);
  }
  if (!report.load.status.ok()) return Problem(report.load.status.ToString());
  if (report.load.tally.errors != 0) {
    return Problem(fmt::format("{} of {} records could not be loaded: {}", report.load.tally.errors,
                               plan.records, report.load.tally.first_error));
  }
  report.run =
      load_only ? report.load : run.Run<OpGenerator>("run", plan.ops, options.batch, options.rate);
  if (!report.run.status.ok()) return Problem(report.run.status.ToString());
  const auto footprint = target.Measure();
  if (!footprint) return Problem(footprint.error().ToString());
  report.footprint = *footprint;
  return report;
}

}  // namespace

std::expected<YcsbReport, std::string> RunYcsb(YcsbOptions options) {
  const auto workload = WorkloadOf(options);
  if (!workload) {
    return Problem(
        "--workload must be one of a, b, c, d, e, f, get, load, update, get-heavy, put-heavy, "
        "scan-heavy, scan, cloud; "
        "--scan-length 1 to 10000, --read-percent 0 to 100");
  }
  if (workload->sweep) options.ops = options.records;
  options.distribution = options.distribution.value_or(workload->distribution);
  const WorkloadPlan plan = {.workload = *workload,
                             .distribution = *options.distribution,
                             .records = options.records,
                             .ops = options.ops,
                             .threads = options.threads,
                             .seed = options.seed};
  if (const char* complaint = Complaint(options, plan)) return Problem(complaint);

  const ValuePool values(options.value_bytes, options.seed);
  const auto target = OpenTarget(options, values);
  if (!target) return Problem(target.error());
  return RunOn(**target, options, plan);
}

}  // namespace skep::bench
