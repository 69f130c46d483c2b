#include "tests/simulation/pool_history.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "keyspace/factory.h"
#include "pool/client_session.h"
#include "pool/fields.h"
#include "pool/messages.h"
#include "tests/linearizability/workload.h"
#include "tests/simulation/pool_client.h"

namespace skep::simulation {
namespace {

using linearizability::Action;
using linearizability::History;
using linearizability::Mix;
using linearizability::Operation;
using linearizability::Step;
using linearizability::Workload;

constexpr uint32_t kClients = 3;
constexpr std::chrono::minutes kLimit(10);
constexpr uint64_t kLookNs = 1'000'000;  // how often it is looked for what is waited for

std::unique_ptr<Engine> MakeTree() {
  static MemoryBudget budget;
  EngineOptions options;
  options.budget = &budget;
  return FindEngine("model")->make(options);
}

pool::SimPoolOptions OptionsOf(const PoolPlan& plan, const PoolVariant& variant) {
  pool::SimPoolOptions options;
  options.simulation.step_ns_max = 1 + plan.step_ns / 10;
  options.fabric = {.step_ns_max = plan.step_ns,
                    .slow_ns_max = 40 * plan.step_ns,
                    .slow_one_in = plan.slow_one_in,
                    .call_ns_max = plan.step_ns / 20,
                    .notice_ns_max = 20 * plan.step_ns,
                    .late_ns_max = 4 * plan.times.silence_ns_max,
                    .cut_one_in = plan.cut_one_in};
  options.chunks = plan.chunks;
  options.memory_servers = plan.memory_servers;
  options.stall_one_in = plan.stall_one_in;
  options.stall_ns_max = 60 * plan.step_ns;
  options.make_tree = &MakeTree;
  options.free_chunks_min = plan.free_chunks_min;
  options.times = [plan, variant](uint32_t id) {
    pool::PoolTimes times = plan.times;
    if (variant.change_times) variant.change_times(id, times);
    return times;
  };
  return options;
}

char NthKey(uint64_t n) { return static_cast<char>('a' + n); }

class Run {
 public:
  Run(uint64_t seed, const PoolVariant& variant, PoolTally& tally)
      : random_(seed),
        plan_(variant.kind, random_),
        tally_(tally),
        pool_(random_.Next(), OptionsOf(plan_, variant)) {
    if (variant.make_tamper) tamper_ = variant.make_tamper(pool_);
    pool_.fabric().set_tamper(tamper_.get());
  }

  PoolHistory Play() {
    for (uint32_t i = 0; i < kClients; ++i) AddClient(i);
    if (plan_.has_agents) {
      pool_.AddAgents(pool::Eviction::kNone, [this] { return AgentPauseNs(); });
    }
    if (plan_.memory_drains > 0) {
      pool_.AddClient("operator", [this] { DrainServers(); }, [] { return uint64_t{0}; });
    }
    const bool has_ended = pool_.Run(kLimit);
    for (const auto& engine : engines_) Count(engine->statistics());
    CountMoves();
    return {std::move(history_), pool_.simulation().trace_hash(), has_ended && has_answered_};
  }

 private:
  void After(uint64_t ns, std::function<void()> event) {
    pool_.simulation().At(pool_.now_ns() + ns, std::move(event));
  }

  void AddClient(uint32_t client) {
    maps_.push_back(pool_.map());
    engines_.push_back(pool_.OpenEngine({.timeout_ms = 10'000, .cache_entries = 16},
                                        [this, client] { return maps_[client]; }));
    pool_.AddClient(
        "client", [this, client] { Operate(client); }, [this, client] { return PauseNs(client); });
  }

  // The body of a client. Each has a name, a lease and a chunk before all begin at once.
  void Operate(uint32_t number) {
    PoolClient client(*engines_[number]);
    const Mix mix = {.keys = plan_.keys,
                     .ranges = plan_.ranges,
                     .batches = 0,
                     .snapshots = 0,
                     .transactions = 0,
                     .ticks = 0};
    Workload workload(number, random_.Next(), mix, time_,
                      [&](const auto& operation) { return client.Supports(operation); });
    // What is written while there is one memory server dies with it.
    pool_.Await([this] {
      return pool_.index_server(1)->state()->chunks().servers().size() == plan_.memory_servers;
    });
    const std::string key(1, NthKey(number % plan_.keys));
    const std::string value = "100" + std::to_string(number);
    Record(client, {.steps = {{.action = Action::kPut, .key = key, .value = value}}});
    Record(client, {.steps = {{.action = Action::kGet, .key = key}}});
    if (++ready_ == kClients) PlanFaults();
    AwaitOthers(kClients);
    for (uint32_t i = 0; i < plan_.operations; ++i) {
      if (plan_.think_ns_max > 0) pool_.Sleep(random_.Below(plan_.think_ns_max));
      Record(client, Next(workload, number));
    }
    ++ready_;
    if (number != 0) return;
    AwaitOthers(2 * kClients);
    ReadAll(client);
  }

  // Often a GET after a scan: the two ask different servers.
  Operation Next(Workload& workload, uint32_t number) {
    Operation operation = workload.Next();
    Step& step = operation.steps.front();
    if (was_scan_[number] && random_.Chance(1, 2)) {
      step = {.action = Action::kGet, .key = std::string(1, NthKey(random_.Below(plan_.keys)))};
    }
    was_scan_[number] = step.action == Action::kScan;
    operation.client = number;
    return operation;
  }

  // A client goes on when the reply of a write was lost, as if it were another one.
  void Record(PoolClient& client, Operation operation) {
    using Reply = PoolClient::Reply;
    ++tally_.operations;
    operation.call = ++clock_;
    const Reply reply = client.Perform(operation);
    if (reply == Reply::kAnswered) operation.returned = ++clock_;
    tally_.unknown += reply == Reply::kLost ? 1 : 0;
    tally_.refused += reply == Reply::kRefused ? 1 : 0;
    if (reply != Reply::kRefused) history_.push_back(std::move(operation));
  }

  void AwaitOthers(uint32_t ready) {
    if (ready_ < ready) pool_.Await([this, ready] { return ready_ >= ready; });
  }

  // Reads what is left in the end, when faults are over. Servers and messages are as slow as ever,
  // so where a read may take less time than most messages do, one may be refused as late.
  void ReadAll(PoolClient& client) {
    has_answered_ = true;
    for (uint32_t i = 0; i < plan_.keys; ++i) {
      RecordUntilAnswered(client, {.action = Action::kGet, .key = std::string(1, NthKey(i))});
    }
    RecordUntilAnswered(client, {.action = Action::kScan, .unbounded = true});
  }
  void RecordUntilAnswered(PoolClient& client, const Step& step) {
    constexpr int kTriesMax = 5;
    for (int i = 0; i < kTriesMax; ++i) {
      const uint64_t refused = tally_.refused;
      Record(client, {.steps = {step}});
      if (tally_.refused == refused) return;
    }
    has_answered_ = false;
  }

  void PlanFaults() {
    PlanCuts();
    PlanFate();
    PlanPauses();
    if (plan_.memory_losses > 0) After(random_.Below(plan_.span_ns / 2), [this] { LoseMemory(); });
  }

  // The memory server that has the most chunks in use dies; the index servers learn of it in a
  // while. The next one dies when every chunk has two replicas again.
  void LoseMemory() {
    const uint32_t server = BusiestServer();
    if (server == 0) return After(kLookNs, [this] { LoseMemory(); });
    EndServer(server);
    ++tally_.memory_losses;
    if (++losses_ < plan_.memory_losses) After(kLookNs, [this, server] { LoseNext(server); });
  }
  void LoseNext(uint32_t before) {
    if (ready_ == 2 * kClients) return;
    IsMadeUpFor(before) ? LoseMemory() : After(kLookNs, [this, before] { LoseNext(before); });
  }
  void EndServer(uint32_t server) {
    pool_.Kill(server);
    pool_.EndSession(server);
    TellIndexServers();
  }
  void TellIndexServers() {
    for (const uint32_t id : {1u, 2u}) {
      After(random_.Below(1 + plan_.learn_ns_max), [this, id] { pool_.Tell(id); });
    }
  }

  // Null: no index server knows them now.
  const pool::Chunks* ChunksOfPool() {
    pool::IndexServer* const hash = pool_.index_server(pool_.map().hash_server);
    return hash == nullptr || hash->state() == nullptr ? nullptr : &hash->state()->chunks();
  }
  bool IsMadeUpFor(uint32_t server) {
    const pool::Chunks* const chunks = ChunksOfPool();
    if (chunks == nullptr) return false;
    const pool::Chunks::Server* const lost = chunks->FindServer(server);
    if (lost == nullptr || lost->is_there()) return false;
    return std::ranges::all_of(chunks->all(), [](const pool::Chunks::Chunk& chunk) {
      return chunk.state == pool::Chunks::State::kFree || chunk.frames[1] != pool::kNoFrame;
    });
  }
  // Of those that may be written to. 0: none is known.
  uint32_t BusiestServer() {
    const pool::Chunks* const chunks = ChunksOfPool();
    std::map<uint32_t, uint32_t> used;
    if (chunks == nullptr) return 0;
    for (const pool::Chunks::Chunk& chunk : chunks->all()) {
      if (chunk.state == pool::Chunks::State::kFree) continue;
      for (const uint32_t frame : chunk.frames) {
        if (frame == pool::kNoFrame) continue;
        const pool::Chunks::Server& server = chunks->ServerOf(frame);
        if (server.state == pool::Chunks::ServerState::kOpen) ++used[server.range.server];
      }
    }
    std::erase_if(used, [this](const auto& one) {
      return !pool_.map().live_memory_servers.contains(one.first);
    });
    const auto busiest =
        std::ranges::max_element(used, {}, [](const auto& one) { return one.second; });
    return busiest == used.end() ? 0 : busiest->first;
  }

  // The body of the pool's operator: has the busiest server drained and ends it, and starts another
  // one each time.
  void DrainServers() {
    pool::ClientSession session(pool_.fabric().Open({}).value(), pool_.simulation().clock(),
                                [this] { return pool_.map(); });
    AwaitOthers(kClients);
    for (uint32_t i = 1; i <= plan_.memory_drains; ++i) {
      pool_.Sleep(random_.Below(plan_.span_ns / plan_.memory_drains));
      pool_.AddMemoryServer(100 + plan_.memory_servers + i);
      TellIndexServers();
      for (uint32_t client = 0; client < kClients; ++client) {
        After(random_.Below(1 + plan_.learn_ns_max),
              [this, client] { maps_[client] = pool_.map(); });
      }
      const uint32_t server = BusiestServer();
      if (server == 0 || !Drain(session, server)) continue;
      pool_.Await([&] { return ready_ == 2 * kClients || IsDrained(server); });
      if (!IsDrained(server)) return;
      // It may have died while it was drained.
      if (!pool_.map().live_memory_servers.contains(server)) continue;
      ++tally_.memory_drains;
      EndServer(server);
    }
  }
  bool Drain(pool::ClientSession& session, uint32_t server) {
    session.set_deadline_ns(pool_.now_ns() + plan_.span_ns);
    std::string request(1, static_cast<char>(pool::MessageKind::kDrain));
    AppendVarint(request, server);
    pool::ReplyCode code;
    return session.Call(pool::ClientSession::To::kHashServer, request, &code).has_value();
  }
  bool IsDrained(uint32_t server) {
    const pool::Chunks* const chunks = ChunksOfPool();
    return chunks != nullptr &&
           chunks->FindServer(server)->state == pool::Chunks::ServerState::kDrained;
  }

  // By how much a client's Poll returns late.
  uint64_t PauseNs(uint32_t client) {
    const bool is_over = ready_ == 2 * kClients;
    const bool may_pause = plan_.pause_one_in > 0 && client < plan_.paused_clients && !is_over;
    if (!may_pause || !random_.Chance(1, plan_.pause_one_in)) {
      return random_.Below(plan_.step_ns);
    }
    ++tally_.long_pauses;
    const uint64_t lease_ns = 2 * plan_.times.lease_ns;
    return random_.Below(random_.Chance(1, 4) ? 3 * plan_.times.silence_ns_max : lease_ns);
  }

  // An agent's, too; it may sleep for longer than the pool remembers it.
  uint64_t AgentPauseNs() {
    if (ready_ == 2 * kClients || !random_.Chance(1, 200)) return random_.Below(plan_.step_ns);
    return random_.Below(3 * plan_.times.silence_ns_max);
  }

  void PlanCuts() {
    for (uint64_t i = 0; i < plan_.cuts; ++i) {
      After(random_.Below(plan_.span_ns),
            [this] { tally_.cuts += pool_.fabric().CutOne() ? 1 : 0; });
    }
  }

  void PlanPauses() {
    if (!plan_.pauses_servers) return;
    for (const uint32_t server : {1u, 2u, 101u}) {
      After(random_.Below(plan_.span_ns), [this, server] {
        pool_.Pause(server, pool_.now_ns() + random_.Below(2 * plan_.times.lease_ns));
      });
    }
  }

  void PlanFate() {
    if (plan_.fate == PoolPlan::Fate::kNone) return;
    After(plan_.fate_ns, [this] {
      const bool is_killed = plan_.fate == PoolPlan::Fate::kKilled;
      ++(is_killed ? tally_.kills : tally_.deposed);
      if (is_killed) pool_.Kill(plan_.victim);
      if (!is_killed && random_.Chance(1, 2)) {
        pool_.Pause(plan_.victim, pool_.now_ns() + random_.Below(4 * plan_.times.lease_ns));
      }
    });
    After(plan_.fate_ns + random_.Below(1 + plan_.learn_ns_max), [this] { ChangeMap(); });
  }

  // Everybody learns of it when it comes to them.
  void ChangeMap() {
    pool_.LeaveOut(plan_.victim);
    const auto later = [this](uint64_t ns_max, std::function<void()> event) {
      After(random_.Below(1 + ns_max), std::move(event));
    };
    later(plan_.learn_ns_max, [this] { pool_.Tell(3 - plan_.victim); });
    later(4 * plan_.times.lease_ns, [this] { pool_.Tell(plan_.victim); });
    for (uint32_t i = 0; i < kClients; ++i) {
      later(2 * plan_.times.lease_ns, [this, i] { maps_[i] = pool_.map(); });
    }
  }

  void CountMoves() {
    for (const uint32_t id : {1u, 2u}) {
      const pool::UpkeepFigures figures = pool_.AgentFigures(id);
      tally_.chunks_copied += figures.chunks_copied;
      tally_.items_moved += figures.items_moved;
      tally_.chunks_cleaned += figures.chunks_cleaned;
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
    to.retries_slow += more.retries_slow;
    to.retries_contended += more.retries_contended;
    to.finds += more.finds;
  }

  SeededRandom random_;
  const PoolPlan plan_;
  PoolTally& tally_;
  pool::SimPool pool_;
  std::unique_ptr<rma::SimTamper> tamper_;
  // Clients that wait for the others, or have begun; and again those that have done all.
  uint32_t ready_ = 0;
  uint32_t losses_ = 0;  // of memory servers
  bool has_answered_ = false;
  std::vector<pool::PoolMap> maps_;  // as each client knows it
  std::vector<std::unique_ptr<pool::PoolEngine>> engines_;
  std::array<bool, kClients> was_scan_ = {};  // the client's last operation
  uint64_t clock_ = 0;                        // of the history
  std::atomic<uint64_t> time_ = 0;
  History history_;
};

}  // namespace

PoolHistory RunPoolHistory(uint64_t seed, const PoolVariant& variant, PoolTally& tally) {
  return Run(seed, variant, tally).Play();
}

}  // namespace skep::simulation
