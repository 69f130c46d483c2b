#include "tests/linearizability/model.h"

#include <algorithm>
#include <charconv>

namespace skep::linearizability {
namespace {

// As kAddDecimal reads numbers: no spaces, no plus, no leading zeros.
std::optional<int64_t> ParseDecimal(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (std::to_string(number) != text) return std::nullopt;
  return number;
}

}  // namespace

Model::Model(const History& history, const std::vector<Pair>& initial) : history_(history) {
  values_.emplace_back("(absent)");
  CollectKeys(initial);
  for (const Operation& operation : history) {
    std::vector<Plan>& plans = plans_.emplace_back();
    for (const Step& step : operation.steps) plans.push_back(PlanOf(step));
  }
  states_.emplace(keys_.size() + snapshots_);
  pins_.emplace(keys_.size());
  cells_.assign(states_->row_words(), 0);
  for (const auto& [key, value] : initial) cells_[CellOf(key)] = ValueOf(value);
  initial_ = states_->Intern(cells_).id;
}

void Model::CollectKeys(const std::vector<Pair>& initial) {
  for (const auto& [key, value] : initial) keys_.push_back(key);
  for (const Operation& operation : history_) {
    if (operation.kind != Operation::Kind::kExecute) {
      snapshots_ = std::max(snapshots_, operation.snapshot + 1);
    }
    for (const Step& step : operation.steps) {
      if (!IsRange(step.action)) keys_.push_back(step.key);
      if (step.action == Action::kRename) keys_.push_back(step.other);
      for (const auto& [key, value] : step.items) keys_.push_back(key);
    }
  }
  std::ranges::sort(keys_);
  const auto repeated = std::ranges::unique(keys_);
  keys_.erase(repeated.begin(), repeated.end());
}

// The cell of a key; of a range's bound, the first cell at or after it.
uint32_t Model::CellOf(std::string_view key) const {
  return static_cast<uint32_t>(std::ranges::lower_bound(keys_, key) - keys_.begin());
}

Model::Cell Model::ValueOf(std::string_view value) {
  const auto at = value_ids_.find(value);
  if (at != value_ids_.end()) return at->second;
  const Cell id = static_cast<Cell>(values_.size());
  value_ids_.emplace(values_.emplace_back(value), id);
  return id;
}

Model::Plan Model::PlanOf(const Step& step) {
  Plan plan{.step = &step};
  if (IsRange(step.action)) {
    plan.begin = CellOf(step.key);
    plan.end = step.unbounded ? static_cast<uint32_t>(keys_.size()) : CellOf(step.other);
    plan.end = std::max(plan.begin, plan.end);
    if (step.floor) plan.floor = CellOf(step.key + '\0');
  } else {
    plan.key = CellOf(step.key);
  }
  if (step.action == Action::kRename) plan.other = CellOf(step.other);
  if (step.action == Action::kAddDecimal) plan.delta = ParseDecimal(step.value).value_or(0);
  plan.value = ValueOf(step.value);
  plan.expected = ValueOf(step.other);
  if (step.found) plan.found = ValueOf(*step.found);
  for (const auto& [key, value] : step.items) {
    plan.items.emplace_back(CellOf(key), ValueOf(value));
  }
  return plan;
}

std::optional<StateId> Model::Act(StateId state, uint32_t index) {
  const Operation& operation = history_[index];
  const auto row = states_->row(state);
  const auto keys = row.first(keys_.size());
  cells_.assign(row.begin(), row.end());
  uint32_t* const pin = snapshots_ == 0 ? nullptr : &cells_[keys_.size() + operation.snapshot];
  switch (operation.kind) {
    case Operation::Kind::kOpenSnapshot:
      *pin = 1 + pins_->Intern(keys).id;
      break;
    case Operation::Kind::kCloseSnapshot:
      *pin = 0;
      break;
    case Operation::Kind::kReadSnapshot: {
      if (*pin == 0) return std::nullopt;
      const auto pinned = pins_->row(*pin - 1);
      before_.assign(pinned.begin(), pinned.end());
      cells_ = before_;
      if (!Execute(operation, plans_[index])) return std::nullopt;
      return state;
    }
    case Operation::Kind::kExecute:
      before_ = cells_;
      if (!Execute(operation, plans_[index])) return std::nullopt;
  }
  return states_->Intern(cells_).id;
}

// Performs all steps on cells_, or none. False if the answers differ from those recorded.
bool Model::Execute(const Operation& operation, const std::vector<Plan>& plans) {
  bool same = true;
  bool held = true;
  std::optional<uint32_t> refused;
  for (uint32_t i = 0; i < plans.size() && !refused; ++i) {
    if (IsCondition(plans[i].step->action)) {
      held = held && Holds(plans[i], before_);
      continue;
    }
    const Answer answer = Perform(plans[i]);
    if (answer == Answer::kRefused) refused = i;
    if (answer == Answer::kOther) same = false;
  }
  const bool applied = held && !refused;
  if (!applied) cells_ = before_;
  if (operation.is_pending()) return true;
  if (applied != operation.applied) return false;
  return applied ? same : RefusedAsRecorded(operation, plans, refused);
}

// Whether the step that is said to have stopped the operation is one that does.
bool Model::RefusedAsRecorded(const Operation& operation, const std::vector<Plan>& plans,
                              std::optional<uint32_t> refused) const {
  if (!operation.culprit) return true;
  const uint32_t culprit = *operation.culprit;
  if (culprit >= plans.size()) return false;
  if (IsCondition(plans[culprit].step->action)) return !Holds(plans[culprit], before_);
  return refused == culprit;
}

bool Model::Holds(const Plan& plan, std::span<const uint32_t> cells) {
  const Cell now = cells[plan.key];
  switch (plan.step->action) {
    case Action::kRequireAbsent:
      return now == kAbsent;
    case Action::kRequirePresent:
      return now != kAbsent;
    default:
      return now == plan.expected;
  }
}

Model::Answer Model::Perform(const Plan& plan) {
  const Step& step = *plan.step;
  if (IsRange(step.action)) return PerformRange(plan);
  Cell& cell = cells_[plan.key];
  const Cell now = cell;
  bool happens = true;
  switch (step.action) {
    case Action::kGet:
      return now == plan.found ? Answer::kAsRecorded : Answer::kOther;
    case Action::kPut:
      cell = plan.value;
      return Answer::kAsRecorded;
    case Action::kAddDecimal:
      return Add(plan);
    case Action::kRename:
      return Rename(plan);
    case Action::kInsert:
      happens = now == kAbsent;
      break;
    case Action::kCompareAndSet:
      happens = now == plan.expected;
      break;
    default:
      happens = now != kAbsent;  // kUpdate, kDelete
  }
  if (happens) cell = step.action == Action::kDelete ? kAbsent : plan.value;
  return happens == step.happened ? Answer::kAsRecorded : Answer::kOther;
}

Model::Answer Model::Add(const Plan& plan) {
  Cell& cell = cells_[plan.key];
  const std::optional<int64_t> now = cell == kAbsent ? 0 : ParseDecimal(values_[cell]);
  int64_t sum = 0;
  if (!now || __builtin_add_overflow(*now, plan.delta, &sum)) return Answer::kRefused;
  cell = ValueOf(std::to_string(sum));
  return sum == plan.step->number ? Answer::kAsRecorded : Answer::kOther;
}

Model::Answer Model::Rename(const Plan& plan) {
  const Cell now = cells_[plan.key];
  if (now != kAbsent) {
    cells_[plan.key] = kAbsent;
    cells_[plan.other] = now;
  }
  return (now != kAbsent) == plan.step->happened ? Answer::kAsRecorded : Answer::kOther;
}

Model::Answer Model::PerformRange(const Plan& plan) {
  const Step& step = *plan.step;
  uint32_t visited = 0;
  bool same = true;
  uint32_t begin = plan.begin;
  for (uint32_t at = plan.floor; at > 0; --at) {
    if (cells_[at - 1] == kAbsent) continue;
    begin = at - 1;
    break;
  }
  const uint32_t width = plan.end - begin;
  for (uint32_t i = 0; i < width && visited < step.limit; ++i) {
    const uint32_t at = step.reverse ? plan.end - 1 - i : begin + i;
    if (cells_[at] == kAbsent) continue;
    if (step.action == Action::kScan) {
      same = same && visited < plan.items.size() && plan.items[visited].first == at &&
             (step.keys_only || plan.items[visited].second == cells_[at]);
    }
    if (step.action == Action::kDeleteRange) cells_[at] = kAbsent;
    ++visited;
  }
  if (step.action == Action::kScan) {
    same = same && visited == plan.items.size();
  } else {
    const bool is_told = step.action == Action::kCount || step.number != kNotTold;
    same = !is_told || visited == step.number;
  }
  return same ? Answer::kAsRecorded : Answer::kOther;
}

std::string Model::Describe(StateId state) const {
  std::string text;
  const auto row = states_->row(state);
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (row[i] == kAbsent) continue;
    if (!text.empty()) text += ' ';
    text += keys_[i] + '=' + values_[row[i]];
  }
  return text.empty() ? "(empty)" : text;
}

}  // namespace skep::linearizability
