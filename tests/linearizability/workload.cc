#include "tests/linearizability/workload.h"

#include <algorithm>
#include <utility>

namespace skep::linearizability {

// 1'000'000'000 for each client, so that sums do not reach another one's.
std::string ValueOf(const Mix& mix, uint32_t client, uint64_t n) {
  const uint64_t decimal = (client + 1) * uint64_t{1'000'000'000} + 100 * n;
  const uint32_t bytes = mix.value_bytes[n % mix.value_bytes.size()];
  std::string value = std::to_string(decimal);
  if (bytes > 0) value.append("~").append(std::to_string(bytes));
  return value;
}

Workload::Workload(uint32_t client, uint64_t seed, const Mix& mix, Filter filter)
    : client_(client), mix_(mix), filter_(std::move(filter)), rng_(seed) {}

Operation Workload::Next() {
  Operation operation;
  do {
    operation = Draw();
    operation.client = client_;
  } while (!filter_(operation));
  if (operation.kind == Operation::Kind::kOpenSnapshot) open_[operation.snapshot] = true;
  if (operation.kind == Operation::Kind::kCloseSnapshot) open_[operation.snapshot] = false;
  return operation;
}

Operation Workload::Draw() {
  uint64_t lot = Below(mix_.points + mix_.ranges + mix_.batches + mix_.snapshots);
  if (lot < mix_.points) return Point();
  lot -= mix_.points;
  if (lot < mix_.ranges) return OneRange();
  lot -= mix_.ranges;
  return lot < mix_.batches ? ABatch() : OnSnapshot();
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
    case 1:
      while (steps.size() < count)
        steps.push_back({.action = Action::kRequireAbsent, .key = Key()});
      for (size_t i = 0; i < count; ++i) {
        steps.push_back({.action = Action::kPut, .key = steps[i].key, .value = NewValue()});
      }
      return operation;
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
    default:
      while (steps.size() < count) steps.push_back(Below(4) == 0 ? RangeStep() : PointStep());
  }
  for (uint64_t i = Below(3); i > 0; --i) steps.push_back(Condition());
  return operation;
}

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
      return {.action = Action::kPut, .key = Key(), .value = NewValue()};
    case 3:
      return {.action = Action::kInsert, .key = Key(), .value = NewValue()};
    case 4:
      return {.action = Action::kUpdate, .key = Key(), .value = NewValue()};
    case 5:
      return {.action = Action::kDelete, .key = Key()};
    case 6:
      if (Below(3) == 0) return {.action = Action::kRename, .key = Key(), .other = Key()};
      return {
          .action = Action::kCompareAndSet, .key = Key(), .value = NewValue(), .other = OldValue()};
    default:
      return {.action = Action::kAddDecimal, .key = Key(), .value = std::to_string(Below(3))};
  }
}

Step Workload::RangeStep() {
  Step step;
  const uint64_t form = Below(8);
  step.action = form < 5 ? Action::kScan : form < 7 ? Action::kCount : Action::kDeleteRange;
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
  if (step.action == Action::kDeleteRange) step.action = Action::kScan;
  return step;
}

Step Workload::Condition() {
  const uint64_t form = Below(3);
  if (form == 0) return {.action = Action::kRequireAbsent, .key = Key()};
  if (form == 1) return {.action = Action::kRequirePresent, .key = Key()};
  return {.action = Action::kRequireValue, .key = Key(), .other = OldValue()};
}

std::string Workload::Key() { return std::string(1, static_cast<char>('a' + Below(mix_.keys))); }

std::string Workload::NewValue() { return ValueOf(mix_, client_, ++values_); }

// One that this client stored not long ago.
std::string Workload::OldValue() {
  const uint64_t back = Below(std::min<uint64_t>(values_ + 1, 4));
  return ValueOf(mix_, client_, values_ - back);
}

}  // namespace skep::linearizability
