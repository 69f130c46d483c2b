#include "hashleaf/sorted_run.h"

#include <algorithm>

namespace skep::hashleaf {

template <typename K>
bool SortedRun<K>::Build(const Table<K>& table, PairSorter<K>& sorter) {
  const size_t bytes = std::max<size_t>(1, size_t{table.items()} * format_->stride());
  if (!pairs_.Allocate(bytes, Arena::Limit::kObey)) return false;
  sorter.Collect(table, {0, kKeyMax<K>});
  count_ = sorter.count();
  sorter.Write(table, *format_, 0, count_, At(0));
  TakeSample();
  return true;
}

template <typename K>
void SortedRun<K>::TakeSample() {
  tail_.clear();
  reads_ = 0;
  sample_.clear();
  sample_.reserve(count_ / kSampled + 1);
  for (uint32_t i = 0; i < count_; i += kSampled) sample_.push_back(KeyOf(i));
}

template <typename K>
uint32_t SortedRun<K>::LowerBound(K key) const {
  // The pairs to search begin at the last sampled key that is below the key.
  const auto above = std::ranges::lower_bound(sample_, key);
  if (above == sample_.begin()) return 0;
  const auto block = static_cast<uint32_t>(above - sample_.begin() - 1);
  uint32_t begin = block * kSampled;
  uint32_t left = std::min(kSampled, count_ - begin);
  while (left > 0) {
    const uint32_t half = left / 2;
    if (KeyOf(begin + half) < key) {
      begin += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  return begin;
}

template <typename K>
SortedRun<K>::Change* SortedRun<K>::InTail(K key) {
  const auto at = std::ranges::find(tail_, key, &Change::key);
  return at == tail_.end() ? nullptr : &*at;
}

template <typename K>
bool SortedRun<K>::Put(K key, const void* value) {
  Change* change = InTail(key);
  if (change == nullptr) {
    const uint32_t i = LowerBound(key);
    if (i < count_ && KeyOf(i) == key) {
      CopyValue(At(i) + sizeof(K), value, format_->value_bytes);
      return true;
    }
    if (tail_.size() == kTailMax) return false;
    change = &tail_.emplace_back();
    change->key = key;
  }
  change->is_erased = false;
  CopyValue(change->value.data(), value, format_->value_bytes);
  return true;
}

template <typename K>
bool SortedRun<K>::Erase(K key) {
  Change* change = InTail(key);
  if (change == nullptr) {
    if (tail_.size() == kTailMax) return false;
    change = &tail_.emplace_back();
    change->key = key;
  }
  change->is_erased = true;
  return true;
}

// Calls emit(bytes of key, bytes of value) for pairs [begin, end) merged with these sorted changes,
// in order, until it returns false.
template <typename K>
template <typename Emit>
void SortedRun<K>::MergeInto(uint32_t begin, uint32_t end, const std::vector<Change>& tail,
                             Emit emit) const {
  const auto emit_change = [&](const Change& change) {
    if (change.is_erased) return true;
    char key[sizeof(K)];
    StoreKey(key, change.key);
    return emit(key, change.value.data());
  };
  auto change = tail.begin();
  for (; begin < end; ++begin) {
    const K key = KeyOf(begin);
    for (; change != tail.end() && change->key < key; ++change) {
      if (!emit_change(*change)) return;
    }
    if (change != tail.end() && change->key == key) {
      if (!emit_change(*change++)) return;
    } else if (!emit(At(begin), At(begin) + sizeof(K))) {
      return;
    }
  }
  for (; change != tail.end(); ++change) {
    if (!emit_change(*change)) return;
  }
}

template <typename K>
bool SortedRun<K>::Merge() {
  Block merged(pairs_.memory());
  const size_t bytes = std::max<size_t>(1, (count_ + tail_.size()) * format_->stride());
  if (!merged.Allocate(bytes, Arena::Limit::kObey)) return false;
  std::ranges::sort(tail_, {}, &Change::key);
  char* const begin = reinterpret_cast<char*>(merged.data());
  char* to = begin;
  MergeInto(0, count_, tail_, [&](const char* key, const char* value) {
    std::memcpy(to, key, sizeof(K));
    CopyValue(to + sizeof(K), value, format_->value_bytes);
    to += format_->stride();
    return true;
  });
  count_ = static_cast<uint32_t>(static_cast<size_t>(to - begin) / format_->stride());
  pairs_ = std::move(merged);
  TakeSample();
  return true;
}

template <typename K>
Slice SortedRun<K>::Read(const Interval<K>& interval, Want want, std::vector<char>& buffer) {
  ++reads_;
  std::vector<Change> changes;
  for (const Change& change : tail_) {
    if (interval.Has(change.key)) changes.push_back(change);
  }
  uint32_t begin = LowerBound(interval.first);
  const auto end_of = [&] {
    return interval.last == kKeyMax<K> ? count_ : LowerBound(static_cast<K>(interval.last + 1));
  };
  if (changes.empty()) {
    if (want.last) {
      const uint32_t end = end_of();
      const uint32_t count = std::min(want.count_max, end - begin);
      return {.at = At(end - count), .count = count, .more = end - count > begin};
    }
    uint32_t end = begin + std::min(want.count_max, count_ - begin);
    // Most often the limit ends the slice.
    if (end > begin && KeyOf(end - 1) > interval.last) end = end_of();
    const bool more = end - begin == want.count_max && end < count_ && KeyOf(end) <= interval.last;
    return {.at = At(begin), .count = end - begin, .more = more};
  }
  std::ranges::sort(changes, {}, &Change::key);
  uint32_t end = end_of();
  // Each change may take one pair away.
  const uint64_t enough = uint64_t{want.count_max} + changes.size() + 1;
  if (want.last) {
    // Only changes that may be among the last pairs are merged.
    if (end - begin > enough) {
      begin = end - static_cast<uint32_t>(enough);
      const K from = KeyOf(begin);
      std::erase_if(changes, [&](const Change& change) { return change.key < from; });
    }
  }
  buffer.clear();
  uint32_t count = 0;
  bool more = false;
  MergeInto(begin, end, changes, [&](const char* key, const char* value) {
    if (!want.last && count == want.count_max) {
      more = true;
      return false;
    }
    buffer.insert(buffer.end(), key, key + sizeof(K));
    buffer.insert(buffer.end(), value, value + format_->value_bytes);
    ++count;
    return true;
  });
  if (!want.last || count <= want.count_max) {
    return {.at = buffer.data(), .count = count, .more = more};
  }
  const size_t skipped = size_t{count - want.count_max} * format_->stride();
  return {.at = buffer.data() + skipped, .count = want.count_max, .more = true};
}

template <typename K>
const char* SortedRun<K>::Verify(const Table<K>& table, PairSorter<K>& sorter) {
  sorter.Collect(table, {0, kKeyMax<K>});
  std::vector<char> wanted(size_t{sorter.count()} * format_->stride());
  sorter.Write(table, *format_, 0, sorter.count(), wanted.data());
  std::vector<char> buffer;
  const uint32_t reads = reads_;
  const Slice all = Read({0, kKeyMax<K>}, {.count_max = UINT32_MAX}, buffer);
  reads_ = reads;
  const bool same = all.count == sorter.count() && std::equal(wanted.begin(), wanted.end(), all.at);
  return same ? nullptr : "a sorted run has what its table has";
}

template class SortedRun<uint32_t>;
template class SortedRun<uint64_t>;
template class SortedRun<Key128>;

}  // namespace skep::hashleaf
