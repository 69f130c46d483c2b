// The engines of the conformance suite: a pool of this process over each fabric.
#include "base/temporary_directory_test.h"
#include "engine/forwarding_engine.h"
#include "engine/testing/conformance.h"
#include "pool/testing/local_pool.h"
#include "rma/mem_fabric.h"
#include "rma/tcp_fabric.h"

namespace skep {
namespace {

std::unique_ptr<Engine> MakeTree() {
  static MemoryBudget budget;
  EngineOptions options;
  options.budget = &budget;
  return FindEngine("btree")->make(options);
}

// Threads that wait for a processor may take long.
constexpr pool::PoolTimes kTimes = {.read_ns_max = 2'000'000'000, .lease_ns = 2'000'000'000};

// An engine with the pool behind it.
template <typename Fabric>
struct Pool {
  TemporaryDirectory directory;
  Fabric fabric;
  pool::LocalPool pool;

  template <typename... Arguments>
  explicit Pool(const char* prefix, Arguments&... arguments)
      : fabric(arguments...),
        pool(fabric,
             {.times = kTimes, .make_tree = &MakeTree, .address = [this, prefix](uint32_t n) {
                return std::string(prefix) == "unix:"
                           ? prefix + directory.path() + "/" + std::to_string(n)
                           : std::string(prefix);
              }}) {}
};

template <typename Fabric>
struct PoolAndEngine {
  std::unique_ptr<Pool<Fabric>> pool;
  std::unique_ptr<Engine> engine = pool->pool.OpenEngine({.timeout_ms = 100'000});
};

// The base that is a PoolAndEngine outlives the engine that forwards to it.
template <typename Fabric>
class PooledEngine final : private PoolAndEngine<Fabric>, public ForwardingEngine {
 public:
  explicit PooledEngine(std::unique_ptr<Pool<Fabric>> pool)
      : PoolAndEngine<Fabric>{std::move(pool)}, ForwardingEngine(*this->engine) {}
};

std::unique_ptr<Engine> MakeMem(const EngineOptions&) {
  return std::make_unique<PooledEngine<rma::MemFabric>>(
      std::make_unique<Pool<rma::MemFabric>>("unix:"));
}

std::unique_ptr<Engine> MakeTcp(const EngineOptions&) {
  return std::make_unique<PooledEngine<rma::TcpFabric>>(
      std::make_unique<Pool<rma::TcpFabric>>("127.0.0.1:0", SocketNetwork(), SystemClock()));
}

const EngineInfo kMem = {"pool", "over shared memory", &MakeMem};
const EngineInfo kTcp = {"pool", "over TCP", &MakeTcp};

}  // namespace

std::vector<EngineVariant> EnginesUnderTest() {
  return {{.name = "pool_mem", .info = &kMem, .in_process = false},
          {.name = "pool_tcp", .info = &kTcp, .in_process = false}};
}

}  // namespace skep
