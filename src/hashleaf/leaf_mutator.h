// leaf_mutator.h: what changes a leaf.
#pragma once

#include <vector>

#include "hashleaf/leaf_locks.h"

namespace skep::hashleaf {

// Owner: one execution of one batch, by one thread, which is a reader of the core's epochs. When it
// goes the thread holds no leaf.
template <typename K>
class LeafMutator {
 public:
  // `locks`: what the execution holds all the time; leaves that come from splits are added.
  explicit LeafMutator(Core<K>& core, LeafLocks<K>* locks = nullptr) : core_(core), locks_(locks) {}
  ~LeafMutator() { Publish(); }
  LeafMutator(const LeafMutator&) = delete;
  LeafMutator& operator=(const LeafMutator&) = delete;

  enum class Stored : uint8_t {
    kDone,
    kElsewhere,  // the leaf was split: the key belongs to the new one, nothing is stored
    kNoMemory,   // also while the budget is over its limit, for who obeys it
  };
  // `leaf` is locked, and has the key. `found`: where the table has its value, or null.
  Stored Store(Leaf<K>& leaf, K key, uint64_t hash, const void* value, std::byte* found,
               Arena::Limit limit);
  // The key is there.
  void Erase(Leaf<K>& leaf, K key, uint64_t hash);
  // All pairs of the leaf.
  void Clear(Leaf<K>& leaf);
  // Takes over everything from the leaf right of it, which is dead then: it is to leave the map.
  // Both are locked, and the left one has room. False: no memory.
  bool Merge(Leaf<K>& left, Leaf<K>& right);

  // Tells the map what was split; without memory for another map, a later call does it. The thread
  // holds no leaf, or it is the only one at work on what it holds. The destructor does it, too.
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
  bool has_no_memory_ = false;  // some leaf could not grow: no other one is tried
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

// The pairs of the interval that a leaf has, in order; it is locked. In the leaf's memory or the
// thread's: valid until the leaf changes or the next call.
template <typename K>
Slice ReadLeaf(Core<K>& core, Leaf<K>& leaf, const Interval<K>& interval, Want want);
// All of them, without making a run for that.
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
