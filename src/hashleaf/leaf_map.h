// leaf_map.h: the inner levels of the tree: which leaf has a key (HeteroKV, section III-C: the tree
// of the dispatcher, which the FPGA keeps in its own memory).
//
//   level 2   0                                                16 keys of 4 bytes a group
//             |
//   level 1   0            5000           9100   ...           every 16th of the level below
//             |            |              |
//   level 0   0 300 700 .. 5000 5210 ..   9100 ..              the first key of every leaf
//   leaves    *  *   *  ..  *    *         *
//
// The levels are flat arrays without pointers between them: a search compares one group a level. A
// map is immutable. A thread that has split or merged leaves makes the next map, with all its
// changes sorted, and publishes it by one store (core.h); threads that still use the old map find
// moved keys by the leaves' own links.
//
// Cost: a search reads a cache line a level; a new map copies all first keys, so a batch makes one
// map for all its splits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "hashleaf/leaf.h"

namespace skep::hashleaf {

// Thread-safe.
template <typename K>
class LeafMap {
 public:
  // Takes the leaves in the order of their keys; they cover all keys without a gap, from key 0 on.
  explicit LeafMap(std::vector<Leaf<K>*> leaves);
  LeafMap(const LeafMap&) = delete;
  LeafMap& operator=(const LeafMap&) = delete;

  uint32_t size() const { return static_cast<uint32_t>(leaves_.size()); }
  Leaf<K>* leaf(uint32_t index) const { return leaves_[index]; }
  std::span<Leaf<K>* const> leaves() const { return leaves_; }
  // Returns the first key of a leaf, without reading the leaf.
  K first(uint32_t index) const { return levels_[0].begin[index]; }
  uint64_t bytes() const;
  uint32_t levels() const { return static_cast<uint32_t>(levels_.size()); }

  // Returns the number of the last leaf whose first key is not above the key.
  uint32_t IndexOf(K key) const {
    size_t at = 0;
    for (size_t level = levels_.size(); level-- > 0;) {
      const Level& numbers = levels_[level];
      const K* const group = numbers.begin + at * kGroup;
      const uint32_t not_above = CountNotAbove(group, key);
      // Behind the end there are keys that no key is below.
      at = std::min<size_t>(at * kGroup + not_above - 1, numbers.size - 1);
    }
    return static_cast<uint32_t>(at);
  }
  // Returns IndexOf(key) for a key not before leaf `from`: faster if it is only a little behind.
  uint32_t IndexFrom(uint32_t from, K key) const {
    const uint32_t group = from / kGroup * kGroup;
    const uint32_t not_above = CountNotAbove(levels_[0].begin + group, key);
    if (not_above == kGroup) return IndexOf(key);
    return group + not_above - 1;
  }

 private:
  static constexpr uint32_t kGroup = sizeof(K) == 4 ? 16 : 8;
  struct Level {
    K* begin;  // a multiple of kGroup: the keys, filled up with the largest key
    size_t size;
  };
  static uint32_t CountNotAbove(const K* group, K key) {
#if defined(__SSE4_1__)
    if constexpr (sizeof(K) <= 8) {
      if (kUsesAvx512) return wide::CountNotAbove(reinterpret_cast<const std::byte*>(group), key);
    }
#endif
    uint32_t count = 0;
    for (uint32_t i = 0; i < kGroup; ++i) count += group[i] <= key;
    return count;
  }
  struct Free {
    void operator()(K* numbers) const { ::operator delete(numbers, std::align_val_t{64}); }
  };
  static size_t RoundUp(size_t size) { return (size + kGroup - 1) / kGroup * kGroup; }

  const std::vector<Leaf<K>*> leaves_;
  size_t count_ = 0;  // of all levels
  std::unique_ptr<K, Free> numbers_;
  std::vector<Level> levels_;
};

template <typename K>
LeafMap<K>::LeafMap(std::vector<Leaf<K>*> leaves) : leaves_(std::move(leaves)) {
  std::vector<size_t> sizes = {leaves_.size()};
  while (sizes.back() > kGroup) sizes.push_back(RoundUp(sizes.back()) / kGroup);
  for (const size_t size : sizes) count_ += RoundUp(size);
  numbers_.reset(static_cast<K*>(::operator new(count_ * sizeof(K), std::align_val_t{64})));
  K* at = numbers_.get();
  for (const size_t size : sizes) {
    for (size_t i = 0; i < size; ++i) {
      at[i] = levels_.empty() ? leaves_[i]->first : levels_.back().begin[i * kGroup];
    }
    std::fill(at + size, at + RoundUp(size), kKeyMax<K>);
    levels_.push_back({.begin = at, .size = size});
    at += RoundUp(size);
  }
}

template <typename K>
uint64_t LeafMap<K>::bytes() const {
  return sizeof(*this) + leaves_.capacity() * sizeof(Leaf<K>*) + count_ * sizeof(K);
}

}  // namespace skep::hashleaf
