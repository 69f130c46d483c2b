// history_tally.h: how often what a test is about did happen in its histories.
#pragma once

#include <cstdint>
#include <ostream>

#include "tests/linearizability/history.h"

namespace skep::linearizability {

struct HistoryTally {
  uint64_t unchanged = 0;  // operations that needed watched keys to be unchanged, and they were
  uint64_t changed = 0;    // they were not
  uint64_t held = 0;       // operations with other conditions that were applied
  uint64_t failed = 0;     // that were not
  uint64_t seen = 0;       // steps that told what stood in their way
  uint64_t parts = 0;      // applied
  uint64_t stopped = 0;    // parts that were not
  uint64_t ticks = 0;
  uint64_t deadlines = 0;  // stored

  void Add(const History& history);
  // One line for a person.
  friend std::ostream& operator<<(std::ostream& out, const HistoryTally& tally);

 private:
  void AddSteps(const Operation& operation);
};

}  // namespace skep::linearizability
