#include "bench/ordered.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/absl_target.h"
#include "bench/ordered_subject.h"
#include "bench/repeat.h"
#include "bench/resident_memory.h"
#include "engine/factory.h"

namespace skep::bench {
namespace {

using Problem = std::unexpected<std::string>;

// Of each row of a load, in the order of the subjects.
using RowsOfLoad = std::vector<OrderedRow>;

bool IsKnownEngine(const std::string& name) {
  return name == kAbslName || FindEngine(name) != nullptr;
}

std::vector<std::string> KnownEngines() {
  std::vector<std::string> names = {kAbslName};
  for (const EngineInfo& info : AllEngines()) names.emplace_back(info.name);
  return names;
}

// Empty, or what is wrong with the options.
std::string Complaint(const OrderedOptions& options) {
  if (options.engines.empty()) return "--engine must name at least one";
  for (const std::string& engine : options.engines) {
    if (IsKnownEngine(engine)) continue;
    return fmt::format("no engine {}; this build has {}", engine, fmt::join(KnownEngines(), ", "));
  }
  if (options.loads.empty()) return "--loads must name at least one";
  for (const std::string& load : options.loads) {
    if (!FindOrderedLoad(load)) return fmt::format("--loads: no load {}", load);
  }
  if (options.items == 0) return "--items must be at least 1";
  if (options.items < options.threads) return "--items must be at least --threads";
  if (options.ops == 0) return "--ops must be at least 1";
  if (options.threads == 0) return "--threads must be at least 1";
  if (options.batch == 0) return "--batch must be at least 1";
  if (options.repeats <= 0) return "--repeats must be at least 1";
  if (options.key_bytes < KeyFormat::kBytesMin) return "--key-size must be at least 8";
  if (options.threads > 1 && std::ranges::count(options.engines, kAbslName) != 0) {
    return "absl has no threads: --threads 1";
  }
  return {};
}

class OrderedRun {
 public:
  explicit OrderedRun(const OrderedOptions& options)
      : values_(options.value_bytes, options.seed), report_{.options = options} {
    for (const std::string& engine : options.engines) {
      subjects_.push_back(std::make_unique<OrderedSubject>(engine, report_.options, values_));
    }
  }

  std::expected<OrderedReport, std::string> Run() {
    if (report_.options.limits_bytes != 0) {
      auto limits = MeasureLimits({.bytes = report_.options.limits_bytes});
      if (!limits) return Problem(limits.error().ToString());
      report_.limits = std::move(*limits);
    }
    for (const std::string& name : report_.options.loads) {
      auto rows = RunLoad(*FindOrderedLoad(name));
      if (!rows) return Problem(std::move(rows.error()));
      std::ranges::move(*rows, std::back_inserter(report_.rows));
    }
    for (const auto& subject : subjects_) AddFootprint(*subject);
    return std::move(report_);
  }

 private:
  std::expected<RowsOfLoad, std::string> RunLoad(const OrderedLoad& load) {
    RowsOfLoad rows;
    for (const auto& subject : subjects_)
      rows.push_back({.engine = subject->engine(), .load = load});
    for (int repeat = 0; repeat < report_.options.repeats; ++repeat) {
      if (auto done = RunRepeat(load, repeat, rows); !done) return Problem(std::move(done.error()));
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].ratio = RatioOf(rows[i], rows[0]);
      rows[i].bytes_per_item = subjects_[i]->Measure().bytes_per_item;
    }
    return rows;
  }

  std::expected<void, std::string> RunRepeat(const OrderedLoad& load, int repeat,
                                             RowsOfLoad& rows) {
    const uint64_t seed = report_.options.seed + static_cast<uint64_t>(repeat);
    uint64_t first_checksum = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto turn = subjects_[i]->Turn(load, seed);
      const Status status = turn ? turn->status : turn.error();
      if (!status.ok()) return Problem(rows[i].engine + ": " + status.ToString());
      if (i == 0) first_checksum = turn->tally.checksum;
      AddTurn(*turn, first_checksum, rows[i]);
    }
    return {};
  }

  void AddTurn(const PhaseReport& turn, uint64_t first_checksum, OrderedRow& row) {
    row.mops.push_back(turn.mops());
    row.latency_ns.Merge(turn.latency_ns);
    row.checksum += turn.tally.checksum;
    if (row.errors == 0) row.first_error = turn.tally.first_error;
    row.errors += turn.tally.errors;
    row.agrees &= turn.tally.checksum == first_checksum;
    report_.errors += turn.tally.errors;
    report_.agrees &= row.agrees;
    report_.pinned &= turn.pinned;
  }

  static double RatioOf(const OrderedRow& row, const OrderedRow& first) {
    std::vector<double> ratios;
    for (size_t i = 0; i < row.mops.size(); ++i) ratios.push_back(row.mops[i] / first.mops[i]);
    return Median(std::move(ratios));
  }

  void AddFootprint(OrderedSubject& subject) {
    OrderedFootprint footprint = {.engine = subject.engine(),
                                  .bytes_per_item = subject.Measure().bytes_per_item,
                                  .huge_fraction = subject.growth().huge_fraction()};
    if (const auto bytes = subject.growth().bytes()) {
      footprint.resident_bytes_per_item =
          static_cast<double>(*bytes) / static_cast<double>(report_.options.items);
    }
    const Tally tally = subject.ReadBack().tally;
    footprint.contents_checksum = tally.checksum;
    report_.footprints.push_back(std::move(footprint));
    OrderedFootprint& added = report_.footprints.back();
    added.agrees = added.contents_checksum == report_.footprints[0].contents_checksum;
    report_.errors += tally.errors;
    report_.agrees &= added.agrees;
  }

  const ValuePool values_;
  OrderedReport report_;
  std::vector<std::unique_ptr<OrderedSubject>> subjects_;  // they use what is above
};

}  // namespace

double OrderedRow::median_mops() const { return Median(mops); }

std::expected<OrderedReport, std::string> RunOrdered(const OrderedOptions& options) {
  if (std::string complaint = Complaint(options); !complaint.empty()) {
    return Problem(std::move(complaint));
  }
  MapLargeBlocks();
  return OrderedRun(options).Run();
}

}  // namespace skep::bench
