// sorted_run.h: the pairs of a leaf once more, sorted, for scans.
//
//   pairs   k v k v k v k v ...     as a batch answers a scan: to scan is to copy
//   sample  k       k       ...     the key of every kSampled-th pair
//   tail    what was added or erased since, unsorted, at most kTailMax
//
// A value that changes is changed in the pairs. A full tail is merged into them.
//
// Cost: the pairs once more, and a key for every kSampled of them. A scan: a search in the sample,
// one in kSampled pairs, and a look at the tail. A change: the same search.
//
// Thread safety: its leaf's lock.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hashleaf/sorted_pairs.h"

namespace skep::hashleaf {

template <typename K>
class SortedRun {
 public:
  static constexpr uint32_t kTailMax = 128;

  // Both must outlive it.
  SortedRun(Memory& memory, const Format& format) : format_(&format), pairs_(memory) {}

  // All pairs of the table. False: no memory.
  bool Build(const Table<K>& table, PairSorter<K>& sorter);

  // A pair was added or its value changed; a key was erased. False: the tail is full, nothing is
  // noted.
  bool Put(K key, const void* value);
  bool Erase(K key);
  // The tail into the pairs. False: no memory, nothing is changed.
  bool Merge();

  // The first, or last, pairs of the interval, in order. In the run or in `buffer`: valid until
  // either changes.
  Slice Read(const Interval<K>& interval, Want want, std::vector<char>& buffer);
  // How often it was read since it was built or merged.
  uint32_t reads() const { return reads_; }

  uint64_t bytes() const { return pairs_.bytes() + sample_.capacity() * sizeof(K); }
  // Whether it has what the table has: null, or what is wrong.
  const char* Verify(const Table<K>& table, PairSorter<K>& sorter);

 private:
  static constexpr uint32_t kSampled = 32;
  struct Change {
    K key;
    bool is_erased;
    std::array<char, kValueBytesMax> value;
  };

  const char* At(uint32_t i) const {
    return reinterpret_cast<const char*>(pairs_.data()) + size_t{i} * format_->stride();
  }
  char* At(uint32_t i) {
    return reinterpret_cast<char*>(pairs_.data()) + size_t{i} * format_->stride();
  }
  K KeyOf(uint32_t i) const { return LoadKey<K>(At(i)); }
  // The first pair whose key is not below; the number of pairs if there is none.
  uint32_t LowerBound(K key) const;
  Change* InTail(K key);
  void TakeSample();
  template <typename Emit>
  void MergeInto(uint32_t begin, uint32_t end, const std::vector<Change>& tail, Emit emit) const;

  const Format* format_;
  Block pairs_;
  uint32_t count_ = 0;
  std::vector<K> sample_;
  std::vector<Change> tail_;
  uint32_t reads_ = 0;
};

extern template class SortedRun<uint32_t>;
extern template class SortedRun<uint64_t>;
extern template class SortedRun<Key128>;

}  // namespace skep::hashleaf
