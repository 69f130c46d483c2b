#include "tests/linearizability/store_client.h"

#include <algorithm>

#include "tests/linearizability/batch_steps.h"

namespace skep::linearizability {
namespace {

using Reply = KvClient::Reply;

// Returns whether the slot is why its part was not applied.
bool Stops(const Batch& batch, uint32_t slot) {
  const Verdict verdict = batch.outcome(slot).verdict;
  if (verdict == Verdict::kRefused) return true;
  return IsCondition(batch.requests()[slot].op) && verdict != Verdict::kDone &&
         verdict != Verdict::kAborted;
}

// Returns whether the state, and nothing else, stopped the part, as a history needs it.
bool IsByState(const Outcome& out) {
  return out.verdict != Verdict::kRefused || out.status.code() == Code::kInvalidArgument;
}

// Returns whether no call of the store itself can do the operation.
bool NeedsBatch(const Operation& operation) {
  const Step& step = operation.steps.front();
  if (operation.steps.size() > 1 || operation.now != 0 || step.deadline != 0) return true;
  switch (step.action) {
    case Action::kCompareAndSet:
      return step.by_digest;
    case Action::kCompareAndDelete:
    case Action::kPutIfDiffers:
    case Action::kExpire:
    case Action::kAddDecimal:
    case Action::kRename:
      return true;
    default:
      return false;
  }
}

template <typename T>
Reply Take(const Result<T>& result, auto& answer) {
  if (!result) return Reply::kRefused;
  answer = static_cast<std::remove_reference_t<decltype(answer)>>(*result);
  return Reply::kAnswered;
}

}  // namespace

StoreClient::~StoreClient() {
  for (const auto& [number, watch] : watches_) engine_.Unwatch(watch);
}

bool StoreClient::Supports(const Operation&) const { return true; }

Reply StoreClient::Perform(Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::kOpenSnapshot:
      return OpenSnapshot(operation.snapshot, operation.now);
    case Operation::Kind::kCloseSnapshot:
      snapshots_.erase(operation.snapshot);
      return Reply::kAnswered;
    case Operation::Kind::kReadSnapshot:
      return ReadSnapshot(operation);
    case Operation::Kind::kExecute:
      break;
  }
  Step& step = operation.steps.front();
  if (step.action == Action::kTick) return Tick(step.deadline);
  if (step.action == Action::kWatch) return Watch(step);
  // The store's own calls read ranges at a snapshot.
  const bool needs_snapshot = IsRange(step.action) && !engine_.traits().snapshots;
  if (NeedsBatch(operation) || needs_snapshot) return PerformBatch(operation);
  return IsRange(step.action) ? PerformRange(step, nullptr) : PerformPoint(step);
}

Status StoreClient::Execute(Batch& batch, uint64_t now) {
  if (now == 0) return store_.Execute(batch);
  batch.set_now_ms(MsOf(now));
  engine_.gate().Wait(engine_.Execute(batch));
  return {};
}

Reply StoreClient::PerformPoint(Step& step) {
  if (++points_ % 2 == 0) return PerformHinted(step);
  switch (step.action) {
    case Action::kGet:
      return Take(store_.Get(step.key), step.found);
    case Action::kPut:
      return store_.Put(step.key, step.value).ok() ? Reply::kAnswered : Reply::kRefused;
    case Action::kInsert:
      return Take(store_.Insert(step.key, step.value), step.happened);
    case Action::kUpdate:
      return Take(store_.Update(step.key, step.value), step.happened);
    case Action::kDelete:
      return Take(store_.Delete(step.key), step.happened);
    default:
      return Take(store_.CompareAndSet(step.key, step.other, step.value), step.happened);
  }
}

Reply StoreClient::PerformHinted(Step& step) {
  Request request = PointOf(step);
  request.flags = Request::kWantHint;
  const auto own = hints_.find(step.key);
  if (own != hints_.end() && points_ % 4 == 0) {
    request.hint = own->second;
  } else if (!hints_.empty()) {
    request.hint =
        std::next(hints_.begin(), static_cast<ptrdiff_t>(points_ % hints_.size()))->second;
  }
  unordered_.Clear();
  unordered_.Add(request);
  if (!Execute(unordered_).ok()) return Reply::kRefused;
  const Outcome& out = unordered_.outcome(0);
  if (out.verdict == Verdict::kRefused) return Reply::kRefused;
  if (out.hint.bits != 0) hints_[step.key] = out.hint;
  ReadAnswer(unordered_, 0, step);
  return Reply::kAnswered;
}

Reply StoreClient::PerformRange(Step& step, const Snapshot* at) {
  if (step.action == Action::kScan) return Scan(step, at);
  if (step.action == Action::kCount) return Take(store_.Count(RangeOf(step), 0, at), step.number);
  const bool is_all = step.key.empty() && step.unbounded && step.limit == kNoLimit;
  if (is_all && ++clears_ % 2 == 0) return DeleteAll(step);
  return Take(store_.DeleteRange(RangeOf(step), step.limit), step.number);
}

Reply StoreClient::DeleteAll(Step& step) {
  unordered_.Clear();
  unordered_.DeleteAll();
  if (!Execute(unordered_).ok()) return Reply::kRefused;
  if (unordered_.outcome(0).verdict == Verdict::kRefused) return Reply::kRefused;
  step.number = unordered_.outcome(0).integer;
  return Reply::kAnswered;
}

Reply StoreClient::Scan(Step& step, const Snapshot* at) {
  Scanner scan = store_.Scan(RangeOf(step), OptionsOf(step), 0, at);
  while (scan.Next()) step.items.emplace_back(scan.key(), scan.value());
  return scan.status().ok() ? Reply::kAnswered : Reply::kRefused;
}

Reply StoreClient::PerformBatch(Operation& operation) {
  std::vector<Step>& steps = operation.steps;
  // Only an atomic batch gives a range its deadline at one instant.
  const bool is_atomic = steps.size() > 1 || steps.front().action == Action::kRename ||
                         steps.front().action == Action::kExpireRange;
  Batch& batch = is_atomic ? atomic_ : unordered_;
  batch.Clear();
  bool is_complete = true;
  for (const Step& step : steps) is_complete = Add(batch, step) && is_complete;
  if (operation.now != 0) latest_ = operation.now;
  const uint64_t now = operation.now != 0 || ++batches_ % 2 == 0 ? latest_ : 0;
  const bool executed = is_complete && Execute(batch, now).ok();
  for (const Step& step : steps) {
    if (step.action == Action::kRequireUnchanged) Unwatch(step.watch);
  }
  if (!executed) return Reply::kRefused;
  const auto begins = batch.part_begins();
  const size_t first_end = begins.empty() ? steps.size() : begins.front();
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const bool stops = Stops(batch, slot);
    if (stops && !IsByState(batch.outcome(slot))) return Reply::kRefused;
    ReadAnswer(batch, slot, steps[slot]);
    if (!stops) continue;
    if (slot >= first_end) {
      steps[slot].stops = true;
    } else if (operation.applied) {
      operation.applied = false;
      operation.culprit = slot;
    }
  }
  return Reply::kAnswered;
}

// Returns false if the step is of a watch that does not exist.
bool StoreClient::Add(Batch& batch, const Step& step) const {
  if (step.begins_part) batch.BeginPart();
  if (step.action != Action::kRequireUnchanged) {
    AddStep(step, batch);
    return true;
  }
  const auto watch = watches_.find(step.watch);
  if (watch == watches_.end()) return false;
  batch.RequireUnchanged(step.key, watch->second);
  return true;
}

// Tells the time by upkeep, by a read or by a snapshot, in turn.
Reply StoreClient::Tick(uint64_t time) {
  latest_ = time;
  switch (++ticks_ % 3) {
    case 0:
      engine_.Maintain(MsOf(time));
      return Reply::kAnswered;
    case 1:
      if (engine_.traits().snapshots) {
        const auto ref = engine_.OpenSnapshot(MsOf(time));
        if (!ref) return Reply::kRefused;
        engine_.CloseSnapshot(*ref);
        return Reply::kAnswered;
      }
      break;
    default:
      break;
  }
  unordered_.Clear();
  unordered_.Get("");
  return Execute(unordered_, time).ok() ? Reply::kAnswered : Reply::kRefused;
}

Reply StoreClient::Watch(Step& step) {
  Unwatch(step.watch);
  const auto watch = engine_.Watch(step.key, MsOf(latest_));
  if (!watch) return Reply::kRefused;
  watches_[step.watch] = *watch;
  // The write that the watch has seen may not be released yet: a scan would read the state before
  // it.
  unordered_.Clear();
  unordered_.Get(step.key);
  return Execute(unordered_, latest_).ok() ? Reply::kAnswered : Reply::kRefused;
}

void StoreClient::Unwatch(uint32_t watch) {
  const auto at = watches_.find(watch);
  if (at == watches_.end()) return;
  engine_.Unwatch(at->second);
  watches_.erase(at);
}

Reply StoreClient::OpenSnapshot(uint32_t number, uint64_t now) {
  Snapshot snapshot;
  if (now == 0) {
    Result<Snapshot> taken = store_.TakeSnapshot();
    if (!taken) return Reply::kRefused;
    snapshot = std::move(*taken);
  } else {
    latest_ = now;
    const auto ref = engine_.OpenSnapshot(MsOf(now));
    if (!ref) return Reply::kRefused;
    snapshot = Snapshot(engine_, *ref);
  }
  snapshots_.insert_or_assign(number, std::move(snapshot));
  return Reply::kAnswered;
}

Reply StoreClient::ReadSnapshot(Operation& operation) {
  const Snapshot& at = snapshots_.at(operation.snapshot);
  Step& step = operation.steps.front();
  if (IsRange(step.action)) return PerformRange(step, &at);
  unordered_.Clear();
  unordered_.set_snapshot(at.ref());
  unordered_.Get(step.key);
  if (!Execute(unordered_).ok()) return Reply::kRefused;
  if (unordered_.outcome(0).verdict == Verdict::kRefused) return Reply::kRefused;
  ReadAnswer(unordered_, 0, step);
  return Reply::kAnswered;
}

}  // namespace skep::linearizability
