// random_batch.h: random batches whose answers are determined, for tests.
//
// An unordered batch promises no order between operations on different keys, so its scans and
// counts have one right answer only if the batch does not write the keys they see. Three forms do:
//   points alone, also many on one key; reads alone, ranges included; and points below a pivot with
//   one operation on the range above it.
// Atomic batches act in slot order: any requests may be mixed, in parts too.
//
// The choices are drawn from a seed, or from the caller's source, such as a fuzzer's input.
//
// Deadlines lie a few milliseconds around the batch's now, before as well as after it, so that keys
// expire between the batches of a log whose time passes in such steps.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "skep/batch.h"

namespace skep {

class RandomBatch {
 public:
  explicit RandomBatch(uint64_t seed);
  // Draws from `choices`, which must outlive this object.
  explicit RandomBatch(Random& choices) : choices_(choices) {}

  // A watch that kRequireUnchanged may name, and its key.
  struct WatchedKey {
    uint64_t watch;
    std::string key;
  };

  // Adds requests to an empty batch whose now is set. Their bytes live in the batch's scratch.
  void Fill(Batch& batch);
  // The same with reads only, without conditions: for snapshots.
  void FillWithReads(Batch& batch);

  uint64_t Below(uint64_t bound) { return choices_.Below(bound); }
  // Returns one of the keys that batches are about, in the batch's scratch.
  std::string_view Key(Batch& batch) { return Key(batch, Side::kAnywhere); }
  // Requests name types of values, and functions of them, from now on.
  void UseTypes() { uses_types_ = true; }
  void set_watched(std::vector<WatchedKey> watched) { watched_ = std::move(watched); }

 private:
  enum class Side : uint8_t { kBelowPivot, kAbovePivot, kAnywhere };

  void FillAtomic(Batch& batch, uint64_t requests);
  void AddPoint(Batch& batch, Side side);
  void AddComparison(Batch& batch, Request& request);
  void ChooseFunction(Batch& batch, Request& request);
  void ChooseUpdate(Batch& batch, Request& request);
  void AddMove(Batch& batch);
  void AddRead(Batch& batch);
  void AddScan(Batch& batch, Side side);
  void AddRange(Batch& batch, Side side);
  void AddExpireRange(Batch& batch, Side side);
  void AddCondition(Batch& batch);
  void Add(Batch& batch, Request request);
  void AddUnchanged(Batch& batch);
  Range ARange(Batch& batch, Side side);
  std::string_view Key(Batch& batch, Side side);
  std::string_view Value(Batch& batch);
  uint64_t Deadline(const Batch& batch);
  uint8_t WhenOfDeadline();
  uint32_t Limit();

  const std::unique_ptr<Random> own_;  // null: the caller owns it
  Random& choices_;
  bool uses_types_ = false;
  std::vector<WatchedKey> watched_;
};

// A function that reverses the value and returns the old one; the operand may also ask to erase the
// value ("erase"), keep it ("keep") or fail ("fail": kInvalidArgument). Registered once in the
// process.
const Function* ReverseFunction();
// The same function, of values of another type than kPlainType.
const Function* TypedReverseFunction();

}  // namespace skep
