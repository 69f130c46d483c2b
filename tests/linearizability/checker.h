// checker.h: decides whether a sequential store could have answered these operations in some order.
//
// A history is linearizable if every operation can be given one instant between its call and its
// return so that a store which performs them one after another, in the order of those instants,
// answers each as recorded (Herlihy and Wing, 1990). The search is Wing and Gong's (1993) with
// Lowe's list and memo (2017):
//
//   events   C0  C1  R0  C2  R1  R2        C: call, R: return, in the order of time
//            ^ try each call before the first return; if the model answers as recorded, take the
//              operation's events out of the list and go on from the front; if no call is left to
//              try before the first return, put the last operation back and try the next
//
// Why a verdict is right
//   (1) An order respects real time if and only if it never places an operation after one whose
//       call came after its return. The search places only calls that stand before the first
//       return still in the list, that is, of operations that no unplaced one precedes. So it tries
//       exactly the orders that respect real time.
//   (2) What can follow depends only on which operations were placed and on the state they made.
//       The memo holds such pairs, compared whole (word_table.h), and only a pair met again is
//       cut off: everything after it was tried the first time, or is being tried now.
//   (3) Where no answered operation is in flight, every order places all before it first. There
//       the history is cut: all the states in which a segment can end are found, and the next
//       segment starts from each of them. (The last one stops at the first.)
//   (4) An operation without a reply has no return, so it may be placed at any time or never; it is
//       carried over the cuts until it is placed. Placing it where it changes nothing is the same
//       as not placing it yet, and is not tried. One that only reads can be left out.
//   (5) If nothing but points and batches of points occurs, the keys fall into groups that no
//       operation connects. Linearizability is local (Herlihy and Wing, theorem 1): the history is
//       linearizable if and only if the part of each group is. Ranges, snapshots and ticks see
//       every key, so one of them is enough to keep the history whole.
//
// The counterexample. All orders get stuck at some return, the latest of them at R: everything that
// returned before R could be ordered, but not with the operation that returns at R. So the history
// up to R is the shortest prefix that is not linearizable, and that operation's answer is the one
// that no order explains.
//
// Cost: one step for each operation tried in a state; in the worst case exponential in the number
// of operations that overlap. A budget of steps bounds it and has a verdict of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/linearizability/history.h"

namespace skep::linearizability {

enum class Answer : uint8_t {
  kLinearizable,
  kNotLinearizable,
  kUndecided,  // the budget is spent: the verdict is unknown. Not a pass
};

struct CheckOptions {
  std::vector<Pair> initial = {};  // the store's contents before the history, in any order
  uint64_t steps_max = 50'000'000;
};

struct CheckResult {
  Answer answer = Answer::kLinearizable;
  uint64_t steps = 0;
  uint32_t segments = 0;  // number checked, in all groups of keys
  // kNotLinearizable: the index of the operation whose answer no order explains, and a text for
  // people: that operation, the operations around it, and the order that got furthest.
  size_t culprit = 0;
  std::string explanation = {};

  bool ok() const { return answer == Answer::kLinearizable; }
};

// Thread-safe.
CheckResult CheckLinearizable(const History& history, const CheckOptions& options = {});

}  // namespace skep::linearizability
