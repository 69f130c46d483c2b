#include "hashleaf/snapshot_walk.h"

#include "base/check.h"
#include "hashleaf/changer.h"

namespace skep::hashleaf {

template <typename K>
Result<std::unique_ptr<PairIterator>> SnapshotWalk<K>::Open(Core<K>& core, uint64_t now_ms) {
  auto walk = std::unique_ptr<SnapshotWalk>(new SnapshotWalk(core));
  const Epochs::Guard guard(core.epochs);
  LeafLocks<K> locks(core);
  locks.Lock({0, kKeyMax<K>});
  WalkState<K>& state = core.walk;
  const std::lock_guard lock(state.mutex);
  if (state.id.load(std::memory_order_relaxed) != 0) {
    return Fail(Code::kUnavailable, "another snapshot is being read");
  }
  walk->id_ = ++state.last_id;
  state.id.store(walk->id_, std::memory_order_relaxed);
  state.is_lost = false;
  state.is_done = false;
  state.from = 0;
  walk->now_ms_ = core.now.Advance(now_ms);
  walk->version_ = core.numbers.last();
  return walk;
}

template <typename K>
SnapshotWalk<K>::~SnapshotWalk() {
  if (id_ == 0) return;
  const std::lock_guard lock(core_.walk.mutex);
  core_.walk.id.store(0, std::memory_order_relaxed);
  core_.walk.images.clear();
}

template <typename K>
Result<std::span<const Pair>> SnapshotWalk<K>::Next() {
  pairs_.clear();
  bytes_.clear();
  while (bytes_.empty() && !core_.walk.is_done) {
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
Status SnapshotWalk<K>::TakeLeaf() {
  const Epochs::Guard guard(core_.epochs);
  WalkState<K>& state = core_.walk;
  LeafLocks<K> locks(core_);
  Leaf<K>& leaf = locks.Of(state.from);  // `from` is changed here only
  const std::lock_guard lock(state.mutex);
  if (state.is_lost) {
    return {Code::kSnapshotTooOld, "no memory for what has changed since the snapshot"};
  }
  K last = leaf.last;
  if (leaf.walk != id_) {
    const Slice all = ReadWhole(core_, leaf);
    bytes_.assign(all.at, all.at + size_t{all.count} * core_.format.stride());
    leaf.walk = id_;
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

template class SnapshotWalk<uint32_t>;
template class SnapshotWalk<uint64_t>;
template class SnapshotWalk<Key128>;

}  // namespace skep::hashleaf
