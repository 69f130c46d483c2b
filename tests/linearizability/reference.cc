#include "tests/linearizability/reference.h"

#include <algorithm>
#include <charconv>

namespace skep::linearizability {
namespace {

using Map = Reference::Map;

// The keys of [step.key, step.other) that the step visits, in its order.
std::vector<std::string> Visited(const Map& map, const Step& step) {
  std::vector<std::string> keys;
  std::string lo = step.key;
  for (const auto& [key, value] : map) {
    if (step.floor && key <= step.key) lo = key;
  }
  for (const auto& [key, value] : map) {
    if (key >= lo && (step.unbounded || key < step.other)) keys.push_back(key);
  }
  if (step.reverse) std::ranges::reverse(keys);
  if (keys.size() > step.limit) keys.resize(step.limit);
  return keys;
}

bool Holds(const Map& map, const Step& step) {
  const auto at = map.find(step.key);
  if (step.action == Action::kRequireAbsent) return at == map.end();
  if (step.action == Action::kRequirePresent) return at != map.end();
  return at != map.end() && at->second == step.other;
}

bool IsDecimal(const std::string& text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end && std::to_string(number) == text;
}

// False if the value is no number, or the sum is none.
bool Add(Map& map, Step& step) {
  const auto at = map.find(step.key);
  if (at != map.end() && !IsDecimal(at->second)) return false;
  const int64_t now = at == map.end() ? 0 : std::stoll(at->second);
  if (__builtin_add_overflow(now, std::stoll(step.value), &step.number)) return false;
  map[step.key] = std::to_string(step.number);
  return true;
}

void PerformRange(Map& map, Step& step) {
  const std::vector<std::string> keys = Visited(map, step);
  step.number = static_cast<int64_t>(keys.size());
  for (const std::string& key : keys) {
    if (step.action == Action::kScan) step.items.emplace_back(key, step.keys_only ? "" : map[key]);
    if (step.action == Action::kDeleteRange) map.erase(key);
  }
}

// False if the step is refused.
bool PerformStep(Map& map, Step& step) {
  if (IsRange(step.action)) return PerformRange(map, step), true;
  const auto at = map.find(step.key);
  const bool present = at != map.end();
  switch (step.action) {
    case Action::kGet:
      if (present) step.found = at->second;
      return true;
    case Action::kAddDecimal:
      return Add(map, step);
    case Action::kPut:
      step.happened = true;
      break;
    case Action::kInsert:
      step.happened = !present;
      break;
    case Action::kCompareAndSet:
      step.happened = present && at->second == step.other;
      break;
    default:
      step.happened = present;
  }
  if (!step.happened) return true;
  if (step.action == Action::kRename) {
    const std::string moved = at->second;
    map.erase(at);
    map[step.other] = moved;
  } else if (step.action == Action::kDelete) {
    map.erase(at);
  } else {
    map[step.key] = step.value;
  }
  return true;
}

}  // namespace

void Reference::Perform(Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::kOpenSnapshot:
      pinned_[operation.snapshot] = map_;
      break;
    case Operation::Kind::kCloseSnapshot:
      pinned_.erase(operation.snapshot);
      break;
    case Operation::Kind::kReadSnapshot: {
      Map now = map_;
      map_ = pinned_[operation.snapshot];
      Execute(operation);
      map_ = now;
      break;
    }
    case Operation::Kind::kExecute:
      Execute(operation);
  }
}

void Reference::Execute(Operation& operation) {
  Map changed = map_;
  for (uint32_t i = 0; i < operation.steps.size(); ++i) {
    Step& step = operation.steps[i];
    const bool stops = IsCondition(step.action) ? !Holds(map_, step) : !PerformStep(changed, step);
    if (!stops) continue;
    operation.applied = false;
    operation.culprit = i;
    return;
  }
  map_ = std::move(changed);
}

}  // namespace skep::linearizability
