#include "tests/linearizability/store_client.h"

#include <algorithm>

namespace skep::linearizability {
namespace {

using Reply = KvClient::Reply;

Range RangeOf(const Step& step) {
  return {.lo = step.key, .hi = step.other, .unbounded = step.unbounded};
}

void AddTo(Batch& batch, const Step& step) {
  switch (step.action) {
    case Action::kGet:
      batch.Get(step.key);
      break;
    case Action::kPut:
      batch.Put(step.key, step.value);
      break;
    case Action::kInsert:
      batch.Insert(step.key, step.value);
      break;
    case Action::kUpdate:
      batch.Update(step.key, step.value);
      break;
    case Action::kDelete:
      batch.Delete(step.key);
      break;
    case Action::kCompareAndSet:
      batch.CompareAndSet(step.key, step.other, step.value);
      break;
    case Action::kAddDecimal:
      batch.Apply(step.key, functions::kAddDecimal, step.value);
      break;
    case Action::kRename:
      break;  // Supports() keeps it out of batches
    case Action::kScan:
      batch.Scan(RangeOf(step),
                 {.limit = step.limit, .reverse = step.reverse, .keys_only = step.keys_only});
      break;
    case Action::kCount:
      batch.Count(RangeOf(step));
      break;
    case Action::kDeleteRange:
      batch.DeleteRange(RangeOf(step), step.limit);
      break;
    case Action::kRequireAbsent:
      batch.RequireAbsent(step.key);
      break;
    case Action::kRequirePresent:
      batch.RequirePresent(step.key);
      break;
    case Action::kRequireValue:
      batch.RequireValue(step.key, step.other);
      break;
  }
}

void ReadAnswer(const Batch& batch, uint32_t slot, Step& step) {
  const Outcome& out = batch.outcome(slot);
  step.happened = out.verdict == Verdict::kDone;
  step.number = out.integer;
  if (step.action == Action::kGet && step.happened) step.found = std::string(out.value);
  if (step.action != Action::kScan) return;
  for (const Item& item : batch.items(slot)) step.items.emplace_back(item.key, item.value);
}

template <typename T>
Reply Take(const Result<T>& result, auto& answer) {
  if (!result) return Reply::kRefused;
  answer = static_cast<std::remove_reference_t<decltype(answer)>>(*result);
  return Reply::kAnswered;
}

}  // namespace

bool StoreClient::Supports(const Operation& operation) const {
  const auto is_rename = [](const Step& step) { return step.action == Action::kRename; };
  return operation.steps.size() <= 1 || std::ranges::none_of(operation.steps, is_rename);
}

Reply StoreClient::Perform(Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::kOpenSnapshot:
      return OpenSnapshot(operation.snapshot);
    case Operation::Kind::kCloseSnapshot:
      snapshots_.erase(operation.snapshot);
      return Reply::kAnswered;
    case Operation::Kind::kReadSnapshot:
      return ReadSnapshot(operation);
    case Operation::Kind::kExecute:
      break;
  }
  Step& step = operation.steps.front();
  if (operation.steps.size() > 1 || step.action == Action::kAddDecimal) {
    return PerformBatch(operation);
  }
  if (step.action == Action::kRename) return Rename(step);
  return IsRange(step.action) ? PerformRange(step, nullptr) : PerformPoint(step);
}

Reply StoreClient::PerformPoint(Step& step) {
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

Reply StoreClient::PerformRange(Step& step, const Snapshot* at) {
  if (step.action == Action::kScan) return Scan(step, at);
  if (step.action == Action::kCount) return Take(store_.Count(RangeOf(step), 0, at), step.number);
  return Take(store_.DeleteRange(RangeOf(step), step.limit), step.number);
}

Reply StoreClient::Scan(Step& step, const Snapshot* at) {
  const ScanOptions options{
      .limit = step.limit, .reverse = step.reverse, .keys_only = step.keys_only};
  Scanner scan = store_.Scan(RangeOf(step), options, 0, at);
  while (scan.Next()) step.items.emplace_back(scan.key(), scan.value());
  return scan.status().ok() ? Reply::kAnswered : Reply::kRefused;
}

Reply StoreClient::PerformBatch(Operation& operation) {
  const bool one = operation.steps.size() == 1;
  Batch& batch = one ? unordered_ : atomic_;
  batch.Clear();
  for (const Step& step : operation.steps) AddTo(batch, step);
  const Status status = store_.Execute(batch);
  if (!status.ok()) return Reply::kRefused;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Outcome& out = batch.outcome(slot);
    const bool stops =
        out.verdict == Verdict::kRefused || (!batch.applied() && out.verdict != Verdict::kAborted);
    if (stops) {
      operation.applied = false;
      operation.culprit = slot;
    }
  }
  if (!operation.applied) {
    const Outcome& out = batch.outcome(*operation.culprit);
    const bool by_state = out.verdict != Verdict::kRefused ||
                          out.status.code() == Code::kInvalidArgument;  // a function's
    return by_state ? Reply::kAnswered : Reply::kRefused;
  }
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    ReadAnswer(batch, slot, operation.steps[slot]);
  }
  return Reply::kAnswered;
}

Reply StoreClient::Rename(Step& step) {
  while (true) {
    const auto now = store_.Get(step.key);
    if (!now) return Reply::kRefused;
    step.happened = now->has_value();
    if (!step.happened) return Reply::kAnswered;
    atomic_.Clear();
    atomic_.RequireValue(step.key, **now);
    atomic_.Delete(step.key);
    atomic_.Put(step.other, **now);
    const Status status = store_.Execute(atomic_);
    if (!status.ok()) return Reply::kRefused;
    if (atomic_.applied()) return Reply::kAnswered;
    if (atomic_.outcome(0).verdict == Verdict::kRefused) return Reply::kRefused;
  }
}

Reply StoreClient::OpenSnapshot(uint32_t number) {
  Result<Snapshot> taken = store_.TakeSnapshot();
  if (!taken) return Reply::kRefused;
  snapshots_.insert_or_assign(number, std::move(*taken));
  return Reply::kAnswered;
}

Reply StoreClient::ReadSnapshot(Operation& operation) {
  const Snapshot& at = snapshots_.at(operation.snapshot);
  Step& step = operation.steps.front();
  if (IsRange(step.action)) return PerformRange(step, &at);
  unordered_.Clear();
  unordered_.set_snapshot(at.ref());
  unordered_.Get(step.key);
  if (!store_.Execute(unordered_).ok()) return Reply::kRefused;
  if (unordered_.outcome(0).verdict == Verdict::kRefused) return Reply::kRefused;
  ReadAnswer(unordered_, 0, step);
  return Reply::kAnswered;
}

}  // namespace skep::linearizability
