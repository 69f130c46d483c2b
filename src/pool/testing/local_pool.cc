#include "pool/testing/local_pool.h"

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
    auto server = MemoryServer::Open(fabric, options.address(100 + i), options.chunks);
    SKEP_CHECK(server.has_value());
    map.memory_servers[100 + i] = (*server)->address();
    memory_servers_.push_back(std::make_unique<ServerThread<MemoryServer>>(std::move(*server)));
  }
  for (const uint32_t id : {1u, 2u}) {
    auto server = IndexServer::Open(fabric, SystemClock(),
                                    {.id = id,
                                     .listen = options.address(id),
                                     .times = options.times,
                                     .buckets_max = 1 << 20,
                                     .overflow_max = 1 << 20,
                                     .make_tree = &MakePoolTree});
    SKEP_CHECK(server.has_value());
    map.index_servers[id] = (*server)->address();
    index_servers_[id] = std::make_unique<ServerThread<IndexServer>>(std::move(*server));
  }
  MutexLock lock(mutex_);
  map_ = map;
  Spread();
}

LocalPool::~LocalPool() = default;

PoolMap LocalPool::map() const {
  MutexLock lock(mutex_);
  return map_;
}

void LocalPool::Spread() {
  for (const auto& [id, server] : index_servers_) {
    server->Do([this](IndexServer& at) { at.SetMap(map_); });
  }
}

std::unique_ptr<PoolEngine> LocalPool::OpenEngine(const PoolEngineOptions& options) {
  return std::make_unique<PoolEngine>(fabric_, SystemClock(), [this] { return map(); }, options);
}

void LocalPool::KillIndexServer(uint32_t id) {
  index_servers_.erase(id);
  MutexLock lock(mutex_);
  ++map_.epoch;
  map_.hash_server = id == 1 ? 2 : 1;
  map_.sorted_server = 0;
  map_.index_servers.erase(id);
  Spread();
}

}  // namespace skep::pool
