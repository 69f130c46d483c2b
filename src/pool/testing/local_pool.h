// local_pool.h: a whole pool in one process, each server in a thread of its own; for tests.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "pool/index_server.h"
#include "pool/memory_server.h"
#include "pool/pool_engine.h"
#include "pool/upkeep_agent.h"
#include "rma/fabric.h"

namespace skep::pool {

// The ordered engine of an index server.
std::unique_ptr<Engine> MakePoolTree();

struct LocalPoolOptions {
  uint32_t memory_servers = 1;
  uint32_t chunks = 64;  // of each
  PoolTimes times;
  uint32_t replicas = 2;
  bool removes_lost = false;
  // Each index server has an agent.
  bool has_agents = false;
  Eviction eviction = Eviction::kNone;
  // Where the n-th server listens.
  std::function<Address(uint32_t)> address;
  // If any: changes what an index server is opened with.
  std::function<void(IndexServerOptions&)> adjust = nullptr;
};

// Calls Turn() in a thread until it is destroyed.
template <typename Server>
class ServerThread {
 public:
  explicit ServerThread(std::unique_ptr<Server> server)
      : server_(std::move(server)), thread_([this] { Run(); }) {}
  ~ServerThread() {
    stops_.store(true, std::memory_order_release);
    server_->Wake();
    thread_.join();
  }
  // Runs it between two turns, and waits until it was.
  void Do(const std::function<void(Server&)>& work) {
    MutexLock lock(mutex_);
    work_ = &work;
    server_->Wake();
    while (work_ != nullptr) done_.Wait(mutex_);
  }
  Address address() const { return server_->address(); }

 private:
  void Run() {
    while (!stops_.load(std::memory_order_acquire)) {
      server_->Turn(1);
      MutexLock lock(mutex_);
      if (work_ == nullptr) continue;
      (*work_)(*server_);
      work_ = nullptr;
      done_.NotifyAll();
    }
  }

  const std::unique_ptr<Server> server_;
  std::atomic<bool> stops_{false};
  Mutex mutex_;
  ConditionVariable done_;
  const std::function<void(Server&)>* work_ SKEP_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

class LocalPool {
 public:
  // Memory servers 101, 102 and so on; the index servers 1, the hash server, and 2, the sorted one.
  // `fabric` outlives it.
  LocalPool(rma::Fabric& fabric, const LocalPoolOptions& options);
  ~LocalPool();

  // The present map. Thread-safe.
  PoolMap map() const;
  std::unique_ptr<PoolEngine> OpenEngine(const PoolEngineOptions& options);
  // Ends an index server, as its crash would, and gives the map to the other one.
  void KillIndexServer(uint32_t id);
  // Ends a memory server, and its session with the coordinator.
  void KillMemoryServer(uint32_t id);
  // One of a number that none had before; where `in_place_of` was, if that is not 0.
  void AddMemoryServer(uint32_t id, uint32_t in_place_of = 0);
  // The session of a memory server has ended, or has begun anew.
  void SetLive(uint32_t id, bool is_live);
  // Runs between two turns of the server. There is one.
  void Do(uint32_t id, const std::function<void(MemoryServer&)>& work) {
    memory_servers_.at(id)->Do(work);
  }
  void Do(uint32_t id, const std::function<void(IndexServer&)>& work) {
    index_servers_.at(id)->Do(work);
  }
  // An index server that has no role, of a number that none had before.
  void AddIndexServer(uint32_t id);
  // Gives the map the roles that an index server wants. False: none wants any.
  bool GrantWantedRoles();

 private:
  struct AgentThread {
    AgentThread(rma::Fabric& fabric, const UpkeepOptions& options)
        : agent(fabric, SystemClock(), options) {}
    UpkeepAgent agent;
    UpkeepThread thread{agent};
  };

  void OpenIndexServer(uint32_t id) SKEP_REQUIRES(mutex_);
  void OpenMemoryServer(uint32_t id, const Address& address) SKEP_REQUIRES(mutex_);
  void Spread() SKEP_REQUIRES(mutex_);

  rma::Fabric& fabric_;
  const LocalPoolOptions options_;
  mutable Mutex mutex_;
  PoolMap map_ SKEP_GUARDED_BY(mutex_);
  std::map<uint32_t, std::unique_ptr<ServerThread<MemoryServer>>> memory_servers_;
  std::map<uint32_t, std::unique_ptr<ServerThread<IndexServer>>> index_servers_;
  std::map<uint32_t, std::unique_ptr<AgentThread>> agents_;
};

}  // namespace skep::pool
