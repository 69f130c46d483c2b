#include "tests/linearizability/padded_client.h"

#include <algorithm>
#include <charconv>
#include <random>

namespace skep::linearizability {
namespace {

// All letters are between these bounds.
constexpr std::string_view kFirstName = "a";
constexpr std::string_view kBehindNames = "{";

bool HasKeyInOther(Action action) { return IsRange(action) || action == Action::kRename; }

uint64_t NumberIn(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Padding::Padding(uint64_t seed) {
  // A key longer than 76 bytes does not fit into a node of 2 KiB, one longer than 460 not into 8
  // KiB: the rest lies outside.
  constexpr std::array<size_t, 6> kStems = {0, 20, 60, 60, 100, 450};
  constexpr std::array<size_t, 6> kPads = {0, 10, 30, 70, 200, 480};
  std::mt19937_64 rng(seed);
  stem_ = std::string(kStems[rng() % kStems.size()], 's');
  const bool all_alike = rng() % 2 == 0;
  for (std::string& pad : pads_) pad = std::string(kPads[rng() % kPads.size()], 'p');
  if (all_alike) pads_.fill(pads_[0]);
}

std::string_view Padding::PadOf(char letter) const {
  return pads_[static_cast<unsigned char>(letter) % pads_.size()];
}

std::string Padding::Key(std::string_view name) const {
  if (name.empty()) return {};
  std::string key = stem_;
  key += name[0];
  key += PadOf(name[0]);
  key += name.substr(1);
  return key;
}

std::string Padding::NameOf(std::string_view key) const {
  if (key.size() > stem_.size()) {
    const char letter = key[stem_.size()];
    const size_t before = stem_.size() + 1 + PadOf(letter).size();
    std::string name(1, letter);
    if (key.size() >= before) name += key.substr(before);
    if (Key(name) == key) return name;
  }
  return "damaged:" + std::string(key);
}

std::string Padding::Value(std::string_view name) {
  const size_t mark = name.find('~');
  if (mark == std::string_view::npos) return std::string(name);
  const uint64_t decimal = NumberIn(name);
  const uint64_t bytes = NumberIn(name.substr(mark + 1));
  // The value contains the name, so that no two names have one value.
  std::string value(name);
  value += ':';
  for (uint64_t i = value.size(); i < bytes; ++i) {
    value += static_cast<char>('A' + (decimal / 100 + i * 7) % 26);
  }
  return value;
}

std::string Padding::NameOfValue(std::string_view value) {
  const size_t end = value.find(':');
  if (end == std::string_view::npos) return std::string(value);
  const std::string_view name = value.substr(0, end);
  if (Value(name) == value) return std::string(name);
  return "damaged:" + std::string(value);
}

bool PaddedClient::Supports(const Operation& operation) const {
  if (neighbours_ == Neighbours::kBetween) {
    for (const Step& step : operation.steps) {
      if (step.action == Action::kCount || step.action == Action::kRequireEmpty) return false;
      if (step.action != Action::kScan && step.limit != kNoLimit) return false;
    }
  }
  return inner_->Supports(operation);
}

KvClient::Reply PaddedClient::Perform(Operation& operation) {
  Operation asked = operation;
  for (Step& step : asked.steps) step = Padded(step);
  const Reply reply = inner_->Perform(asked);
  operation.applied = asked.applied;
  operation.culprit = asked.culprit;
  for (size_t i = 0; i < operation.steps.size(); ++i) {
    TakeAnswer(asked.steps[i], operation.steps[i]);
  }
  return reply;
}

Step PaddedClient::Padded(const Step& step) const {
  Step padded = step;
  padded.key = padding_.Key(step.key);
  padded.value = Padding::Value(step.value);
  padded.other = HasKeyInOther(step.action) ? padding_.Key(step.other) : Padding::Value(step.other);
  if (IsRange(step.action) && neighbours_ == Neighbours::kAround) {
    if (step.key.empty()) padded.key = padding_.Key(kFirstName);
    if (step.unbounded) padded.other = padding_.Key(kBehindNames);
    padded.unbounded = false;
  }
  return padded;
}

void PaddedClient::TakeAnswer(const Step& answered, Step& step) const {
  step.happened = answered.happened;
  step.number = answered.number;
  step.told = answered.told;
  step.stops = answered.stops;
  step.deadline = answered.deadline;
  if (answered.found) {
    step.found = IsRange(step.action) ? padding_.NameOf(*answered.found)
                                      : Padding::NameOfValue(*answered.found);
  }
  for (const auto& [key, value] : answered.items) {
    step.items.emplace_back(padding_.NameOf(key), Padding::NameOfValue(value));
  }
  if (neighbours_ == Neighbours::kNone) return;
  if (step.action == Action::kScan) ConfineScan(step);
  const bool is_counted = neighbours_ == Neighbours::kAround;
  const bool is_change = IsRange(step.action) && IsWrite(step.action);
  if (is_change && !is_counted) step.number = kNotTold;
}

// Confines a scan to the part that its answer covers.
void PaddedClient::ConfineScan(Step& step) const {
  if (step.floor) {
    const bool has_floor = !step.items.empty() && step.items.front().first <= step.key;
    step.key = has_floor ? step.items.front().first : "";
    step.floor = false;
  }
  if (step.items.size() == step.limit) {
    const std::string& last = step.items.back().first;
    if (step.reverse) {
      step.key = last;
    } else {
      step.other = last + '\0';
      step.unbounded = false;
    }
    step.limit = kNoLimit;
  }
  std::erase_if(step.items, [](const Pair& item) { return IsNeighbour(item.first); });
}

}  // namespace skep::linearizability
