// sorted_pairs.h: the pairs of a table in the order of their keys.
#pragma once

#include <cstdint>
#include <vector>

#include "hashleaf/table.h"

namespace skep::hashleaf {

// Pairs one behind the other, each its key's bytes and its value's: as a batch answers a scan.
struct Slice {
  const char* at = nullptr;
  uint32_t count = 0;
  bool more = false;  // there are others in the interval: behind them, or before them if they are
                      // its last ones
};

// How many pairs of an interval are wanted, and whether the first or the last of them.
struct Want {
  uint32_t count_max;
  bool last = false;
};

// The pairs of the interval, in order, in `bytes`, which has room. Owner: one thread.
template <typename K>
class PairSorter {
 public:
  // Looks at every slot (a sweep).
  void Collect(const Table<K>& table, const Interval<K>& interval);
  // Those that were collected; sorts them.
  uint32_t count() const;
  // Writes pairs [begin, end) to `to`.
  void Write(const Table<K>& table, const Format& format, uint32_t begin, uint32_t end,
             char* to) const;

 private:
  struct Entry {
    uint64_t place;
    K key;
  };
  // Keys of 4 bytes, with the place below; others apart.
  std::vector<uint64_t> packed_;
  std::vector<Entry> entries_;
};

extern template class PairSorter<uint32_t>;
extern template class PairSorter<uint64_t>;
extern template class PairSorter<Key128>;

}  // namespace skep::hashleaf
