#include "bench/hstore/figure_pool.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "bench/hstore/no_order.h"
#include "pool/fields.h"
#include "pool/log_entry.h"
#include "pool/messages.h"
#include "pool/testing/local_pool.h"
#include "pool/testing/pool_worlds.h"
#include "pool/testing/sim_pool.h"

namespace skep::bench {
namespace {

using pool::IndexServer;
using pool::IndexServerOptions;

constexpr uint64_t kPauseNs = 1'000'000;
// A table of this many buckets has no room for the seeds.
constexpr uint64_t kNoBuckets = 1024;
constexpr uint64_t kSeeds = 16 * kNoBuckets;
constexpr uint64_t kSeedsAtOnce = 512;

void Adjust(const FigurePoolOptions& options, IndexServerOptions& server) {
  const bool is_alone =
      options.kind == PoolKind::kTreeOnly && server.id == FigurePool::kSortedServer;
  server.buckets_max = is_alone ? kNoBuckets : std::max<uint64_t>(1 << 16, options.items);
  server.overflow_max = server.buckets_max;
  server.make_tree = options.kind == PoolKind::kHashOnly ? &MakeNoOrder : &pool::MakePoolTree;
  server.applies_first = options.kind == PoolKind::kSyncPair;
}

// Each client has a chunk that it fills, and a sixty-fourth is to be free.
uint32_t ChunksOf(const FigurePoolOptions& options) {
  const uint64_t full = options.item_bytes / pool::kChunkBytes;
  return static_cast<uint32_t>(full + full / 16 + 2 * options.clients + 64);
}

// How many entries of the log a message ships.
uint64_t EntriesOf(std::string_view message) {
  if (message.empty() || message[0] != static_cast<char>(pool::MessageKind::kShip)) return 0;
  message.remove_prefix(1);
  uint64_t epoch = 0;
  pool::LogBatch entries;
  const bool is_sound = TakeVarint(message, &epoch) && pool::LogBatch::Decode(message, &entries);
  return is_sound ? entries.size() : 0;
}

template <typename World>
class ThreadPool final : public FigurePool {
 public:
  explicit ThreadPool(const FigurePoolOptions& options)
      : watch_(world_.fabric, SystemClock()),
        servers_(options.has_stopwatch ? static_cast<rma::Fabric&>(watch_) : world_.fabric,
                 {.chunks = ChunksOf(options),
                  .address = [this](uint32_t server) { return world_.AddressOf(server); },
                  .adjust = [options](IndexServerOptions& server) { Adjust(options, server); }}) {}

  Clock& clock() override { return SystemClock(); }
  std::unique_ptr<pool::PoolEngine> OpenEngine(const pool::PoolEngineOptions& options) override {
    return servers_.OpenEngine(options);
  }
  void RunSideBySide(uint32_t count, const std::function<void(uint32_t)>& body) override {
    std::vector<std::jthread> threads;
    for (uint32_t i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  }
  void Kill(uint32_t index_server) override { servers_.KillIndexServer(index_server); }
  void Do(uint32_t index_server, const std::function<void(IndexServer&)>& work) override {
    servers_.Do(index_server, work);
  }
  TimeParts parts() const override { return watch_.parts(); }
  void Sleep(uint64_t ns) override { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }

 private:
  World world_;
  StopwatchFabric watch_;
  pool::LocalPool servers_;
};

class ModelledPool final : public FigurePool {
 public:
  explicit ModelledPool(const FigurePoolOptions& options) : servers_(1, OptionsOf(options)) {}

  Clock& clock() override { return servers_.simulation().clock(); }
  std::unique_ptr<pool::PoolEngine> OpenEngine(const pool::PoolEngineOptions& options) override {
    return servers_.OpenEngine(options, [this] { return servers_.map(); });
  }
  void RunSideBySide(uint32_t count, const std::function<void(uint32_t)>& body) override {
    for (uint32_t i = 0; i < count; ++i) {
      servers_.AddClient(std::to_string(i), [&body, i] { body(i); }, [] { return uint64_t{0}; });
    }
    SKEP_CHECK(servers_.Run(std::chrono::hours(1)));
  }
  void Kill(uint32_t index_server) override {
    servers_.LeaveOut(index_server);
    servers_.Kill(index_server);
    servers_.Tell(kHashServer + kSortedServer - index_server);
  }
  void Do(uint32_t index_server, const std::function<void(IndexServer&)>& work) override {
    work(*servers_.index_server(index_server));
  }
  void Sleep(uint64_t ns) override {
    RunSideBySide(1, [this, ns](uint32_t) { servers_.Sleep(ns); });
  }

 private:
  static pool::SimPoolOptions OptionsOf(const FigurePoolOptions& options) {
    const SimCosts& costs = options.costs;
    const bool is_sync = options.kind == PoolKind::kSyncPair;
    return {.simulation = {.step_ns_max = 1},
            .fabric = {.call_ns_max = 0,
                       .wire = rma::SimWire{.round_trip_ns = costs.round_trip_ns,
                                            .bytes_per_us = costs.bytes_per_us}},
            .chunks = ChunksOf(options),
            .message_ns =
                [costs, is_sync](uint32_t, std::string_view message) {
                  return costs.message_ns + (is_sync ? costs.apply_ns * EntriesOf(message) : 0);
                },
            .adjust = [options](IndexServerOptions& server) { Adjust(options, server); }};
  }

  pool::SimPool servers_;
};

std::unique_ptr<FigurePool> Make(const FigurePoolOptions& options) {
  switch (options.fabric) {
    case PoolFabric::kMem:
      return std::make_unique<ThreadPool<pool::MemWorld>>(options);
    case PoolFabric::kTcp:
      return std::make_unique<ThreadPool<pool::TcpWorld>>(options);
    case PoolFabric::kSim:
      return std::make_unique<ModelledPool>(options);
  }
  return nullptr;
}

// Executes one operation on each seed: keys that no workload has.
template <typename Add>
void ForSeeds(Engine& engine, Add add) {
  for (uint64_t first = 0; first < kSeeds; first += kSeedsAtOnce) {
    std::vector<std::string> keys;
    for (uint64_t i = first; i < first + kSeedsAtOnce; ++i)
      keys.push_back("seed" + std::to_string(i));
    Batch batch;
    for (const std::string& key : keys) add(batch, key);
    engine.Execute(batch);
    for (uint32_t i = 0; i < batch.size(); ++i)
      SKEP_CHECK(batch.outcome(i).verdict == Verdict::kDone);
  }
}

// The sorted server takes over and has more keys than its table has room for, so it gives that up.
void LeaveTheTree(FigurePool& pool) {
  const auto engine = pool.OpenEngine({});
  ForSeeds(*engine, [](Batch& batch, const std::string& key) { batch.Put(key, ""); });
  pool.Kill(FigurePool::kHashServer);
  ForSeeds(*engine, [](Batch& batch, const std::string& key) { batch.Get(key); });
  pool.Await(FigurePool::kSortedServer, [](IndexServer& server) {
    SKEP_CHECK(server.state()->hash() == nullptr);
    return !server.state()->keeps_hash();
  });
  ForSeeds(*engine, [](Batch& batch, const std::string& key) { batch.Delete(key); });
}

}  // namespace

std::optional<PoolFabric> FindPoolFabric(std::string_view name) {
  if (name == "mem") return PoolFabric::kMem;
  if (name == "tcp") return PoolFabric::kTcp;
  if (name == "sim") return PoolFabric::kSim;
  return std::nullopt;
}

std::unique_ptr<FigurePool> FigurePool::Open(const FigurePoolOptions& options) {
  auto pool = Make(options);
  if (options.kind == PoolKind::kHashOnly) pool->Kill(kSortedServer);
  if (options.kind == PoolKind::kTreeOnly) LeaveTheTree(*pool);
  return pool;
}

void FigurePool::Await(uint32_t index_server, const std::function<bool(IndexServer&)>& condition) {
  for (bool holds = false; !holds; holds || (Sleep(kPauseNs), true)) {
    Do(index_server, [&](IndexServer& server) { holds = condition(server); });
  }
}

}  // namespace skep::bench
