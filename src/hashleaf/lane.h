// lane.h: the part of a window of sorted points that one thread does.
//
//   chunk of some groups: their leaves are locked, except those that another thread holds
//     look    the leaves' first lines and the buckets are fetched ahead; a unit for which the first
//             bucket of its key suffices is done; for the others the second bucket is fetched
//     finish  the rest of the chunk, in order
//     unlock
//   groups whose leaf another thread held: each waits for its leaf
//
// Operations on one key keep their order. They are of one group, whose operations are done in
// order, except reads: a read may be done before earlier units of the group that are left for
// later, unless one of these is a write; and while any unit is left, no write is done before it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/batch_writer.h"
#include "hashleaf/dispatcher.h"
#include "hashleaf/leaf_mutator.h"

namespace skep::hashleaf {

// The kinds of request of most batches; all others are kOther.
enum class PointKind : uint8_t { kGet, kPut, kInsert, kUpdate, kDelete, kOther };

// Bits of the result of a point that is not kOther.
inline constexpr uint8_t kPointPresent = 1;
inline constexpr uint8_t kPointDone = 2;
inline constexpr uint8_t kPointRefused = 4;

template <typename K>
PointKind KindOf(const Unit<K>& unit) {
  return static_cast<PointKind>(unit.kind());
}

// Points in groups, and their requests and results by index. Lanes of several threads write the
// results of different units.
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
  char* values;      // of each unit: the value it stores, or has read

  char* ValueOf(uint32_t index) const { return values + size_t{index} * core.format.value_bytes; }
};

// Owner: one thread, which is a reader of the core's epochs, or for which such a reader waits.
template <typename K>
class Lane {
 public:
  Lane(const SortedWindow<K>& window, LeafMutator<K>& mutator);

  // Does groups [begin, end), except those whose leaf another thread holds.
  void Do(size_t begin, size_t end);
  // Does the groups that Do() has left because another thread held their leaf.
  void DoBusy();
  // Reads units [begin, end) of a group of reads. Its leaf has all of its keys, and is locked for
  // all threads that call this.
  void Read(const Group<K>& group, uint32_t begin, uint32_t end);
  // Returns the highest number read or drawn so far.
  Version ticket() const { return ticket_; }
  // Returns how many reads of Do() took their answer from the read before them, of the same key.
  uint64_t repeats() const { return repeats_; }

 private:
  static constexpr uint32_t kChunk = 64;
  class ChunkLocks;
  // A unit that is not done yet, of group `group` of the chunk.
  struct Left {
    uint32_t group;
    Unit<K> unit;
  };
  struct Memory {
    std::vector<Left> left;
    std::vector<Left> strays;    // units of leaves that were split
    std::vector<Group<K>> busy;  // another thread holds their leaf
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
  uint32_t end_ = 0;            // end of the units under way
  uint32_t fetched_ = 0;        // units whose fetch was started
  uint32_t fetched_group_ = 0;  // the group of the last one
  Version ticket_ = 0;
  uint64_t repeats_ = 0;
};

extern template class Lane<uint32_t>;
extern template class Lane<uint64_t>;
extern template class Lane<Key128>;

}  // namespace skep::hashleaf
