#include "pool/testing/local_pool.h"

#include <optional>

#include "base/check.h"
#include "base/random.h"
#include "keyspace/factory.h"

namespace skep::pool {
std::unique_ptr<Engine> MakePoolTree() {
  static MemoryBudget budget;
  EngineOptions options;
  options.budget = &budget;
  return FindEngine("btree")->make(options);
}

LocalPool::LocalPool(rma::Fabric& fabric, const LocalPoolOptions& options)
    : fabric_(fabric), options_(options) {
  PoolMap map = {.epoch = 1, .hash_server = 1, .sorted_server = 2};
  Random& random = SystemRandom();
  map.keys = {.index = {random.Next(), random.Next()}, .tag = {random.Next(), random.Next()}};
  MutexLock lock(mutex_);
  map_ = map;
  for (uint32_t i = 1; i <= options.memory_servers; ++i) {
    OpenMemoryServer(100 + i, options_.address(100 + i));
  }
  for (const uint32_t id : {1u, 2u}) OpenIndexServer(id);
  Spread();
}

LocalPool::~LocalPool() = default;

void LocalPool::OpenIndexServer(uint32_t id) {
  IndexServerOptions of_server = {.id = id,
                                  .listen = options_.address(id),
                                  .times = options_.times,
                                  .buckets_max = 1 << 20,
                                  .overflow_max = 1 << 20,
                                  .make_tree = &MakePoolTree,
                                  .replicas = options_.replicas,
                                  .removes_lost = options_.removes_lost};
  if (options_.adjust) options_.adjust(of_server);
  auto server = IndexServer::Open(fabric_, SystemClock(), std::move(of_server));
  SKEP_CHECK(server.has_value());
  map_.index_servers[id] = (*server)->address();
  index_servers_[id] = std::make_unique<ServerThread<IndexServer>>(std::move(*server));
  if (!options_.has_agents) return;
  agents_[id] = std::make_unique<AgentThread>(
      fabric_, UpkeepOptions{.server = id, .eviction = options_.eviction});
}

void LocalPool::OpenMemoryServer(uint32_t id, const Address& address) {
  auto server = MemoryServer::Open(fabric_, address, id, options_.chunks);
  SKEP_CHECK(server.has_value());
  map_.memory_servers[id] = (*server)->address();
  map_.live_memory_servers.insert(id);
  memory_servers_[id] = std::make_unique<ServerThread<MemoryServer>>(std::move(*server));
}

void LocalPool::AddMemoryServer(uint32_t id, uint32_t in_place_of) {
  MutexLock lock(mutex_);
  OpenMemoryServer(id, in_place_of == 0 ? options_.address(id) : map_.memory_servers[in_place_of]);
  Spread();
}

void LocalPool::KillMemoryServer(uint32_t id) {
  memory_servers_.erase(id);
  SetLive(id, false);
}

void LocalPool::SetLive(uint32_t id, bool is_live) {
  MutexLock lock(mutex_);
  map_.live_memory_servers.erase(id);
  if (is_live) map_.live_memory_servers.insert(id);
  Spread();
}

PoolMap LocalPool::map() const {
  MutexLock lock(mutex_);
  return map_;
}

void LocalPool::Spread() {
  const PoolMap map = map_;
  for (const auto& [id, server] : index_servers_) {
    server->Do([&](IndexServer& at) { at.SetMap(map); });
  }
  for (const auto& [id, agent] : agents_) agent->agent.SetMap(map);
}

std::unique_ptr<PoolEngine> LocalPool::OpenEngine(const PoolEngineOptions& options) {
  return std::make_unique<PoolEngine>(fabric_, SystemClock(), [this] { return map(); }, options);
}

void LocalPool::KillIndexServer(uint32_t id) {
  agents_.erase(id);
  index_servers_.erase(id);
  MutexLock lock(mutex_);
  if (id == map_.hash_server) map_.hash_server = map_.sorted_server;
  map_.sorted_server = 0;
  ++map_.epoch;
  map_.index_servers.erase(id);
  Spread();
}

void LocalPool::AddIndexServer(uint32_t id) {
  MutexLock lock(mutex_);
  OpenIndexServer(id);
  Spread();
}

bool LocalPool::GrantWantedRoles() {
  MutexLock lock(mutex_);
  std::optional<PoolRoles> wanted;
  for (const auto& [id, server] : index_servers_) {
    server->Do([&](IndexServer& at) {
      if (at.wanted_roles()) wanted = at.wanted_roles();
    });
  }
  if (!wanted) return false;
  SKEP_CHECK(wanted->epoch == map_.epoch + 1);
  map_.epoch = wanted->epoch;
  map_.hash_server = wanted->hash_server;
  map_.sorted_server = wanted->sorted_server;
  Spread();
  return true;
}

}  // namespace skep::pool
