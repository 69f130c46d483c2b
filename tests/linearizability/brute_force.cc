#include "tests/linearizability/brute_force.h"

#include <algorithm>

#include "base/check.h"
#include "tests/linearizability/reference.h"

namespace skep::linearizability {
namespace {

// The request without its answers.
Operation Asked(Operation operation) {
  operation.applied = true;
  operation.culprit.reset();
  for (Step& step : operation.steps) {
    step.happened = false;
    step.found.reset();
    step.number = 0;
    step.items.clear();
  }
  return operation;
}

bool SameAnswer(const Step& a, const Step& b) {
  switch (a.action) {
    case Action::kGet:
      return a.found == b.found;
    case Action::kPut:
      return true;
    case Action::kAddDecimal:
    case Action::kCount:
      return a.number == b.number;
    case Action::kDeleteRange:
      return a.number == b.number || a.number == kNotTold;
    case Action::kScan:
      return std::ranges::equal(a.items, b.items, [&](const Pair& x, const Pair& y) {
        return x.first == y.first && (a.keys_only || x.second == y.second);
      });
    default:
      return IsCondition(a.action) || a.happened == b.happened;
  }
}

// Whether a store that answers `performed` could have answered `recorded`. Any step that stops the
// operation may be named as the culprit, not only the first.
bool SameAnswers(const Operation& recorded, const Operation& performed) {
  if (recorded.is_pending()) return true;
  if (recorded.applied != performed.applied) return false;
  if (!recorded.applied) return true;
  return std::ranges::equal(recorded.steps, performed.steps, SameAnswer);
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
    if (left[i].call > first_return) continue;
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
