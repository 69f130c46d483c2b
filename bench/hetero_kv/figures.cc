#include "bench/hetero_kv/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/histogram.h"
#include "bench/keyspace_target.h"
#include "bench/op_generator.h"
#include "bench/repeat.h"
#include "hashleaf/dispatcher.h"
#include "hashleaf/hashleaf_engine.h"
#include "keyspace/keyspaces.h"
#include "store/batch_wait.h"

namespace skep::bench {
namespace {

using Row = std::vector<std::optional<double>>;

constexpr uint32_t kFullBatch = 8192;
constexpr double kNsOfSecond = 1e9;
constexpr uint64_t kSparseStep = 1000;

// ---- sorters ----

// A map of leaves of equal ranges, without pairs.
template <typename K>
class EmptyLeaves {
 public:
  explicit EmptyLeaves(uint32_t count) {
    const K width = hashleaf::kKeyMax<K> / count + 1;
    std::vector<hashleaf::Leaf<K>*> all;
    for (uint32_t i = 0; i < count; ++i) {
      const K last = i + 1 == count ? hashleaf::kKeyMax<K> : (i + 1) * width - 1;
      leaves_.push_back(std::make_unique<hashleaf::Leaf<K>>(memory_, format_, i * width, last));
      all.push_back(leaves_.back().get());
    }
    map_ = std::make_unique<hashleaf::LeafMap<K>>(std::move(all));
  }
  const hashleaf::LeafMap<K>& map() const { return *map_; }

 private:
  MemoryBudget budget_;
  hashleaf::Memory memory_{budget_};
  const hashleaf::Format format_{.key_bytes = sizeof(K), .value_bytes = 4, .secret = 1};
  std::vector<std::unique_ptr<hashleaf::Leaf<K>>> leaves_;
  std::unique_ptr<hashleaf::LeafMap<K>> map_;
};

template <typename K>
K RandomKey(std::mt19937_64& random) {
  K key = 0;
  for (size_t bytes = 0; bytes < sizeof(K); bytes += 4) {
    key =
        static_cast<K>(static_cast<hashleaf::Key128>(key) << 32 | static_cast<uint32_t>(random()));
  }
  return key;
}

template <typename K>
void FillSortersOf(HeteroKvReport& report) {
  constexpr auto kLeaves = std::to_array<uint32_t>({64, 1024, 8192, 65536});
  report.title = "ns a key of grouping a batch by leaf: counting, and sorting by key";
  report.columns = {{"keys", 0}};
  std::vector<std::unique_ptr<EmptyLeaves<K>>> maps;
  for (const uint32_t leaves : kLeaves) {
    maps.push_back(std::make_unique<EmptyLeaves<K>>(leaves));
    report.columns.push_back({fmt::format("count_{}", leaves), 1});
    report.columns.push_back({fmt::format("sort_{}", leaves), 1});
  }
  std::mt19937_64 random(report.options.seed);
  for (uint32_t keys = 64; keys <= 32768; keys *= 2) {
    std::vector<hashleaf::Unit<K>> units;
    for (uint32_t i = 0; i < keys; ++i) {
      units.push_back(hashleaf::Unit<K>::Of(RandomKey<K>(random), i, 0));
    }
    Row row = {keys};
    for (const auto& leaves : maps) {
      for (const auto by : {hashleaf::GroupBy::kCount, hashleaf::GroupBy::kSort}) {
        hashleaf::Dispatcher<K> dispatcher;
        constexpr uint32_t kKeysAtOnce = 1 << 18;  // in one measurement, which takes a millisecond
        const uint32_t rounds = kKeysAtOnce / keys;
        const double seconds = MedianSeconds(report.options.repeats, [&](int) {
          for (uint32_t round = 0; round < rounds; ++round) {
            dispatcher.Dispatch(units, leaves->map(), by);
            Keep(dispatcher.sorted().data());
          }
        });
        row.emplace_back(seconds * kNsOfSecond / kKeysAtOnce);
      }
    }
    report.rows.push_back(std::move(row));
  }
}

void FillSorters(HeteroKvReport& report) {
  switch (report.options.key_bytes) {
    case 4:
      return FillSortersOf<uint32_t>(report);
    case 8:
      return FillSortersOf<uint64_t>(report);
    default:
      return FillSortersOf<hashleaf::Key128>(report);
  }
}

// ---- scans ----

// Writes the low bytes of a number, high ones first.
void RenderNumber(uint64_t number, std::span<char> to) {
  for (size_t i = 0; i < to.size(); ++i) to[to.size() - 1 - i] = static_cast<char>(number >> 8 * i);
}

class ScannedEngine {
 public:
  // Keys are numbers that are `step` apart.
  ScannedEngine(const HeteroKvOptions& options, hashleaf::ScanBy by, uint64_t step)
      : key_bytes_(options.key_bytes), records_(options.records), step_(step) {
    EngineOptions engine_options{.budget = &budget_};
    engine_options.index.hashleaf.key_bytes = options.key_bytes;
    engine_options.index.hashleaf.value_bytes = options.value_bytes;
    engine_ = HashleafEngine::Make(engine_options,
                                   {.leaf_bytes = HashleafOptions().leaf_bytes, .scan_by = by});
    const std::string value(options.value_bytes, 'v');
    // Keys are inserted in random order: ascending ones would leave full leaves.
    std::vector<uint64_t> numbers(records_);
    std::iota(numbers.begin(), numbers.end(), uint64_t{0});
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(options.seed));
    for (uint64_t first = 0; first < records_; first += kFullBatch) {
      Batch batch;
      for (uint64_t i = first; i < std::min(first + kFullBatch, records_); ++i) {
        batch.Put(KeyOf(numbers[i], batch.scratch()), value);
      }
      engine_->Execute(batch);
    }
  }

  // Returns the time of scans from random keys, each over the range of `items` keys.
  double MicrosecondsOfScan(uint32_t items, int repeats, uint64_t seed) {
    constexpr uint32_t kScans = 200;
    std::mt19937_64 random(seed);
    Batch batch;
    const auto scan_all = [&](int) {
      batch.Clear();
      for (uint32_t i = 0; i < kScans; ++i) {
        const uint64_t first = random() % (records_ - items);
        batch.Scan(
            Range::Between(KeyOf(first, batch.scratch()), KeyOf(first + items, batch.scratch())));
      }
      engine_->Execute(batch);
      Keep(batch.outcome(0).item_count);
    };
    for (int i = 0; i < 20; ++i) scan_all(i);  // builds runs, if scans read those
    return MedianSeconds(repeats, scan_all) * 1e6 / kScans;
  }

 private:
  std::string_view KeyOf(uint64_t number, Scratch& scratch) const {
    char* const at = scratch.Allocate(key_bytes_);
    RenderNumber(number * step_, {at, key_bytes_});
    return {at, key_bytes_};
  }

  const uint32_t key_bytes_;
  const uint64_t records_;
  const uint64_t step_;
  MemoryBudget budget_;
  std::unique_ptr<Engine> engine_;
};

void FillScans(HeteroKvReport& report) {
  struct Way {
    const char* name;
    hashleaf::ScanBy by;
  };
  constexpr Way kWays[] = {{"probe", hashleaf::ScanBy::kProbe},
                           {"sweep", hashleaf::ScanBy::kSweep},
                           {"run", hashleaf::ScanBy::kRun},
                           {"chosen", hashleaf::ScanBy::kCost}};
  constexpr auto kItems = std::to_array<uint32_t>({1, 10, 100, 1000});
  report.title = "us a scan, by the way in which leaves are read";
  report.columns = {{"step", 0}, {"items", 0}};
  for (const uint64_t step : {uint64_t{1}, kSparseStep}) {
    for (const uint32_t items : kItems) {
      report.rows.push_back({static_cast<double>(step), static_cast<double>(items)});
    }
  }
  for (const Way& way : kWays) {
    report.columns.push_back({fmt::format("{}_us", way.name), 2});
    size_t row = 0;
    for (const uint64_t step : {uint64_t{1}, kSparseStep}) {
      ScannedEngine engine(report.options, way.by, step);
      for (const uint32_t items : kItems) {
        report.rows[row++].emplace_back(
            engine.MicrosecondsOfScan(items, report.options.repeats, report.options.seed));
      }
    }
  }
}

// ---- wait ----

enum class Waits : uint8_t { kNone, kAdaptive, kFull };

class LoadedEngine {
 public:
  explicit LoadedEngine(const HeteroKvOptions& options)
      : options_(options), values_(options.value_bytes, options.seed), format_(options.key_bytes) {
    Options store{.engine = "hashleaf", .keyspaces = 1};
    store.hashleaf.key_bytes = options.key_bytes;
    store.hashleaf.value_bytes = options.value_bytes;
    target_ = std::move(*KeyspaceTarget::Open(store, values_));
    session_ = std::move(*target_->Connect());
    LoadGenerator load(PlanOf(0), 0);
    for (uint64_t first = 0; first < options.records; first += kFullBatch) {
      OpStream stream(format_);
      load.Fill(stream, std::min<uint64_t>(kFullBatch, options.records - first));
      Execute(stream, 0, stream.size());
    }
  }

  // Returns the tally of all answers so far.
  const Tally& tally() const { return tally_; }

  // Returns how many operations a second full batches execute, one after the other.
  double Capacity() {
    const OpStream stream = Draw(64 * kFullBatch);
    const double seconds = MedianSeconds(options_.repeats, [&](int) {
      for (size_t first = 0; first < stream.size(); first += kFullBatch) {
        Execute(stream, first, kFullBatch);
      }
    });
    return static_cast<double>(stream.size()) / seconds;
  }

  struct Run {
    Histogram latency_ns;
    uint64_t batches = 0;
    uint64_t operations = 0;
    double busy = 0;  // share of the time
  };
  Run Serve(Waits waits, double ops_per_second) {
    const auto ops = std::max<size_t>(1000, static_cast<size_t>(ops_per_second * options_.seconds));
    const OpStream stream = Draw(ops);
    // The instants at which operations arrive.
    std::mt19937_64 random(options_.seed + ++runs_);
    std::exponential_distribution<double> gap(ops_per_second / kNsOfSecond);
    std::vector<uint64_t> comes_ns(ops);
    double at = 0;
    for (uint64_t& ns : comes_ns) ns = static_cast<uint64_t>(at += gap(random));

    BatchWait wait(options_.wanted, uint64_t{options_.wait_us} * 1000);
    Run run;
    uint64_t busy_ns = 0;
    size_t first = 0;
    size_t come = 0;  // operations [first, come) have arrived
    const uint64_t start_ns = SystemClock().MonotonicNs();
    uint64_t now_ns = 0;
    while (first < ops) {
      now_ns = SystemClock().MonotonicNs() - start_ns;
      while (come < ops && comes_ns[come] <= now_ns && come - first < kFullBatch) ++come;
      const auto count = static_cast<uint32_t>(come - first);
      if (count == 0 || Stays(waits, wait, count, now_ns - comes_ns[first])) continue;
      wait.Left(count, now_ns);
      Execute(stream, first, count);
      const uint64_t end_ns = SystemClock().MonotonicNs() - start_ns;
      for (; first < come; ++first) run.latency_ns.Record(end_ns - comes_ns[first]);
      busy_ns += end_ns - now_ns;
      ++run.batches;
    }
    run.operations = ops;
    run.busy = static_cast<double>(busy_ns) / static_cast<double>(now_ns);
    return run;
  }

 private:
  bool Stays(Waits waits, BatchWait& wait, uint32_t count, uint64_t age_ns) const {
    switch (waits) {
      case Waits::kNone:
        return false;
      case Waits::kAdaptive:
        return wait.WaitNs(count, age_ns) > 0;
      case Waits::kFull:
        return count < kFullBatch && age_ns < uint64_t{options_.wait_us} * 1000;
    }
    return false;
  }

  WorkloadPlan PlanOf(uint64_t ops) const {
    return {.workload = *FindWorkload("get-heavy"),
            .distribution = Distribution::kZipfian,
            .records = options_.records,
            .ops = ops,
            .threads = 1,
            .seed = options_.seed + runs_};
  }
  OpStream Draw(size_t ops) {
    ++runs_;
    OpStream stream(format_);
    OpGenerator(PlanOf(ops), 0).Fill(stream, ops);
    return stream;
  }
  // The status is ignored: an engine in this process always answers.
  void Execute(const OpStream& stream, size_t first, size_t count) {
    static_cast<void>(session_->Execute(stream, first, count, tally_));
  }

  const HeteroKvOptions& options_;
  const ValuePool values_;
  const KeyFormat format_;
  std::unique_ptr<KeyspaceTarget> target_;
  std::unique_ptr<YcsbSession> session_;
  Tally tally_;
  uint64_t runs_ = 0;
};

std::string FillWait(HeteroKvReport& report) {
  constexpr std::pair<Waits, const char*> kWays[] = {
      {Waits::kNone, "none"}, {Waits::kAdaptive, "adaptive"}, {Waits::kFull, "full"}};
  LoadedEngine engine(report.options);
  const double capacity = engine.Capacity();
  report.title = fmt::format("get-heavy by load, of {:.1f} M operations a second", capacity / 1e6);
  report.columns = {{"load_percent", 0}, {"mops", 2}};
  for (const auto& [waits, name] : kWays) {
    report.columns.push_back({fmt::format("{}_p50_us", name), 1});
    report.columns.push_back({fmt::format("{}_p99_us", name), 1});
    report.columns.push_back({fmt::format("{}_batch", name), 1});
    report.columns.push_back({fmt::format("{}_busy", name), 2});
  }
  for (const double percent : {1.0, 10.0, 50.0, 90.0}) {
    Row row = {percent, capacity * percent / 1e8};
    // The ways are measured in turn, again and again, so that a disturbance affects all of them.
    std::array<std::array<std::vector<double>, 4>, std::size(kWays)> figures;
    for (int repeat = 0; repeat < report.options.repeats; ++repeat) {
      for (size_t way = 0; way < std::size(kWays); ++way) {
        const auto run = engine.Serve(kWays[way].first, capacity * percent / 100);
        figures[way][0].push_back(static_cast<double>(run.latency_ns.Quantile(0.5)) / 1e3);
        figures[way][1].push_back(static_cast<double>(run.latency_ns.Quantile(0.99)) / 1e3);
        figures[way][2].push_back(static_cast<double>(run.operations) /
                                  static_cast<double>(run.batches));
        figures[way][3].push_back(run.busy);
      }
    }
    for (const auto& of_way : figures) {
      for (const auto& of_figure : of_way) row.emplace_back(Median(of_figure));
    }
    report.rows.push_back(std::move(row));
  }
  return engine.tally().first_error;
}

const char* Complaint(const HeteroKvOptions& options) {
  if (options.records < 10'000) return "--records must be at least 10000";
  if (options.key_bytes != 4 && options.key_bytes != 8 && options.key_bytes != 16) {
    return "--key-size must be 4, 8 or 16";
  }
  if (options.key_bytes == 4 && options.figure == "scans" &&
      options.records > UINT32_MAX / kSparseStep) {
    return "--key-size must be at least 8 for so many --records, a thousand apart";
  }
  if (options.value_bytes != 4 && options.value_bytes != 8 && options.value_bytes != 16) {
    return "--value-size must be 4, 8 or 16";
  }
  if (options.repeats <= 0) return "--repeats must be at least 1";
  if (!(options.seconds > 0)) return "--seconds must be above 0";
  if (options.wanted == 0) return "--wanted must be at least 1";
  return nullptr;
}

}  // namespace

std::expected<HeteroKvReport, std::string> RunHeteroKv(const HeteroKvOptions& options) {
  if (const char* complaint = Complaint(options)) return std::unexpected(complaint);
  HeteroKvReport report;
  report.options = options;
  std::string problem;
  if (options.figure == "sorters") {
    FillSorters(report);
  } else if (options.figure == "scans") {
    FillScans(report);
  } else if (options.figure == "wait") {
    problem = FillWait(report);
  } else {
    problem = "there are --figure sorters, scans and wait";
  }
  if (!problem.empty()) return std::unexpected(problem);
  return report;
}

}  // namespace skep::bench
