#include "tests/linearizability/scheduled_history.h"

#include <memory>
#include <optional>
#include <random>

#include "tests/linearizability/reference.h"

namespace skep::linearizability {
namespace {

class Schedule {
 public:
  Schedule(uint64_t seed, const ScheduleOptions& options) : rng_(seed), options_(options) {
    for (uint32_t i = 0; i < options.clients; ++i) players_.push_back(NewPlayer());
  }

  History Run() {
    while (history_.size() < options_.operations || InFlight()) Tick();
    return std::move(history_);
  }

 private:
  struct Player {
    std::unique_ptr<Workload> workload;
    std::optional<size_t> operation;  // in history_, called and not returned
    bool performed = false;
  };

  Player NewPlayer() {
    const uint32_t client = clients_++;
    const auto any = [](const Operation&) { return true; };
    return {.workload = std::make_unique<Workload>(client, rng_(), options_.mix, any)};
  }

  bool InFlight() const {
    for (const Player& player : players_) {
      if (player.operation) return true;
    }
    return false;
  }

  void Tick() {
    ++now_;
    PerformSomeLost();
    Player& player = players_[rng_() % players_.size()];
    if (!player.operation) {
      if (history_.size() < options_.operations) Call(player);
    } else if (rng_() % 1000 < options_.lost_per_mille) {
      if (!player.performed) lost_.push_back(*player.operation);
      player = NewPlayer();
    } else if (!player.performed) {
      reference_.Perform(history_[*player.operation]);
      player.performed = true;
    } else {
      history_[*player.operation].returned = now_;
      player.operation.reset();
    }
  }

  void Call(Player& player) {
    Operation operation = player.workload->Next();
    operation.call = now_;
    operation.snapshot += operation.client * Workload::kSnapshotsMax;
    player.operation = history_.size();
    player.performed = false;
    history_.push_back(std::move(operation));
  }

  void PerformSomeLost() {
    if (lost_.empty() || rng_() % 8 != 0) return;
    if (rng_() % 2 == 0) {
      Operation effect = history_[lost_.back()];
      if (effect.kind == Operation::Kind::kExecute) reference_.Perform(effect);
    }
    lost_.pop_back();
  }

  std::mt19937_64 rng_;
  const ScheduleOptions options_;
  uint64_t now_ = 0;
  uint32_t clients_ = 0;  // ever made
  std::vector<Player> players_;
  std::vector<size_t> lost_;  // without reply and not performed yet
  Reference reference_;
  History history_;
};

}  // namespace

History ScheduledHistory(uint64_t seed, const ScheduleOptions& options) {
  return Schedule(seed, options).Run();
}

}  // namespace skep::linearizability
