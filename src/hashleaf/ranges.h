// ranges.h: operations on ranges of keys, each at one instant: all leaves that it looks at are held
// from the first to the end (leaf.h, "several").
//
// Forward, leaves are locked as they are reached. Backward, and to find the largest key below a
// bound, a guess is made of how many leaves to the left are needed, those are locked from left to
// right, and if they were too few, all is dropped and twice as many are taken.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/batch_writer.h"
#include "hashleaf/leaf_mutator.h"

namespace skep::hashleaf {

// What a key was before an atomic batch has changed it.
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
  // `undo`: of an atomic batch, which holds every leaf that its ranges may look at; changes are
  // noted there, and watches left to who knows whether the batch is applied. Else null: the leaves
  // an operation has locked are held until Finish.
  Ranges(Core<K>& core, Batch& batch, BatchWriter& out, LeafLocks<K>& locks,
         LeafMutator<K>& mutator, std::vector<Undo<K>>* undo)
      : core_(core), batch_(batch), out_(out), locks_(locks), mutator_(mutator), undo_(undo) {}

  // Each fills in the outcome of a well-formed request, but for its version.
  void Do(uint32_t slot);
  // Whether Do is for this one.
  static bool IsFor(Op op) {
    return op == Op::kScan || op == Op::kCount || op == Op::kDeleteRange || op == Op::kDeleteAll ||
           op == Op::kSample || op == Op::kRequireEmpty;
  }
  // Drops what it has locked; returns the highest number of its leaves.
  Version Finish();

  // The first and last key it may look at, for who is to lock all before; none: it looks at none.
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
    bool is_whole;  // all of its pairs
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
