#include "hashleaf/core.h"

#include <algorithm>

namespace skep::hashleaf {

template <typename K>
Core<K>::~Core() {
  const LeafMap<K>* const last = map.load(std::memory_order_relaxed);
  if (last == nullptr) return;
  for (Leaf<K>* const leaf : last->leaves()) DeleteLeaf(leaf);
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
void Core<K>::Publish(std::vector<Leaf<K>*> added, const std::vector<Leaf<K>*>& dead) {
  const LeafMap<K>* const old = map.load(std::memory_order_relaxed);
  std::ranges::sort(added, {}, &Leaf<K>::first);
  std::vector<Leaf<K>*> leaves;
  leaves.reserve(old->size() + added.size());
  std::ranges::merge(old->leaves(), added, std::back_inserter(leaves), {}, &Leaf<K>::first,
                     &Leaf<K>::first);
  if (!dead.empty()) {
    // `structure` guards that, too: who holds it, and nobody else, lets leaves die.
    std::erase_if(leaves, [](const Leaf<K>* leaf) { return leaf->absorber != nullptr; });
  }
  const auto* const made = new LeafMap<K>(std::move(leaves));
  budget.Charge(made->bytes());
  map.store(made, std::memory_order_seq_cst);
  epochs.Retire([this, old] {
    budget.Release(old->bytes());
    delete old;
  });
  for (Leaf<K>* const leaf : dead) epochs.Retire([this, leaf] { DeleteLeaf(leaf); });
  epochs.Reclaim();
}

template <typename K>
void Core<K>::GiveWay() {
  epochs.Reclaim();
  // One is enough; and nobody has to if there are none.
  if (runs.load(std::memory_order_relaxed) == 0 ||
      gives_way_.test_and_set(std::memory_order_acquire)) {
    return;
  }
  const Epochs::Guard guard(epochs);
  for (Leaf<K>* const leaf : Map().leaves()) {
    if (!leaf->lock.try_lock()) continue;
    DropRun(*leaf);
    leaf->lock.unlock();
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
