// atomic_calls.h: an atomic batch in which calls of functions on large collections are among other
// requests.
//
// The calls are made beforehand, in their order, on what is read then (joint_calls.h). Then one
// atomic batch has, in front, the conditions under which they would be made again with the same
// answers, and what they write; and behind that the other requests. So the batch costs, for each
// large collection, the segments that its calls are about.
//
//   operand of a call is the outcome of     done how
//     a call on a large collection          it is known
//     a call on another key                 that is made beforehand too, on the key's value, which
//                                           becomes a condition
//   operand of another request is the       it gets the operand as it is known by then
//   outcome of a call
//
// It is not done so, and nothing is done, if a large collection is deleted, moved, stored or within
// a range that is written; if a call is of a function that looks at more than a few pieces and
// another one before it writes the same collection; if a call answers an error, and is not a part
// of its own; and if the collection loses all its members and gets new ones, or is looked for by
// another request, or a range is.
//
// Parts. What calls write is in front of all parts. So where a part behind the first one has a call
// beside other requests, these are made beforehand on the values of their keys, which become
// conditions, and are executed in front, too: no part is done by half. Their keys may have no large
// collection, and no request before them may be about these keys. A thread that changes such a
// value again and again holds the batch up only until it has the turn (collection_engine.h): in its
// turn the batch is not done so.
//
// Long calls. A call that is longer than Access::portion_bytes_max() ends it, and so do calls that
// have looked at kPortionsMax times as much together: nothing is done then.
//
// Without memory. What only frees memory is never refused (engine.h). A batch that was refused for
// memory is done once more without the parts that may store something, each of which is refused for
// itself.
//
// Progress: as a change (change.h); the caller bounds the tries.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collections/joint_calls.h"
#include "engine/batch_writer.h"

namespace skep::collections {

class AtomicCalls {
 public:
  enum class End : uint8_t { kDone, kAgain, kNotSo, kLong };
  static constexpr size_t kPortionsMax = 4;
  // Writes the answer of a slot into the batch that the caller has.
  using Fill = std::function<void(uint32_t slot, uint8_t kind, const Answer& answer)>;

  // `large`: the keys of points of collections in the batch that have a large one. With `foresees`,
  // parts behind the first one may have calls beside requests about other keys (MoveToFront).
  AtomicCalls(Access& access, Batch& batch, std::span<const std::string_view> large, bool foresees)
      : access_(access),
        batch_(batch),
        foresees_(foresees),
        work_before_(access.work()),
        slots_(batch.size()) {
    for (const std::string_view key : large) keys_.try_emplace(key);
  }

  // Refuses the parts that may store something; the others are left to Try. False: the first one
  // may, so nothing is to be done.
  bool RefuseStores(Status status);
  // `value_bytes_max`: of the engine. kDone: the outcomes of the batch are those of its execution;
  // it may not be applied. If the batch is refused for memory, *no_memory says so and has the error
  // that the outcomes have.
  End Try(size_t value_bytes_max, const Fill& fill, Status* no_memory);

 private:
  struct Key {
    uint8_t kind = kPlainType;
    types::LargeRecord record;
    uint32_t required_slot = 0;  // of whole_, which requires the record, if nothing writes it
    std::unique_ptr<JointCalls> calls;  // null: none was made
    bool is_read = false;               // by a function that reads many pieces, or as a whole
    uint32_t erased_slot = UINT32_MAX;  // the call that has left no members
  };
  enum class Deed : uint8_t {
    kStays,          // it is executed with the batch
    kForeseen,       // it is executed in front, beside the calls of its part
    kAnswered,       // it is a call that was made
    kNothing,        // its operand is a call that found nothing, or something: it is not done
    kOfAnotherKind,  // it is a call for another kind of collection than the key has
    kRefused,        // its part is not done
  };
  struct Slot {
    Deed deed = Deed::kStays;
    bool is_culprit = false;  // because of which its part is refused
    // It is no call, and stands behind the first part in one that has calls. As these are done in
    // front of all parts, it must not be refused then.
    bool is_beside_calls = false;
    Answer answer;
    Request request;                   // with its operand, if it stays
    uint32_t at = 0;                   // its slot in the batch that is executed, if it is
    std::optional<std::string> known;  // the value that it will return, which was foreseen
    size_t stored_bytes = 0;           // that it will store then
  };
  static bool IsExecuted(const Slot& slot) {
    return slot.deed == Deed::kStays || slot.deed == Deed::kForeseen;
  }

  void NoteKeys();
  bool IsSo() const;
  bool IsSoSlot(uint32_t slot) const;
  bool IsPartOfItsOwn(uint32_t slot) const;
  bool IsOfAnotherKind(uint32_t slot) const;
  bool ReadRecords();
  End Make();
  End MakeCall(Key& key, uint32_t slot);
  // Whether the calls so far have looked at more than they may.
  bool IsTooMuch() const {
    return (access_.work() - work_before_) / kPortionsMax > access_.portion_bytes_max();
  }
  End ResolveOperand(uint32_t slot);
  End Foresee(uint32_t slot);
  End MoveToFront(uint32_t slot);
  bool MissesOne() const;
  void AddFront();
  void AddOthers();
  void Finish(const Fill& fill);
  bool IsLarge(const Request& request) const;
  bool IsCall(const Request& request) const;

  Access& access_;
  Batch& batch_;
  const bool foresees_;
  const size_t work_before_;
  Status refusal_;  // of the slots that a part is refused for
  std::map<std::string_view, Key> keys_;
  std::vector<Slot> slots_;
  std::map<std::string_view, uint32_t> first_slots_;  // that is about each key
  uint32_t first_broad_slot_ = UINT32_MAX;            // that is about keys which it does not name
  Batch whole_{Batch::Kind::kAtomic};
  uint32_t front_ = 0;  // slots of whole_ that are not of the batch
};

}  // namespace skep::collections
