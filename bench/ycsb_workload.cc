#include "bench/ycsb_workload.h"

#include <algorithm>
#include <array>

namespace skep::bench {
namespace {

constexpr Workload kWorkloads[] = {
    {'a', 50, 50, 0, 0, 0, Distribution::kZipfian}, {'b', 95, 5, 0, 0, 0, Distribution::kZipfian},
    {'c', 100, 0, 0, 0, 0, Distribution::kZipfian}, {'d', 95, 0, 5, 0, 0, Distribution::kLatest},
    {'e', 0, 0, 5, 95, 0, Distribution::kZipfian},  {'f', 50, 0, 0, 0, 50, Distribution::kZipfian},
};

static_assert(std::ranges::all_of(kWorkloads, [](const Workload& w) {
  return w.read + w.update + w.insert + w.scan + w.read_modify_write == 100;
}));

// In the order of the enumeration.
constexpr std::array<std::string_view, 3> kDistributions = {"uniform", "zipfian", "latest"};

}  // namespace

std::span<const Workload> AllWorkloads() { return kWorkloads; }

const Workload* FindWorkload(char name) {
  const auto found = std::ranges::find(kWorkloads, name, &Workload::name);
  return found == std::end(kWorkloads) ? nullptr : found;
}

std::string_view NameOf(Distribution distribution) {
  return kDistributions[static_cast<size_t>(distribution)];
}

std::optional<Distribution> FindDistribution(std::string_view name) {
  const auto found = std::ranges::find(kDistributions, name);
  if (found == kDistributions.end()) return std::nullopt;
  return static_cast<Distribution>(found - kDistributions.begin());
}

}  // namespace skep::bench
