// sim_pool.h: a whole pool and its clients in one thread, from one seed: the pool's own code over
// the simulated fabric (rma/testing/sim_fabric.h).
//
// Index servers are actors of a Simulation, a turn of their loop each. All memory servers are one
// actor, of which a step is a turn of one that has something to do: there may be a hundred of them,
// and each event of a simulation asks every actor. Clients block in Poll, so each
// runs on a fiber, and is an actor that goes on when its Poll has something to return. Code that
// calls an engine outside of a fiber runs the simulation itself until its Poll has something.
//
// Thread safety: one owner.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "pool/index_server.h"
#include "pool/memory_server.h"
#include "pool/pool_engine.h"
#include "pool/upkeep_agent.h"
#include "rma/testing/sim_endpoint.h"
#include "rma/testing/sim_fabric.h"
#include "sim/fiber.h"
#include "sim/simulation.h"

namespace skep::pool {

struct SimPoolOptions {
  SimulationOptions simulation;
  rma::SimFabricOptions fabric;
  uint32_t memory_servers = 1;
  uint32_t chunks = 8;  // of each
  // Of the index server of this number.
  std::function<PoolTimes(uint32_t)> times = [](uint32_t) { return PoolTimes(); };
  uint64_t buckets_max = 1 << 11;
  // How long a server that has nothing to do waits before its next turn.
  uint64_t idle_ns = 5'000'000;
  // After one of so many turns a server stalls for up to stall_ns_max.
  uint64_t stall_one_in = 16;
  uint64_t stall_ns_max = 0;
  std::function<std::unique_ptr<Engine>()> make_tree;
  // The pool is to have so many free chunks in any case.
  uint32_t free_chunks_min = 0;
  // How long an index server works on a message; it answers what has come meanwhile together.
  // Memory servers' work takes no time.
  // Nothing: no time.
  std::function<uint64_t(uint32_t server, std::string_view message)> message_ns = nullptr;
  // If any: changes what an index server is opened with.
  std::function<void(IndexServerOptions&)> adjust = nullptr;
};

class SimPool {
 public:
  // Memory servers 101, 102 and so on; the index servers 1, the hash server, and 2, the sorted one.
  SimPool(uint64_t seed, const SimPoolOptions& options);
  ~SimPool();

  Simulation& simulation() { return simulation_; }
  rma::SimFabric& fabric() { return fabric_; }
  uint64_t now_ns() { return simulation_.clock().MonotonicNs(); }
  static Address AddressOf(uint32_t server) { return "sim:" + std::to_string(server); }

  // The roles as the coordinator has them. Who is told, and when, is the caller's business.
  const PoolMap& map() const { return map_; }
  // The index server of this number has gone, or is taken to have gone: the other one is solo.
  void LeaveOut(uint32_t id);
  // Gives an index server, if it still exists, the map.
  void Tell(uint32_t id);

  // Starts one more memory server, of a number that none had before. Who is told of it is the
  // caller's business.
  void AddMemoryServer(uint32_t number);
  // Ends a server, as its crash would.
  void Kill(uint32_t id);
  // The session of a memory server has ended. Who is told, and when, is the caller's business.
  void EndSession(uint32_t memory_server) { map_.live_memory_servers.erase(memory_server); }
  // The server makes no turn before this instant.
  void Pause(uint32_t server, uint64_t until_ns);

  std::unique_ptr<PoolEngine> OpenEngine(const PoolEngineOptions& options, MapSource source);
  // Null: it has none, or is killed.
  IndexServer* index_server(uint32_t id);
  // Runs the body on a fiber, whose Polls last up to pause_ns() longer than they must.
  void AddClient(std::string_view name, std::function<void()> body,
                 std::function<uint64_t()> pause_ns);
  // Of a client: returns after so long.
  void Sleep(uint64_t ns);
  // Of a client: returns when the condition holds.
  void Await(const std::function<bool()>& condition) { Wait(UINT64_MAX, condition); }
  // Gives each index server an agent, on a fiber as a client; they end when all clients have. An
  // agent gets its map with its server's, and goes on for a while when that is killed.
  void AddAgents(Eviction eviction, const std::function<uint64_t()>& pause_ns);
  // What the agent of this index server has done.
  UpkeepFigures AgentFigures(uint32_t id) const {
    const auto at = agents_.find(id);
    return at == agents_.end() ? UpkeepFigures() : at->second->figures();
  }
  // Runs until all clients have ended, which are forgotten then. False: they have not by then.
  bool Run(std::chrono::nanoseconds limit);

 private:
  struct Server {
    std::unique_ptr<MemoryServer> memory;
    std::unique_ptr<IndexServer> index;
    Simulation::ActorId actor = 0;  // of an index server
    uint64_t paused_until_ns = 0;
    uint32_t number = 0;
    uint64_t worked_ns = 0;  // that have passed for messages which the next turn answers
    rma::SimEndpoint* endpoint = nullptr;
    bool is_busy = true;       // its last turn did something
    uint64_t reminder_ns = 0;  // when it has its next turn at the latest
  };
  struct Client {
    std::unique_ptr<Fiber> fiber;
    Simulation::ActorId actor = 0;
    bool is_agent = false;
    std::function<uint64_t()> pause_ns;
    uint64_t until_ns = 0;                            // it goes on then at the latest
    uint64_t not_before_ns = 0;                       // and no earlier
    const std::function<bool()>* is_ready = nullptr;  // of its Poll
  };

  Server& Add(uint32_t number, Server server);
  bool TurnOneMemoryServer();
  bool Turn(Server& server);
  bool Works(Server& server);
  void Stall(Server& server, uint64_t until_ns);
  bool Step(Client& client);
  void Wait(uint64_t until_ns, const std::function<bool()>& is_ready);

  const SimPoolOptions options_;
  Simulation simulation_;
  rma::SimFabric fabric_;
  PoolMap map_;
  std::map<uint32_t, Server> servers_;
  std::vector<Server*> memory_servers_;  // of these
  std::map<uint32_t, std::unique_ptr<UpkeepAgent>> agents_;
  bool agents_end_ = false;
  std::vector<std::unique_ptr<Client>> clients_;
  Client* running_ = nullptr;
};

}  // namespace skep::pool
