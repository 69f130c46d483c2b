#include "pool/connected_pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/coordinator_module.h"
#include "base/decimal.h"
#include "base/repeating_thread.h"
#include "engine/forwarding_engine.h"
#include "pool/map_watch.h"
#include "pool/pool_engine.h"
#include "rma/fabrics.h"

namespace skep::pool {
namespace {

constexpr size_t kNameBytesMax = 64;
// Only watches end with a client's session.
constexpr uint32_t kSessionMs = 4000;
constexpr std::chrono::milliseconds kKeepAlivePause(50);

// Whether a pool can have this name: it becomes a name of the coordinator's.
bool IsPoolName(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         name.find('/') == std::string_view::npos && IsCoordinatorPath("/" + std::string(name));
}

// Declared in the order in which they must outlive each other. The sessions of the engine are kept
// alive by a thread of its own: a process that asks for nothing keeps its place in the pool, does
// not keep chunks from being moved, and ends writing when it is fenced.
struct Parts {
  Parts(const PoolOptions& options, PoolSurroundings reached)
      : around(std::move(reached)),
        watch(*around.coordinator, SystemClock(), options.name, kSessionMs),
        engine(*around.fabric, SystemClock(), [this] { return watch.map(); },
               {.timeout_ms = options.timeout_ms}),
        keeps_alive(kKeepAlivePause, [this] { return engine.Maintain(0); }) {}

  // Of the threads that no request waits for.
  uint64_t CpuNs() const { return watch.CpuNs() + keeps_alive.CpuNs(); }

  const PoolSurroundings around;
  mutable MapWatch watch;
  PoolEngine engine;
  mutable RepeatingThread keeps_alive;
};

// The base that is the parts outlives the engine that forwards to one of them.
class ConnectedPool final : private Parts, public ForwardingEngine {
 public:
  ConnectedPool(const PoolOptions& options, PoolSurroundings reached)
      : Parts(options, std::move(reached)), ForwardingEngine(Parts::engine) {}

  bool Maintain(uint64_t) override { return false; }
  void Describe(uint64_t now_ms, const StatsVisitor& visit) const override {
    ForwardingEngine::Describe(now_ms, visit);
    visit("pool_threads_cpu_us", CpuNs() / 1000);
  }
};

std::unique_ptr<Engine> Make(const EngineOptions& options) {
  auto pool = ConnectPool(options.index.pool);
  return pool ? std::move(*pool) : nullptr;
}

Status Check(const IndexOptions& options) {
  const auto reached = ReachPool(options.pool);
  return reached ? Status() : reached.error();
}

constexpr std::string_view kOptionNames[] = {"zk", "name", "fabric", "timeout"};

// What is wrong with the options by themselves.
Status CheckOptions(const PoolOptions& options) {
  if (options.zookeeper.empty()) {
    return {Code::kInvalidArgument, "a pool needs servers of ZooKeeper: zk=HOST:PORT"};
  }
  if (!IsPoolName(options.name)) {
    return {Code::kInvalidArgument, "a pool needs a name, printable and without slashes: name="};
  }
  return {};
}

}  // namespace

Status ReadPoolOption(std::string_view name, std::string_view value, IndexOptions& index) {
  PoolOptions& options = index.pool;
  if (name == "zk") {
    if (value.empty()) return {Code::kInvalidArgument, "a server of ZooKeeper is host:port"};
    if (!options.zookeeper.empty()) options.zookeeper += ',';
    options.zookeeper += value;
  } else if (name == "name") {
    options.name = value;
    if (!IsPoolName(value)) return {Code::kInvalidArgument, "this is no name of a pool"};
  } else if (name == "fabric") {
    options.fabric = value;
    if (!rma::IsFabricName(value)) return {Code::kInvalidArgument, rma::kFabricNames};
  } else if (name == "password") {
    options.password = value;
  } else {
    const auto number = ParseDecimal<uint32_t>(value);
    if (!number || *number == 0) return {Code::kInvalidArgument, "a time-out is milliseconds"};
    options.timeout_ms = *number;
  }
  return {};
}

constinit const EngineInfo kPoolInfo = {
    .name = "pool",
    .summary = "ordered, one version; the memory of other processes, read one-sided (HStore)",
    .make = &Make,
    .external = true,
    .check = &Check,
    .option_names = kOptionNames,
    .read_option = &ReadPoolOption};

Result<PoolSurroundings> ReachPool(const PoolOptions& options, std::string* problem) {
  std::string unwanted;
  if (problem == nullptr) problem = &unwanted;
  if (const Status status = CheckOptions(options); !status.ok()) {
    *problem = status.ToString();
    return Fail(status);
  }
  auto fabric = rma::MakeFabric(options.fabric, problem);
  if (!fabric) return Fail(fabric.error());
  auto coordinator = OpenZooKeeper(options.zookeeper, problem);
  if (!coordinator) return Fail(coordinator.error());
  return PoolSurroundings{.coordinator = std::move(*coordinator), .fabric = std::move(*fabric)};
}

Result<std::unique_ptr<Engine>> ConnectPool(const PoolOptions& options, std::string* problem) {
  auto reached = ReachPool(options, problem);
  if (!reached) return Fail(reached.error());
  return std::make_unique<ConnectedPool>(options, std::move(*reached));
}

}  // namespace skep::pool
