#include "bench/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "bench/report_parts.h"

namespace skep::bench {
namespace {

std::string OrDash(const std::optional<double>& figure) {
  return figure ? fmt::format("{:.1f}", *figure) : "-";
}

Json FieldsOf(const LimitsReport& report) {
  return {{"bytes", report.options.bytes},
          {"repetitions", report.options.repetitions},
          {"core", report.core},
          {"pinned", report.pinned},
          {"huge_fraction", report.huge_fraction},
          {"huge_fraction_4k", report.huge_fraction_4k},
          {"address_mops", report.address_mops},
          {"random_read_mops", report.random_read_mops},
          {"random_read_4k_mops", report.random_read_4k_mops},
          {"random_rmw_mops", report.random_rmw_mops},
          {"random_start_3200b_mops", report.random_start_3200b_mops},
          {"chase_ns", report.chase_ns},
          {"seq_read_gbs", report.seq_read_gbs},
          {"loopback_rtt_us", report.loopback_rtt_us},
          {"loopback_64_mops", report.loopback_64_mops}};
}

std::string OrDash(const CompareRow& row, double quantile) {
  if (row.mops.empty()) return "-";
  return fmt::format("{:.1f}", Microseconds(row.latency_ns.Quantile(quantile)));
}

std::string NameAndDistribution(const CompareWorkload& what) {
  if (what.workload.sweep) return what.workload.name;
  return fmt::format("{} {}", what.workload.name, NameOf(what.distribution));
}

std::string_view NameOfKeys(const CompareOptions& options) {
  return options.key_file != nullptr ? "file" : NameOf(options.keys);
}
// The bytes of the longest key.
size_t KeyBytes(const CompareOptions& options) {
  if (options.key_file != nullptr) return options.key_file->bytes_max();
  return KeyFormat::Of(options.keys, options.key_bytes).bytes();
}
Json SizeOf(const CompareOptions& options, size_t bytes) {
  return options.mixed_sizes ? Json("mixed") : Json(bytes);
}
std::string SizeName(const CompareOptions& options, size_t bytes) {
  return options.mixed_sizes ? "mixed" : std::to_string(bytes);
}

// Returns what a reader must know of a row beside its figures.
std::string RemarkOn(const CompareRow& row) {
  if (row.lacks != nullptr) return fmt::format("  has no {}", row.lacks);
  if (!row.agrees) return "  answers differ from the first one's";
  return row.one_placement() ? "" : "  cores moved meanwhile";
}

// Returns what distinguishes the rows of one workload and subject, or nothing.
std::string SettingOf(const CompareRow& row, const CompareOptions& options) {
  std::string name;
  const auto add = [&](std::string_view what, size_t choices, uint64_t number) {
    if (choices > 1) name += fmt::format(", {} {}", what, number);
  };
  add("items", options.items.size(), row.setting.items);
  add("batch", options.batches.size(), row.setting.batch);
  add("threads", options.threads.size(), row.setting.threads);
  add("snapshots", options.snapshots.size(), row.setting.snapshots);
  if (!name.empty() && row.setting_ratio) {
    name += fmt::format(": {:.2f} times the first", *row.setting_ratio);
  }
  if (row.pinned_bytes_per_item) {
    name += fmt::format(", {:.1f} B/item pinned", *row.pinned_bytes_per_item);
  }
  return name;
}

std::string TableRow(const CompareRow& row, const CompareOptions& options) {
  const auto mops = row.median_mops();
  return fmt::format("  {:<16} {:>9} {:>7} {:>10} {:>10} {:>10} {:>8}  {}{}\n",
                     NameAndDistribution(row.what), mops ? fmt::format("{:.3f}", *mops) : "-",
                     row.ratio ? fmt::format("{:.2f}", *row.ratio) : "-", OrDash(row, 0.5),
                     OrDash(row, 0.99), OrDash(row, 0.999), OrDash(row.bytes_per_item), row.engine,
                     SettingOf(row, options) + RemarkOn(row));
}

Json JsonOf(const CompareRow& row) {
  const bool ran = !row.mops.empty();
  const auto quantile = [&](double q) { return ran ? Json(row.latency_ns.Quantile(q)) : Json(); };
  const bool once = row.what.workload.sweep.has_value();
  return {{"engine", row.engine},
          {"workload", row.what.workload.name},
          {"dist", once ? Json(nullptr) : Json(NameOf(row.what.distribution))},
          {"items", row.setting.items},
          {"batch", row.setting.batch},
          {"threads", row.setting.threads},
          {"snapshots", row.setting.snapshots},
          {"mops", OrNull(row.median_mops())},
          {"mops_of_repeats", row.mops},
          {"ratio", OrNull(row.ratio)},
          {"setting_ratio", OrNull(row.setting_ratio)},
          {"p50_ns", quantile(0.5)},
          {"p99_ns", quantile(0.99)},
          {"p999_ns", quantile(0.999)},
          {"max_ns", ran ? Json(row.latency_ns.max()) : Json(nullptr)},
          {"bytes_per_item", OrNull(row.bytes_per_item)},
          {"pinned_bytes_per_item", OrNull(row.pinned_bytes_per_item)},
          {"core_round_trip_ns", row.core_round_trip_ns},
          {"one_placement", row.one_placement()},
          {"checksum", row.checksum},
          {"agrees", row.agrees},
          {"errors", row.errors},
          {"first_error", row.first_error}};
}

Json JsonOf(const CompareFootprint& footprint) {
  return {{"engine", footprint.engine},
          {"items", footprint.items},
          {"bytes_per_item", OrNull(footprint.bytes_per_item)},
          {"resident_bytes_per_item", OrNull(footprint.resident_bytes_per_item)},
          {"huge_fraction", OrNull(footprint.huge_fraction)},
          {"contents_checksum", footprint.contents_checksum},
          {"agrees", footprint.agrees}};
}

constexpr const char* kPartNames[kExpiryParts] = {"before", "during", "after"};

std::string TableRow(std::string_view name, const ExpiryPartReport& part) {
  const Histogram& latency = part.latency_ns;
  return fmt::format("  {:<10} {:>8.2f} {:>10} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>10.1f}\n",
                     name, part.seconds, latency.count(), part.kops(),
                     Microseconds(latency.Quantile(0.5)), Microseconds(latency.Quantile(0.99)),
                     Microseconds(latency.Quantile(0.999)), Microseconds(latency.max()));
}

std::string Mebibytes(const std::optional<uint64_t>& bytes) {
  return bytes ? std::to_string(*bytes >> 20) : "-";
}

std::string TableOf(const ExpiryTurn& turn) {
  std::string rows;
  for (size_t i = 0; i < kExpiryParts; ++i) rows += TableRow(kPartNames[i], turn.parts[i]);
  rows += fmt::format(
      "  p99 during / before {:.2f}; reclaimed {:.2f} s after the last deadline; resident MiB: "
      "without {}, loaded {}, after {}\n",
      turn.p99_ratio(), turn.reclaim_seconds, Mebibytes(turn.memory_before.rss_bytes),
      Mebibytes(turn.memory_loaded.rss_bytes), Mebibytes(turn.memory_after.rss_bytes));
  if (turn.late_ns.count() > 0) {
    rows +=
        fmt::format("  sent late by the client itself: p99 {:.1f} us, max {:.1f} us\n",
                    Microseconds(turn.late_ns.Quantile(0.99)), Microseconds(turn.late_ns.max()));
  }
  return rows;
}

Json JsonOf(const ExpiryPartReport& part) {
  return {{"seconds", part.seconds},
          {"ops", part.latency_ns.count()},
          {"kops", part.kops()},
          {"p50_ns", part.latency_ns.Quantile(0.5)},
          {"p99_ns", part.latency_ns.Quantile(0.99)},
          {"p999_ns", part.latency_ns.Quantile(0.999)},
          {"max_ns", part.latency_ns.max()}};
}

Json JsonOf(const ExpiryServer::Memory& memory) {
  return {{"used_bytes", OrNull(memory.used_bytes)}, {"rss_bytes", OrNull(memory.rss_bytes)}};
}

Json JsonOf(const ExpiryTurn& turn) {
  const bool open = turn.late_ns.count() > 0;
  Json object;
  for (size_t i = 0; i < kExpiryParts; ++i) object[kPartNames[i]] = JsonOf(turn.parts[i]);
  object.update({{"p99_ratio", turn.p99_ratio()},
                 {"reclaim_seconds", turn.reclaim_seconds},
                 {"late_p99_ns", open ? Json(turn.late_ns.Quantile(0.99)) : Json(nullptr)},
                 {"late_max_ns", open ? Json(turn.late_ns.max()) : Json(nullptr)},
                 {"memory_before", JsonOf(turn.memory_before)},
                 {"memory_loaded", JsonOf(turn.memory_loaded)},
                 {"memory_after", JsonOf(turn.memory_after)},
                 {"errors", turn.tally.errors}});
  return object;
}

size_t WidthOf(const FigureColumn& column) { return std::max<size_t>(column.name.size(), 8); }

Json RowsOf(const FigureTable& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    if (!table.labels.empty()) object[table.label_name] = table.labels[rows.size()];
    for (size_t i = 0; i < row.size(); ++i) object[table.columns[i].name] = OrNull(row[i]);
    rows.push_back(std::move(object));
  }
  return rows;
}

bool InProcess(const YcsbOptions& options) { return options.host.empty(); }

}  // namespace

std::string TableOf(const LimitsReport& report) {
  std::string table = fmt::format("limits of {}\n  {} MiB, core {}{}, median of {}\n", Machine(),
                                  report.options.bytes >> 20, report.core,
                                  report.pinned ? "" : " (not pinned)", report.options.repetitions);
  table += Row("random read", report.random_read_mops, "M lines/s");
  table += Row("random read, 4 KiB pages", report.random_read_4k_mops, "M lines/s");
  table += Row("random read-modify-write", report.random_rmw_mops, "M lines/s");
  table += Row("random-start read, 3200 B", report.random_start_3200b_mops, "M reads/s");
  table += Row("sequential read", report.seq_read_gbs, "GB/s");
  table += Row("dependent chase", report.chase_ns, "ns/line");
  table += Row("loopback, 1 in flight", report.loopback_rtt_us, "us/round trip");
  table += Row("loopback, 64 in flight", report.loopback_64_mops, "M round trips/s");
  table += Row("addresses alone", report.address_mops, "M/s");
  table += Row("really on huge pages", report.huge_fraction * 100, "% of the region");
  table += Row("same, of the 4 KiB region", report.huge_fraction_4k * 100, "%");
  return table;
}

std::string JsonOf(const LimitsReport& report) {
  Json object = {{"benchmark", "limits"}};
  object.update(FieldsOf(report));
  return Line(std::move(object));
}

std::string TableOf(const YcsbReport& report) {
  const YcsbOptions& options = report.options;
  const Histogram& latency = report.run.latency_ns;
  std::string table = fmt::format(
      "ycsb {} {} on {}\n  {} records of {} + {} bytes, {} operations, {} threads, batches of {}\n",
      options.workload, NameOf(options.distribution.value()),
      InProcess(options) ? options.engine : fmt::format("{}:{}", options.host, options.port),
      options.records, options.key_bytes, options.value_bytes, options.ops, options.threads,
      options.batch);
  table += Row("throughput", report.run.mops(), "M operations/s");
  table += Row("a thread in the engine", OrDash(report.run.target_mops()), "M operations/s");
  table += MicrosecondsRow("latency, p50", latency.Quantile(0.5));
  table += MicrosecondsRow("latency, p99", latency.Quantile(0.99));
  table += MicrosecondsRow("latency, p99.9", latency.Quantile(0.999));
  table += MicrosecondsRow("latency, max", latency.max());
  table += Row("errors", std::to_string(report.run.tally.errors), report.run.tally.first_error);
  table += Row("items scanned", std::to_string(report.run.tally.items_scanned), "");
  table += Row("loading", report.load.mops(), "M records/s");
  table += Row("memory", OrDash(report.footprint.bytes_per_item), "bytes/item");
  std::optional<double> rss_mib;
  if (report.footprint.rss_bytes) {
    rss_mib = static_cast<double>(*report.footprint.rss_bytes) / (1 << 20);
  }
  table += Row("resident", OrDash(rss_mib), "MiB");
  return table;
}

std::string JsonOf(const YcsbReport& report) {
  const YcsbOptions& options = report.options;
  const Histogram& latency = report.run.latency_ns;
  const bool in_process = InProcess(options);
  return Line({{"benchmark", "ycsb"},
               {"engine", in_process ? Json(options.engine) : Json(nullptr)},
               {"host", in_process ? Json(nullptr) : Json(options.host)},
               {"port", in_process ? Json(nullptr) : Json(options.port)},
               {"workload", options.workload},
               {"scan-length", options.scan_length},
               {"read-percent", options.read_percent},
               {"dist", NameOf(options.distribution.value())},
               {"records", options.records},
               {"ops", options.ops},
               {"threads", options.threads},
               {"batch", options.batch},
               {"key-size", options.key_bytes},
               {"value-size", options.value_bytes},
               {"loaded", options.is_loaded},
               {"rate", options.rate},
               {"seed", options.seed},
               {"mops", report.run.mops()},
               {"target_mops", OrNull(report.run.target_mops())},
               {"p50_ns", latency.Quantile(0.5)},
               {"p99_ns", latency.Quantile(0.99)},
               {"p999_ns", latency.Quantile(0.999)},
               {"max_ns", latency.max()},
               {"bytes_per_item", OrNull(report.footprint.bytes_per_item)},
               {"rss_bytes", OrNull(report.footprint.rss_bytes)},
               {"errors", report.run.tally.errors},
               {"first_error", report.run.tally.first_error},
               {"items_scanned", report.run.tally.items_scanned},
               {"seconds", report.run.seconds},
               {"load_mops", report.load.mops()}});
}

std::string TableOf(const CompareReport& report) {
  const CompareOptions& options = report.options;
  std::string table = fmt::format(
      "indexes side by side on {}\n  {} items of {} + {} bytes, {} keys, batches of {}, "
      "{} threads{}, {} operations, medians of {}{}\n",
      Machine(), fmt::join(options.items, ", "), SizeName(options, KeyBytes(options)),
      SizeName(options, options.value_bytes), NameOfKeys(options), fmt::join(options.batches, ", "),
      fmt::join(options.threads, ", "), report.pinned ? "" : " (not pinned)", options.ops,
      options.repeats, options.apart ? ", one subject at a time in memory" : "");
  if (report.limits) {
    table += Row("random read", report.limits->random_read_mops, "M lines/s");
    table += Row("random-start read, 3200 B", report.limits->random_start_3200b_mops, "M reads/s");
  }
  table += fmt::format("\n  {:<16} {:>9} {:>7} {:>10} {:>10} {:>10} {:>8}  {}\n", "workload",
                       "M ops/s", "ratio", "p50 us", "p99 us", "p99.9 us", "B/item", "subject");
  for (const CompareRow& row : report.rows) table += TableRow(row, options);
  table += fmt::format("\n  {:>8} {:>15} {:>6} {:<16}  {}\n", "B/item", "resident B/item", "huge",
                       "contents", "subject");
  for (const CompareFootprint& footprint : report.footprints) {
    table +=
        fmt::format("  {:>8} {:>15} {:>6} {:016x}  {}{}{}\n", OrDash(footprint.bytes_per_item),
                    OrDash(footprint.resident_bytes_per_item),
                    footprint.huge_fraction ? fmt::format("{:.2f}", *footprint.huge_fraction) : "-",
                    footprint.contents_checksum, footprint.engine,
                    options.items.size() > 1 ? fmt::format(", items {}", footprint.items) : "",
                    footprint.agrees ? "" : "  differ from the first one's");
  }
  return table;
}

std::string JsonOf(const CompareReport& report) {
  const CompareOptions& options = report.options;
  Json rows = Json::array();
  for (const CompareRow& row : report.rows) rows.push_back(JsonOf(row));
  Json footprints = Json::array();
  for (const CompareFootprint& footprint : report.footprints) {
    footprints.push_back(JsonOf(footprint));
  }
  return Line({{"benchmark", "compare"},
               {"engines", options.engines},
               {"peers", options.peers},
               {"workloads", options.workloads},
               {"dist", options.distribution ? Json(NameOf(*options.distribution)) : Json(nullptr)},
               {"items", options.items},
               {"ops", options.ops},
               {"repeats", options.repeats},
               {"batch", options.batches},
               {"threads", options.threads},
               {"snapshots", options.snapshots},
               {"keys", NameOfKeys(options)},
               {"key-size", SizeOf(options, KeyBytes(options))},
               {"value-size", SizeOf(options, options.value_bytes)},
               {"seed", options.seed},
               {"apart", options.apart},
               {"pinned", report.pinned},
               {"limits", report.limits ? FieldsOf(*report.limits) : Json(nullptr)},
               {"rows", std::move(rows)},
               {"footprints", std::move(footprints)},
               {"errors", report.errors},
               {"agrees", report.agrees}});
}

std::string TableOf(const ExpiryReport& report) {
  const ExpiryOptions& options = report.options;
  const std::string pace = options.rate != 0 ? fmt::format("open loop, {} commands/s", options.rate)
                                             : fmt::format("closed loop, depth {}", options.depth);
  std::string table = fmt::format(
      "expiry on {} at {}:{}\n  {} keys expire within one second, {} stay, {} + {} bytes; GET and "
      "SET, {}, {} connections\n\n",
      report.server, options.host, options.port, options.items, options.stay, options.key_bytes,
      options.value_bytes, pace, options.connections);
  table += fmt::format("  {:<10} {:>8} {:>10} {:>9} {:>9} {:>9} {:>9} {:>10}\n", "part", "seconds",
                       "commands", "K/s", "p50 us", "p99 us", "p99.9 us", "max us");
  for (const ExpiryTurn& turn : report.turns) table += TableOf(turn) + "\n";
  table += Row("p99 during / before", report.median_p99_ratio(), "median of the repeats");
  table += Row("reclaimed after", report.median_reclaim_seconds(), "s, median of the repeats");
  table += Row("errors", std::to_string(report.errors), report.first_error);
  return table;
}

std::string JsonOf(const ExpiryReport& report) {
  const ExpiryOptions& options = report.options;
  Json turns = Json::array();
  for (const ExpiryTurn& turn : report.turns) turns.push_back(JsonOf(turn));
  return Line({{"benchmark", "expiry"},
               {"server", report.server},
               {"host", options.host},
               {"port", options.port},
               {"items", options.items},
               {"stay", options.stay},
               {"connections", options.connections},
               {"depth", options.rate == 0 ? Json(options.depth) : Json(nullptr)},
               {"rate", options.rate},
               {"seconds", options.seconds},
               {"lead", options.lead_seconds},
               {"repeats", options.repeats},
               {"key-size", options.key_bytes},
               {"value-size", options.value_bytes},
               {"seed", options.seed},
               {"p99_ratio", report.median_p99_ratio()},
               {"reclaim_seconds", report.median_reclaim_seconds()},
               {"turns", std::move(turns)},
               {"errors", report.errors},
               {"first_error", report.first_error}});
}

std::string TableOf(const FigureTable& report) {
  std::string table = report.title + "\n";
  for (const std::string& note : report.notes) table += "  " + note + "\n";
  const auto label = [&](const std::string& text) {
    if (!report.labels.empty()) table += fmt::format("  {:<{}}", text, report.label_name.size());
  };
  label(report.label_name);
  for (const FigureColumn& column : report.columns) {
    table += fmt::format("  {:>{}}", column.name, WidthOf(column));
  }
  table += "\n";
  for (size_t at = 0; at < report.rows.size(); ++at) {
    label(report.labels.empty() ? std::string() : report.labels[at]);
    const auto& row = report.rows[at];
    for (size_t i = 0; i < row.size(); ++i) {
      const FigureColumn& column = report.columns[i];
      const std::string figure = row[i] ? fmt::format("{:.{}f}", *row[i], column.digits) : "-";
      table += fmt::format("  {:>{}}", figure, WidthOf(column));
    }
    table += "\n";
  }
  return table;
}

std::string JsonOf(const KvDirectReport& report) {
  const KvDirectOptions& options = report.options;
  const bool is_table = options.table != 0;
  return Line({{"benchmark", "kv-direct"},
               {"table", is_table ? Json(options.table) : Json(nullptr)},
               {"figure", is_table ? Json(nullptr) : Json(options.figure)},
               {"mode", options.mode == DispatchMode::kPaper ? "paper" : "exact"},
               {"bytes", options.bytes},
               {"slots", options.slots},
               {"seed", options.seed},
               {"title", report.title},
               {"rows", RowsOf(report)}});
}

std::string JsonOf(const HeteroKvReport& report) {
  const HeteroKvOptions& options = report.options;
  return Line({{"benchmark", "hetero-kv"},
               {"figure", options.figure},
               {"records", options.records},
               {"key-size", options.key_bytes},
               {"value-size", options.value_bytes},
               {"repeats", options.repeats},
               {"seconds", options.seconds},
               {"wanted", options.wanted},
               {"wait-us", options.wait_us},
               {"seed", options.seed},
               {"title", report.title},
               {"rows", RowsOf(report)}});
}

std::string JsonOf(const HStoreReport& report) {
  const HStoreOptions& options = report.options;
  return Line({{"benchmark", "hstore"},
               {"figure", options.figure},
               {"fabric", options.fabric},
               {"items", options.items},
               {"ops", options.ops},
               {"clients", options.clients},
               {"depth", options.depth},
               {"cache", options.cache},
               {"seconds", options.seconds},
               {"key-size", options.key_bytes},
               {"value-size", options.value_bytes},
               {"seed", options.seed},
               {"round-trip-ns", options.costs.round_trip_ns},
               {"bytes-per-us", options.costs.bytes_per_us},
               {"message-ns", options.costs.message_ns},
               {"apply-ns", options.costs.apply_ns},
               {"title", report.title},
               {"notes", report.notes},
               {"rows", RowsOf(report)}});
}

std::string JsonOf(const FatBTreeReport& report) {
  const FatBTreeOptions& options = report.options;
  const FatBTreeCosts& costs = options.costs;
  return Line({{"benchmark", "fat-btree"},
               {"figure", options.figure},
               {"points", options.points},
               {"records", options.records},
               {"training", options.training},
               {"accesses", options.accesses},
               {"alpha", options.alpha},
               {"ranges", options.ranges},
               {"layers", *options.layers},
               {"nodes", options.nodes},
               {"leaf-trips", options.leaf_trips},
               {"clients", options.clients},
               {"servers", options.servers},
               {"read-share", options.read_share},
               {"seed", options.seed},
               {"interrupt-ns", costs.interrupt_ns},
               {"round-trip-ns", *costs.round_trip_ns},
               {"hop-ns", costs.hop_ns},
               {"hops", costs.hops},
               {"message-ns", *costs.message_ns},
               {"level-ns", *costs.level_ns},
               {"title", report.title},
               {"notes", report.notes},
               {"rows", RowsOf(report)}});
}

}  // namespace skep::bench
