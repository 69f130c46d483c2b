// The reports of `skep-bench net` (bench/report.h).
#include <fmt/format.h>

#include <utility>

#include "bench/report.h"
#include "bench/report_parts.h"

namespace skep::bench {
namespace {

std::string_view NameOf(ScanCommand command) {
  switch (command) {
    case ScanCommand::kKrange:
      return "krange";
    case ScanCommand::kZrangebylex:
      return "zrangebylex";
    case ScanCommand::kMget:
      return "mget";
  }
  return "";
}

std::string WhereIs(const NetOptions& options) {
  if (!options.unix_path.empty()) return options.unix_path;
  return fmt::format("{}:{}", options.host, options.port);
}

std::string PaceOf(const NetRun& run) {
  if (run.rate == 0) return "closed loop";
  if (run.percent == 0) return fmt::format("{} a second", run.rate);
  return fmt::format("{} %", run.percent);
}

std::string TableRow(const NetRun& run) {
  const NetFigures& figures = run.figures;
  const Histogram& latency = figures.latency_ns;
  const auto server = figures.server_cpu_us_per_op();
  return fmt::format(
      "  {:<16} {:>9.4f} {:>9.1f} {:>9.1f} {:>9.1f} {:>10.1f} {:>8.1f} {:>10} {:>9.0f} %\n",
      PaceOf(run), figures.mops(), Microseconds(latency.Quantile(0.5)),
      Microseconds(latency.Quantile(0.99)), Microseconds(latency.Quantile(0.999)),
      Microseconds(latency.max()), Microseconds(figures.late_ns.Quantile(0.99)),
      server ? fmt::format("{:.3f}", *server) : "-", figures.generator_cpu * 100);
}

// Returns a table of what the answers said.
std::string TableOf(const NetTally& tally) {
  std::string rows = Row("reads that found nothing", std::to_string(tally.misses),
                         fmt::format("of {}", tally.hits + tally.misses));
  if (tally.scans != 0) {
    rows += Row("items of a scan",
                static_cast<double>(tally.items) / static_cast<double>(tally.scans), "");
  }
  if (tally.lost != 0) rows += Row("requests without an answer", std::to_string(tally.lost), "");
  return rows + Row("errors", std::to_string(tally.errors), tally.first_error);
}

Json FiguresOf(const std::optional<NetRun>& run) {
  const auto figure = [&](auto of) { return run ? Json(of(run->figures)) : Json(nullptr); };
  const auto quantile = [&](double q) {
    return figure([&](const NetFigures& f) { return Microseconds(f.latency_ns.Quantile(q)); });
  };
  const bool open = run && run->rate != 0;
  return {{"mops", figure([](const auto& f) { return f.mops(); })},
          {"ops_done", figure([](const auto& f) { return f.ops; })},
          {"measured_seconds", figure([](const auto& f) { return f.seconds; })},
          {"p50_us", quantile(0.5)},
          {"p99_us", quantile(0.99)},
          {"p999_us", quantile(0.999)},
          {"max_us", figure([](const auto& f) { return Microseconds(f.latency_ns.max()); })},
          {"late_p99_us",
           open ? Json(Microseconds(run->figures.late_ns.Quantile(0.99))) : Json(nullptr)},
          {"generator_cpu", figure([](const auto& f) { return f.generator_cpu; })},
          {"server_cpu_us_per_op",
           figure([](const auto& f) { return OrNull(f.server_cpu_us_per_op()); })},
          {"hits", figure([](const auto& f) { return f.tally.hits; })},
          {"misses", figure([](const auto& f) { return f.tally.misses; })},
          {"items_scanned", figure([](const auto& f) { return f.tally.items; })},
          {"errors", figure([](const auto& f) { return f.tally.errors; })},
          {"lost", figure([](const auto& f) { return f.tally.lost; })},
          {"first_error", figure([](const auto& f) { return f.tally.first_error; })}};
}

Json OptionsOf(const NetReport& report) {
  const NetOptions& options = report.options;
  const bool over_tcp = options.unix_path.empty();
  return {{"name", options.name},
          {"protocol", options.protocol},
          {"host", over_tcp ? Json(options.host) : Json(nullptr)},
          {"port", over_tcp ? Json(options.port) : Json(nullptr)},
          {"unix", over_tcp ? Json(nullptr) : Json(options.unix_path)},
          {"fat-root", options.fat_root},
          {"one-sided", options.one_sided},
          {"connections", options.connections},
          {"depth", options.depth},
          {"group", options.group},
          {"workload", report.workload},
          {"scan-command", NameOf(options.scan_command)},
          {"dist", NameOf(options.distribution.value())},
          {"records", options.records},
          {"key-size", options.key_bytes},
          {"value-size", options.value_bytes},
          {"seed", options.seed},
          {"load", options.load},
          {"rate", options.rate},
          {"warm-up", options.warm_up_seconds},
          {"seconds", options.seconds},
          {"ops", options.ops},
          {"cpu", OrNull(options.cpu)},
          {"server-pid", OrNull(options.server_pid)}};
}

}  // namespace

std::string TableOf(const NetReport& report) {
  const NetOptions& options = report.options;
  std::string table = fmt::format(
      "{} {} on {} {}\n  {} records of {} + {} bytes, {} connections, {} requests of {} on each\n",
      report.workload, NameOf(options.distribution.value()), options.protocol, WhereIs(options),
      options.records, options.key_bytes, options.value_bytes, options.connections, options.depth,
      options.group);
  if (report.load_mops) table += Row("loading", *report.load_mops, "M records/s");
  if (report.run) {
    table += fmt::format("\n  {:<16} {:>9} {:>9} {:>9} {:>9} {:>10} {:>8} {:>10} {:>11}\n", "pace",
                         "M ops/s", "p50 us", "p99 us", "p99.9 us", "max us", "late us",
                         "server us", "generator");
    table += TableRow(*report.run);
    for (const NetRun& run : report.curve) table += TableRow(run);
    table.append("\n").append(TableOf(report.run->figures.tally));
  }
  if (report.server_rss_bytes) {
    table += Row("the server's memory", static_cast<double>(*report.server_rss_bytes) / (1 << 20),
                 "MiB");
  }
  if (report.fat_root) {
    const client::FatRootStatistics& root = *report.fat_root;
    table += Row("the fat root", static_cast<double>(root.bytes) / (1 << 20),
                 fmt::format("MiB, {} leaves", root.links));
    table += Row("stale hints", std::to_string(root.stale), fmt::format("of {}", root.hinted));
  }
  if (report.one_sided) {
    const OneSidedCounts& counts = *report.one_sided;
    table += Row("answered by reading", std::to_string(counts.answered),
                 fmt::format("of {}", counts.answered + counts.asked));
  }
  return table;
}

std::string JsonOf(const NetReport& report) {
  Json object = {{"benchmark", "net"}};
  object.update(OptionsOf(report));
  object.update({{"load_mops", OrNull(report.load_mops)},
                 {"server_rss_bytes", OrNull(report.server_rss_bytes)}});
  if (report.fat_root) {
    object.update({{"fat_root_bytes", report.fat_root->bytes},
                   {"fat_root_links", report.fat_root->links},
                   {"fat_root_hinted", report.fat_root->hinted},
                   {"fat_root_stale", report.fat_root->stale}});
  }
  if (report.one_sided) {
    object.update({{"one_sided_answered", report.one_sided->answered},
                   {"one_sided_asked", report.one_sided->asked},
                   {"one_sided_round_trips", report.one_sided->round_trips},
                   {"one_sided_bytes", report.one_sided->bytes}});
  }
  object.update(FiguresOf(report.run));
  if (!report.curve.empty()) {
    Json rows = Json::array();
    for (const NetRun& run : report.curve) {
      rows.push_back({{"percent", run.percent}, {"rate", run.rate}});
      rows.back().update(FiguresOf(run));
    }
    object["rows"] = std::move(rows);
  }
  return Line(std::move(object));
}

}  // namespace skep::bench
