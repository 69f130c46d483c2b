// coordinated_pool_test.h: a pool in one thread, turn by turn: index servers with their role
// keepers under a simulated coordinator and clock, and a memory server, over shared memory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/temporary_directory_test.h"
#include "model/model_engine.h"
#include "pool/counted_fabric_test.h"
#include "pool/index_server.h"
#include "pool/memory_server.h"
#include "pool/role_keeper.h"
#include "pool/watched_coordinator_test.h"
#include "rma/mem_fabric.h"
#include "sim/sim_clock.h"
#include "sim/sim_coordinator.h"

namespace skep::pool {

class CoordinatedPool {
 public:
  static constexpr uint64_t kTurnNs = 5'000'000;
  static constexpr PoolTimes kTimes = {.read_ns_max = 20'000'000, .lease_ns = 200'000'000};
  static constexpr uint32_t kMemoryServer = 101;
  static constexpr uint32_t kKeysPerStep = 10;

  struct Server {
    MessageCount messages;
    std::unique_ptr<CountedFabric> fabric;
    std::unique_ptr<WatchedCoordinator> coordinator;
    std::unique_ptr<RoleKeeper> keeper;  // null: it was killed
    std::unique_ptr<IndexServer> index;
    bool is_paused = false;
    bool hears_nothing = false;          // of the coordinator
    uint64_t pauses_after = UINT64_MAX;  // so many messages

    bool runs() const { return keeper != nullptr && !is_paused; }
  };

  explicit CoordinatedPool(uint64_t seed) : coordinator_(seed, clock_, trace_), random_(seed) {
    memory_ = MemoryServer::Open(fabric_, AddressOf(kMemoryServer), kMemoryServer, 16).value();
    session_ = coordinator_.Open({.timeout_ms = 60'000}).value();
  }

  // A server that cannot have its log does not start.
  void Start(uint32_t id) {
    Server& server = servers_[id];
    IndexLog* const log = open_log ? open_log(id) : nullptr;
    if (open_log && log == nullptr) return;
    server.fabric = std::make_unique<CountedFabric>(fabric_, server.messages);
    auto opened = IndexServer::Open(*server.fabric, clock_,
                                    {.id = id,
                                     .listen = AddressOf(id),
                                     .times = kTimes,
                                     .buckets_max = 1 << 12,
                                     .overflow_max = 1 << 12,
                                     .make_tree = [this] { return MakeTree(); },
                                     .keys_per_piece = 10,
                                     .keys_per_step = kKeysPerStep,
                                     .applies_first = applies_first,
                                     .log = log});
    SKEP_CHECK(opened || log != nullptr);
    if (!opened) return;
    server.index = std::move(*opened);
    server.coordinator = std::make_unique<WatchedCoordinator>(coordinator_);
    server.keeper = std::make_unique<RoleKeeper>(
        *server.coordinator, clock_, random_,
        RoleKeeperOptions{
            .pool = "p", .id = id, .address = AddressOf(id), .session_ms = 400, .wake = {}});
  }
  void Kill(uint32_t id) {
    Server& server = servers_.at(id);
    SetLink(server, SimCoordinator::Link::kParted);
    server.keeper.reset();
    server.index.reset();
  }
  // Stops its process, and what speaks for it to the coordinator.
  void Pause(uint32_t id) {
    Server& server = servers_.at(id);
    server.is_paused = true;
    server.pauses_after = UINT64_MAX;
    SetLink(server, SimCoordinator::Link::kParted);
  }
  void Resume(uint32_t id) {
    Server& server = servers_.at(id);
    server.is_paused = false;
    SetLink(server, SimCoordinator::Link::kOpen);
  }

  void Expire(uint32_t id) { coordinator_.Expire(*servers_.at(id).coordinator->last); }

  // One turn of everybody who runs. A server that has sent all its messages is killed; one that has
  // lost its role is another one from then on.
  void Turn() {
    for (auto& [id, server] : servers_) {
      if (!server.runs()) continue;
      TurnServer(server);
      if (server.messages.sent >= server.pauses_after) Pause(id);
      if (server.index->is_retired()) retired_.push_back(id);
      if (server.messages.is_dead || server.index->is_retired()) Kill(id);
    }
    TakeNewestMap();
    for (; !retired_.empty(); retired_.pop_back()) Start(retired_.back() + 1000);
    memory_->Turn(0);
    if (map().epoch != 0 && !has_memory_) {
      session_->Create(1, "/skep/p/memory", "", CoordinatorNode::kPersistent);
      session_->Create(1, "/skep/p/memory/" + std::to_string(kMemoryServer), memory_->address(),
                       CoordinatorNode::kEphemeral);
      has_memory_ = true;
    }
    session_->TakeEvents();
    if (each_turn) each_turn();
    clock_.Advance(kTurnNs);
  }
  // False: it has not come about in a minute.
  bool RunUntil(const std::function<bool()>& done) {
    for (int i = 0; i < 12'000 && !done(); ++i) Turn();
    return done();
  }

  // The newest map that a server which runs has. Epoch 0: there is none.
  const PoolMap& map() const { return map_; }
  bool HasRoles(uint32_t hash_server, uint32_t sorted_server) const {
    return map().hash_server == hash_server && map().sorted_server == sorted_server;
  }
  // Both servers that have roles run.
  bool IsPaired() const {
    const auto runs = [this](uint32_t id) { return id != 0 && servers_.at(id).runs(); };
    return runs(map_.hash_server) && runs(map_.sorted_server);
  }
  // Returns the numbers of all servers that were ever started.
  std::vector<uint32_t> ids() const {
    std::vector<uint32_t> ids;
    for (const auto& [id, server] : servers_) ids.push_back(id);
    return ids;
  }
  Server& at(uint32_t id) { return servers_.at(id); }
  rma::Fabric& fabric() { return fabric_; }
  SimClock& clock() { return clock_; }
  SimCoordinator& coordinator() { return coordinator_; }

  std::function<void()> each_turn;
  bool applies_first = false;  // of servers that are started from now on
  // Opens the log of a server that starts; none: the servers have no logs.
  std::function<IndexLog*(uint32_t)> open_log;

  std::unique_ptr<Engine> MakeTree() {
    EngineOptions options;
    options.budget = &budget_;
    return ModelEngine::kInfo.make(options);
  }

 private:
  void SetLink(const Server& server, SimCoordinator::Link link) {
    if (server.coordinator->last != nullptr) coordinator_.SetLink(*server.coordinator->last, link);
  }
  // As a program does that hosts one.
  static void TurnServer(Server& server) {
    if (!server.hears_nothing && server.keeper->Turn()) server.index->SetMap(server.keeper->map());
    server.index->Turn(0);
    server.keeper->Want(server.index->wanted_roles());
  }
  void TakeNewestMap() {
    const PoolMap* newest = nullptr;
    for (const auto& [id, server] : servers_) {
      if (!server.runs()) continue;
      const PoolMap& known = server.keeper->map();
      if (newest == nullptr || known.epoch >= newest->epoch) newest = &known;
    }
    if (newest == nullptr) map_ = {};
    if (newest != nullptr && *newest != map_) map_ = *newest;
  }
  Address AddressOf(uint32_t id) const {
    return "unix:" + directory_.path() + "/" + std::to_string(id);
  }

  TemporaryDirectory directory_;
  Trace trace_;
  SimClock clock_;
  SimCoordinator coordinator_;
  SeededRandom random_;
  rma::MemFabric fabric_{SocketNetwork(), clock_};
  MemoryBudget budget_;
  std::unique_ptr<CoordinatorSession> session_;
  std::unique_ptr<MemoryServer> memory_;
  bool has_memory_ = false;
  std::map<uint32_t, Server> servers_;
  std::vector<uint32_t> retired_;
  PoolMap map_;
};

}  // namespace skep::pool
