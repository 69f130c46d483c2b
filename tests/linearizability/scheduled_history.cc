#include "tests/linearizability/scheduled_history.h"

#include <atomic>
#include <memory>
#include <random>

#include "tests/linearizability/recorder.h"
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
    std::vector<size_t>
        called;            // in history_, not returned: an operation, maybe its tick before it
    size_t performed = 0;  // how many of `called`
  };

  Player NewPlayer() {
    const uint32_t client = clients_++;
    const auto any = [](const Operation&) { return true; };
    return {.workload = std::make_unique<Workload>(client, rng_(), options_.mix, time_, any)};
  }

  bool InFlight() const {
    for (const Player& player : players_) {
      if (!player.called.empty()) return true;
    }
    return false;
  }

  void Tick() {
    ++now_;
    PerformSomeLost();
    Player& player = players_[rng_() % players_.size()];
    if (player.called.empty()) {
      if (history_.size() < options_.operations) Call(player);
    } else if (rng_() % 1000 < options_.lost_per_mille) {
      // The tick is taken last: it may have been performed first.
      while (player.called.size() > player.performed) {
        lost_.push_back(player.called.back());
        player.called.pop_back();
      }
      player = NewPlayer();
    } else if (player.performed < player.called.size()) {
      reference_.Perform(history_[player.called[player.performed++]]);
    } else {
      for (const size_t operation : player.called) history_[operation].returned = now_;
      player.called.clear();
    }
  }

  void Call(Player& player) {
    Operation operation = player.workload->Next();
    operation.call = now_;
    MakeNumbersOwn(operation);
    player.performed = 0;
    if (operation.now != 0) Add(player, TickOf(operation));
    Add(player, std::move(operation));
  }

  void Add(Player& player, Operation operation) {
    player.called.push_back(history_.size());
    history_.push_back(std::move(operation));
  }

  void PerformSomeLost() {
    if (lost_.empty() || rng_() % 8 != 0) return;
    if (rng_() % 2 == 0) {
      Operation effect = history_[lost_.back()];
      const bool may = effect.kind == Operation::Kind::kExecute && effect.now <= reference_.now();
      if (may) reference_.Perform(effect);
    }
    lost_.pop_back();
  }

  std::mt19937_64 rng_;
  const ScheduleOptions options_;
  uint64_t now_ = 0;
  std::atomic<uint64_t> time_ = 0;
  uint32_t clients_ = 0;  // number ever made
  std::vector<Player> players_;
  std::vector<size_t> lost_;  // without a reply and not performed yet
  Reference reference_;
  History history_;
};

}  // namespace

History ScheduledHistory(uint64_t seed, const ScheduleOptions& options) {
  return Schedule(seed, options).Run();
}

}  // namespace skep::linearizability
