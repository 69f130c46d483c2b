#include "hashleaf/sorted_pairs.h"

#include <algorithm>

#include "hashleaf/sort_pairs.h"

namespace skep::hashleaf {
namespace {

// Below this number, calling vqsort costs more than it saves.
constexpr size_t kFewEntries = 24;

}  // namespace

template <typename K>
void PairSorter<K>::Collect(const Table<K>& table, const Interval<K>& interval) {
  if constexpr (sizeof(K) == 4) {
    packed_.clear();
    table.ForEachWithin(
        interval, [&](K key, uint32_t place) { packed_.push_back(uint64_t{key} << 32 | place); });
    if (packed_.size() < kFewEntries) {
      std::ranges::sort(packed_);
    } else {
      SortNumbers(packed_);
    }
  } else {
    entries_.clear();
    table.ForEachWithin(
        interval, [&](K key, uint32_t place) { entries_.push_back({.place = place, .key = key}); });
    if constexpr (sizeof(K) == 8) {
      if (entries_.size() >= kFewEntries) return SortPairs(std::span(entries_));
    }
    std::ranges::sort(entries_, {}, &Entry::key);
  }
}

template <typename K>
uint32_t PairSorter<K>::count() const {
  return static_cast<uint32_t>(sizeof(K) == 4 ? packed_.size() : entries_.size());
}

template <typename K>
void PairSorter<K>::Write(const Table<K>& table, const Format& format, uint32_t begin, uint32_t end,
                          char* to) const {
  for (uint32_t i = begin; i < end; ++i, to += format.stride()) {
    K key;
    uint32_t place;
    if constexpr (sizeof(K) == 4) {
      key = static_cast<K>(packed_[i] >> 32);
      place = static_cast<uint32_t>(packed_[i]);
    } else {
      key = entries_[i].key;
      place = static_cast<uint32_t>(entries_[i].place);
    }
    StoreKey(to, key);
    CopyValue(to + sizeof(K), table.ValueOf(place), format.value_bytes);
  }
}

template class PairSorter<uint32_t>;
template class PairSorter<uint64_t>;
template class PairSorter<Key128>;

}  // namespace skep::hashleaf
