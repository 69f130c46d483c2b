// ranges.h: executes operations on ranges of keys, each at one instant: all leaves that an
// operation looks at are held from the first to the end (leaf.h, "several").
//
// Forward, leaves are locked as they are reached. Backward, and to find the largest key below a
// bound, the number of leaves needed to the left is guessed, and these are locked from left to
// right; if they are too few, all are unlocked and twice as many are tried.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/batch_writer.h"
#include "hashleaf/leaf_mutator.h"

namespace skep::hashleaf {

// The state of a key before an atomic batch changed it.
template <typename K>
struct Undo {
  K key;
  bool present;
  std::array<char, kValueBytesMax> value;
};

// Owner: one execution of one batch, by one thread, which is a reader of the core's epochs.
template <typename K>
class Ranges {
 public:
  // `undo`: the changes of an atomic batch, which holds every leaf that its ranges may look at;
  // they are noted there, and watches are told by the caller, who knows whether the batch is
  // applied. Null: the leaves that an operation has locked are held until Finish.
  Ranges(Core<K>& core, Batch& batch, BatchWriter& out, LeafLocks<K>& locks,
         LeafMutator<K>& mutator, std::vector<Undo<K>>* undo)
      : core_(core), batch_(batch), out_(out), locks_(locks), mutator_(mutator), undo_(undo) {}

  // Fills in the outcome of a well-formed request, except for its version.
  void Do(uint32_t slot);
  // Returns whether Do is for this operation.
  static bool IsFor(Op op) {
    return op == Op::kScan || op == Op::kCount || op == Op::kDeleteRange || op == Op::kDeleteAll ||
           op == Op::kSample || op == Op::kRequireEmpty;
  }
  // Unlocks the leaves; returns the highest number of their writes.
  Version Finish();

  // Returns the first and last key that the request may look at, for a caller that locks all leaves
  // before; none if it looks at no key.
  static std::optional<Interval<K>> Needs(const Request& request);

 private:
  const Request& request(uint32_t slot) const { return batch_.requests()[slot]; }
  bool is_atomic() const { return undo_ != nullptr; }
  std::optional<Interval<K>> Bounds(const Request& request);
  std::optional<K> Floor(K bound);
  void LockBack(const Interval<K>& interval, uint64_t wanted);
  void Scan(uint32_t slot);
  void Stop(uint32_t slot, Leaf<K>& leaf, const Interval<K>& interval, const Slice& slice);
  void AddItems(uint32_t slot, const Slice& slice, bool keys_only, bool reverse);
  void Count(uint32_t slot);
  void DeleteRange(uint32_t slot);
  struct LeafPairs {
    Leaf<K>* leaf;
    bool is_whole;  // all pairs of the leaf
    std::vector<char> pairs;
  };
  std::vector<LeafPairs> PairsToErase(const Interval<K>& interval);
  void EraseFrom(Leaf<K>& leaf, std::span<const char> pairs);
  void Sample(uint32_t slot);
  void RequireEmpty(uint32_t slot);
  void Number(uint32_t slot);

  Core<K>& core_;
  Batch& batch_;
  BatchWriter& out_;
  LeafLocks<K>& locks_;
  LeafMutator<K>& mutator_;
  std::vector<Undo<K>>* const undo_;
};

extern template class Ranges<uint32_t>;
extern template class Ranges<uint64_t>;
extern template class Ranges<Key128>;

}  // namespace skep::hashleaf
