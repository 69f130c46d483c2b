#include "hashleaf/dispatcher.h"

#include <algorithm>

#include "hashleaf/sort_pairs.h"

namespace skep::hashleaf {
namespace {

// Returns whether counting is faster, as measured by skep-bench hetero-kv --figure sorters.
template <typename K>
bool CountIsFaster(size_t keys, size_t leaves) {
  // A key of four bytes and its place are one number, which vqsort is best at; a key of sixteen
  // has no number for both.
  if constexpr (sizeof(K) == 4) return keys < 512 && leaves <= keys * 4;
  return leaves <= keys * (sizeof(K) == 8 ? 16 : 64);
}

}  // namespace

template <typename K>
void Dispatcher<K>::Dispatch(std::span<const Unit<K>> units, const LeafMap<K>& map, GroupBy by) {
  groups_.clear();
  if (units.size() == 1) {
    sorted_.assign(1, units[0]);
    groups_.push_back({.leaf = map.leaf(map.IndexOf(units[0].key)), .begin = 0, .end = 1});
    return;
  }
  if (by == GroupBy::kCost) {
    by = CountIsFaster<K>(units.size(), map.size()) ? GroupBy::kCount : GroupBy::kSort;
  }
  sorted_.resize(units.size());
  by == GroupBy::kCount ? Count(units, map) : Merge(units, map);
}

template <typename K>
void Dispatcher<K>::Count(std::span<const Unit<K>> units, const LeafMap<K>& map) {
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
void Dispatcher<K>::Merge(std::span<const Unit<K>> units, const LeafMap<K>& map) {
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
  uint32_t leaf = 0;
  for (uint32_t begin = 0; begin < count;) {
    leaf = map.IndexFrom(leaf, sorted_[begin].key);
    uint32_t end = begin + 1;
    if (leaf + 1 == map.size()) {
      end = count;
    } else {
      const K behind = map.first(leaf + 1);
      while (end < count && sorted_[end].key < behind) ++end;
    }
    groups_.push_back({.leaf = map.leaf(leaf), .begin = begin, .end = end});
    begin = end;
  }
  if constexpr (sizeof(K) == 4) return;
  // Puts equal keys in the order of arrival.
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

template class Dispatcher<uint32_t>;
template class Dispatcher<uint64_t>;
template class Dispatcher<Key128>;

}  // namespace skep::hashleaf
