// dispatcher.h: dispatches the operations of a window to the leaves that they belong to, as groups
// (HeteroKV, sections III-B and III-C: the sorter and the dispatcher).
//
//   arrival   k7 k2 k9 k2 k1        leaf 0 [0, 4]   leaf 1 [5, 9]
//   order     k2 k2 k1 | k7 k9      groups: leaf 0 from 0, leaf 1 from 3
//
// Within a group the order is that of arrival, so operations on one key keep theirs.
//
// There are two ways, which give the same groups; which is faster depends on window and map:
//   kCount  each key is looked up in the map, and the leaves' numbers are sorted by counting: a
//           search a key, and a count for each leaf of the map, touched or not
//   kSort   keys are sorted, with their places (vqsort, or std::sort for keys of 16 bytes), and
//           walk along the map: a comparison sort, and a search for each leaf that is touched
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "hashleaf/leaf_map.h"

namespace skep::hashleaf {

// An operation: its key, and its number in the order of arrival with three bits for the caller.
template <typename K>
struct Unit {
  using Word = std::conditional_t<sizeof(K) == 4, uint32_t, uint64_t>;
  static constexpr int kKindBits = 3;

  Word word;  // of 4 bytes the key is the upper half of the two as one number: so vqsort has it
  K key;
  uint32_t index() const { return static_cast<uint32_t>(word >> kKindBits); }
  uint32_t kind() const { return static_cast<uint32_t>(word) & ((1u << kKindBits) - 1); }
  static Unit Of(K key, uint32_t index, uint32_t kind) {
    return {.word = Word{index} << kKindBits | kind, .key = key};
  }
};

// The operations of one leaf: [begin, end) of the sorted units.
template <typename K>
struct Group {
  Leaf<K>* leaf;
  uint32_t begin, end;
};

enum class GroupBy : uint8_t { kCost, kCount, kSort };

// Owner: one thread. Keeps its memory for the next window.
template <typename K>
class Dispatcher {
 public:
  // `units` are in the order of arrival.
  void Dispatch(std::span<const Unit<K>> units, const LeafMap<K>& map, GroupBy by = GroupBy::kCost);

  std::span<const Group<K>> groups() const { return groups_; }
  // Returns the units group by group.
  std::span<const Unit<K>> sorted() const { return sorted_; }

 private:
  void Count(std::span<const Unit<K>> units, const LeafMap<K>& map);
  void Merge(std::span<const Unit<K>> units, const LeafMap<K>& map);

  std::vector<Group<K>> groups_;
  std::vector<Unit<K>> sorted_;
  std::vector<uint32_t> leaf_of_;  // of each unit
  std::vector<uint32_t> counts_;   // of each leaf
};

extern template class Dispatcher<uint32_t>;
extern template class Dispatcher<uint64_t>;
extern template class Dispatcher<Key128>;

}  // namespace skep::hashleaf
