#include "hashleaf/core.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace skep::hashleaf {

template <typename K>
Core<K>::~Core() {
  const LeafMap<K>* const last = map.load(std::memory_order_relaxed);
  if (last == nullptr) return;
  for (Leaf<K>* const leaf : last->leaves()) DeleteLeaf(leaf);
  while (unpublished != nullptr) DeleteLeaf(std::exchange(unpublished, unpublished->unpublished));
  budget.Release(last->bytes());
  delete last;
}

template <typename K>
bool Core<K>::Start() {
  Leaf<K>* const leaf = NewLeaf(0, kKeyMax<K>, Table<K>::kBytesMin, Arena::Limit::kExceed);
  if (leaf == nullptr) return false;
  const auto* const first = new LeafMap<K>({leaf});
  budget.Charge(first->bytes());
  map.store(first, std::memory_order_seq_cst);
  return true;
}

template <typename K>
Leaf<K>* Core<K>::NewLeaf(K first, K last, uint32_t table_bytes, Arena::Limit limit) {
  auto leaf = std::make_unique<Leaf<K>>(memory, format, first, last);
  if (!leaf->table.Resize(table_bytes, limit)) return nullptr;
  budget.Charge(sizeof(Leaf<K>));
  return leaf.release();
}

template <typename K>
void Core<K>::DeleteLeaf(Leaf<K>* leaf) {
  budget.Release(sizeof(Leaf<K>));
  delete leaf;
}

template <typename K>
void Core<K>::AddUnpublished(const std::vector<Leaf<K>*>& added) {
  for (Leaf<K>* const leaf : added) leaf->unpublished = std::exchange(unpublished, leaf);
}

template <typename K>
void Core<K>::Publish() {
  if (unpublished == nullptr && dead.empty()) return;
  const LeafMap<K>* const old = map.load(std::memory_order_relaxed);
  std::vector<Leaf<K>*> added;
  for (Leaf<K>* leaf = unpublished; leaf != nullptr; leaf = leaf->unpublished) {
    added.push_back(leaf);
  }
  std::ranges::sort(added, {}, &Leaf<K>::first);
  std::vector<Leaf<K>*> leaves;
  leaves.reserve(old->size() + added.size());
  std::ranges::merge(old->leaves(), added, std::back_inserter(leaves), {}, &Leaf<K>::first,
                     &Leaf<K>::first);
  if (!dead.empty()) {
    // `structure` guards `absorber` too: only the thread that holds it merges leaves.
    std::erase_if(leaves, [](const Leaf<K>* leaf) { return leaf->absorber != nullptr; });
  }
  auto made = std::make_unique<const LeafMap<K>>(std::move(leaves));
  Epochs::Garbage garbage;
  garbage.emplace_back().free = [this, old] {
    budget.Release(old->bytes());
    delete old;
  };
  for (Leaf<K>* const leaf : dead) {
    garbage.emplace_back().free = [this, leaf] { DeleteLeaf(leaf); };
  }
  // Nothing is allocated from here on.
  budget.Charge(made->bytes());
  map.store(made.release(), std::memory_order_seq_cst);
  epochs.Retire(garbage);
  dead.clear();
  while (unpublished != nullptr) {
    unpublished = std::exchange(unpublished->unpublished, nullptr);
  }
  epochs.Reclaim();
}

template <typename K>
void Core<K>::GiveWay() {
  epochs.Reclaim();
  // One thread that drops runs is enough, and none is needed if there are no runs.
  if (runs.load(std::memory_order_relaxed) == 0 ||
      gives_way_.test_and_set(std::memory_order_acquire)) {
    return;
  }
  const Epochs::Guard guard(epochs);
  for (Leaf<K>* const leaf : Map().leaves()) {
    const std::unique_lock lock(leaf->lock, std::try_to_lock);
    if (lock) DropRun(*leaf);
  }
  gives_way_.clear(std::memory_order_release);
}

template <typename K>
void Core<K>::DropRun(Leaf<K>& leaf) {
  leaf.swept_ns = 0;
  if (leaf.run == nullptr) return;
  leaf.run.reset();
  runs.fetch_sub(1, std::memory_order_relaxed);
}

template struct Core<uint32_t>;
template struct Core<uint64_t>;
template struct Core<Key128>;

}  // namespace skep::hashleaf
