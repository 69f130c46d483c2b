#include <algorithm>

#include "bench/fat_btree/figure_parts.h"
#include "bench/fat_btree/growing_tree.h"
#include "bench/fat_btree/trip_counts.h"

namespace skep::bench {
namespace {

// Capacities at which nodes that split at random hold what model_tree.h's do, 69 % of them.
struct Capacity {
  const char* name;
  size_t leaf_keys, branches;
  bool has_values;  // in leaves; else a value is a level of its own
};
constexpr Capacity kCapacities[] = {{"fan-out 16", 16, 16, false}, {"ours", 145, 145, true}};

GrowingTree Grow(const Capacity& capacity, uint64_t records) {
  GrowingTree tree(capacity.leaf_keys, capacity.branches);
  for (uint64_t record = 0; record < records; ++record) tree.Insert(KeyOfRecord(record));
  return tree;
}

// Fixes the nodes that switches lead to: whoever is below a node that they hold.
void FixLoaded(GrowingTree& tree, const netindex::IndexTree& index, const SwitchChain& chain) {
  const auto fix = [&](uint32_t node) {
    tree.Fix(static_cast<GrowingTree::Id>(index.nodes[node].address - 1));
  };
  std::ranges::for_each(chain.root().ranges, fix);
  for (const netindex::Layer& layer : chain.layers()) {
    for (const uint32_t node : layer) std::ranges::for_each(index.nodes[node].children, fix);
  }
}

// Both trees at one time: the same keys, other ways of splitting.
class Grown {
 public:
  Grown(const Capacity& capacity, const FatBTreeOptions& options, std::vector<uint64_t> asked)
      : capacity_(capacity),
        asked_(std::move(asked)),
        retiring_(Grow(capacity, options.records)),
        pushing_(retiring_),
        index_(retiring_.Index(asked_)),
        chain_(index_, SettingOf(options).limits),
        records_(options.records) {
    FixLoaded(pushing_, index_, chain_);
    for (const uint64_t key : asked_) remembered_.push_back(retiring_.LeafOf(key));
  }

  void GrowTo(uint64_t records) {
    for (; records_ < records; ++records_) {
      retiring_.Insert(KeyOfRecord(records_));
      pushing_.Insert(KeyOfRecord(records_));
    }
  }

  std::vector<std::optional<double>> RowAt(double share) const {
    const uint32_t value = capacity_.has_values ? 0 : 1;
    TripCounts pushed, retired;
    uint64_t hits = 0;
    for (size_t i = 0; i < asked_.size(); ++i) {
      const uint64_t key = asked_[i];
      const auto id = static_cast<GrowingTree::Id>(chain_.AddressOf(key) - 1);
      pushed.Add(pushing_.LevelsFrom(id, key) + value);
      const bool is_hit = !retiring_.IsRetired(remembered_[i]);
      hits += is_hit ? 1 : 0;
      retired.Add((is_hit ? 1 : retiring_.LevelsFrom(GrowingTree::kRoot, key)) + value);
    }
    return {share,
            pushed.mean(),
            pushed.max(),
            static_cast<double>(pushing_.pushed_down()),
            static_cast<double>(hits) / static_cast<double>(asked_.size()),
            retired.mean()};
  }

 private:
  const Capacity& capacity_;
  const std::vector<uint64_t> asked_;
  GrowingTree retiring_, pushing_;
  const netindex::IndexTree index_;
  const SwitchChain chain_;
  uint64_t records_;
  std::vector<GrowingTree::Id> remembered_;  // the leaves of `asked_` before anything was inserted
};

}  // namespace

void FillInserts(FatBTreeReport& report) {
  const FatBTreeOptions& options = report.options;
  report.label_name = "tree";
  report.columns = {{"inserted", 2},        {"temporary_levels", 3}, {"temporary_max", 0},
                    {"temporary_roots", 0}, {"hit_rate", 3},         {"hint_levels", 3}};
  const auto asked = KeysOf(
      DrawRecords(options.records,
                  {.accesses = options.accesses, .alpha = options.alpha, .seed = options.seed}));
  for (const Capacity& capacity : kCapacities) {
    Grown grown(capacity, options, asked);
    for (const double share : options.points) {
      grown.GrowTo(options.records +
                   static_cast<uint64_t>(share * static_cast<double>(options.records)));
      report.labels.emplace_back(capacity.name);
      report.rows.push_back(grown.RowAt(share));
    }
  }
}

}  // namespace skep::bench
