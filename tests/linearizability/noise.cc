#include "tests/linearizability/noise.h"

namespace skep::linearizability {

Noise::Noise(std::unique_ptr<KvClient> client, uint64_t seed, const Mix& mix, Neighbours neighbours)
    : client_(std::move(client)), rng_(seed) {
  if (neighbours == Neighbours::kNone) return;
  letters_ = "AB{|";
  if (neighbours == Neighbours::kBetween) {
    for (uint32_t i = 0; i < mix.keys; ++i) letters_ += static_cast<char>('a' + i);
  }
  for (uint32_t i = 0; i < kFirstMoves; ++i) Move();
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      Move();
      // Range deletes without a pause would keep other writers waiting: the history would not
      // progress.
      std::this_thread::yield();
    }
  });
}

void Noise::Move() {
  if (++moves_ > kFirstMoves && Below(8) == 0) grows_ = !grows_;
  Operation operation = grows_ ? Grow() : Shrink();
  if (client_->Supports(operation)) {
    client_->Perform(operation);
    return;
  }
  for (const Step& step : operation.steps) {
    Operation one{.steps = {step}};
    client_->Perform(one);
  }
}

Operation Noise::Grow() {
  constexpr uint32_t kValueBytes[] = {20, 60, 80, 100, 400};
  Operation operation;
  const std::string letter = Letter();
  const std::string value = "7~" + std::to_string(kValueBytes[Below(std::size(kValueBytes))]);
  for (uint64_t i = 4 + Below(8); i > 0; --i) {
    operation.steps.push_back({.action = Action::kPut, .key = Name(letter), .value = value});
  }
  return operation;
}

// Deletes some keys of a letter, a stretch of them, or all.
Operation Noise::Shrink() {
  const std::string letter = Letter();
  Operation operation;
  if (Below(4) != 0) {
    for (uint64_t i = 6 + Below(12); i > 0; --i) {
      operation.steps.push_back({.action = Action::kDelete, .key = Name(letter)});
    }
    return operation;
  }
  const bool all = Below(2) == 0;
  operation.steps.push_back({.action = Action::kDeleteRange,
                             .key = all ? letter + '0' : Name(letter),
                             .other = all ? letter + ':' : Name(letter)});
  return operation;
}

std::string Noise::Letter() { return {letters_[Below(letters_.size())]}; }

std::string Noise::Name(const std::string& letter) {
  const std::string number = std::to_string(100 + Below(kNames));
  return letter + number;
}

}  // namespace skep::linearizability
