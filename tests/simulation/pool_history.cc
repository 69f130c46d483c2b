#include "tests/simulation/pool_history.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "keyspace/factory.h"
#include "tests/linearizability/recorder.h"
#include "tests/linearizability/workload.h"
#include "tests/simulation/pool_client.h"

namespace skep::simulation {
namespace {

using linearizability::History;
using linearizability::Mix;
using linearizability::Workload;

constexpr uint32_t kClients = 3;
constexpr uint32_t kOperations = 7;  // of each client
constexpr uint64_t kMs = 1'000'000;
constexpr std::chrono::minutes kLimit(10);

std::unique_ptr<Engine> MakeTree() {
  static MemoryBudget budget;
  EngineOptions options;
  options.budget = &budget;
  return FindEngine("model")->make(options);
}

// What a seed has drawn.
struct Plan {
  enum class Fate : uint8_t { kNone, kKilled, kDeposed };

  pool::PoolTimes times;
  uint64_t step_ns = 0;
  uint32_t keys = 0;
  uint64_t think_ns_max = 0;
  uint64_t cuts = 0;
  Fate fate = Fate::kNone;
  uint32_t victim = 0;        // the index server that has it
  uint64_t fate_ns = 0;       // when
  uint64_t learn_ns_max = 0;  // until the others learn of it
  bool pauses_clients = false;
  bool pauses_servers = false;

  explicit Plan(Random& random) {
    constexpr uint64_t kSteps[] = {5'000, 50'000, 1'000'000};
    step_ns = kSteps[random.Below(3)];
    times = {.read_ns_max = (5 + random.Below(45)) * kMs,
             .lease_ns = (40 + random.Below(160)) * kMs,
             .silence_ns_max = (200 + random.Below(800)) * kMs};
    keys = 2 + static_cast<uint32_t>(random.Below(3));
    if (random.Chance(1, 2)) think_ns_max = random.Below(100 * kMs);
    if (random.Chance(1, 2)) cuts = 1 + random.Below(6);
    if (random.Chance(1, 2)) {
      fate = random.Chance(1, 2) ? Fate::kKilled : Fate::kDeposed;
      victim = random.Chance(2, 3) ? 1 : 2;
      fate_ns = random.Below(random.Chance(1, 2) ? 50 * kMs : 500 * kMs);
      learn_ns_max = random.Below(2 * times.lease_ns);
    }
    pauses_clients = random.Chance(1, 2);
    pauses_servers = random.Chance(1, 3);
  }
};

pool::SimPoolOptions OptionsOf(const Plan& plan, const PoolVariant& variant) {
  pool::SimPoolOptions options;
  options.simulation.step_ns_max = 1 + plan.step_ns / 10;
  options.fabric = {.step_ns_max = plan.step_ns,
                    .slow_ns_max = 40 * plan.step_ns,
                    .slow_one_in = 16,
                    .call_ns_max = plan.step_ns / 20,
                    .notice_ns_max = 20 * plan.step_ns,
                    .late_ns_max = 4 * plan.times.silence_ns_max};
  options.chunks = 5;
  options.make_tree = &MakeTree;
  options.times = [plan, variant](uint32_t id) {
    pool::PoolTimes times = plan.times;
    if (variant.change_times) variant.change_times(id, times);
    return times;
  };
  return options;
}

class Run {
 public:
  Run(uint64_t seed, const PoolVariant& variant, PoolTally& tally)
      : random_(seed),
        plan_(random_),
        tally_(tally),
        pool_(random_.Next(), OptionsOf(plan_, variant)) {
    if (variant.make_tamper) tamper_ = variant.make_tamper(pool_);
    pool_.fabric().set_tamper(tamper_.get());
    begin_ns_ = pool_.now_ns();
  }

  PoolHistory Play() {
    for (uint32_t i = 0; i < kClients; ++i) AddClient(i);
    PlanCuts();
    PlanFate();
    PlanPauses();
    const bool has_ended = pool_.Run(kLimit);
    for (const auto& engine : engines_) Count(engine->statistics());
    return {std::move(history_), pool_.simulation().trace_hash(), has_ended};
  }

 private:
  void At(uint64_t after_ns, std::function<void()> event) {
    pool_.simulation().At(begin_ns_ + after_ns, std::move(event));
  }

  void AddClient(uint32_t client) {
    maps_.push_back(pool_.map());
    engines_.push_back(pool_.OpenEngine({.timeout_ms = 5'000, .cache_entries = 16},
                                        [this, client] { return maps_[client]; }));
    pool_.AddClient("client", [this, client] { Operate(client); }, [this] { return PauseNs(); });
  }

  // The body of a client. It goes on when the reply of a write was lost, like another client.
  void Operate(uint32_t number) {
    PoolClient client(*engines_[number]);
    const Mix mix = {
        .keys = plan_.keys, .batches = 0, .snapshots = 0, .transactions = 0, .ticks = 0};
    Workload workload(number, random_.Next(), mix, time_,
                      [&](const auto& operation) { return client.Supports(operation); });
    for (uint32_t i = 0; i < kOperations; ++i) {
      if (plan_.think_ns_max > 0) pool_.Sleep(random_.Below(plan_.think_ns_max));
      History one = linearizability::RunClient(client, workload, 1, clock_, nullptr);
      ++tally_.operations;
      if (one.empty()) ++tally_.refused;
      if (!one.empty() && one.front().is_pending()) ++tally_.unknown;
      std::ranges::move(one, std::back_inserter(history_));
    }
  }

  // By how much a client's Poll returns late.
  uint64_t PauseNs() {
    if (!plan_.pauses_clients || !random_.Chance(1, 24)) return random_.Below(plan_.step_ns);
    ++tally_.long_pauses;
    const uint64_t lease_ns = 2 * plan_.times.lease_ns;
    return random_.Below(random_.Chance(1, 4) ? 3 * plan_.times.silence_ns_max : lease_ns);
  }

  void PlanCuts() {
    for (uint64_t i = 0; i < plan_.cuts; ++i) {
      At(random_.Below(300 * kMs), [this] { tally_.cuts += pool_.fabric().CutOne() ? 1 : 0; });
    }
  }

  void PlanPauses() {
    if (!plan_.pauses_servers) return;
    for (const uint32_t server : {1u, 2u, 101u}) {
      At(random_.Below(300 * kMs), [this, server] {
        pool_.Pause(server, pool_.now_ns() + random_.Below(2 * plan_.times.lease_ns));
      });
    }
  }

  void PlanFate() {
    if (plan_.fate == Plan::Fate::kNone) return;
    At(plan_.fate_ns, [this] {
      const bool is_killed = plan_.fate == Plan::Fate::kKilled;
      ++(is_killed ? tally_.kills : tally_.deposed);
      if (is_killed) pool_.Kill(plan_.victim);
      if (!is_killed && random_.Chance(1, 2)) {
        pool_.Pause(plan_.victim, pool_.now_ns() + random_.Below(4 * plan_.times.lease_ns));
      }
    });
    At(plan_.fate_ns + random_.Below(1 + plan_.learn_ns_max), [this] { ChangeMap(); });
  }

  // Everybody learns of it when it comes to them.
  void ChangeMap() {
    pool_.LeaveOut(plan_.victim);
    const auto later = [this](uint64_t ns_max, std::function<void()> event) {
      At(pool_.now_ns() - begin_ns_ + random_.Below(1 + ns_max), std::move(event));
    };
    later(plan_.learn_ns_max, [this] { pool_.Tell(3 - plan_.victim); });
    later(4 * plan_.times.lease_ns, [this] { pool_.Tell(plan_.victim); });
    for (uint32_t i = 0; i < kClients; ++i) {
      later(2 * plan_.times.lease_ns, [this, i] { maps_[i] = pool_.map(); });
    }
  }

  void Count(const pool::ClientStatistics& more) {
    pool::ClientStatistics& to = tally_.clients;
    to.rounds += more.rounds;
    to.calls += more.calls;
    to.joins += more.joins;
    to.cache_hits += more.cache_hits;
    to.retries_redirected += more.retries_redirected;
    to.retries_torn += more.retries_torn;
    to.retries_late += more.retries_late;
    to.retries_lost += more.retries_lost;
    to.retries_contended += more.retries_contended;
    to.finds += more.finds;
  }

  SeededRandom random_;
  const Plan plan_;
  PoolTally& tally_;
  pool::SimPool pool_;
  std::unique_ptr<rma::SimTamper> tamper_;
  uint64_t begin_ns_ = 0;
  std::vector<pool::PoolMap> maps_;  // as each client knows it
  std::vector<std::unique_ptr<pool::PoolEngine>> engines_;
  std::atomic<uint64_t> clock_ = 0;
  std::atomic<uint64_t> time_ = 0;
  History history_;
};

}  // namespace

PoolHistory RunPoolHistory(uint64_t seed, const PoolVariant& variant, PoolTally& tally) {
  return Run(seed, variant, tally).Play();
}

}  // namespace skep::simulation
