#include "hash/snapshot_iterator.h"

#include <mutex>

namespace skep::hash {

SnapshotIterator::SnapshotIterator(Core& core) : core_(core), state_(core.budget) {
  for (size_t i = 0; i < core.partitions.size(); ++i) {
    images_.push_back(std::make_unique<BeforeImages>(state_));
  }
}

Result<std::unique_ptr<PairIterator>> SnapshotIterator::Open(Core& core, uint64_t now_ms) {
  auto iterator = std::unique_ptr<SnapshotIterator>(new SnapshotIterator(core));
  const AllLocked all(core);
  if (core.partitions[0]->table.before_images() != nullptr) {
    return Fail(Code::kUnavailable, "another snapshot is being read");
  }
  iterator->now_ms_ = core.now.Advance(now_ms);
  iterator->version_ = core.numbers.last();
  for (size_t i = 0; i < core.partitions.size(); ++i) {
    core.partitions[i]->table.set_before_images(iterator->images_[i].get());
  }
  iterator->is_open_ = true;
  return iterator;
}

// The saved pairs are freed after all locks are released.
SnapshotIterator::~SnapshotIterator() {
  if (!is_open_) return;
  const AllLocked all(core_);
  for (const auto& partition : core_.partitions) partition->table.set_before_images(nullptr);
}

Result<std::span<const Pair>> SnapshotIterator::Next() {
  pairs_.clear();
  scratch_.Clear();
  while (partition_ < core_.partitions.size() && !HasEnough()) {
    if (!TakeSome()) {
      return Fail(Code::kSnapshotTooOld, "no memory for what has changed since the snapshot");
    }
  }
  return pairs_;
}

// Works on one partition. Returns false if the iterator is lost.
bool SnapshotIterator::TakeSome() {
  Partition& partition = *core_.partitions[partition_];
  BeforeImages& images = *images_[partition_];
  const std::lock_guard locked(partition.lock);
  if (state_.is_lost.load(std::memory_order_relaxed)) return false;
  partition.table.PrefetchChains(images.done(), kChainsALock);
  for (int chains = 0; chains < kChainsALock && !HasEnough(); ++chains) {
    if (images.done() == kPositionEnd) break;
    images.Take(partition.table, [&](const Pair& pair) {
      pairs_.push_back({.key = scratch_.Copy(pair.key),
                        .value = scratch_.Copy(pair.value),
                        .deadline_ms = pair.deadline_ms});
    });
  }
  if (images.done() == kPositionEnd) ++partition_;
  return true;
}

}  // namespace skep::hash
