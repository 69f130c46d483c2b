// leaf_mutator.h: stores and erases pairs of leaves, and splits, merges and reads leaves.
#pragma once

#include <vector>

#include "hashleaf/leaf_locks.h"

namespace skep::hashleaf {

// Owner: one execution of one batch, by one thread, which is a reader of the core's epochs. The
// thread holds no leaf when the mutator is destroyed.
template <typename K>
class LeafMutator {
 public:
  // `locks`: the leaves that the execution holds to its end, or null; leaves from splits are added.
  explicit LeafMutator(Core<K>& core, LeafLocks<K>* locks = nullptr) : core_(core), locks_(locks) {}
  ~LeafMutator() { Publish(); }
  LeafMutator(const LeafMutator&) = delete;
  LeafMutator& operator=(const LeafMutator&) = delete;

  enum class Stored : uint8_t {
    kDone,
    kElsewhere,  // the leaf was split: the key belongs to the new one, nothing is stored
    kNoMemory,   // also while the budget is over its limit, if `limit` obeys it
  };
  // Stores a pair. `leaf` is locked and has the key. `found`: where the table has the key's value,
  // or null.
  Stored Store(Leaf<K>& leaf, K key, uint64_t hash, const void* value, std::byte* found,
               Arena::Limit limit);
  // Erases a key that is in the leaf, which is locked.
  void Erase(Leaf<K>& leaf, K key, uint64_t hash);
  // Erases all pairs of the leaf.
  void Clear(Leaf<K>& leaf);
  // Moves everything from the leaf `right` of `left`, which is dead then and must leave the map.
  // Both are locked, and `left` has room. Returns false if there is no memory.
  bool Merge(Leaf<K>& left, Leaf<K>& right);

  // Adds the leaves that were split off to the map; without memory for another map, a later call
  // does it. The thread must hold no leaf, or be the only one that works on those that it holds.
  // The destructor calls it, too.
  void Publish();

 private:
  void BeforeChange(Leaf<K>& leaf);
  void KeepImage(Leaf<K>& leaf, uint64_t id);
  bool MakeRoom(Leaf<K>& leaf, K key, Arena::Limit limit);
  bool Split(Leaf<K>& leaf, K key, Arena::Limit limit);
  void NoteInRun(Leaf<K>& leaf, bool noted, K key, const void* value);

  Core<K>& core_;
  LeafLocks<K>* const locks_;
  std::vector<Leaf<K>*> added_;
  bool has_no_memory_ = false;  // a leaf could not grow: no other one is tried
};

template <typename K>
inline void LeafMutator<K>::BeforeChange(Leaf<K>& leaf) {
  const uint64_t id = core_.snapshot.id.load(std::memory_order_relaxed);
  if (id != 0 && leaf.snapshot != id) [[unlikely]]
    KeepImage(leaf, id);
}

template <typename K>
inline LeafMutator<K>::Stored LeafMutator<K>::Store(Leaf<K>& leaf, K key, uint64_t hash,
                                                    const void* value, std::byte* found,
                                                    Arena::Limit limit) {
  if (limit == Arena::Limit::kObey && !core_.budget.HasRoomFor(0)) return Stored::kNoMemory;
  BeforeChange(leaf);
  if (found != nullptr) {
    CopyValue(found, value, core_.format.value_bytes);
  } else {
    while (!leaf.table.Add(key, hash, value)) [[unlikely]] {
      if (!MakeRoom(leaf, key, limit)) return Stored::kNoMemory;
      if (!leaf.Has(key)) return Stored::kElsewhere;
    }
    leaf.ShowSize();
  }
  if (leaf.run != nullptr) NoteInRun(leaf, leaf.run->Put(key, value), key, value);
  return Stored::kDone;
}

// Returns the pairs of the interval that a locked leaf has, in order. They lie in the leaf's memory
// or the thread's: valid until the leaf changes or the next call.
template <typename K>
Slice ReadLeaf(Core<K>& core, Leaf<K>& leaf, const Interval<K>& interval, Want want);
// Returns all pairs of the leaf, in order, without making a run for that.
template <typename K>
Slice ReadWhole(Core<K>& core, Leaf<K>& leaf);

extern template class LeafMutator<uint32_t>;
extern template class LeafMutator<uint64_t>;
extern template class LeafMutator<Key128>;
extern template Slice ReadWhole(Core<uint32_t>&, Leaf<uint32_t>&);
extern template Slice ReadWhole(Core<uint64_t>&, Leaf<uint64_t>&);
extern template Slice ReadWhole(Core<Key128>&, Leaf<Key128>&);
extern template Slice ReadLeaf(Core<uint32_t>&, Leaf<uint32_t>&, const Interval<uint32_t>&, Want);
extern template Slice ReadLeaf(Core<uint64_t>&, Leaf<uint64_t>&, const Interval<uint64_t>&, Want);
extern template Slice ReadLeaf(Core<Key128>&, Leaf<Key128>&, const Interval<Key128>&, Want);

}  // namespace skep::hashleaf
