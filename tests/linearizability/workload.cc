#include "tests/linearizability/workload.h"

#include <algorithm>
#include <utility>

namespace skep::linearizability {

namespace {

bool IsTick(const Operation& operation) {
  return !operation.steps.empty() && operation.steps.front().action == Action::kTick;
}

// Returns whether the operation may carry the time; reading at a snapshot and watching need not.
bool MayTellTime(const Operation& operation) {
  return operation.kind == Operation::Kind::kOpenSnapshot ||
         (operation.kind == Operation::Kind::kExecute &&
          operation.steps.front().action != Action::kWatch);
}

}  // namespace

// The numbers of a client begin at a multiple of 1'000'000'000, so that sums do not reach another
// client's.
std::string ValueOf(const Mix& mix, uint32_t client, uint64_t n) {
  const uint64_t decimal = (client + 1) * uint64_t{1'000'000'000} + 100 * n;
  const uint32_t bytes = mix.value_bytes[n % mix.value_bytes.size()];
  std::string value = std::to_string(decimal);
  if (bytes > 0) value.append("~").append(std::to_string(bytes));
  return value;
}

Workload::Workload(uint32_t client, uint64_t seed, const Mix& mix, std::atomic<uint64_t>& time,
                   Filter filter)
    : client_(client), mix_(mix), time_(time), filter_(std::move(filter)), rng_(seed) {}

Operation Workload::Next() {
  while (planned_.empty()) {
    planned_ = Draw();
    if (!std::ranges::all_of(planned_, filter_)) planned_.clear();
  }
  Operation operation = std::move(planned_.front());
  planned_.pop_front();
  operation.client = client_;
  if (operation.kind == Operation::Kind::kOpenSnapshot) open_[operation.snapshot] = true;
  if (operation.kind == Operation::Kind::kCloseSnapshot) open_[operation.snapshot] = false;
  if (IsTick(operation)) {
    operation.steps.front().deadline = time_.fetch_add(1) + 1;
  } else if (mix_.ticks > 0 && MayTellTime(operation) && Below(12) == 0) {
    operation.now = 1;
    operation.now = filter_(operation) ? time_.fetch_add(1) + 1 : 0;
  }
  return operation;
}

std::deque<Operation> Workload::Draw() {
  uint64_t lot = Below(mix_.points + mix_.ranges + mix_.batches + mix_.snapshots +
                       mix_.transactions + mix_.ticks);
  if (lot < mix_.points) return {Point()};
  lot -= mix_.points;
  if (lot < mix_.ranges) return {OneRange()};
  lot -= mix_.ranges;
  if (lot < mix_.batches) return {Below(4) == 0 ? InParts() : ABatch()};
  lot -= mix_.batches;
  if (lot < mix_.snapshots) return {OnSnapshot()};
  lot -= mix_.snapshots;
  if (lot < mix_.transactions) return Transaction();
  return {ATick()};
}

Operation Workload::Point() { return {.steps = {PointStep()}}; }

Operation Workload::OneRange() { return {.steps = {RangeStep()}}; }

Operation Workload::ABatch() {
  Operation operation;
  std::vector<Step>& steps = operation.steps;
  const size_t count = 2 + Below(2);
  switch (Below(6)) {
    case 0:
      while (steps.size() < count) steps.push_back(ReadStep());
      return operation;
    case 1: {
      const Action needed = Below(3) == 0 ? Action::kRequirePresent : Action::kRequireAbsent;
      while (steps.size() < count) steps.push_back({.action = needed, .key = Key()});
      for (size_t i = 0; i < count; ++i) {
        steps.push_back({.action = Action::kPut, .key = steps[i].key, .value = NewValue()});
      }
      return operation;
    }
    case 2: {
      const std::string key = Key();
      steps.push_back({.action = Action::kGet, .key = key});
      steps.push_back({.action = Action::kPut, .key = key, .value = NewValue()});
      return operation;
    }
    case 3: {
      const std::string value = NewValue();
      while (steps.size() < count) {
        steps.push_back({.action = Action::kPut, .key = Key(), .value = value});
      }
      break;
    }
    default: {
      const size_t fewer = count - Below(2);
      while (steps.size() < fewer) steps.push_back(Below(4) == 0 ? RangeStep() : PointStep());
    }
  }
  for (uint64_t i = Below(3); i > 0; --i) steps.push_back(Condition());
  return operation;
}

// Returns conditions, then parts.
Operation Workload::InParts() {
  Operation operation;
  for (uint64_t i = Below(2); i > 0; --i) operation.steps.push_back(Condition());
  AddParts(operation);
  return operation;
}

// The parts have one step each, or one or two steps; the latter may have conditions of their own.
void Workload::AddParts(Operation& operation) {
  const bool each = Below(2) == 0;
  for (uint64_t i = 2 + Below(2); i > 0; --i) {
    Step step = Below(4) == 0 ? RangeStep() : PointStep();
    step.begins_part = each || Below(2) == 0;
    operation.steps.push_back(std::move(step));
    if (!each && Below(4) == 0) operation.steps.push_back(Condition());
  }
}

// Between the watches and the batch there are reads, and now and then a write: a client's own write
// counts too.
std::deque<Operation> Workload::Transaction() {
  std::deque<Operation> operations;
  Operation last;
  const uint64_t watches = 1 + Below(kWatchesMax);
  for (uint32_t watch = 0; watch < watches; ++watch) {
    const std::string key = Key();
    operations.push_back({.steps = {{.action = Action::kWatch, .key = key, .watch = watch}}});
    last.steps.push_back({.action = Action::kRequireUnchanged, .key = key, .watch = watch});
  }
  for (uint64_t i = Below(3); i > 0; --i) {
    operations.push_back(Below(6) == 0 ? Point() : Operation{.steps = {ReadStep()}});
  }
  if (Below(2) == 0) {
    AddParts(last);
  } else {
    for (uint64_t i = 1 + Below(2); i > 0; --i) last.steps.push_back(PointStep());
  }
  operations.push_back(std::move(last));
  return operations;
}

Operation Workload::ATick() { return {.steps = {{.action = Action::kTick}}}; }

Operation Workload::OnSnapshot() {
  const uint32_t number = static_cast<uint32_t>(Below(kSnapshotsMax));
  if (!open_[number]) return {.kind = Operation::Kind::kOpenSnapshot, .snapshot = number};
  if (Below(4) == 0) return {.kind = Operation::Kind::kCloseSnapshot, .snapshot = number};
  return {.kind = Operation::Kind::kReadSnapshot, .snapshot = number, .steps = {ReadStep()}};
}

Step Workload::PointStep() {
  switch (Below(8)) {
    case 0:
    case 1:
      return {.action = Action::kGet, .key = Key()};
    case 2:
      return StoreStep(Action::kPut);
    case 3:
      return StoreStep(Action::kInsert);
    case 4:
      return StoreStep(Action::kUpdate);
    case 5:
      if (mix_.ticks > 0 && Below(3) == 0) {
        return {.action = Action::kExpire, .key = Key(), .deadline = Deadline()};
      }
      return {.action = Action::kDelete, .key = Key()};
    case 6:
      return CompareStep();
    default:
      return {.action = Action::kAddDecimal, .key = Key(), .value = std::to_string(Below(3))};
  }
}

Step Workload::StoreStep(Action action) {
  Step step{.action = action, .key = Key(), .value = NewValue()};
  if (mix_.ticks == 0) return step;
  const uint64_t form = Below(6);
  step.deadline = form == 0 ? kKeep : form < 3 ? Deadline() : 0;
  return step;
}

Step Workload::CompareStep() {
  Step step{.key = Key(), .other = OldValue(), .by_digest = Below(2) == 0};
  switch (Below(6)) {
    case 0:
      return {
          .action = Action::kRename, .key = Key(), .other = Key(), .keep_existing = Below(3) == 0};
    case 1:
      step.action = Action::kCompareAndDelete;
      return step;
    case 2:
      step.action = Action::kPutIfDiffers;
      break;
    default:
      step.action = Action::kCompareAndSet;
  }
  step.value = NewValue();
  return step;
}

Step Workload::RangeStep() {
  Step step;
  const uint64_t form = Below(8);
  step.action = form < 5 ? Action::kScan : form < 7 ? Action::kCount : Action::kDeleteRange;
  if (step.action == Action::kDeleteRange && mix_.ticks > 0 && Below(3) == 0) {
    step.action = Action::kExpireRange;
    step.deadline = Deadline();
  }
  if (Below(2) == 0) step.key = Key();
  step.unbounded = Below(2) == 0;
  if (!step.unbounded) step.other = Key();
  if (step.action != Action::kCount && Below(4) == 0) {
    step.limit = 1 + static_cast<uint32_t>(Below(3));
  }
  if (step.action == Action::kScan) {
    step.reverse = Below(3) == 0;
    const bool is_range = step.unbounded || step.key < step.other;
    step.floor = !step.reverse && !step.key.empty() && is_range && Below(3) == 0;
    step.keys_only = Below(8) == 0;
  }
  return step;
}

Step Workload::ReadStep() {
  if (Below(2) == 0) return {.action = Action::kGet, .key = Key()};
  Step step = RangeStep();
  if (IsWrite(step.action)) {
    step.action = Action::kScan;
    step.deadline = 0;
  }
  return step;
}

Step Workload::Condition() {
  switch (Below(4)) {
    case 0:
      return {.action = Action::kRequireAbsent, .key = Key()};
    case 1:
      return {.action = Action::kRequirePresent, .key = Key()};
    case 2: {
      Step step{.action = Action::kRequireEmpty, .key = Key(), .unbounded = Below(8) == 0};
      if (!step.unbounded) step.other = Key();
      return step;
    }
    default:
      return {.action = Action::kRequireValue,
              .key = Key(),
              .other = OldValue(),
              .by_digest = Below(2) == 0};
  }
}

std::string Workload::Key() { return std::string(1, static_cast<char>('a' + Below(mix_.keys))); }

std::string Workload::NewValue() { return ValueOf(mix_, client_, ++values_); }

// Returns a value that this client stored not long ago.
std::string Workload::OldValue() {
  const uint64_t back = Below(std::min<uint64_t>(values_ + 1, 4));
  return ValueOf(mix_, client_, values_ - back);
}

// Returns a deadline that comes after another operation or two.
uint64_t Workload::Deadline() { return time_.load() + 1 + Below(3); }

}  // namespace skep::linearizability
