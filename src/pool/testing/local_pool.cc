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
  for (uint32_t i = 1; i <= options.memory_servers; ++i) {
    auto server = MemoryServer::Open(fabric, options.address(100 + i), 100 + i, options.chunks);
    SKEP_CHECK(server.has_value());
    map.memory_servers[100 + i] = (*server)->address();
    memory_servers_.push_back(std::make_unique<ServerThread<MemoryServer>>(std::move(*server)));
  }
  MutexLock lock(mutex_);
  map_ = map;
  for (const uint32_t id : {1u, 2u}) OpenIndexServer(id);
  Spread();
}

LocalPool::~LocalPool() = default;

void LocalPool::OpenIndexServer(uint32_t id) {
  auto server = IndexServer::Open(fabric_, SystemClock(),
                                  {.id = id,
                                   .listen = options_.address(id),
                                   .times = options_.times,
                                   .buckets_max = 1 << 20,
                                   .overflow_max = 1 << 20,
                                   .make_tree = &MakePoolTree});
  SKEP_CHECK(server.has_value());
  map_.index_servers[id] = (*server)->address();
  index_servers_[id] = std::make_unique<ServerThread<IndexServer>>(std::move(*server));
  if (!options_.has_agents) return;
  agents_[id] = std::make_unique<AgentThread>(
      fabric_, UpkeepOptions{.server = id, .eviction = options_.eviction});
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
