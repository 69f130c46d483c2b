#include "tests/linearizability/faulty_client.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace skep::linearizability {
namespace {

bool NeedsUnchanged(const Step& step) { return step.action == Action::kRequireUnchanged; }

}  // namespace

bool Promises(const EngineTraits& traits, Fault fault) {
  switch (fault) {
    case Fault::kScansInTwoHalves:
    case Fault::kCountsByGets:
      return traits.ordered && traits.whole_ranges;
    case Fault::kMovesItsSnapshots:
      return traits.snapshots;
    case Fault::kSplitsBatches:
    case Fault::kForgetsWatches:
    case Fault::kWatchesLate:
    case Fault::kJudgesFirst:
      return traits.whole_batches;
    case Fault::kReadsFromACache:
    case Fault::kReadsThenWrites:
    case Fault::kSeesThePast:
      return true;
  }
  return false;
}

using Reply = KvClient::Reply;

Reply FaultyClient::Perform(Operation& operation) {
  using Kind = Operation::Kind;
  if (fault_ == Fault::kMovesItsSnapshots && operation.kind == Kind::kReadSnapshot) {
    return PerformAlone(operation.steps.front());
  }
  if (operation.kind != Kind::kExecute) return inner_->Perform(operation);
  Step& step = operation.steps.front();
  if (fault_ == Fault::kWatchesLate) return WatchLate(operation);
  if (fault_ == Fault::kSeesThePast) return TellThePast(operation);
  if (operation.steps.size() > 1) {
    if (fault_ == Fault::kForgetsWatches) return ForgetWatches(operation);
    if (fault_ == Fault::kJudgesFirst) return JudgeFirst(operation);
    return fault_ == Fault::kSplitsBatches ? SplitBatch(operation) : inner_->Perform(operation);
  }
  if (fault_ == Fault::kReadsFromACache && step.action == Action::kGet) return Get(step);
  if (fault_ == Fault::kScansInTwoHalves && step.action == Action::kScan) return ScanHalves(step);
  if (fault_ == Fault::kCountsByGets && step.action == Action::kCount) return CountByGets(step);
  if (fault_ == Fault::kReadsThenWrites && step.action == Action::kAddDecimal) {
    return AddByPut(step);
  }
  return inner_->Perform(operation);
}

Reply FaultyClient::PerformAlone(Step& step) {
  std::this_thread::yield();
  Operation one{.steps = {step}};
  const Reply reply = inner_->Perform(one);
  step = one.steps.front();
  return one.applied ? reply : Reply::kRefused;
}

Reply FaultyClient::Get(Step& step) {
  if (const auto at = cache_.find(step.key); at != cache_.end()) {
    step.found = at->second;
    cache_.erase(at);
    return Reply::kAnswered;
  }
  const Reply reply = PerformAlone(step);
  cache_[step.key] = step.found;
  return reply;
}

// Splits only batches without conditions, which need the batch. Refusals stay as they are.
Reply FaultyClient::SplitBatch(Operation& operation) {
  for (const Step& step : operation.steps) {
    if (IsCondition(step.action) || step.action == Action::kAddDecimal || step.begins_part) {
      return inner_->Perform(operation);
    }
  }
  for (Step& step : operation.steps) {
    if (const Reply reply = PerformAlone(step); reply != Reply::kAnswered) return reply;
  }
  return Reply::kAnswered;
}

Reply FaultyClient::ScanHalves(Step& step) {
  const std::string middle = "c";
  const bool is_across = step.key < middle && (step.unbounded || step.other > middle);
  if (!is_across || step.reverse || step.limit != kNoLimit) return PerformAlone(step);
  Step low = step;
  low.other = middle;
  low.unbounded = false;
  Step high = step;
  high.key = middle;
  high.floor = false;
  if (const Reply reply = PerformAlone(low); reply != Reply::kAnswered) return reply;
  const Reply reply = PerformAlone(high);
  step.items = low.items;
  step.items.insert(step.items.end(), high.items.begin(), high.items.end());
  return reply;
}

Reply FaultyClient::CountByGets(Step& step) {
  step.number = 0;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    Step get{.action = Action::kGet, .key = std::string(1, letter)};
    if (get.key < step.key || (!step.unbounded && get.key >= step.other)) continue;
    if (const Reply reply = PerformAlone(get); reply != Reply::kAnswered) return reply;
    step.number += get.found ? 1 : 0;
  }
  return Reply::kAnswered;
}

Reply FaultyClient::AddByPut(Step& step) {
  Step get{.action = Action::kGet, .key = step.key};
  if (const Reply reply = PerformAlone(get); reply != Reply::kAnswered) return reply;
  step.number = std::stoll(get.found.value_or("0")) + std::stoll(step.value);
  Step put{.action = Action::kPut, .key = step.key, .value = std::to_string(step.number)};
  return PerformAlone(put);
}

Reply FaultyClient::ForgetWatches(Operation& operation) {
  Operation asked = operation;
  std::erase_if(asked.steps, NeedsUnchanged);
  const size_t forgotten = operation.steps.size() - asked.steps.size();
  if (forgotten == 0 || asked.steps.empty() || ++batches_ % 2 == 0) {
    return inner_->Perform(operation);
  }
  const Reply reply = inner_->Perform(asked);
  operation.applied = asked.applied;
  operation.culprit = asked.culprit;
  if (operation.culprit) *operation.culprit += static_cast<uint32_t>(forgotten);
  std::ranges::copy(asked.steps, operation.steps.begin() + static_cast<ptrdiff_t>(forgotten));
  return reply;
}

Reply FaultyClient::WatchLate(Operation& operation) {
  if (operation.steps.front().action == Action::kWatch) {
    late_.push_back(operation);
    return Reply::kAnswered;
  }
  if (!NeedsUnchanged(operation.steps.front())) return inner_->Perform(operation);
  for (Operation& watch : late_) {
    if (const Reply reply = inner_->Perform(watch); reply != Reply::kAnswered) return reply;
  }
  late_.clear();
  return inner_->Perform(operation);
}

// Judges the conditions first, but only where nothing else can stop the operation.
Reply FaultyClient::JudgeFirst(Operation& operation) {
  const auto is_condition = [](const Step& step) { return IsCondition(step.action); };
  const auto resists = [](const Step& step) {
    return step.begins_part || NeedsUnchanged(step) || step.action == Action::kAddDecimal;
  };
  Operation conditions = operation;
  std::erase_if(conditions.steps, std::not_fn(is_condition));
  if (conditions.steps.empty() || std::ranges::any_of(operation.steps, resists)) {
    return inner_->Perform(operation);
  }
  // A batch must have at least two steps.
  conditions.steps.push_back(conditions.steps.back());
  if (!inner_->Supports(conditions)) return inner_->Perform(operation);
  if (const Reply reply = inner_->Perform(conditions); reply != Reply::kAnswered) return reply;
  if (!conditions.applied) return inner_->Perform(operation);
  for (Step& step : operation.steps) {
    if (is_condition(step)) continue;
    if (const Reply reply = PerformAlone(step); reply != Reply::kAnswered) return reply;
  }
  return Reply::kAnswered;
}

Reply FaultyClient::TellThePast(Operation& operation) {
  const Reply reply = inner_->Perform(operation);
  for (Step& step : operation.steps) {
    if (!step.told || !IsComparison(step.action)) continue;
    const auto [at, is_new] = cache_.try_emplace(step.key, step.found);
    if (!is_new) std::swap(at->second, step.found);
  }
  return reply;
}

}  // namespace skep::linearizability
