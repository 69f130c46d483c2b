#include "bench/kv_direct/figures.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "bench/kv_direct/access_costs.h"
#include "bench/kv_direct/merge_model.h"
#include "hash/tuning.h"

namespace skep::bench {
namespace {

using Row = std::vector<std::optional<double>>;

constexpr uint64_t kBytesMin = 64 << 10;
constexpr uint32_t kInlineLimit = 25;
constexpr PairSizes kTiny = {.key = 5, .pair_min = 10, .pair_max = 10};
constexpr PairSizes kLong = {.key = 8, .pair_min = 62, .pair_max = 62};
constexpr PairSizes kMixed = {.key = 5, .pair_min = 5, .pair_max = 50};

// Returns 1/50 to 49/50.
std::vector<double> IndexRatios() {
  std::vector<double> ratios;
  for (int i = 1; i < 50; ++i) ratios.push_back(i / 50.0);
  return ratios;
}

std::vector<double> Tenths(int first, int last) {
  std::vector<double> tenths;
  for (int i = first; i <= last; ++i) tenths.push_back(i / 10.0);
  return tenths;
}

AccessModelOptions ModelOptions(const KvDirectOptions& options) {
  return {.memory_bytes = options.bytes, .seed = options.seed};
}

// Returns the mean of a GET and a PUT that inserts.
double Mean(const OperationCosts& costs) {
  return (costs.get.requests + costs.insert.requests) / 2;
}

template <typename Get>
std::optional<double> OfChoice(const std::optional<Choice>& choice, Get get) {
  return choice ? std::optional<double>(get(*choice)) : std::nullopt;
}

void FillTable(KvDirectReport& report) {
  const bool is_ratio = report.options.table == 5;
  report.title = is_ratio ? "best load dispatch ratio, Zipf, by DRAM / PCIe throughput and 1 / k"
                          : "gain of load dispatch over two separate memories, as table 5";
  constexpr int kInverses[] = {1024, 256, 64, 16, 4, 1};
  report.columns = {{"throughput_ratio", 1}};
  for (const int inverse : kInverses) {
    report.columns.push_back({"k_1_" + std::to_string(inverse), is_ratio ? 3 : 2});
  }
  for (const double r : {0.5, 1.0, 2.0, 4.0, 8.0}) {
    Row row = {r};
    for (const int inverse : kInverses) {
      const DispatchModel model = {.k = 1.0 / inverse, .r = r, .mode = report.options.mode};
      row.emplace_back(is_ratio ? model.BestRatio() : model.GainOverPartition());
    }
    report.rows.push_back(std::move(row));
  }
}

void FillFigure6(KvDirectReport& report) {
  report.title = "accesses of an operation, mean of GET and insert, pairs of 5 to 50 B";
  report.columns = {{"utilisation", 2}};
  const auto ratios = IndexRatios();
  const std::vector utilisations = {0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6};
  for (const double utilisation : utilisations) report.rows.push_back({utilisation});
  for (const uint32_t limit : {10u, 15u, 20u, 25u}) {
    report.columns.push_back({"inline_" + std::to_string(limit), 3});
    const auto choices = BestChoices(Structure::kChaining, ModelOptions(report.options), kMixed,
                                     ratios, std::array{limit}, utilisations);
    for (size_t i = 0; i < choices.size(); ++i) {
      report.rows[i].push_back(
          OfChoice(choices[i], [](const Choice& choice) { return Mean(choice.costs); }));
    }
  }
}

// Adds one line: the costs of both kinds of pairs at this index ratio.
void AddFigure9Rows(KvDirectReport& report, double ratio, const std::vector<double>& utilisations) {
  std::vector<Row> rows;
  for (const double utilisation : utilisations) rows.push_back({ratio, utilisation});
  for (const PairSizes& sizes : {kTiny, kMixed}) {
    AccessModelOptions options = ModelOptions(report.options);
    options.index_ratio = ratio;
    options.inline_bytes_max = kInlineLimit;
    const FillReport fill =
        Fill(*MakeModel(Structure::kChaining, options), options, sizes, utilisations);
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool holds = i < fill.at.size();
      rows[i].push_back(holds ? std::optional(fill.at[i].get.requests) : std::nullopt);
      rows[i].push_back(holds ? std::optional(fill.at[i].insert.requests) : std::nullopt);
    }
  }
  std::ranges::move(rows, std::back_inserter(report.rows));
}

void FillFigure9(KvDirectReport& report) {
  report.title = "accesses by index ratio at utilisation 0.5, and by utilisation at ratio 0.5";
  report.columns = {{"index_ratio", 2}, {"utilisation", 2}, {"get_10", 3},
                    {"insert_10", 3},   {"get_5_to_50", 3}, {"insert_5_to_50", 3}};
  for (const double ratio : Tenths(1, 9)) AddFigure9Rows(report, ratio, {0.5});
  AddFigure9Rows(report, 0.5, Tenths(1, 7));
}

void FillFigure10(KvDirectReport& report) {
  report.title = "best index ratio, by utilisation and bytes of a pair";
  report.columns = {{"utilisation", 2}};
  const auto ratios = IndexRatios();
  const auto utilisations = Tenths(1, 9);
  for (const double utilisation : utilisations) report.rows.push_back({utilisation});
  for (const uint32_t bytes : {5u, 10u, 15u, 20u, 25u, 30u, 50u, 62u, 126u, 254u}) {
    report.columns.push_back({"pair_" + std::to_string(bytes), 2});
    const PairSizes sizes = {.key = 5, .pair_min = bytes, .pair_max = bytes};
    const auto choices = BestChoices(Structure::kChaining, ModelOptions(report.options), sizes,
                                     ratios, std::array{0u, std::min(bytes, 50u)}, utilisations);
    for (size_t i = 0; i < choices.size(); ++i) {
      report.rows[i].push_back(
          OfChoice(choices[i], [](const Choice& choice) { return choice.index_ratio; }));
    }
  }
}

// Adds figures of the engine's own table, with so many pairs that its spans of slabs are small
// beside it.
void AddOwnTable(const KvDirectOptions& options, const PairSizes& sizes, double utilisation,
                 Row& row) {
  const uint32_t value = sizes.pair_max - sizes.key;
  const auto chosen = hash::ChooseTableOptions(sizes.key, value, utilisation);
  const auto pairs =
      static_cast<uint32_t>(std::min<uint64_t>(2 * options.bytes / sizes.pair_max, (1u << 24) - 1));
  const auto layout = hash::MeasureLayout(chosen, sizes.key, value, pairs);
  row.insert(row.end(), {layout.get_lines, layout.put_lines, layout.utilisation});
}

void FillFigure11(KvDirectReport& report) {
  report.title = "accesses of an operation (skep: lines of 64 B; PUT of a key that is there)";
  report.columns = {{"pair_bytes", 0}, {"utilisation", 2}, {"index_ratio", 2}, {"inline_max", 0}};
  constexpr std::pair<Structure, const char*> kStructures[] = {
      {Structure::kChaining, "chaining"},
      {Structure::kCuckoo, "cuckoo"},
      {Structure::kHopscotch, "hopscotch"}};
  for (const auto& [structure, name] : kStructures) {
    for (const char* op : {"get_", "insert_"})
      report.columns.push_back({std::string(op) + name, 2});
  }
  for (const char* figure : {"get_skep", "put_skep", "utilisation_skep"}) {
    report.columns.push_back({figure, 2});
  }
  const auto ratios = IndexRatios();
  const auto utilisations = Tenths(1, 9);
  for (const PairSizes& sizes : {kTiny, kLong}) {
    std::vector<Row> rows;
    for (const double u : utilisations) rows.push_back({sizes.pair_max, u});
    for (const auto& [structure, name] : kStructures) {
      const bool has_limit = structure == Structure::kChaining;
      const std::vector<uint32_t> limits =
          has_limit ? std::vector{0u, kInlineLimit} : std::vector{0u};
      const auto choices =
          BestChoices(structure, ModelOptions(report.options), sizes, ratios, limits, utilisations);
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto add = [&](auto get) { rows[i].push_back(OfChoice(choices[i], get)); };
        if (has_limit) {
          add([](const Choice& choice) { return choice.index_ratio; });
          add([](const Choice& choice) { return choice.inline_bytes_max; });
        }
        add([](const Choice& choice) { return choice.costs.get.requests; });
        add([](const Choice& choice) { return choice.costs.insert.requests; });
      }
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      AddOwnTable(report.options, sizes, utilisations[i], rows[i]);
    }
    std::ranges::move(rows, std::back_inserter(report.rows));
  }
}

// Returns a random half of the slots, in random order.
std::vector<uint32_t> RandomHalf(uint64_t slots, uint64_t seed) {
  std::vector<uint32_t> all(slots);
  std::iota(all.begin(), all.end(), 0u);
  SeededRandom random(seed);
  for (uint64_t i = 0; i < slots / 2; ++i) std::swap(all[i], all[i + random.Below(slots - i)]);
  all.resize(slots / 2);
  return all;
}

// Returns the least of three runs: other work on the machine only ever adds.
template <typename Merge>
double Seconds(Merge merge) {
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 3; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    const MergedBlocks blocks = merge();  // freed after the clock was read
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    least = std::min(least, seconds.count());
  }
  return least;
}

void FillFigure12(KvDirectReport& report) {
  report.title = "seconds to merge all free slots, half of all, by threads";
  report.columns = {{"free_slots", 0}, {"threads", 0}, {"bitmap_seconds", 4}, {"sort_seconds", 4}};
  for (const uint64_t divisor : {16, 4, 1}) {
    const uint64_t slots = std::max<uint64_t>(64, report.options.slots / divisor);
    const auto free = RandomHalf(slots, report.options.seed);
    for (const uint32_t threads : {1u, 2u}) {
      const double bitmap = Seconds([&] { return MergeByBitmap(free, slots, threads); });
      const double sort = Seconds([&] { return MergeBySort(free, slots, threads); });
      report.rows.push_back({static_cast<double>(free.size()), threads, bitmap, sort});
    }
  }
}

}  // namespace

std::expected<KvDirectReport, std::string> RunKvDirect(const KvDirectOptions& options) {
  if (options.bytes < kBytesMin) return std::unexpected("a model has at least 64K of memory");
  if (!std::has_single_bit(options.slots) || options.slots < 64 ||
      options.slots > uint64_t{1} << 32) {
    return std::unexpected("slots are a power of two, 64 to 2^32");
  }
  struct What {
    uint32_t table, figure;
    void (*fill)(KvDirectReport&);
  };
  constexpr What kAll[] = {{5, 0, FillTable},    {6, 0, FillTable},     {0, 6, FillFigure6},
                           {0, 9, FillFigure9},  {0, 10, FillFigure10}, {0, 11, FillFigure11},
                           {0, 12, FillFigure12}};
  for (const What& what : kAll) {
    if (what.table != options.table || what.figure != options.figure) continue;
    KvDirectReport report;
    report.options = options;
    what.fill(report);
    return report;
  }
  return std::unexpected("there are --table 5 and 6, and --figure 6, 9, 10, 11 and 12");
}

}  // namespace skep::bench
