// history_tally.h: counts how often the events that a test is about occurred in its histories.
#pragma once

#include <cstdint>
#include <ostream>

#include "tests/linearizability/history.h"

namespace skep::linearizability {

struct HistoryTally {
  uint64_t unchanged = 0;  // operations whose watched keys had to be unchanged, and were
  uint64_t changed = 0;    // operations whose watched keys were not
  uint64_t held = 0;       // operations with other conditions that were applied
  uint64_t failed = 0;     // operations with other conditions that were not applied
  uint64_t seen = 0;       // steps that reported what stood in their way
  uint64_t parts = 0;      // applied parts
  uint64_t stopped = 0;    // parts that were not applied
  uint64_t ticks = 0;
  uint64_t deadlines = 0;  // deadlines stored

  void Add(const History& history);
  // Prints one line for people.
  friend std::ostream& operator<<(std::ostream& out, const HistoryTally& tally);

 private:
  void AddSteps(const Operation& operation);
};

}  // namespace skep::linearizability
