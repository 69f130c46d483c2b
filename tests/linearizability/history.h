// history.h: what several clients asked of one store, when, and what they were told.
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
// As the number of a range that was deleted: whoever asked does not know it.
inline constexpr int64_t kNotTold = -1;

enum class Action : uint8_t {
  kGet,            // found
  kPut,            //
  kInsert,         // happened: it was absent
  kUpdate,         // happened: it was present
  kDelete,         // happened: it was present
  kCompareAndSet,  // happened: it was `other`
  kAddDecimal,     // number: the sum. Refused if the value now is not a decimal int64 or overflows
  kRename,         // key to `other`; happened: key was present. Replaces what `other` had
  kScan,           // items: the first `limit` of [key, other), from its end if `reverse`, from the
                   // largest key <= `key` if `floor` and there is one
  kCount,          // number
  kDeleteRange,    // the first `limit` of [key, other); number: how many there were
  kRequireAbsent,  // conditions, judged against the state before the operation
  kRequirePresent,
  kRequireValue,  // equals `other`
};

constexpr bool IsCondition(Action action) { return action >= Action::kRequireAbsent; }
constexpr bool IsRange(Action action) {
  return action >= Action::kScan && action <= Action::kDeleteRange;
}
constexpr bool IsWrite(Action action) {
  return (action >= Action::kPut && action <= Action::kRename) || action == Action::kDeleteRange;
}

using Pair = std::pair<std::string, std::string>;

struct Step {
  // What was asked.
  Action action = Action::kGet;
  std::string key = {};    // ranges: the inclusive lower bound
  std::string value = {};  // to store; kAddDecimal: what to add, a decimal int64
  std::string other = {};  // see Action; ranges: the exclusive upper bound, unless unbounded
  bool unbounded = false;
  bool reverse = false;
  bool floor = false;      // kScan: not with `reverse`; `key` < `other`
  bool keys_only = false;  // kScan: the values of `items` mean nothing
  uint32_t limit = kNoLimit;

  // What came back; see Action for what each sets.
  bool happened = false;
  std::optional<std::string> found = {};
  int64_t number = 0;
  std::vector<Pair> items = {};

  friend bool operator==(const Step&, const Step&) = default;
};

struct Operation {
  enum class Kind : uint8_t {
    kExecute,        // the steps, on the state of the moment
    kOpenSnapshot,   // pins the state of the moment under the number `snapshot`; no steps
    kReadSnapshot,   // the steps, all of them reads, on the pinned state
    kCloseSnapshot,  // no steps. The number may be opened again afterwards
  };

  uint32_t client = 0;
  uint64_t call = 0;
  uint64_t returned = kNever;
  Kind kind = Kind::kExecute;
  uint32_t snapshot = 0;
  std::vector<Step> steps = {};
  // False: told that nothing was changed, because of step `culprit` (a condition that does not
  // hold, a refused step) if it was told which. The other steps' answers mean nothing.
  bool applied = true;
  std::optional<uint32_t> culprit = {};

  bool is_pending() const { return returned == kNever; }
};

using History = std::vector<Operation>;

// True if the operation can change the state.
bool Writes(const Operation& operation);

// One line: who, when, what, and what came back.
std::ostream& operator<<(std::ostream& out, const Operation& operation);

}  // namespace skep::linearizability
