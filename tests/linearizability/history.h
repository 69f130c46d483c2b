// history.h: the operations of several clients on one store, their times, and their answers.
//
// An operation is one or more steps that the store must perform at one instant, all or nothing. A
// point call, a scan and an atomic batch are all operations; they differ in their steps.
//
//   call                                    returned
//    |-----------------x----------------------|          x: the one instant it takes effect
//
// Times come from anything that rises with real time: one atomic counter, or a monotonic clock. An
// operation precedes another if it returned before the other was called; equal times overlap.
//
// An operation without a reply (the connection broke, the server was killed) has `returned` ==
// kNever: it may have taken effect at any instant after its call, or never. An operation that was
// refused with the promise that nothing was changed does not belong in a history, unless the
// refusal depends on the state (Operation::applied).
//
// Watches. One step begins to watch a key, under a number; a condition of a later operation holds
// if and only if the key has not been written since then: both instants are in the order.
//
// Time is a small number that only rises. A tick is an operation too: from its instant on, keys
// with that deadline or an earlier one are gone for all clients. A store learns the time from
// operations that carry it; such an operation is two in a history, a tick and one that acts at some
// instant after it (Operation::now). So an operation that told the time acts at the new time, and
// so does everything that is ordered after the tick, whatever its own clock says.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skep/scan.h"

namespace skep::linearizability {

inline constexpr uint64_t kNever = UINT64_MAX;
// The answer of a range delete that was not told how many keys it deleted.
inline constexpr int64_t kNotTold = -1;

enum class Action : uint8_t {
  kGet,               // found; `deadline` too if the answer has it
  kPut,               //
  kInsert,            // happened: it was absent
  kUpdate,            // happened: it was present
  kDelete,            // happened: it was present
  kCompareAndSet,     // happened: it was `other`
  kCompareAndDelete,  // as kCompareAndSet
  kPutIfDiffers,      // happened: it was absent or not `other`
  kExpire,            // changes the deadline; happened: it was present
  kAddDecimal,   // number: the sum. Refused if the value now is not a decimal int64 or overflows
  kRename,       // key to `other`, with its deadline; happened: key was present, and `other` not if
                 // `keep_existing`. Replaces what `other` had. To itself: nothing is written
  kScan,         // items: the first `limit` of [key, other), from its end if `reverse`, from the
                 // largest key <= `key` if `floor` and there is one
  kCount,        // number
  kDeleteRange,  // the first `limit` of [key, other); number: how many there were
  kExpireRange,  // gives the keys that deadline; number: as kDeleteRange
  kWatch,        // begins to watch the key, as number `watch`
  kTick,         // the time is `deadline`, if it was earlier; alone in its operation
  kRequireAbsent,  // conditions, judged against the state before the operation, or before the part
  kRequirePresent,
  kRequireValue,      // equals `other`
  kRequireUnchanged,  // nothing was written to `key`, nor has it expired, since `watch` began; ends
                      // that watch. In the first part only
  kRequireEmpty,      // [key, other) has no key
};

constexpr bool IsCondition(Action action) { return action >= Action::kRequireAbsent; }
constexpr bool IsRange(Action action) {
  return (action >= Action::kScan && action <= Action::kExpireRange) ||
         action == Action::kRequireEmpty;
}
constexpr bool IsWrite(Action action) {
  return (action >= Action::kPut && action <= Action::kRename) || action == Action::kDeleteRange ||
         action == Action::kExpireRange || action == Action::kTick;
}
// Returns whether the action looks for the value `other`.
constexpr bool IsComparison(Action action) {
  return (action >= Action::kCompareAndSet && action <= Action::kPutIfDiffers) ||
         action == Action::kRequireValue;
}

// Stored as a deadline, it keeps the key's own.
inline constexpr uint64_t kKeep = UINT64_MAX;

using Pair = std::pair<std::string, std::string>;

struct Step {
  // The request.
  Action action = Action::kGet;
  std::string key = {};    // ranges: the inclusive lower bound
  std::string value = {};  // to store; kAddDecimal: what to add, a decimal int64
  std::string other = {};  // see Action; ranges: the exclusive upper bound, unless unbounded
  bool unbounded = false;
  bool reverse = false;
  bool floor = false;          // kScan: not with `reverse`; `key` < `other`
  bool keys_only = false;      // kScan: the values of `items` are meaningless
  bool keep_existing = false;  // kRename
  bool by_digest = false;      // comparisons use digests; the answer is the same
  bool begins_part = false;    // see Operation
  uint32_t limit = kNoLimit;
  uint32_t watch = 0;
  uint64_t deadline =
      0;  // kPut, kInsert, kUpdate, kExpire, kExpireRange: to store, 0 is none. See also Action

  // The answer; see Action for the fields that each action sets.
  bool happened = false;
  std::optional<std::string> found = {};
  int64_t number = 0;
  std::vector<Pair> items = {};
  // Whether the answer tells more. kGet: `deadline` is the key's. Comparisons and kRequireEmpty
  // that do not hold: `found` is the value seen, or the range's first key.
  bool told = false;
  bool stops = false;  // it is why its part, which is not the first, was not applied

  friend bool operator==(const Step&, const Step&) = default;
};

// The steps before the first that begins a part are all or nothing; if they are not applied,
// nothing is. Each part after them is all or nothing by itself, on the state that earlier parts
// have left.
struct Operation {
  enum class Kind : uint8_t {
    kExecute,        // the steps, on the present state
    kOpenSnapshot,   // pins the present state under the number `snapshot`; no steps
    kReadSnapshot,   // the steps, all of them reads, on the pinned state
    kCloseSnapshot,  // no steps. The number may be opened again afterwards
  };

  uint32_t client = 0;
  uint64_t call = 0;
  uint64_t returned = kNever;
  Kind kind = Kind::kExecute;
  uint32_t snapshot = 0;
  std::vector<Step> steps = {};
  uint64_t now = 0;  // it acts when this time has come: after a kTick with it, or a later one
  // False: nothing was changed, because of step `culprit` if the answer told which: the first
  // condition that does not hold, or the first refused step. The other steps' answers are
  // meaningless.
  bool applied = true;
  std::optional<uint32_t> culprit = {};

  bool is_pending() const { return returned == kNever; }
};

using History = std::vector<Operation>;

// Returns whether the operation can change the state.
bool Writes(const Operation& operation);

// Prints one line: the client, the times, the request and the answer.
std::ostream& operator<<(std::ostream& out, const Operation& operation);

}  // namespace skep::linearizability
