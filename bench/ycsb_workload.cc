#include "bench/ycsb_workload.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

namespace skep::bench {
namespace {

const Workload kCore[] = {
    {.name = "a", .read = 50, .update = 50, .distribution = Distribution::kZipfian},
    {.name = "b", .read = 95, .update = 5, .distribution = Distribution::kZipfian},
    {.name = "c", .read = 100, .distribution = Distribution::kZipfian},
    {.name = "d", .read = 95, .insert = 5, .distribution = Distribution::kLatest},
    {.name = "e", .insert = 5, .scan = 95, .distribution = Distribution::kZipfian},
    {.name = "f", .read = 50, .read_modify_write = 50, .distribution = Distribution::kZipfian},
};

const Workload kFurther[] = {
    {.name = "get", .read = 100},
    {.name = "update", .update = 100},
    {.name = "get-heavy", .read = 95, .update = 5, .distribution = Distribution::kZipfian},
    {.name = "put-heavy", .read = 5, .update = 95, .distribution = Distribution::kZipfian},
    {.name = "scan-heavy",
     .update = 5,
     .scan = 95,
     .distribution = Distribution::kZipfian,
     .scan_items_min = 100},
    {.name = "churn", .update = 34, .insert = 33, .remove = 33},
    {.name = "load", .sweep = OpKind::kInsert},
    {.name = "delete", .sweep = OpKind::kDelete},
};

// The names are in the order of the enumeration.
constexpr std::array<std::string_view, 3> kDistributions = {"uniform", "zipfian", "latest"};

// Returns the number behind the prefix, if the name has that form.
std::optional<uint32_t> NumberBehind(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

const Workload* FindNamed(std::span<const Workload> workloads, std::string_view name) {
  const auto found = std::ranges::find(workloads, name, &Workload::name);
  return found == workloads.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Workload> CoreWorkloads() { return kCore; }

std::optional<Workload> FindWorkload(std::string_view name) {
  for (const std::span<const Workload> workloads :
       {std::span<const Workload>(kCore), std::span<const Workload>(kFurther)}) {
    if (const Workload* workload = FindNamed(workloads, name)) return *workload;
  }
  if (const auto items = NumberBehind("scan", name)) {
    if (*items < 1 || *items > kScanItemsMax) return std::nullopt;
    return Workload{
        .name = std::string(name), .scan = 100, .scan_items_min = *items, .scan_items_max = *items};
  }
  if (const auto keys = NumberBehind("hot", name)) {
    if (*keys < 1 || *keys > kHotKeysMax) return std::nullopt;
    return Workload{.name = std::string(name), .read = 100, .hot_keys = *keys};
  }
  if (const auto percent = NumberBehind("cloud", name)) {
    if (*percent > 100) return std::nullopt;
    return Workload{.name = std::string(name),
                    .insert = 100 - static_cast<int>(*percent),
                    .scan = static_cast<int>(*percent),
                    .scan_items_min = 3,
                    .scan_items_max = 4};
  }
  return std::nullopt;
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
