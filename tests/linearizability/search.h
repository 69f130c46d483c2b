// search.h: finds all ways to order one segment of a history; checker.h argues why it is right.
//
// A configuration is a pair as in (2) of checker.h, as a row of words:
//
//   word 0     1 ..
//   +-------+----------------------------------------------------+
//   | state | a bit for each operation: it has been placed       |
//   +-------+----------------------------------------------------+
//     bits 0 .. pending-1: the history's operations without reply, carried over the cuts;
//     then the segment's own, in the order of their calls
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tests/linearizability/model.h"
#include "tests/linearizability/word_table.h"

namespace skep::linearizability {

// A call or a return, in the list of those not placed yet.
struct Event {
  uint64_t time = 0;
  uint32_t operation = 0;  // index in the history
  bool is_return = false;
  uint32_t bit = 0;       // the operation's, in a configuration
  int32_t partner = -1;   // the call's return, if there is one
  int32_t previous = -1;  // in the list
  int32_t next = -1;
};

// The start or the end of a segment: a state, and which pending operations are placed.
struct Frontier {
  StateId state = 0;
  std::vector<bool> placed;
  friend bool operator==(const Frontier&, const Frontier&) = default;
};

// The order that got furthest: to the latest return at which any order got stuck.
struct Furthest {
  uint64_t stuck_at = 0;  // one more than the position of that return; 0: never stuck
  uint32_t culprit = 0;   // the operation that returns there
  Frontier start = {};
  StateId state = 0;  // after the order
  std::vector<uint32_t> order;
};

// The steps that are left for a whole check.
struct Budget {
  uint64_t steps_max;
  uint64_t steps = 0;
  bool is_spent() const { return steps >= steps_max; }
};

// Searches one segment. Thread safety: one owner.
class SegmentSearch {
 public:
  // `events` are in order of time: the calls of pending operations (bits below `pending`) and the
  // segment's own events. `bits`: number of operations in all.
  SegmentSearch(Model& model, std::vector<Event> events, uint32_t pending, uint32_t bits,
                Budget& budget);

  // Adds to ends() every end that is reachable from `start`; with `first_only`, stops at the first.
  void Run(const Frontier& start, bool first_only);

  const std::vector<Frontier>& ends() const { return ends_; }
  const Furthest& furthest() const { return furthest_; }

 private:
  static constexpr int32_t kHead = 0;  // events_[0] is before every event
  static constexpr int32_t kEnd = -1;

  struct Placed {
    int32_t call;
    StateId before;
  };

  void Begin(const Frontier& start);
  bool TryToPlace(int32_t call);
  std::optional<int32_t> TakeBack();
  void NoteStuck(int32_t at_return, const Frontier& start);
  void NoteEnd();
  void Unlink(int32_t at);
  void Relink(int32_t at);
  void FlipBit(uint32_t bit) { configuration_[1 + bit / 32] ^= 1u << (bit % 32); }

  Model& model_;
  Budget& budget_;
  const uint32_t pending_;
  std::vector<Event> events_;
  std::vector<Event> linked_;  // events_ with every event in the list, to begin from
  uint32_t answered_ = 0;      // operations that must be placed
  uint32_t left_ = 0;          // how many of these are not placed yet
  std::vector<uint32_t> configuration_;
  std::vector<Placed> placed_;
  WordTable memo_;
  std::vector<Frontier> ends_;
  Furthest furthest_;
};

}  // namespace skep::linearizability
