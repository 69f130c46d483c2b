#include "tests/linearizability/model.h"

#include <algorithm>
#include <charconv>

namespace skep::linearizability {
namespace {

// Parses numbers as kAddDecimal does: no spaces, no plus, no leading zeros.
std::optional<int64_t> ParseDecimal(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (std::to_string(number) != text) return std::nullopt;
  return number;
}

bool HasKey(const Step& step) { return !IsRange(step.action) && step.action != Action::kTick; }

}  // namespace

Model::Model(const History& history, const std::vector<Pair>& initial) : history_(history) {
  values_.emplace_back("(absent)");
  CollectKeys(initial);
  for (const Operation& operation : history) {
    Request& request = requests_.emplace_back();
    for (const Step& step : operation.steps) request.plans.push_back(PlanOf(step));
    request.parts = PartsOf(operation);
  }
  states_.emplace(2 * keys_.size() + snapshots_ + watches_ + 1);
  pins_.emplace(2 * keys_.size());
  cells_.assign(states_->row_words(), 0);
  for (const auto& [key, value] : initial) cells_[IndexOf(key)] = ValueOf(value);
  initial_ = states_->Intern(cells_).id;
}

void Model::CollectKeys(const std::vector<Pair>& initial) {
  for (const auto& [key, value] : initial) keys_.push_back(key);
  for (const Operation& operation : history_) {
    if (operation.kind != Operation::Kind::kExecute) {
      snapshots_ = std::max(snapshots_, operation.snapshot + 1);
    }
    for (const Step& step : operation.steps) {
      if (HasKey(step)) keys_.push_back(step.key);
      if (step.action == Action::kRename) keys_.push_back(step.other);
      if (step.action == Action::kRequireEmpty && step.found) keys_.push_back(*step.found);
      if (step.action == Action::kWatch) watches_ = std::max(watches_, step.watch + 1);
      for (const auto& [key, value] : step.items) keys_.push_back(key);
    }
  }
  std::ranges::sort(keys_);
  const auto repeated = std::ranges::unique(keys_);
  keys_.erase(repeated.begin(), repeated.end());
}

// Returns the index of a key; for a range's bound, that of the first key at or after it.
uint32_t Model::IndexOf(std::string_view key) const {
  return static_cast<uint32_t>(std::ranges::lower_bound(keys_, key) - keys_.begin());
}

Model::Word Model::ValueOf(std::string_view value) {
  const auto at = value_ids_.find(value);
  if (at != value_ids_.end()) return at->second;
  const Word id = static_cast<Word>(values_.size());
  value_ids_.emplace(values_.emplace_back(value), id);
  return id;
}

Model::Plan Model::PlanOf(const Step& step) {
  Plan plan{.step = &step};
  if (IsRange(step.action)) {
    plan.begin = IndexOf(step.key);
    plan.end = step.unbounded ? key_count() : IndexOf(step.other);
    plan.end = std::max(plan.begin, plan.end);
    if (step.floor) plan.floor = IndexOf(step.key + '\0');
  } else {
    plan.key = IndexOf(step.key);
  }
  if (step.action == Action::kRename) plan.other = IndexOf(step.other);
  if (step.action == Action::kAddDecimal) plan.delta = ParseDecimal(step.value).value_or(0);
  plan.value = ValueOf(step.value);
  plan.expected = ValueOf(step.other);
  if (step.action == Action::kRequireEmpty) {
    plan.first = step.found ? IndexOf(*step.found) : key_count();
  } else if (step.found) {
    plan.found = ValueOf(*step.found);
  }
  for (const auto& [key, value] : step.items) {
    plan.items.emplace_back(IndexOf(key), ValueOf(value));
  }
  return plan;
}

std::vector<Model::Part> Model::PartsOf(const Operation& operation) {
  std::vector<Part> parts = {{.begin = 0, .end = 0, .is_first = true}};
  for (uint32_t i = 0; i < operation.steps.size(); ++i) {
    if (operation.steps[i].begins_part) parts.push_back({.begin = i, .end = i, .is_first = false});
    ++parts.back().end;
  }
  return parts;
}

std::optional<StateId> Model::Act(StateId state, uint32_t index) {
  const Operation& operation = history_[index];
  const auto row = states_->row(state);
  if (operation.now > row.back()) return std::nullopt;
  cells_.assign(row.begin(), row.end());
  switch (operation.kind) {
    case Operation::Kind::kOpenSnapshot:
      pin(operation.snapshot) = 1 + pins_->Intern(row.first(2 * keys_.size())).id;
      break;
    case Operation::Kind::kCloseSnapshot:
      pin(operation.snapshot) = 0;
      break;
    case Operation::Kind::kReadSnapshot: {
      const Word pinned = pin(operation.snapshot);
      if (pinned == 0) return std::nullopt;
      std::ranges::copy(pins_->row(pinned - 1), cells_.begin());
      if (!Execute(operation, requests_[index])) return std::nullopt;
      return state;
    }
    case Operation::Kind::kExecute:
      if (!Execute(operation, requests_[index])) return std::nullopt;
  }
  return states_->Intern(cells_).id;
}

// Performs what can be performed on cells_. Returns false if the answers differ from those
// recorded.
bool Model::Execute(const Operation& operation, const Request& request) {
  bool same = true;
  for (const Part part : request.parts) {
    const Ending ending = PerformPart(request.plans, part);
    same = same && EndedAsRecorded(operation, request, part, ending);
    if (ending.culprit && part.is_first) break;
  }
  for (const Plan& plan : request.plans) {
    const Step& step = *plan.step;
    if (step.action == Action::kRequireUnchanged) cells_[watch_at(step.watch)] = kNotWatched;
  }
  return same || operation.is_pending();
}

Model::Ending Model::PerformPart(const std::vector<Plan>& plans, Part part) {
  before_ = cells_;
  Ending ending;
  for (uint32_t i = part.begin; i < part.end && !ending.culprit; ++i) {
    if (IsCondition(plans[i].step->action) && !Holds(plans[i])) ending.culprit = i;
  }
  for (uint32_t i = part.begin; i < part.end && !ending.culprit; ++i) {
    if (IsCondition(plans[i].step->action)) continue;
    const Answer answer = Perform(plans[i]);
    if (answer == Answer::kRefused) ending.culprit = i;
    if (answer == Answer::kOther) ending.same = false;
  }
  if (ending.culprit) cells_ = before_;
  return ending;
}

bool Model::EndedAsRecorded(const Operation& operation, const Request& request, Part part,
                            const Ending& ending) const {
  if (!part.is_first) {
    for (uint32_t i = part.begin; i < part.end; ++i) {
      if (operation.steps[i].stops != (ending.culprit == i)) return false;
    }
  } else if (operation.applied == ending.culprit.has_value() ||
             (operation.culprit && operation.culprit != ending.culprit)) {
    return false;
  }
  return ending.culprit ? SawAsRecorded(request.plans[*ending.culprit]) : ending.same;
}

// Returns whether a comparison, or a range that is not empty, saw what `before_` has.
bool Model::SawAsRecorded(const Plan& plan) const {
  if (!plan.step->told) return true;
  if (!IsRange(plan.step->action)) return before_[plan.key] == plan.found;
  const auto first = std::find_if(before_.begin() + plan.begin, before_.begin() + plan.end,
                                  [](Word value) { return value != kAbsent; });
  return first - before_.begin() == plan.first;
}

bool Model::Holds(const Plan& plan) const {
  const Word now = before_[plan.key];
  switch (plan.step->action) {
    case Action::kRequireAbsent:
      return now == kAbsent;
    case Action::kRequirePresent:
      return now != kAbsent;
    case Action::kRequireUnchanged:
      return before_[watch_at(plan.step->watch)] == kWatched + plan.key;
    case Action::kRequireEmpty:
      return std::all_of(before_.begin() + plan.begin, before_.begin() + plan.end,
                         [](Word value) { return value == kAbsent; });
    default:
      return now == plan.expected;
  }
}

Model::Answer Model::Perform(const Plan& plan) {
  const Step& step = *plan.step;
  if (IsRange(step.action)) return PerformRange(plan);
  const Word now = cells_[plan.key];
  switch (step.action) {
    case Action::kGet:
      return Read(plan);
    case Action::kAddDecimal:
      return Add(plan);
    case Action::kRename:
      return Rename(plan);
    case Action::kTick:
      Tick(step.deadline);
      return Answer::kAsRecorded;
    case Action::kWatch:
      cells_[watch_at(step.watch)] = kWatched + plan.key;
      return Answer::kAsRecorded;
    case Action::kPut:
      Write(plan.key, plan.value, step.deadline);
      return Answer::kAsRecorded;
    case Action::kInsert:
      return Decide(plan, now == kAbsent);
    case Action::kCompareAndSet:
    case Action::kCompareAndDelete:
      return Decide(plan, now == plan.expected);
    case Action::kPutIfDiffers:
      return Decide(plan, now != plan.expected);
    default:
      return Decide(plan, now != kAbsent);  // kUpdate, kDelete, kExpire
  }
}

// Stores, deletes or expires if `happens`, and answers.
Model::Answer Model::Decide(const Plan& plan, bool happens) {
  const Step& step = *plan.step;
  const Word now = cells_[plan.key];
  if (happens) {
    const bool deletes = step.action == Action::kDelete || step.action == Action::kCompareAndDelete;
    const Word value = deletes ? kAbsent : step.action == Action::kExpire ? now : plan.value;
    Write(plan.key, value, step.deadline);
  }
  const bool same = happens == step.happened && (!step.told || now == plan.found);
  return same ? Answer::kAsRecorded : Answer::kOther;
}

Model::Answer Model::Read(const Plan& plan) {
  const bool same = cells_[plan.key] == plan.found &&
                    (!plan.step->told || deadline(plan.key) == plan.step->deadline);
  return same ? Answer::kAsRecorded : Answer::kOther;
}

Model::Answer Model::Add(const Plan& plan) {
  const Word before = cells_[plan.key];
  const std::optional<int64_t> now = before == kAbsent ? 0 : ParseDecimal(values_[before]);
  int64_t sum = 0;
  if (!now || __builtin_add_overflow(*now, plan.delta, &sum)) return Answer::kRefused;
  Write(plan.key, ValueOf(std::to_string(sum)), kKeep);
  return sum == plan.step->number ? Answer::kAsRecorded : Answer::kOther;
}

Model::Answer Model::Rename(const Plan& plan) {
  const Word value = cells_[plan.key];
  const Word until = deadline(plan.key);
  const bool is_free = !plan.step->keep_existing || cells_[plan.other] == kAbsent;
  const bool happens = value != kAbsent && is_free;
  if (happens && plan.key != plan.other) {
    Write(plan.key, kAbsent, 0);
    Write(plan.other, value, until);
  }
  return happens == plan.step->happened ? Answer::kAsRecorded : Answer::kOther;
}

// Removes the keys whose deadline is not later.
void Model::Tick(uint64_t time) {
  if (time <= now()) return;
  now() = static_cast<Word>(time);
  for (uint32_t key = 0; key < key_count(); ++key) {
    if (deadline(key) != 0 && deadline(key) <= now()) Write(key, kAbsent, 0);
  }
}

// Writes a value; kAbsent deletes. A deadline that is not later than now deletes too.
void Model::Write(uint32_t key, Word value, uint64_t deadline_wanted) {
  const Word until = deadline_wanted == kKeep ? deadline(key) : static_cast<Word>(deadline_wanted);
  if (until != 0 && until <= now()) value = kAbsent;
  if (value == kAbsent && cells_[key] == kAbsent) return;
  cells_[key] = value;
  deadline(key) = value == kAbsent ? 0 : until;
  Touch(key);
}

void Model::Touch(uint32_t key) {
  for (uint32_t watch = 0; watch < watches_; ++watch) {
    Word& word = cells_[watch_at(watch)];
    if (word == kWatched + key) word = kWritten;
  }
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
    if (step.action == Action::kDeleteRange) Write(at, kAbsent, 0);
    if (step.action == Action::kExpireRange) Write(at, cells_[at], step.deadline);
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
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (row[i] == kAbsent) continue;
    const Word until = row[keys_.size() + i];
    add(keys_[i] + '=' + values_[row[i]] + (until == 0 ? "" : '@' + std::to_string(until)));
  }
  if (text.empty()) text = "(empty)";
  if (row.back() != 0) add("time " + std::to_string(row.back()));
  return text;
}

}  // namespace skep::linearizability
