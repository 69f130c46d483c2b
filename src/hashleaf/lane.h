// lane.h: what one thread does of a window of sorted points.
//
//   chunk of some groups: their leaves are locked, those that nobody else has
//     look    ahead of it the leaves' first lines and the buckets are fetched; what the first
//             bucket of a key answers is done; for others the second is fetched
//     finish  what is left of the chunk, in order
//     unlock
//   groups whose leaf somebody else had: each waits for its leaf
//
// Operations on one key keep their order: they are of one group, whose operations are done in
// order; but a read may be left for later if no write of its group is before it that is left too,
// and none is done after it before it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/batch_writer.h"
#include "hashleaf/leaf_mutator.h"
#include "hashleaf/sorter.h"

namespace skep::hashleaf {

// What the requests of most batches are; all others are kOther.
enum class PointKind : uint8_t { kGet, kPut, kInsert, kUpdate, kDelete, kOther };

// Bits of what became of a point that is not kOther.
inline constexpr uint8_t kPointPresent = 1;
inline constexpr uint8_t kPointDone = 2;
inline constexpr uint8_t kPointRefused = 4;

template <typename K>
PointKind KindOf(const Unit<K>& unit) {
  return static_cast<PointKind>(unit.kind());
}

// Points, in groups, and what is known of them by their index. Lanes of several threads write
// different units' results.
template <typename K>
struct SortedWindow {
  Core<K>& core;
  const EngineTraits& traits;
  std::span<const Request> requests;
  BatchWriter& out;  // for kOther
  std::span<const Unit<K>> sorted;
  std::span<const Group<K>> groups;
  const uint32_t* slots;
  uint8_t* results;
  Version* numbers;  // null: not wanted
  char* values;      // what a unit stores, or has read

  char* ValueOf(uint32_t index) const { return values + size_t{index} * core.format.value_bytes; }
};

// Owner: one thread. It, or one that waits for it, is a reader of the core's epochs.
template <typename K>
class Lane {
 public:
  Lane(const SortedWindow<K>& window, LeafMutator<K>& mutator);

  // Groups [begin, end), but for those whose leaf somebody else has.
  void Do(size_t begin, size_t end);
  // Those.
  void DoBusy();
  // Units [begin, end) of a group, which only reads, and whose leaf is locked for all who call this
  // and has all of its keys.
  void Read(const Group<K>& group, uint32_t begin, uint32_t end);
  // The highest number read or drawn so far.
  Version ticket() const { return ticket_; }
  // Reads of Do() that have taken their answer from the read before them, of the same key.
  uint64_t repeats() const { return repeats_; }

 private:
  static constexpr uint32_t kChunk = 64;
  class ChunkLocks;
  // A unit that is not done yet, of the chunk's n-th group.
  struct Left {
    uint32_t group;
    Unit<K> unit;
  };
  struct Memory {
    std::vector<Left> left;
    std::vector<Left> strays;    // of leaves that were split
    std::vector<Group<K>> busy;  // somebody else has their leaf
  };
  static Memory& MemoryOfThread();

  void Fetch(uint32_t place);
  void DoChunk(std::span<const Group<K>> groups);
  void DoStrays(std::span<const Group<K>> groups);
  void DoGroup(Leaf<K>* leaf, std::span<Unit<K>> units);
  bool Look(Leaf<K>& leaf, const Unit<K>& unit, bool waits);
  bool DoUnit(Leaf<K>& leaf, const Unit<K>& unit);
  bool DoOther(Leaf<K>& leaf, const Unit<K>& unit);
  void Draw(Leaf<K>& leaf);
  void Number(const Leaf<K>& leaf, std::span<const Unit<K>> units);

  const SortedWindow<K>& window_;
  Core<K>& core_;
  LeafMutator<K>& mutator_;
  Memory& memory_;
  const uint32_t value_bytes_;
  uint32_t end_ = 0;            // of the units that it does now
  uint32_t fetched_ = 0;        // units that were asked for
  uint32_t fetched_group_ = 0;  // of the last one
  Version ticket_ = 0;
  uint64_t repeats_ = 0;
};

extern template class Lane<uint32_t>;
extern template class Lane<uint64_t>;
extern template class Lane<Key128>;

}  // namespace skep::hashleaf
