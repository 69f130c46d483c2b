#include "tests/linearizability/checker.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>

#include "tests/linearizability/model.h"
#include "tests/linearizability/search.h"

namespace skep::linearizability {
namespace {

// A group of operations, by their index in the whole history.
using Group = std::vector<size_t>;

bool SeesEveryKey(const Operation& operation) {
  return operation.kind != Operation::Kind::kExecute ||
         std::ranges::any_of(operation.steps, [](const Step& s) {
           return IsRange(s.action) || s.action == Action::kTick;
         });
}

// (4) of checker.h: an operation without a reply and without an effect says nothing.
bool IsIrrelevant(const Operation& operation) {
  return operation.is_pending() && !Writes(operation);
}

// Finds which keys are connected by operations: union-find.
class KeyGroups {
 public:
  size_t Find(const std::string& key) {
    const auto [at, fresh] = ids_.try_emplace(key, parents_.size());
    if (fresh) parents_.push_back(at->second);
    size_t id = at->second;
    while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
    return id;
  }
  void Join(const std::string& a, const std::string& b) {
    const size_t root = Find(a);
    parents_[root] = Find(b);
  }

 private:
  std::map<std::string, size_t> ids_;
  std::vector<size_t> parents_;
};

// Divides the history by (5) of checker.h.
std::vector<Group> Partition(const History& history) {
  const bool whole = std::ranges::any_of(history, SeesEveryKey);
  KeyGroups keys;
  for (const Operation& operation : history) {
    for (const Step& step : operation.steps) {
      if (whole) break;
      keys.Join(step.key, operation.steps.front().key);
      if (step.action == Action::kRename) keys.Join(step.key, step.other);
    }
  }
  std::map<size_t, Group> groups;
  for (size_t i = 0; i < history.size(); ++i) {
    const Operation& operation = history[i];
    if (IsIrrelevant(operation)) continue;
    if (!whole && operation.steps.empty()) continue;
    groups[whole ? 0 : keys.Find(operation.steps.front().key)].push_back(i);
  }
  std::vector<Group> list;
  for (auto& [root, group] : groups) list.push_back(std::move(group));
  return list;
}

// Checks one group of operations, segment by segment.
class GroupCheck {
 public:
  GroupCheck(const History& history, const Group& group, const std::vector<Pair>& initial,
             Budget& budget)
      : group_(group), budget_(budget) {
    for (const size_t index : group) operations_.push_back(history[index]);
    SortEvents();
    model_.emplace(operations_, initial);
  }

  void Run(CheckResult& result);

 private:
  void SortEvents();
  size_t NextCut(size_t from) const;
  SegmentSearch Segment(size_t from, size_t to);
  std::vector<uint32_t> InFlight(size_t from, const Furthest& furthest) const;
  std::string Explain(size_t from, const Furthest& furthest, size_t starts) const;

  const Group& group_;
  Budget& budget_;
  History operations_;
  std::vector<Event> events_;      // of all operations, in order of time
  std::vector<uint32_t> pending_;  // operations without reply, in order of their calls
  std::optional<Model> model_;
};

void GroupCheck::SortEvents() {
  for (uint32_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    events_.push_back({.time = operation.call, .operation = i, .is_return = false});
    if (operation.is_pending()) continue;
    events_.push_back({.time = operation.returned, .operation = i, .is_return = true});
  }
  // Calls come before returns of the same time, so that operations that touch count as overlapping.
  std::ranges::stable_sort(
      events_, {}, [](const Event& event) { return std::pair(event.time, event.is_return); });
  for (const Event& event : events_) {
    if (operations_[event.operation].is_pending()) pending_.push_back(event.operation);
  }
}

// Returns the index past the event after which no answered operation is in flight ((3) of
// checker.h).
size_t GroupCheck::NextCut(size_t from) const {
  size_t in_flight = 0;
  for (size_t i = from; i < events_.size(); ++i) {
    if (operations_[events_[i].operation].is_pending()) continue;
    events_[i].is_return ? --in_flight : ++in_flight;
    if (in_flight == 0) return i + 1;
  }
  return events_.size();
}

SegmentSearch GroupCheck::Segment(size_t from, size_t to) {
  const uint32_t pending = static_cast<uint32_t>(pending_.size());
  std::vector<Event> events;
  uint32_t pending_bit = 0;
  uint32_t next_bit = pending;
  std::map<uint32_t, uint32_t> bit_of;
  for (size_t i = 0; i < to; ++i) {
    Event event = events_[i];
    if (operations_[event.operation].is_pending()) {
      event.bit = pending_bit++;
    } else if (i < from) {
      continue;
    } else {
      const auto [at, fresh] = bit_of.try_emplace(event.operation, next_bit);
      if (fresh) ++next_bit;
      event.bit = at->second;
    }
    events.push_back(event);
  }
  return SegmentSearch(*model_, std::move(events), pending, next_bit, budget_);
}

void GroupCheck::Run(CheckResult& result) {
  std::vector<Frontier> starts = {
      {.state = model_->initial(), .placed = std::vector<bool>(pending_.size())}};
  for (size_t from = 0, to = 0; from < events_.size(); from = to) {
    to = NextCut(from);
    ++result.segments;
    SegmentSearch search = Segment(from, to);
    const bool is_last = to == events_.size();
    for (const Frontier& start : starts) {
      search.Run(start, is_last);
      if (is_last && !search.ends().empty()) return;
      if (budget_.is_spent()) {
        result.answer = Answer::kUndecided;
        return;
      }
    }
    if (search.ends().empty()) {
      const Furthest& furthest = search.furthest();
      result.answer = Answer::kNotLinearizable;
      result.culprit = group_[furthest.culprit];
      result.explanation = Explain(from, furthest, starts.size());
      return;
    }
    starts = search.ends();
  }
}

// Returns the operations called before the culprit returned that the furthest order leaves out.
std::vector<uint32_t> GroupCheck::InFlight(size_t from, const Furthest& furthest) const {
  std::vector<uint32_t> list;
  size_t pending = 0;
  for (size_t i = 0; i < events_.size(); ++i) {
    const Event& event = events_[i];
    const bool is_pending = operations_[event.operation].is_pending();
    const bool is_placed = is_pending && furthest.start.placed[pending++];
    if (event.is_return || is_placed || (i < from && !is_pending)) continue;
    if (event.operation == furthest.culprit) continue;
    if (event.time > operations_[furthest.culprit].returned) break;
    if (std::ranges::find(furthest.order, event.operation) == furthest.order.end()) {
      list.push_back(event.operation);
    }
  }
  return list;
}

std::string GroupCheck::Explain(size_t from, const Furthest& furthest, size_t starts) const {
  constexpr size_t kLinesMax = 24;
  std::ostringstream out;
  const auto print = [&](uint32_t index) {
    out << "    #" << group_[index] << " " << operations_[index] << "\n";
  };
  out << "not linearizable: no order explains the answer of operation #" << group_[furthest.culprit]
      << "\n";
  print(furthest.culprit);
  out << "  the order that gets furthest starts (one of " << starts << " ways) from\n    "
      << model_->Describe(furthest.start.state) << "\n  and performs\n";
  const size_t skipped = furthest.order.size() > kLinesMax ? furthest.order.size() - kLinesMax : 0;
  if (skipped > 0) out << "    ... " << skipped << " operations ...\n";
  for (size_t i = skipped; i < furthest.order.size(); ++i) print(furthest.order[i]);
  out << "  which leaves\n    " << model_->Describe(furthest.state)
      << "\n  and, not yet ordered, but in flight when it returned:\n";
  for (const uint32_t index : InFlight(from, furthest)) print(index);
  return out.str();
}

}  // namespace

CheckResult CheckLinearizable(const History& history, const CheckOptions& options) {
  CheckResult result;
  Budget budget{.steps_max = options.steps_max};
  for (const Group& group : Partition(history)) {
    GroupCheck(history, group, options.initial, budget).Run(result);
    if (result.answer != Answer::kLinearizable) break;
  }
  result.steps = budget.steps;
  return result;
}

}  // namespace skep::linearizability
