#include "bench/kv_direct/access_costs.h"

#include "base/random.h"
#include "bench/kv_direct/access_model_parts.h"

namespace skep::bench {
namespace {

constexpr uint64_t kLengthSeed = 0x1e46;
constexpr double kInsertWindow = 0.02;  // share of the memory
constexpr uint64_t kSampledMax = 4096;

class Mean {
 public:
  void Add(const Accesses& accesses) {
    sum_ += accesses;
    ++count_;
  }
  MeanAccesses Get() const {
    if (count_ == 0) return {};
    const auto count = static_cast<double>(count_);
    return {static_cast<double>(sum_.requests) / count, static_cast<double>(sum_.lines) / count};
  }

 private:
  Accesses sum_;
  uint64_t count_ = 0;
};

OperationCosts CostsAt(double utilisation, const AccessModel& model, uint64_t keys,
                       const Mean& insert) {
  SeededRandom random(keys);
  Mean get;
  Mean replace;
  for (uint64_t i = 0; i < std::min(keys, kSampledMax); ++i) {
    const uint64_t key = random.Below(keys);
    get.Add(model.Get(key));
    replace.Add(model.Replace(key));
  }
  return {utilisation, get.Get(), replace.Get(), insert.Get()};
}

double Sum(const OperationCosts& costs) { return costs.get.requests + costs.insert.requests; }

}  // namespace

PairBytes PairSizes::Of(uint64_t number) const {
  const uint64_t lengths = pair_max - pair_min + 1;
  return {.key = key,
          .pair = pair_min + static_cast<uint32_t>(SeededHash(number, kLengthSeed) % lengths)};
}

FillReport Fill(AccessModel& model, const AccessModelOptions& options, const PairSizes& sizes,
                std::span<const double> utilisations) {
  const auto memory = static_cast<double>(options.memory_bytes);
  FillReport report = {};
  uint64_t bytes = 0;
  Mean insert;
  for (uint64_t key = 0;; ++key) {
    const PairBytes pair = sizes.Of(key);
    const auto accesses = model.Insert(key, pair);
    if (!accesses) return report;
    bytes += pair.pair;
    report.utilisation_max = static_cast<double>(bytes) / memory;
    const size_t reached = report.at.size();
    if (reached == utilisations.size()) continue;
    if (report.utilisation_max >= utilisations[reached] - kInsertWindow) insert.Add(*accesses);
    if (report.utilisation_max >= utilisations[reached]) {
      report.at.push_back(CostsAt(utilisations[reached], model, key + 1, insert));
      insert = {};
    }
  }
}

std::unique_ptr<AccessModel> MakeModel(Structure structure, const AccessModelOptions& options) {
  switch (structure) {
    case Structure::kChaining:
      return MakeChaining(options);
    case Structure::kCuckoo:
      return MakeCuckoo(options);
    case Structure::kHopscotch:
      return MakeHopscotch(options);
  }
  __builtin_unreachable();
}

std::vector<std::optional<Choice>> BestChoices(Structure structure,
                                               const AccessModelOptions& options,
                                               const PairSizes& sizes,
                                               std::span<const double> index_ratios,
                                               std::span<const uint32_t> inline_limits,
                                               std::span<const double> utilisations) {
  AccessModelOptions tried = options;
  tried.key_bytes = sizes.key;
  std::vector<std::optional<Choice>> best(utilisations.size());
  for (const uint32_t inline_bytes_max : inline_limits) {
    tried.inline_bytes_max = inline_bytes_max;
    std::vector<std::optional<Choice>> largest(utilisations.size());
    for (const double index_ratio : index_ratios) {
      tried.index_ratio = index_ratio;
      const FillReport report = Fill(*MakeModel(structure, tried), tried, sizes, utilisations);
      for (size_t i = 0; i < report.at.size(); ++i) {
        largest[i] = {index_ratio, inline_bytes_max, report.at[i]};
      }
    }
    for (size_t i = 0; i < best.size(); ++i) {
      if (largest[i] && (!best[i] || Sum(largest[i]->costs) < Sum(best[i]->costs))) {
        best[i] = largest[i];
      }
    }
  }
  return best;
}

}  // namespace skep::bench
