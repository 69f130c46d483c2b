#include <algorithm>

#include "bench/fat_btree/figure_parts.h"
#include "bench/fat_btree/range_query.h"

namespace skep::bench {
namespace {

// The paper's example: 100 keys, a tree of seven levels of which switches walk five.
constexpr uint32_t kKeys = 100;
constexpr uint32_t kIndex = 7;
constexpr uint32_t kIndexLeft = 2;

constexpr size_t kEvery = 20;  // one in so many accesses is a range query

// The means of queries that begin at accessed keys.
struct RangeMeans {
  double reads = 0;
  double rounds = 0;
};

template <typename AddressOf>
RangeMeans MeansOf(const ModelTree& tree, const Accesses& accesses, uint32_t parts,
                   const AddressOf& address_of) {
  const auto sorted = accesses.keys.sorted();
  RangeMeans sums;
  for (size_t i = 0; i < accesses.asked.size(); i += kEvery) {
    const auto at = std::ranges::lower_bound(sorted, accesses.asked[i]) - sorted.begin();
    const uint64_t place = std::min(static_cast<uint64_t>(at), sorted.size() - kKeys);
    const RangeReads range = CountRange(tree, sorted, place, kKeys, parts, address_of);
    sums.reads += static_cast<double>(range.reads);
    sums.rounds += static_cast<double>(range.rounds);
  }
  const double queries = static_cast<double>((accesses.asked.size() + kEvery - 1) / kEvery);
  return {sums.reads / queries, sums.rounds / queries};
}

void AddRows(FatBTreeReport& report, const NamedShape& named, const Accesses& accesses) {
  const ModelTree tree(named.shape, accesses.keys, accesses.hits);
  const SwitchChain chain(tree.index(), SettingOf(report.options).limits);
  const auto from_root = [](uint64_t) { return uint64_t{0}; };
  const auto by_switch = [&](uint64_t key) { return chain.AddressOf(key); };
  const RangeMeans whole = MeansOf(tree, accesses, 1, from_root);
  const RangeMeans whole_switch = MeansOf(tree, accesses, 1, by_switch);
  for (const double point : report.options.points) {
    const auto parts = static_cast<uint32_t>(point);
    const RangeMeans root = MeansOf(tree, accesses, parts, from_root);
    const RangeMeans hinted = MeansOf(tree, accesses, parts, by_switch);
    report.labels.emplace_back(named.name);
    report.rows.push_back({point, OverheadOf(parts, kIndex, kKeys),
                           OverheadOf(parts, kIndexLeft, kKeys), root.reads,
                           root.reads / whole.reads, root.rounds, hinted.reads,
                           hinted.reads / whole_switch.reads, hinted.rounds});
  }
}

}  // namespace

void FillRanges(FatBTreeReport& report) {
  report.label_name = "tree";
  report.columns = {{"parts", 0},        {"formula", 2},         {"formula_switch", 2},
                    {"reads", 2},        {"overhead", 2},        {"rounds", 2},
                    {"reads_switch", 2}, {"overhead_switch", 2}, {"rounds_switch", 2}};
  const Accesses accesses(report.options, SettingOf(report.options));
  for (const NamedShape& named : kShapes) AddRows(report, named, accesses);
}

}  // namespace skep::bench
