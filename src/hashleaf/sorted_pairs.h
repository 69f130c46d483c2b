// sorted_pairs.h: the pairs of a table in the order of their keys.
#pragma once

#include <cstdint>
#include <vector>

#include "hashleaf/table.h"

namespace skep::hashleaf {

// Pairs one behind the other, each its key's bytes and its value's: the form in which a batch
// answers a scan.
struct Slice {
  const char* at = nullptr;
  uint32_t count = 0;
  bool more = false;  // the interval has others: behind these, or before its last ones
};

// How many pairs of an interval are wanted, and whether the first or the last of them.
struct Want {
  uint32_t count_max;
  bool last = false;
};

// Sorts the pairs of an interval by key. Owner: one thread.
template <typename K>
class PairSorter {
 public:
  // Collects the pairs of the interval; looks at every slot of the table (a sweep).
  void Collect(const Table<K>& table, const Interval<K>& interval);
  // Sorts the pairs that were collected, and returns how many they are.
  uint32_t count() const;
  // Writes the sorted pairs [begin, end) to `to`, which must have room.
  void Write(const Table<K>& table, const Format& format, uint32_t begin, uint32_t end,
             char* to) const;

 private:
  struct Entry {
    uint64_t place;
    K key;
  };
  // Keys of 4 bytes are packed with the place in the lower half; others are entries.
  std::vector<uint64_t> packed_;
  std::vector<Entry> entries_;
};

extern template class PairSorter<uint32_t>;
extern template class PairSorter<uint64_t>;
extern template class PairSorter<Key128>;

}  // namespace skep::hashleaf
