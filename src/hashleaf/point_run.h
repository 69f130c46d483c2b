// point_run.h: the points of an unordered batch (HeteroKV, section III-D: a thread takes all
// requests of a leaf, so that the leaf is read from memory once).
//
//   Add      what the operations need is taken out of the requests: keys, hashes, values
//   Flush    Sorter: groups by leaf
//            chunks of some groups: their leaves are locked, those that nobody else has
//              look    ahead of it the leaves' first lines and the buckets are fetched; what the
//                      first bucket of a key answers is done; for others the second is fetched
//              finish  what is left of the chunk, in order
//              unlock
//            groups whose leaf somebody else had: each waits for its leaf
//            outcomes, in the order of arrival
//
// Operations on one key keep their order: they are of one group, whose operations are done in
// order; but a read may be left for later if no write of its group is before it that is left too,
// and none is done after it before it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/point.h"
#include "hashleaf/changer.h"
#include "hashleaf/sorter.h"

namespace skep::hashleaf {

// Owner: one execution of one batch, by one thread, which is a reader of the core's epochs.
template <typename K>
class PointRun {
 public:
  struct Window;
  // Its memory is used again by the thread's next batch.
  static Window& WindowOfThread();

  PointRun(Core<K>& core, const EngineTraits& traits, Batch& batch, BatchWriter& out,
           Changer<K>& changer);

  // Takes points from this slot on and returns the first slot that is none, or the batch's size.
  // Refuses those that are not well-formed. Flushes full windows.
  uint32_t Add(uint32_t slot);
  void Flush();
  // The highest number read or drawn so far.
  Version ticket() const { return ticket_; }

 private:
  // What the requests of most batches are; all others are kOther.
  enum class Kind : uint8_t { kGet, kPut, kInsert, kUpdate, kDelete, kOther };
  // Bits of what became of one that is not kOther.
  static constexpr uint8_t kPresent = 1;
  static constexpr uint8_t kDone = 2;
  static constexpr uint8_t kRefused = 4;
  static constexpr uint32_t kWindow = 32 * 1024;
  static constexpr uint32_t kChunk = 64;

  Kind KindOf(const Request& request) const;
  static Kind KindOf(const Unit<K>& unit) { return static_cast<Kind>(unit.kind()); }
  void Fetch(uint32_t place);
  void DoChunk(std::span<const Group<K>> groups);
  void DoStrays(std::span<const Group<K>> groups);
  void DoGroup(Leaf<K>* leaf, std::span<Unit<K>> units);
  bool Look(Leaf<K>& leaf, const Unit<K>& unit, bool waits);
  bool Do(Leaf<K>& leaf, const Unit<K>& unit);
  bool DoOther(Leaf<K>& leaf, const Unit<K>& unit);
  void Draw(Leaf<K>& leaf);
  void Number(const Leaf<K>& leaf, std::span<const Unit<K>> units);
  void Answer();
  char* ValueOf(uint32_t index) const { return values_ + size_t{index} * value_bytes_; }

  Core<K>& core_;
  const EngineTraits& traits_;
  Batch& batch_;
  const std::span<const Request> requests_;
  BatchWriter& out_;
  Changer<K>& changer_;
  const LeafMap<K>* map_;
  Window& window_;
  const uint32_t value_bytes_;
  const bool numbers_;
  char* values_ = nullptr;  // of each unit: what it stores, or has read
  uint32_t count_ = 0;
  uint32_t fetched_ = 0;        // units that were asked for
  uint32_t fetched_group_ = 0;  // of the last one
  Version ticket_ = 0;
};

extern template class PointRun<uint32_t>;
extern template class PointRun<uint64_t>;
extern template class PointRun<Key128>;

}  // namespace skep::hashleaf
