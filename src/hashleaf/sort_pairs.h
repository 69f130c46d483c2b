// sort_pairs.h: vqsort (Highway) for numbers, and for numbers with something beside them.
#pragma once

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hashleaf/key.h"

namespace skep::hashleaf {

// Returns the thread's sorter, which allocates its memory once.
inline const hwy::Sorter& VqsortOfThread() {
  static thread_local const hwy::Sorter sorter;
  return sorter;
}

// Sorts pairs by `key`. A Pair is two numbers of 8 bytes, the second one `key`; pairs with equal
// keys come in any order.
template <typename Pair>
void SortPairs(std::span<Pair> pairs) {
  static_assert(sizeof(Pair) == sizeof(hwy::K64V64));
  static_assert(offsetof(Pair, key) == offsetof(hwy::K64V64, key));
  // vqsort fills up its buffers with pairs of the largest key, and may keep one of those instead of
  // ours.
  const auto rest = std::partition(pairs.begin(), pairs.end(),
                                   [](const Pair& pair) { return pair.key != kKeyMax<uint64_t>; });
  const auto count = static_cast<size_t>(rest - pairs.begin());
  VqsortOfThread()(reinterpret_cast<hwy::K64V64*>(pairs.data()), count, hwy::SortAscending());
}

inline void SortNumbers(std::span<uint64_t> numbers) {
  VqsortOfThread()(numbers.data(), numbers.size(), hwy::SortAscending());
}

}  // namespace skep::hashleaf
