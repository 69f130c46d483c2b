#include "bench/compare.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "bench/compare_subject.h"
#include "bench/repeat.h"
#include "bench/resident_memory.h"

namespace skep::bench {
namespace {

using Problem = std::unexpected<std::string>;

std::expected<CompareWorkload, std::string> ParseWorkload(const std::string& text,
                                                          const CompareOptions& options) {
  const size_t colon = text.find(':');
  const auto workload = FindWorkload(text.substr(0, colon));
  if (!workload) return Problem(fmt::format("--workloads: no workload {}", text));
  CompareWorkload what = {.workload = *workload,
                          .distribution = options.distribution.value_or(workload->distribution)};
  if (colon == std::string::npos) return what;
  const auto distribution = FindDistribution(text.substr(colon + 1));
  if (!distribution || workload->sweep) {
    return Problem(fmt::format("--workloads: no distribution as in {}", text));
  }
  what.distribution = *distribution;
  return what;
}

// Null, or what is wrong with the options.
const char* Complaint(const CompareOptions& options) {
  if (options.workloads.empty()) return "--workloads must name at least one";
  if (options.items == 0) return "--items must be at least 1";
  if (options.items < options.threads) return "--items must be at least --threads";
  if (options.ops == 0) return "--ops must be at least 1";
  if (options.threads == 0) return "--threads must be at least 1";
  if (options.batch == 0) return "--batch must be at least 1";
  if (options.repeats <= 0) return "--repeats must be at least 1";
  if (options.key_bytes < KeyFormat::kBytesMin) return "--key-size must be at least 8";
  if (options.ops / 100 > options.items) return "--items are too few for so many --ops";
  return nullptr;
}

std::expected<std::vector<SubjectKind>, std::string> FindSubjects(const CompareOptions& options) {
  std::vector<SubjectKind> kinds;
  for (const std::string& name : options.peers) {
    auto kind = SubjectKind::OfPeer(name);
    if (!kind) return Problem("--peers: " + kind.error());
    kinds.push_back(std::move(*kind));
  }
  for (const std::string& spec : options.engines) {
    auto kind = SubjectKind::OfEngine(spec);
    if (!kind) return Problem("--engines: " + kind.error());
    kinds.push_back(std::move(*kind));
  }
  if (kinds.empty()) return Problem("--engines or --peers must name at least one");
  for (const SubjectKind& kind : kinds) {
    if (options.threads > 1 && !kind.threads) {
      return Problem(fmt::format("{} has no threads: --threads 1", kind.name));
    }
  }
  return kinds;
}

// Whether the answers do not depend on which of several operations came first.
bool HasOneAnswer(const Workload& workload, uint32_t threads) {
  if (workload.scan > 0) return !workload.writes();
  const bool reads = workload.read + workload.read_modify_write > 0;
  const bool updates = workload.update + workload.read_modify_write > 0;
  return threads == 1 || !reads || !updates;
}

class Comparison {
 public:
  Comparison(const CompareOptions& options, std::vector<SubjectKind> kinds,
             std::vector<CompareWorkload> workloads)
      : kinds_(std::move(kinds)),
        workloads_(std::move(workloads)),
        values_(options.value_bytes, options.seed),
        report_{.options = options} {
    for (const SubjectKind& kind : kinds_) {
      subjects_.push_back(std::make_unique<CompareSubject>(kind, report_.options, values_));
      report_.footprints.push_back({.engine = kind.name});
    }
    for (const CompareWorkload& what : workloads_) {
      for (const SubjectKind& kind : kinds_) {
        report_.rows.push_back({.engine = kind.name, .what = what});
      }
    }
    first_checksums_.resize(workloads_.size() * static_cast<size_t>(options.repeats));
  }

  std::expected<CompareReport, std::string> Run() {
    if (report_.options.limits_bytes != 0) {
      auto limits = MeasureLimits({.bytes = report_.options.limits_bytes});
      if (!limits) return Problem(limits.error().ToString());
      report_.limits = std::move(*limits);
    }
    auto done = report_.options.apart ? RunApart() : RunTogether();
    if (!done) return Problem(std::move(done.error()));
    for (size_t i = 0; i < report_.rows.size(); ++i) {
      report_.rows[i].ratio = RatioOf(report_.rows[i], report_.rows[i - i % kinds_.size()]);
    }
    return std::move(report_);
  }

 private:
  using Done = std::expected<void, std::string>;

  Done RunTogether() {
    for (size_t workload = 0; workload < workloads_.size(); ++workload) {
      for (int repeat = 0; repeat < report_.options.repeats; ++repeat) {
        for (size_t subject = 0; subject < subjects_.size(); ++subject) {
          if (Done done = Turn(workload, repeat, subject); !done) return done;
        }
      }
    }
    for (size_t subject = 0; subject < subjects_.size(); ++subject) AddFootprint(subject);
    return {};
  }

  Done RunApart() {
    for (int repeat = 0; repeat < report_.options.repeats; ++repeat) {
      for (size_t subject = 0; subject < subjects_.size(); ++subject) {
        for (size_t workload = 0; workload < workloads_.size(); ++workload) {
          if (Done done = Turn(workload, repeat, subject); !done) return done;
        }
        AddFootprint(subject);
        subjects_[subject]->Drop();
      }
    }
    return {};
  }

  Done Turn(size_t workload, int repeat, size_t subject) {
    const CompareWorkload& what = workloads_[workload];
    CompareSubject& turner = *subjects_[subject];
    if (!turner.kind().CanRun(what.workload)) return {};
    const auto turn = turner.Turn(what, report_.options.seed + static_cast<uint64_t>(repeat));
    const Status status = turn ? turn->status : turn.error();
    if (!status.ok()) return Problem(turner.kind().name + ": " + status.ToString());

    CompareRow& row = report_.rows[workload * subjects_.size() + subject];
    AddTurn(*turn, row);
    row.bytes_per_item = turner.Measure().bytes_per_item;
    if (!row.bytes_per_item) row.bytes_per_item = ResidentOf(turner);
    if (HasOneAnswer(what.workload, report_.options.threads)) {
      auto& first = first_checksums_[workload * static_cast<size_t>(report_.options.repeats) +
                                     static_cast<size_t>(repeat)];
      row.agrees &= turn->tally.checksum == first.value_or(turn->tally.checksum);
      first = first.value_or(turn->tally.checksum);
      report_.agrees &= row.agrees;
    }
    return {};
  }

  void AddTurn(const PhaseReport& turn, CompareRow& row) {
    row.mops.push_back(turn.mops());
    row.latency_ns.Merge(turn.latency_ns);
    row.checksum += turn.tally.checksum;
    if (row.errors == 0) row.first_error = turn.tally.first_error;
    row.errors += turn.tally.errors;
    report_.errors += turn.tally.errors;
    report_.pinned &= turn.pinned;
  }

  static std::optional<double> RatioOf(const CompareRow& row, const CompareRow& first) {
    if (row.mops.empty() || first.mops.empty()) return std::nullopt;
    std::vector<double> ratios;
    for (size_t i = 0; i < row.mops.size(); ++i) ratios.push_back(row.mops[i] / first.mops[i]);
    return Median(std::move(ratios));
  }

  std::optional<double> ResidentOf(const CompareSubject& subject) const {
    const auto bytes = subject.growth().bytes();
    if (!bytes) return std::nullopt;
    return static_cast<double>(*bytes) / static_cast<double>(report_.options.items);
  }

  // While the subject still holds its items; of one that could run no workload nothing is known.
  // Apart, the contents of all repeats add up, and the rest is of the last one.
  void AddFootprint(size_t index) {
    CompareSubject& subject = *subjects_[index];
    if (!subject.loaded()) return;
    CompareFootprint& footprint = report_.footprints[index];
    footprint.bytes_per_item = subject.Measure().bytes_per_item;
    footprint.resident_bytes_per_item = ResidentOf(subject);
    footprint.huge_fraction = subject.growth().huge_fraction();
    const Tally tally = subject.ReadBack().tally;
    footprint.contents_checksum += tally.checksum;
    footprint.agrees = footprint.contents_checksum == report_.footprints[0].contents_checksum;
    report_.errors += tally.errors;
    report_.agrees &= footprint.agrees;
  }

  const std::vector<SubjectKind> kinds_;
  const std::vector<CompareWorkload> workloads_;
  const ValuePool values_;
  CompareReport report_;
  std::vector<std::unique_ptr<CompareSubject>> subjects_;  // they use what is above
  std::vector<std::optional<uint64_t>> first_checksums_;   // by workload and repeat
};

}  // namespace

std::optional<double> CompareRow::median_mops() const {
  if (mops.empty()) return std::nullopt;
  return Median(mops);
}

std::expected<CompareReport, std::string> RunCompare(const CompareOptions& options) {
  if (const char* complaint = Complaint(options)) return Problem(complaint);
  auto kinds = FindSubjects(options);
  if (!kinds) return Problem(std::move(kinds.error()));
  std::vector<CompareWorkload> workloads;
  for (const std::string& text : options.workloads) {
    auto what = ParseWorkload(text, options);
    if (!what) return Problem(std::move(what.error()));
    workloads.push_back(std::move(*what));
  }
  MapLargeBlocks();
  return Comparison(options, std::move(*kinds), std::move(workloads)).Run();
}

}  // namespace skep::bench
