#include "hashleaf/leaf_mutator.h"

#include <algorithm>
#include <new>

#include "base/reserve_more.h"

namespace skep::hashleaf {
namespace {

// Estimates that choose how a scan reads a leaf; measured by skep-bench hetero-kv --figure scans.
constexpr uint64_t kProbeNs = 15;         // to look up a key of the interval
constexpr uint64_t kBucketNs = 1;         // to sweep a bucket
constexpr uint64_t kSortedNs = 15;        // to sort a pair that was found
constexpr uint32_t kProbedMax = 1 << 16;  // keys looked up one by one, at most

template <typename K>
PairSorter<K>& SorterOfThread() {
  static thread_local PairSorter<K> sorter;
  return sorter;
}

std::vector<char>& BufferOfThread() {
  static thread_local std::vector<char> buffer;
  return buffer;
}

// Looks up every key of the interval.
template <typename K>
Slice Probe(const Core<K>& core, const Leaf<K>& leaf, const Interval<K>& interval, Want want) {
  std::vector<char>& buffer = BufferOfThread();
  buffer.clear();
  const Format& format = core.format;
  Slice slice;
  constexpr K kAhead = 16;
  const K width = interval.last - interval.first;
  const auto key_at = [&](K i) -> K { return want.last ? interval.last - i : interval.first + i; };
  for (K i = 0;; ++i) {
    if (width - i >= kAhead) leaf.table.Prefetch(HashOf(key_at(i + kAhead), format.secret));
    const K key = key_at(i);
    const std::byte* const value = leaf.table.Find(key, HashOf(key, format.secret));
    if (value != nullptr) {
      if (slice.count == want.count_max) {
        slice.more = true;
        break;
      }
      const size_t at = buffer.size();
      buffer.resize(at + format.stride());
      StoreKey(buffer.data() + at, key);
      CopyValue(buffer.data() + at + sizeof(K), value, format.value_bytes);
      ++slice.count;
    }
    if (i == width) break;
  }
  // The last pairs of an interval were collected in descending order.
  const size_t stride = format.stride();
  for (size_t i = 0; want.last && i < slice.count / 2; ++i) {
    std::swap_ranges(buffer.data() + i * stride, buffer.data() + (i + 1) * stride,
                     buffer.data() + (slice.count - 1 - i) * stride);
  }
  slice.at = buffer.data();
  return slice;
}

template <typename K>
Slice Sweep(const Core<K>& core, const Leaf<K>& leaf, const Interval<K>& interval, Want want) {
  PairSorter<K>& sorter = SorterOfThread<K>();
  sorter.Collect(leaf.table, interval);
  const uint32_t count = std::min(want.count_max, sorter.count());
  const uint32_t begin = want.last ? sorter.count() - count : 0;
  std::vector<char>& buffer = BufferOfThread();
  buffer.resize(std::max<size_t>(1, size_t{count} * core.format.stride()));
  sorter.Write(leaf.table, core.format, begin, begin + count, buffer.data());
  return {.at = buffer.data(), .count = count, .more = count < sorter.count()};
}

// Builds a run. Returns whether the leaf has one then.
template <typename K>
bool BuildRun(Core<K>& core, Leaf<K>& leaf) {
  auto run = std::make_unique<SortedRun<K>>(core.memory, core.format);
  if (!run->Build(leaf.table, SorterOfThread<K>())) {
    leaf.swept_ns = 0;  // so that the next try is not at once
    return false;
  }
  core.DropRun(leaf);
  leaf.run = std::move(run);
  core.runs.fetch_add(1, std::memory_order_relaxed);
  core.runs_built.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Chooses how a scan without a run reads the leaf, and adds up what such scans cost; once that is
// what a run costs, one is built. So scans never cost more than twice the best choice.
template <typename K>
ScanBy Choose(Leaf<K>& leaf, const Interval<K>& interval) {
  const uint64_t look_ns = leaf.table.buckets() * kBucketNs;
  const uint64_t build_ns = look_ns + leaf.table.items() * kSortedNs;
  const K width = interval.last - interval.first;
  // Estimates that keys are spread evenly. A sweep sorts all pairs that it finds, however few are
  // wanted.
  const double part =
      (static_cast<double>(width) + 1) / (static_cast<double>(leaf.last - leaf.first) + 1);
  const uint64_t sweep_ns = look_ns + static_cast<uint64_t>(part * leaf.table.items()) * kSortedNs;
  const bool is_narrow = width < sweep_ns / kProbeNs;
  const uint64_t probe_ns = is_narrow ? (static_cast<uint64_t>(width) + 1) * kProbeNs : UINT64_MAX;
  const uint64_t cost_ns = std::min(probe_ns, sweep_ns);
  if (leaf.swept_ns + cost_ns > build_ns) return ScanBy::kRun;
  leaf.swept_ns += cost_ns;
  return probe_ns < sweep_ns ? ScanBy::kProbe : ScanBy::kSweep;
}

}  // namespace

template <typename K>
Slice ReadLeaf(Core<K>& core, Leaf<K>& leaf, const Interval<K>& asked, Want want) {
  if (leaf.table.items() == 0 || asked.last < leaf.first || leaf.last < asked.first) return {};
  const Interval<K> interval{std::max(asked.first, leaf.first), std::min(asked.last, leaf.last)};
  ScanBy by = core.settings.scan_by;
  if (by == ScanBy::kProbe && interval.last - interval.first > kProbedMax) by = ScanBy::kSweep;
  if (by == ScanBy::kCost) by = leaf.run != nullptr ? ScanBy::kRun : Choose(leaf, interval);
  switch (by) {
    case ScanBy::kProbe:
      return Probe(core, leaf, interval, want);
    case ScanBy::kRun:
      if (leaf.run == nullptr && !BuildRun(core, leaf)) break;
      return leaf.run->Read(interval, want, BufferOfThread());
    default:
      break;
  }
  return Sweep(core, leaf, interval, want);
}

template <typename K>
Slice ReadWhole(Core<K>& core, Leaf<K>& leaf) {
  if (leaf.table.items() == 0) return {};
  const Interval<K> all{0, kKeyMax<K>};
  const Want want{.count_max = UINT32_MAX};
  return leaf.run != nullptr ? leaf.run->Read(all, want, BufferOfThread())
                             : Sweep(core, leaf, all, want);
}

template <typename K>
void LeafMutator<K>::Erase(Leaf<K>& leaf, K key, uint64_t hash) {
  BeforeChange(leaf);
  leaf.table.Erase(key, hash);
  leaf.ShowSize();
  if (leaf.run != nullptr) NoteInRun(leaf, leaf.run->Erase(key), key, nullptr);
}

template <typename K>
void LeafMutator<K>::Clear(Leaf<K>& leaf) {
  if (leaf.table.items() == 0) return;
  BeforeChange(leaf);
  leaf.table.Clear();
  leaf.ShowSize();
  core_.DropRun(leaf);
}

// Notes a change in the leaf's run. If the tail is full, the run is merged if it was read since,
// else dropped.
template <typename K>
void LeafMutator<K>::NoteInRun(Leaf<K>& leaf, bool noted, K key, const void* value) {
  if (noted) return;
  try {
    if (leaf.run->reads() == 0 || !leaf.run->Merge()) {
      return core_.DropRun(leaf);
    }
    value != nullptr ? leaf.run->Put(key, value) : leaf.run->Erase(key);
  } catch (const std::bad_alloc&) {
    core_.DropRun(leaf);
  }
}

// Makes room for one more pair. Returns false if there is no memory.
template <typename K>
bool LeafMutator<K>::MakeRoom(Leaf<K>& leaf, K key, Arena::Limit limit) {
  Table<K>& table = leaf.table;
  const bool must = limit == Arena::Limit::kExceed;
  if (table.items() < (must ? table.items_max() : table.items_max() / 2)) {
    // Many other keys have these two choices as well. That is chance, as no client knows the
    // secret.
    table.Rehash();
    return true;
  }
  if (has_no_memory_ && !must) return false;
  if (table.bytes() < core_.settings.leaf_bytes) {
    has_no_memory_ = !table.Resize(Table<K>::NextBytes(core_.format, table.bytes()), limit);
  } else {
    has_no_memory_ = !Split(leaf, key, limit);
  }
  return !has_no_memory_;
}

// Splits a full leaf to make room for a pair with this key. Returns false if there is no memory.
template <typename K>
bool LeafMutator<K>::Split(Leaf<K>& leaf, K key, Arena::Limit limit) {
  // Everything that may throw comes before the leaf is changed.
  ReserveMore(added_, 1);
  if (locks_ != nullptr) locks_->MakeRoomForOne();
  std::vector<K> keys;
  keys.reserve(leaf.table.items());
  leaf.table.ForEach([&](K k, const std::byte*) { keys.push_back(k); });
  const auto [min, max] = std::ranges::minmax(keys);
  const uint32_t count = leaf.table.items();
  K last;  // last key of the lower part
  uint32_t above = 0;
  if (key > max) {
    // Keys come in ascending order: the old pairs stay together.
    last = max;
  } else {
    last = static_cast<K>(min + (max - min) / 2);
    constexpr uint32_t kLeast = 16;
    above = static_cast<uint32_t>(std::ranges::count_if(keys, [&](K k) { return k > last; }));
    const bool is_lopsided = above < count / kLeast || above > count - count / kLeast;
    if (is_lopsided && core_.settings.split_at == SplitAt::kMidpointOrMedian) {
      const auto median = keys.begin() + (count - 1) / 2;
      std::ranges::nth_element(keys, median);
      last = *median;
      above = count / 2;
    }
  }
  const auto bytes_for = [&](uint32_t items) {
    return Table<K>::BytesFor(core_.format, items, core_.settings.leaf_bytes);
  };
  // An atomic batch may have to put back pairs that it has erased from either part.
  const bool is_atomic = locks_ != nullptr;
  const uint32_t right_bytes = is_atomic ? leaf.table.bytes() : bytes_for(above);
  Leaf<K>* const right = core_.NewLeaf(static_cast<K>(last + 1), leaf.last, right_bytes, limit);
  if (right == nullptr) return false;
  leaf.table.MoveAbove(last, right->table);
  core_.DropRun(leaf);
  right->next = leaf.next;
  right->number = leaf.number;
  right->snapshot = leaf.snapshot;
  right->ShowSize();
  leaf.ShowSize();
  leaf.next = right;
  leaf.last = last;
  core_.splits.fetch_add(1, std::memory_order_relaxed);
  added_.push_back(right);
  if (locks_ != nullptr) locks_->Add(*right);
  // If there is no memory for a smaller table, the leaf keeps the one it has.
  const uint32_t left_bytes = bytes_for(leaf.table.items());
  if (left_bytes < leaf.table.bytes() && !is_atomic) leaf.table.Resize(left_bytes, limit);
  leaf.ShowSize();
  return true;
}

template <typename K>
bool LeafMutator<K>::Merge(Leaf<K>& left, Leaf<K>& right) {
  const uint32_t items = left.table.items() + right.table.items();
  const uint32_t bytes = Table<K>::BytesFor(core_.format, items, core_.settings.leaf_bytes);
  if (bytes > left.table.bytes() && !left.table.Resize(bytes, Arena::Limit::kExceed)) return false;
  BeforeChange(left);
  BeforeChange(right);
  left.table.MoveAll(right.table);
  left.ShowSize();
  right.ShowSize();
  core_.DropRun(left);
  core_.DropRun(right);
  left.number = std::max(left.number, right.number);
  left.last = right.last;
  left.next = right.next;
  right.Die(left);
  core_.merges.fetch_add(1, std::memory_order_relaxed);
  return true;
}

template <typename K>
void LeafMutator<K>::Publish() {
  if (added_.empty()) return;
  const MutexLock lock(core_.structure);
  core_.AddUnpublished(added_);
  added_.clear();
  try {
    core_.Publish();
  } catch (const std::bad_alloc&) {
    // Until a later call publishes the new leaves, links lead to them.
  }
}

// Keeps an image of the leaf for the snapshot iterator `id` (snapshot_iterator.h).
template <typename K>
void LeafMutator<K>::KeepImage(Leaf<K>& leaf, uint64_t id) {
  leaf.snapshot = id;
  SnapshotIteratorState<K>& snapshot = core_.snapshot;
  const MutexLock lock(snapshot.mutex);
  const bool is_over = snapshot.id.load(std::memory_order_relaxed) != id || snapshot.is_lost ||
                       snapshot.is_done || leaf.last < snapshot.from;
  if (is_over) return;
  const uint64_t bytes = uint64_t{leaf.table.items()} * core_.format.stride();
  if (!core_.budget.HasRoomFor(bytes + Arena::kSpanBytes)) {
    snapshot.is_lost = true;
    snapshot.images.clear();
    return;
  }
  try {
    const Slice all = ReadWhole(core_, leaf);
    std::pmr::vector<char> pairs(all.at, all.at + bytes, &snapshot.memory);
    snapshot.images.emplace(leaf.first,
                            typename SnapshotIteratorState<K>::Image{leaf.last, std::move(pairs)});
  } catch (const std::bad_alloc&) {
    snapshot.is_lost = true;  // the iterator is lost; the write goes on
    snapshot.images.clear();
  }
}

template class LeafMutator<uint32_t>;
template class LeafMutator<uint64_t>;
template class LeafMutator<Key128>;
template Slice ReadWhole(Core<uint32_t>&, Leaf<uint32_t>&);
template Slice ReadWhole(Core<uint64_t>&, Leaf<uint64_t>&);
template Slice ReadWhole(Core<Key128>&, Leaf<Key128>&);
template Slice ReadLeaf(Core<uint32_t>&, Leaf<uint32_t>&, const Interval<uint32_t>&, Want);
template Slice ReadLeaf(Core<uint64_t>&, Leaf<uint64_t>&, const Interval<uint64_t>&, Want);
template Slice ReadLeaf(Core<Key128>&, Leaf<Key128>&, const Interval<Key128>&, Want);

}  // namespace skep::hashleaf
