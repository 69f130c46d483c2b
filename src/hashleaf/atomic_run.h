// atomic_run.h: executes an atomic batch: all or nothing, part by part, at one instant.
//
// All leaves that the batch names are locked, from left to right, until it is done; if it has
// ranges, all leaves from the first key that one of its operations may look at to the last.
// Operations change the leaves at once; the old state of each key is noted, and put back if its
// part fails. No other thread sees these changes, as the leaves are locked.
#pragma once

#include <optional>
#include <vector>

#include "engine/atomic_parts.h"
#include "engine/point.h"
#include "hashleaf/ranges.h"

namespace skep::hashleaf {

// Owner: one execution of one batch, by one thread, which is a reader of the core's epochs.
template <typename K>
class AtomicRun {
 public:
  AtomicRun(Core<K>& core, const EngineTraits& traits, Batch& batch, BatchWriter& out)
      : core_(core),
        traits_(traits),
        batch_(batch),
        out_(out),
        locks_(core),
        mutator_(core, &locks_),
        ranges_(core, batch, out, locks_, mutator_, &undo_) {}

  // Fills in the outcomes. Returns the ticket.
  Version Do();

  // Called by ExecuteParts.
  void BeginPart(const Part&) { undo_.clear(); }
  void Perform(uint32_t slot);
  std::optional<uint32_t> FinishPart(const Part&) {
    TouchWatches();
    return std::nullopt;
  }
  void TakeBack(const Part&);

 private:
  const Request& request(uint32_t slot) const { return batch_.requests()[slot]; }
  bool IsWellFormed(const Request& request) const;
  void Lock();
  void Point(uint32_t slot);
  void Move(uint32_t slot);
  bool Store(K key, const char* value, Arena::Limit limit);
  void Erase(K key);
  void TouchWatches();
  std::optional<PointState> StateOf(K key);

  Core<K>& core_;
  const EngineTraits& traits_;
  Batch& batch_;
  BatchWriter& out_;
  uint64_t now_ms_ = 0;
  LeafLocks<K> locks_;
  LeafMutator<K> mutator_;
  std::vector<Undo<K>> undo_;  // of the part's changes, in order
  Ranges<K> ranges_;
};

extern template class AtomicRun<uint32_t>;
extern template class AtomicRun<uint64_t>;
extern template class AtomicRun<Key128>;

}  // namespace skep::hashleaf
