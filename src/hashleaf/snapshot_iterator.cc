#include "hashleaf/snapshot_iterator.h"

#include "base/check.h"
#include "hashleaf/leaf_mutator.h"

namespace skep::hashleaf {

template <typename K>
Result<std::unique_ptr<PairIterator>> SnapshotIterator<K>::Open(Core<K>& core, uint64_t now_ms) {
  auto iterator = std::unique_ptr<SnapshotIterator>(new SnapshotIterator(core));
  const Epochs::Guard guard(core.epochs);
  LeafLocks<K> locks(core);
  locks.Lock({0, kKeyMax<K>});
  SnapshotIteratorState<K>& state = core.snapshot;
  const MutexLock lock(state.mutex);
  if (state.id.load(std::memory_order_relaxed) != 0) {
    return Fail(Code::kUnavailable, "another snapshot is being read");
  }
  iterator->id_ = ++state.last_id;
  state.id.store(iterator->id_, std::memory_order_relaxed);
  state.is_lost = false;
  state.is_done = false;
  state.from = 0;
  iterator->now_ms_ = core.now.Advance(now_ms);
  iterator->version_ = core.numbers.last();
  return iterator;
}

template <typename K>
SnapshotIterator<K>::~SnapshotIterator() {
  if (id_ == 0) return;
  const MutexLock lock(core_.snapshot.mutex);
  core_.snapshot.id.store(0, std::memory_order_relaxed);
  core_.snapshot.images.clear();
}

template <typename K>
Result<std::span<const Pair>> SnapshotIterator<K>::Next() {
  pairs_.clear();
  bytes_.clear();
  while (bytes_.empty() && !core_.snapshot.is_done) {
    if (const Status s = TakeLeaf(); !s.ok()) return Fail(s);
  }
  const uint32_t value_bytes = core_.format.value_bytes;
  for (const char* at = bytes_.data(); at != bytes_.data() + bytes_.size();
       at += core_.format.stride()) {
    pairs_.push_back({.key = {at, sizeof(K)}, .value = {at + sizeof(K), value_bytes}});
  }
  return pairs_;
}

template <typename K>
Status SnapshotIterator<K>::TakeLeaf() {
  const Epochs::Guard guard(core_.epochs);
  SnapshotIteratorState<K>& state = core_.snapshot;
  LeafLocks<K> locks(core_);
  Leaf<K>& leaf = locks.Of(state.from);  // only the iterator changes `from`
  const MutexLock lock(state.mutex);
  if (state.is_lost) {
    return {Code::kSnapshotTooOld, "no memory for what has changed since the snapshot"};
  }
  K last = leaf.last;
  if (leaf.snapshot != id_) {
    const Slice all = ReadWhole(core_, leaf);
    bytes_.assign(all.at, all.at + size_t{all.count} * core_.format.stride());
    leaf.snapshot = id_;
  } else {
    const auto image = state.images.find(state.from);
    SKEP_CHECK(image != state.images.end());
    bytes_.assign(image->second.pairs.begin(), image->second.pairs.end());
    last = image->second.last;
    state.images.erase(image);
  }
  state.is_done = last == kKeyMax<K>;
  if (!state.is_done) state.from = static_cast<K>(last + 1);
  return {};
}

template class SnapshotIterator<uint32_t>;
template class SnapshotIterator<uint64_t>;
template class SnapshotIterator<Key128>;

}  // namespace skep::hashleaf
