// The engines of the conformance suite: a pool of this process over each fabric, and in simulation.

#include "base/mutex.h"
#include "base/random.h"
#include "engine/forwarding_engine.h"
#include "engine/testing/conformance.h"
#include "pool/testing/pool_worlds.h"
#include "pool/testing/sim_pool.h"

namespace skep {
namespace {

template <typename World>
struct PoolAndEngine {
  World world;
  pool::LocalPool servers{world.fabric, pool::PoolOptionsOf(world)};
  std::unique_ptr<Engine> engine = servers.OpenEngine(pool::kPatientEngine);
};

// The base that is a PoolAndEngine outlives the engine that forwards to it.
template <typename World>
class PooledEngine final : private PoolAndEngine<World>, public ForwardingEngine {
 public:
  PooledEngine() : ForwardingEngine(*this->engine) {}
};

template <typename World>
std::unique_ptr<Engine> Make(const EngineOptions&) {
  return std::make_unique<PooledEngine<World>>();
}

struct SimulatedPool {
  pool::SimPool servers{SystemRandom().Next(),
                        {.chunks = 64, .buckets_max = 1 << 20, .make_tree = &pool::MakePoolTree}};
  std::unique_ptr<Engine> engine =
      servers.OpenEngine(pool::kPatientEngine, [this] { return servers.map(); });
};

// A simulation has one thread: those that call the engine come one after the other.
class SimulatedEngine final : private SimulatedPool, public ForwardingEngine {
 public:
  SimulatedEngine() : ForwardingEngine(*this->engine) {}

  Version Execute(Batch& batch) override {
    MutexLock lock(mutex_);
    return ForwardingEngine::Execute(batch);
  }
  bool Maintain(uint64_t now_ms) override {
    MutexLock lock(mutex_);
    return ForwardingEngine::Maintain(now_ms);
  }
  EngineStatistics Statistics() const override {
    MutexLock lock(mutex_);
    return ForwardingEngine::Statistics();
  }

 private:
  mutable Mutex mutex_;
};

std::unique_ptr<Engine> MakeSimulated(const EngineOptions&) {
  return std::make_unique<SimulatedEngine>();
}

const EngineInfo kMem = {"pool", "over shared memory", &Make<pool::MemWorld>};
const EngineInfo kTcp = {"pool", "over TCP", &Make<pool::TcpWorld>};
const EngineInfo kSim = {"pool", "over the simulated fabric", &MakeSimulated};

}  // namespace

std::vector<EngineVariant> EnginesUnderTest() {
  return {{.name = "pool_mem", .info = &kMem, .in_process = false},
          {.name = "pool_tcp", .info = &kTcp, .in_process = false},
          {.name = "pool_sim", .info = &kSim, .in_process = false}};
}

}  // namespace skep
