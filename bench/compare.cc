#include "bench/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/cpu.h"
#include "bench/compare_subject.h"
#include "bench/core_round_trip.h"
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

template <typename Number>
bool AreAtLeast(const std::vector<Number>& numbers, Number least) {
  return !numbers.empty() && std::ranges::min(numbers) >= least;
}

// Returns null, or what is wrong with the options.
const char* Complaint(const CompareOptions& options) {
  if (options.workloads.empty()) return "--workloads must name at least one";
  if (!AreAtLeast<uint64_t>(options.items, 1)) return "--items must be at least 1";
  if (!AreAtLeast(options.threads, 1u)) return "--threads must be at least 1";
  if (!AreAtLeast(options.batches, 1u)) return "--batch must be at least 1";
  if (options.snapshots.empty()) return "--snapshots must name at least one number";
  const uint64_t items_min = std::ranges::min(options.items);
  if (items_min < std::ranges::max(options.threads)) return "--items must be at least --threads";
  if (options.ops == 0) return "--ops must be at least 1";
  if (options.repeats <= 0) return "--repeats must be at least 1";
  if (options.key_bytes < KeyFormat::kShortBytesMin) return "--key-size must be at least 4";
  if (options.key_bytes < KeyFormat::kBytesMin &&
      std::ranges::max(options.items) + options.ops > uint64_t{UINT32_MAX}) {
    return "--key-size must be at least 8 for so many items";
  }
  if ((options.keys != KeyKind::kBinary || options.key_file != nullptr) && options.mixed_sizes) {
    return "--mixed-sizes are of binary keys";
  }
  if (options.ops / 100 > items_min) return "--items are too few for so many --ops";
  return nullptr;
}

// Returns whether the file of keys, if there is one, has enough for the workload, or else a line
// for people.
std::expected<void, std::string> FitsKeyFile(const CompareOptions& options,
                                             const Workload& workload) {
  if (options.key_file == nullptr) return {};
  const bool inserts = workload.insert > 0 && !workload.sweep;
  // Each thread takes numbers of its own, and they may end at different ones.
  const uint64_t inserted_max = options.ops + std::ranges::max(options.threads);
  const uint64_t wanted = std::ranges::max(options.items) + (inserts ? inserted_max : 0);
  if (wanted <= options.key_file->count()) return {};
  return Problem(fmt::format("--keys: the file has {} keys, and {} takes {}: --items{}",
                             options.key_file->count(), workload.name, wanted,
                             inserts ? " and --ops" : ""));
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
    kind->engine.hashleaf.key_bytes = static_cast<uint32_t>(options.key_bytes);
    kind->engine.hashleaf.value_bytes = static_cast<uint32_t>(options.value_bytes);
    kinds.push_back(std::move(*kind));
  }
  if (kinds.empty()) return Problem("--engines or --peers must name at least one");
  for (const SubjectKind& kind : kinds) {
    if (std::ranges::min(options.threads) > 1 && !kind.threads) {
      return Problem(fmt::format("{} has no threads: --threads 1", kind.name));
    }
  }
  return kinds;
}

// The answers of subjects in one turn. Subjects whose turns before it were the same must agree; a
// subject that lacked something for a workload that writes has other contents.
class Answers {
 public:
  // Returns whether the answers agree with those of the first subject with this history.
  bool Agree(uint64_t history, uint64_t checksum) {
    return checksum_of_.try_emplace(history, checksum).first->second == checksum;
  }

 private:
  std::map<uint64_t, uint64_t> checksum_of_;  // by history
};

// Returns whether the answers do not depend on which of several operations came first.
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
        settings_(SettingsOf(options)),
        values_(options.mixed_sizes ? ValuePool::Mixed(options.seed)
                                    : ValuePool(options.value_bytes, options.seed)),
        report_{.options = options} {
    for (const uint64_t items : options.items) {
      for (const SubjectKind& kind : kinds_) {
        subjects_.push_back(
            std::make_unique<CompareSubject>(kind, items, report_.options, values_));
        report_.footprints.push_back({.engine = kind.name, .items = items});
      }
    }
    for (const CompareWorkload& what : workloads_) {
      for (const CompareSetting& setting : settings_) {
        for (const SubjectKind& kind : kinds_) {
          report_.rows.push_back({.engine = kind.name,
                                  .what = what,
                                  .setting = setting,
                                  .lacks = kind.Lacks(what.workload, setting)});
        }
      }
    }
    answers_.resize(workloads_.size() * settings_.size() * repeats());
    contents_.resize(options.items.size() * repeats());
  }

  std::expected<CompareReport, std::string> Run() {
    if (report_.options.limits_bytes != 0) {
      auto limits = MeasureLimits({.bytes = report_.options.limits_bytes});
      if (!limits) return Problem(limits.error().ToString());
      report_.limits = std::move(*limits);
    }
    auto done = report_.options.apart ? RunApart() : RunTogether();
    if (!done) return Problem(std::move(done.error()));
    AddRatios();
    return std::move(report_);
  }

 private:
  using Done = std::expected<void, std::string>;

  Done RunTogether() {
    for (size_t workload = 0; workload < workloads_.size(); ++workload) {
      for (int repeat = 0; repeat < report_.options.repeats; ++repeat) {
        for (size_t setting = 0; setting < settings_.size(); ++setting) {
          for (size_t subject = 0; subject < subjects_.size(); ++subject) {
            if (Done done = Turn(workload, setting, repeat, subject); !done) return done;
          }
        }
      }
    }
    for (size_t subject = 0; subject < subjects_.size(); ++subject) AddFootprint(subject, 0);
    return {};
  }

  Done RunApart() {
    for (int repeat = 0; repeat < report_.options.repeats; ++repeat) {
      for (size_t subject = 0; subject < subjects_.size(); ++subject) {
        for (size_t workload = 0; workload < workloads_.size(); ++workload) {
          for (size_t setting = 0; setting < settings_.size(); ++setting) {
            if (Done done = Turn(workload, setting, repeat, subject); !done) return done;
          }
        }
        AddFootprint(subject, repeat);
        subjects_[subject]->Drop();
      }
    }
    return {};
  }

  // Does nothing if the subject is not of the setting's items, or lacks something.
  Done Turn(size_t workload, size_t setting, int repeat, size_t subject) {
    const CompareWorkload& what = workloads_[workload];
    const size_t cell = workload * settings_.size() + setting;
    CompareSubject& turner = *subjects_[subject];
    CompareRow& row = report_.rows[cell * kinds_.size() + subject % kinds_.size()];
    if (subject / kinds_.size() != IndexOfItems(setting) || row.lacks != nullptr) return {};
    AddRoundTrip(row);
    const auto turn =
        turner.Turn(what, row.setting, report_.options.seed + static_cast<uint64_t>(repeat));
    const Status status = turn ? turn->phase.status : turn.error();
    if (!status.ok()) return Problem(turner.kind().name + ": " + status.ToString());
    AddRoundTrip(row);

    AddTurn(turn->phase, row);
    row.bytes_per_item = turn->bytes_per_item;
    if (!row.bytes_per_item) row.bytes_per_item = ResidentOf(turner);
    row.pinned_bytes_per_item = std::max(row.pinned_bytes_per_item, turn->pinned_bytes_per_item);
    if (HasOneAnswer(what.workload, row.setting.threads)) {
      Answers& answers = answers_[cell * repeats() + static_cast<size_t>(repeat)];
      row.agrees &= answers.Agree(turn->history, turn->phase.tally.checksum);
      report_.agrees &= row.agrees;
    }
    return {};
  }

  size_t repeats() const { return static_cast<size_t>(report_.options.repeats); }

  // Returns the index of the setting's items; they change slowest in SettingsOf's order.
  size_t IndexOfItems(size_t setting) const {
    return setting / (settings_.size() / report_.options.items.size());
  }

  static void AddRoundTrip(CompareRow& row) {
    if (row.setting.threads < 2) return;
    if (const auto ns = CoreRoundTripNs(AllowedCores())) row.core_round_trip_ns.push_back(*ns);
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

  void AddRatios() {
    const size_t cells = settings_.size() * kinds_.size();  // settings of one workload, by kinds
    for (size_t i = 0; i < report_.rows.size(); ++i) {
      CompareRow& row = report_.rows[i];
      row.ratio = RatioOf(row, report_.rows[i - i % kinds_.size()]);
      row.setting_ratio = RatioOf(row, report_.rows[i / cells * cells + i % kinds_.size()]);
    }
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
    return static_cast<double>(*bytes) / static_cast<double>(subject.items());
  }

  // Measures the subject while it still holds its items; one that could run no workload is left
  // out. In runs apart, the contents of all repeats add up, and the other figures are of the last
  // repeat.
  void AddFootprint(size_t index, int repeat) {
    CompareSubject& subject = *subjects_[index];
    if (!subject.loaded()) return;
    CompareFootprint& footprint = report_.footprints[index];
    footprint.bytes_per_item = subject.Measure().bytes_per_item;
    footprint.resident_bytes_per_item = ResidentOf(subject);
    footprint.huge_fraction = subject.growth().huge_fraction();
    const Tally tally = subject.ReadBack().tally;
    footprint.contents_checksum += tally.checksum;
    Answers& answers = contents_[index / kinds_.size() * repeats() + static_cast<size_t>(repeat)];
    footprint.agrees &= answers.Agree(subject.history(), tally.checksum);
    report_.errors += tally.errors;
    report_.agrees &= footprint.agrees;
  }

  const std::vector<SubjectKind> kinds_;
  const std::vector<CompareWorkload> workloads_;
  const std::vector<CompareSetting> settings_;
  const ValuePool values_;
  CompareReport report_;
  std::vector<std::unique_ptr<CompareSubject>> subjects_;  // they use the members above
  std::vector<Answers> answers_;                           // by workload, setting, repeat
  std::vector<Answers> contents_;                          // by items, repeat (0 if not apart)
};

}  // namespace

std::optional<double> CompareRow::median_mops() const {
  if (mops.empty()) return std::nullopt;
  return Median(mops);
}

bool CompareRow::one_placement() const {
  // Distances of two threads of one core, of cores of one die, and of dies differ by more than this
  // factor; noise is less.
  constexpr double kSpread = 1.6;
  if (core_round_trip_ns.empty()) return true;
  const auto [least, most] = std::ranges::minmax(core_round_trip_ns);
  return most <= kSpread * least;
}

std::vector<CompareSetting> SettingsOf(const CompareOptions& options) {
  std::vector<CompareSetting> settings;
  for (const uint64_t items : options.items) {
    for (const uint32_t batch : options.batches) {
      for (const uint32_t threads : options.threads) {
        for (const uint32_t snapshots : options.snapshots) {
          settings.push_back(
              {.items = items, .batch = batch, .threads = threads, .snapshots = snapshots});
        }
      }
    }
  }
  return settings;
}

std::expected<CompareReport, std::string> RunCompare(const CompareOptions& options) {
  if (const char* complaint = Complaint(options)) return Problem(complaint);
  auto kinds = FindSubjects(options);
  if (!kinds) return Problem(std::move(kinds.error()));
  std::vector<CompareWorkload> workloads;
  for (const std::string& text : options.workloads) {
    auto what = ParseWorkload(text, options);
    if (!what) return Problem(std::move(what.error()));
    if (const auto fits = FitsKeyFile(options, what->workload); !fits) return Problem(fits.error());
    workloads.push_back(std::move(*what));
  }
  MapLargeBlocks();
  return Comparison(options, std::move(*kinds), std::move(workloads)).Run();
}

}  // namespace skep::bench
