#include "tests/linearizability/brute_force.h"

#include <algorithm>

#include "base/check.h"
#include "tests/linearizability/reference.h"

namespace skep::linearizability {
namespace {

// Returns the request without its answers.
Operation Asked(Operation operation) {
  operation.applied = true;
  operation.culprit.reset();
  for (Step& step : operation.steps) {
    step.happened = false;
    step.found.reset();
    step.number = 0;
    step.items.clear();
    step.told = false;
    step.stops = false;
    if (step.action == Action::kGet) step.deadline = 0;
  }
  return operation;
}

// Returns whether both saw the same; a step whose answer does not tell may have seen anything.
bool SameSeen(const Step& a, const Step& b) { return !a.told || a.found == b.found; }

bool SameAnswer(const Step& a, const Step& b) {
  if (a.stops || b.stops) return a.stops == b.stops && SameSeen(a, b);
  switch (a.action) {
    case Action::kGet:
      return a.found == b.found && (!a.told || a.deadline == b.deadline);
    case Action::kPut:
    case Action::kWatch:
    case Action::kTick:
      return true;
    case Action::kAddDecimal:
    case Action::kCount:
      return a.number == b.number;
    case Action::kDeleteRange:
    case Action::kExpireRange:
      return a.number == b.number || a.number == kNotTold;
    case Action::kScan:
      return std::ranges::equal(a.items, b.items, [&](const Pair& x, const Pair& y) {
        return x.first == y.first && (a.keys_only || x.second == y.second);
      });
    default:
      return IsCondition(a.action) || (a.happened == b.happened && SameSeen(a, b));
  }
}

bool IsInStoppedPart(const std::vector<Step>& steps, size_t index) {
  size_t begin = index;
  while (begin > 0 && !steps[begin].begins_part) --begin;
  if (!steps[begin].begins_part) return false;
  for (size_t i = begin; i == begin || (i < steps.size() && !steps[i].begins_part); ++i) {
    if (steps[i].stops) return true;
  }
  return false;
}

// Returns whether a store that answers `performed` could have answered `recorded`.
bool SameAnswers(const Operation& recorded, const Operation& performed) {
  if (recorded.is_pending()) return true;
  if (recorded.applied != performed.applied) return false;
  if (!recorded.applied) {
    return !recorded.culprit ||
           (recorded.culprit == performed.culprit &&
            SameSeen(recorded.steps[*recorded.culprit], performed.steps[*recorded.culprit]));
  }
  for (size_t i = 0; i < recorded.steps.size(); ++i) {
    const Step& a = recorded.steps[i];
    const Step& b = performed.steps[i];
    if (a.stops != b.stops) return false;
    const bool means_nothing = !a.stops && IsInStoppedPart(performed.steps, i);
    if (!means_nothing && !SameAnswer(a, b)) return false;
  }
  return true;
}

bool Search(const History& left, const Reference& state) {
  const bool all_answered =
      std::ranges::none_of(left, [](const Operation& o) { return !o.is_pending(); });
  if (all_answered) return true;
  uint64_t first_return = kNever;
  for (const Operation& operation : left) {
    first_return = std::min(first_return, operation.returned);
  }
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i].call > first_return || left[i].now > state.now()) continue;
    Operation performed = Asked(left[i]);
    Reference next = state;
    next.Perform(performed);
    if (!SameAnswers(left[i], performed)) continue;
    History rest = left;
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
    if (Search(rest, next)) return true;
  }
  return false;
}

}  // namespace

bool IsLinearizableByBruteForce(const History& history) {
  SKEP_CHECK(history.size() <= 10);
  return Search(history, Reference());
}

}  // namespace skep::linearizability
