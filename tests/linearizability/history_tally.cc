#include "tests/linearizability/history_tally.h"

#include <algorithm>

namespace skep::linearizability {

void HistoryTally::Add(const History& history) {
  for (const Operation& operation : history) {
    if (operation.is_pending() || operation.kind != Operation::Kind::kExecute) continue;
    const auto watches = [](const Step& s) { return s.action == Action::kRequireUnchanged; };
    const auto other = [&](const Step& s) { return IsCondition(s.action) && !watches(s); };
    if (std::ranges::any_of(operation.steps, watches)) {
      ++(operation.applied ? unchanged : changed);
    } else if (std::ranges::any_of(operation.steps, other)) {
      ++(operation.applied ? held : failed);
    }
    AddSteps(operation);
  }
}

void HistoryTally::AddSteps(const Operation& operation) {
  for (const Step& step : operation.steps) {
    if (step.told && step.action != Action::kGet) ++seen;
    if (step.action == Action::kTick) {
      ++ticks;
    } else if (step.action != Action::kGet && step.deadline != 0 && step.deadline != kKeep) {
      ++deadlines;
    }
    if (!operation.applied) continue;
    if (step.begins_part) ++parts;
    if (step.stops) {
      ++stopped;
      --parts;
    }
  }
}

std::ostream& operator<<(std::ostream& out, const HistoryTally& tally) {
  return out << "watched keys unchanged " << tally.unchanged << " times and changed "
             << tally.changed << "; other conditions held " << tally.held << " times and failed "
             << tally.failed << ", " << tally.seen << " told why; " << tally.parts
             << " parts applied and " << tally.stopped << " stopped; " << tally.ticks << " ticks, "
             << tally.deadlines << " deadlines";
}

}  // namespace skep::linearizability
