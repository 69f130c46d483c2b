// sorted_run.h: a sorted copy of the pairs of a leaf, for scans.
//
//   pairs   k v k v k v k v ...     in the form in which a batch answers a scan, which copies them
//   sample  k       k       ...     the key of every kSampled-th pair
//   tail    pairs added or erased since, unsorted, at most kTailMax
//
// A value that changes is changed in the pairs. A full tail is merged into them.
//
// Cost: the memory of the pairs once more, and a key for every kSampled of them. A scan searches
// the sample, then among kSampled pairs, and looks at the tail. A change costs the same search.
//
// Thread safety: the leaf's lock protects it.
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

  // Both arguments must outlive the run.
  SortedRun(Memory& memory, const Format& format) : format_(&format), pairs_(memory) {}

  // Copies all pairs of the table. Returns false if there is no memory.
  bool Build(const Table<K>& table, PairSorter<K>& sorter);

  // Note that a pair was added or its value changed, and that a key was erased. Return false, and
  // note nothing, if the tail is full.
  bool Put(K key, const void* value);
  bool Erase(K key);
  // Merges the tail into the pairs. Returns false, and changes nothing, if there is no memory.
  bool Merge();

  // Returns the first, or last, pairs of the interval, in order. They lie in the run or in
  // `buffer`: valid until either changes.
  Slice Read(const Interval<K>& interval, Want want, std::vector<char>& buffer);
  // Returns how often the run was read since it was built or merged.
  uint32_t reads() const { return reads_; }

  uint64_t bytes() const { return pairs_.bytes() + sample_.capacity() * sizeof(K); }
  // Returns null if the run has the pairs of the table, or a literal that says what is wrong.
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
  // Returns the first pair whose key is not below `key`; the number of pairs if there is none.
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
