#include "hashleaf/sorter.h"

#include <algorithm>

#include "hashleaf/sort_pairs.h"

namespace skep::hashleaf {
namespace {

// Leaves a key for which counting is still the faster way (skep-bench hetero-kv --figure sorters).
constexpr size_t kLeavesAKeyMax = 16;

}  // namespace

template <typename K>
void Sorter<K>::Sort(std::span<const Unit<K>> units, const LeafMap<K>& map, SortBy by) {
  groups_.clear();
  if (units.size() == 1) {
    sorted_.assign(1, units[0]);
    groups_.push_back({.leaf = map.leaf(map.IndexOf(units[0].key)), .begin = 0, .end = 1});
    return;
  }
  if (by == SortBy::kCost) {
    by = map.size() <= units.size() * kLeavesAKeyMax ? SortBy::kCount : SortBy::kSort;
  }
  sorted_.resize(units.size());
  by == SortBy::kCount ? Count(units, map) : Merge(units, map);
}

template <typename K>
void Sorter<K>::Count(std::span<const Unit<K>> units, const LeafMap<K>& map) {
  leaf_of_.resize(units.size());
  counts_.assign(map.size(), 0);
  for (size_t i = 0; i < units.size(); ++i) {
    leaf_of_[i] = map.IndexOf(units[i].key);
    ++counts_[leaf_of_[i]];
  }
  uint32_t begin = 0;
  for (uint32_t leaf = 0; leaf < map.size(); ++leaf) {
    const uint32_t count = counts_[leaf];
    counts_[leaf] = begin;
    if (count == 0) continue;
    groups_.push_back({.leaf = map.leaf(leaf), .begin = begin, .end = begin + count});
    begin += count;
  }
  for (size_t i = 0; i < units.size(); ++i) sorted_[counts_[leaf_of_[i]]++] = units[i];
}

template <typename K>
void Sorter<K>::Merge(std::span<const Unit<K>> units, const LeafMap<K>& map) {
  std::ranges::copy(units, sorted_.begin());
  if constexpr (sizeof(K) == 4) {
    static_assert(offsetof(Unit<K>, key) == 4 && std::endian::native == std::endian::little);
    SortNumbers({reinterpret_cast<uint64_t*>(sorted_.data()), sorted_.size()});
  } else if constexpr (sizeof(K) == 8) {
    SortPairs(std::span(sorted_));
  } else {
    std::ranges::sort(sorted_, {}, &Unit<K>::key);
  }
  const auto count = static_cast<uint32_t>(sorted_.size());
  for (uint32_t begin = 0; begin < count;) {
    const uint32_t leaf = map.IndexOf(sorted_[begin].key);
    const bool is_last = leaf + 1 == map.size();
    uint32_t end = begin + 1;
    while (end < count && (is_last || sorted_[end].key < map.leaf(leaf + 1)->first)) ++end;
    groups_.push_back({.leaf = map.leaf(leaf), .begin = begin, .end = end});
    begin = end;
  }
  if constexpr (sizeof(K) == 4) return;
  // Equal keys in the order of arrival.
  for (uint32_t begin = 0; begin < count;) {
    uint32_t end = begin + 1;
    while (end < count && sorted_[end].key == sorted_[begin].key) ++end;
    if (end - begin > 1) {
      std::sort(sorted_.begin() + begin, sorted_.begin() + end,
                [](const Unit<K>& a, const Unit<K>& b) { return a.word < b.word; });
    }
    begin = end;
  }
}

template class Sorter<uint32_t>;
template class Sorter<uint64_t>;
template class Sorter<Key128>;

}  // namespace skep::hashleaf
