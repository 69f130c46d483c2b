#include "tests/linearizability/reference.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace skep::linearizability {
namespace {

bool IsDecimal(const std::string& text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end && std::to_string(number) == text;
}

bool Matches(const std::optional<std::string>& value, const Step& step) {
  return value && *value == step.other;
}

// Fills in what a step that does not hold has seen.
void Tell(Step& step, std::optional<std::string> seen) {
  step.told = true;
  step.found = std::move(seen);
}

}  // namespace

bool Reference::State::IsPresent(const std::string& key) const {
  const auto at = entries.find(key);
  if (at == entries.end() || !at->second.value) return false;
  return at->second.deadline == 0 || at->second.deadline > now;
}

std::optional<std::string> Reference::State::Find(const std::string& key) const {
  return IsPresent(key) ? entries.at(key).value : std::nullopt;
}

uint64_t Reference::State::DeadlineOf(const std::string& key) const {
  return IsPresent(key) ? entries.at(key).deadline : 0;
}

uint64_t Reference::State::ChangesOf(const std::string& key) const {
  const auto at = entries.find(key);
  if (at == entries.end()) return 0;
  const bool expired = at->second.value && !IsPresent(key);
  return 2 * at->second.writes + (expired ? 1 : 0);
}

void Reference::State::Store(const std::string& key, const std::string& value, uint64_t deadline) {
  if (deadline == kKeep) deadline = DeadlineOf(key);
  if (deadline != 0 && deadline <= now) return Erase(key);
  Entry& entry = entries[key];
  ++entry.writes;
  entry.value = value;
  entry.deadline = deadline;
}

void Reference::State::Erase(const std::string& key) {
  if (!IsPresent(key)) return;
  Entry& entry = entries[key];
  ++entry.writes;
  entry.value.reset();
}

void Reference::Perform(Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::kOpenSnapshot:
      pinned_[operation.snapshot] = state_;
      break;
    case Operation::Kind::kCloseSnapshot:
      pinned_.erase(operation.snapshot);
      break;
    case Operation::Kind::kReadSnapshot:
      std::swap(state_, pinned_[operation.snapshot]);
      Execute(operation);
      std::swap(state_, pinned_[operation.snapshot]);
      break;
    case Operation::Kind::kExecute:
      Execute(operation);
  }
}

void Reference::Execute(Operation& operation) {
  const uint32_t size = static_cast<uint32_t>(operation.steps.size());
  const auto end_of = [&](uint32_t at) {
    while (at < size && !operation.steps[at].begins_part) ++at;
    return at;
  };
  uint32_t end = end_of(0);
  operation.culprit = PerformPart(operation, 0, end);
  operation.applied = !operation.culprit;
  while (operation.applied && end < size) {
    const uint32_t begin = end;
    end = end_of(begin + 1);
    const auto culprit = PerformPart(operation, begin, end);
    if (culprit) operation.steps[*culprit].stops = true;
  }
  for (const Step& step : operation.steps) {
    if (step.action == Action::kRequireUnchanged) watched_.erase(step.watch);
  }
}

std::optional<uint32_t> Reference::PerformPart(Operation& operation, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; ++i) {
    Step& step = operation.steps[i];
    if (IsCondition(step.action) && !Holds(step)) return i;
  }
  const State before = state_;
  for (uint32_t i = begin; i < end; ++i) {
    Step& step = operation.steps[i];
    if (IsCondition(step.action) || PerformStep(step)) continue;
    state_ = before;
    return i;
  }
  return std::nullopt;
}

bool Reference::Holds(Step& step) const {
  const std::optional<std::string> now = state_.Find(step.key);
  switch (step.action) {
    case Action::kRequireAbsent:
      return !now;
    case Action::kRequirePresent:
      return now.has_value();
    case Action::kRequireUnchanged: {
      const auto watch = watched_.find(step.watch);
      return watch != watched_.end() && watch->second == state_.ChangesOf(step.key);
    }
    case Action::kRequireEmpty: {
      for (const auto& [key, entry] : state_.entries) {
        const bool is_in = key >= step.key && (step.unbounded || key < step.other);
        if (!is_in || !state_.IsPresent(key)) continue;
        Tell(step, key);
        return false;
      }
      return true;
    }
    default:
      if (Matches(now, step)) return true;
      Tell(step, now);
      return false;
  }
}

// Returns false if the step is refused.
bool Reference::PerformStep(Step& step) {
  if (IsRange(step.action)) return PerformRange(step), true;
  switch (step.action) {
    case Action::kTick:
      state_.now = std::max(state_.now, step.deadline);
      return true;
    case Action::kWatch:
      watched_[step.watch] = state_.ChangesOf(step.key);
      return true;
    case Action::kAddDecimal:
      return Add(step);
    case Action::kRename:
      return Rename(step), true;
    default:
      return PerformPoint(step), true;
  }
}

void Reference::PerformPoint(Step& step) {
  const std::optional<std::string> now = state_.Find(step.key);
  step.happened = now.has_value();
  switch (step.action) {
    case Action::kGet:
      step.found = now;
      step.told = true;
      step.deadline = state_.DeadlineOf(step.key);
      return;
    case Action::kPut:
      return state_.Store(step.key, step.value, step.deadline);
    case Action::kInsert:
      step.happened = !now;
      break;
    case Action::kCompareAndSet:
    case Action::kCompareAndDelete:
    case Action::kPutIfDiffers:
      step.happened = Matches(now, step) != (step.action == Action::kPutIfDiffers);
      if (!step.happened) Tell(step, now);
      break;
    default:
      break;
  }
  if (!step.happened) return;
  if (step.action == Action::kDelete || step.action == Action::kCompareAndDelete) {
    state_.Erase(step.key);
  } else {
    state_.Store(step.key, step.action == Action::kExpire ? *now : step.value, step.deadline);
  }
}

// Returns false if the value or the sum is no number.
bool Reference::Add(Step& step) {
  const std::optional<std::string> now = state_.Find(step.key);
  if (now && !IsDecimal(*now)) return false;
  const int64_t number = now ? std::stoll(*now) : 0;
  if (__builtin_add_overflow(number, std::stoll(step.value), &step.number)) return false;
  state_.Store(step.key, std::to_string(step.number), kKeep);
  return true;
}

void Reference::Rename(Step& step) {
  const std::optional<std::string> now = state_.Find(step.key);
  step.happened = now && !(step.keep_existing && state_.IsPresent(step.other));
  if (!step.happened || step.key == step.other) return;
  const uint64_t deadline = state_.DeadlineOf(step.key);
  state_.Erase(step.key);
  state_.Store(step.other, *now, deadline);
}

void Reference::PerformRange(Step& step) {
  std::vector<std::string> keys;
  std::string lo = step.key;
  for (const auto& [key, entry] : state_.entries) {
    if (step.floor && key <= step.key && state_.IsPresent(key)) lo = key;
  }
  for (const auto& [key, entry] : state_.entries) {
    const bool is_in = key >= lo && (step.unbounded || key < step.other);
    if (is_in && state_.IsPresent(key)) keys.push_back(key);
  }
  if (step.reverse) std::ranges::reverse(keys);
  if (keys.size() > step.limit) keys.resize(step.limit);
  step.number = static_cast<int64_t>(keys.size());
  for (const std::string& key : keys) {
    if (step.action == Action::kScan) {
      step.items.emplace_back(key, step.keys_only ? "" : *state_.Find(key));
    }
    if (step.action == Action::kDeleteRange) state_.Erase(key);
    if (step.action == Action::kExpireRange) {
      state_.Store(key, *state_.Find(key), step.deadline);
    }
  }
}

}  // namespace skep::linearizability
