#include "tests/linearizability/store_client.h"

#include <algorithm>

namespace skep::linearizability {
namespace {

using Reply = KvClient::Reply;

Range RangeOf(const Step& step) {
  return {.lo = step.key, .hi = step.other, .unbounded = step.unbounded};
}

Op OpOf(Action action) {
  switch (action) {
    case Action::kPut:
      return Op::kPut;
    case Action::kInsert:
      return Op::kInsert;
    case Action::kUpdate:
      return Op::kUpdate;
    case Action::kDelete:
      return Op::kDelete;
    case Action::kCompareAndSet:
      return Op::kCompareAndSet;
    case Action::kAddDecimal:
      return Op::kApply;
    case Action::kRequireAbsent:
      return Op::kRequireAbsent;
    case Action::kRequirePresent:
      return Op::kRequirePresent;
    case Action::kRequireValue:
      return Op::kRequireValue;
    default:
      return Op::kGet;
  }
}

Request PointOf(const Step& step) {
  Request request{.op = OpOf(step.action), .key = step.key, .value = step.value};
  if (step.action == Action::kAddDecimal) {
    request.function = functions::kAddDecimal;
  } else {
    request.other = step.other;
  }
  return request;
}

ScanOptions OptionsOf(const Step& step) {
  return {.limit = step.limit,
          .reverse = step.reverse,
          .keys_only = step.keys_only,
          .seek_floor = step.floor};
}

void AddTo(Batch& batch, const Step& step) {
  if (step.action == Action::kScan) {
    batch.Scan(RangeOf(step), OptionsOf(step));
  } else if (step.action == Action::kCount) {
    batch.Count(RangeOf(step));
  } else if (step.action == Action::kDeleteRange) {
    batch.DeleteRange(RangeOf(step), step.limit);
  } else {
    batch.Add(PointOf(step));
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
  if (!store_.Execute(unordered_).ok()) return Reply::kRefused;
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
  if (!store_.Execute(unordered_).ok()) return Reply::kRefused;
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
