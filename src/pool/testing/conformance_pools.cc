// The engines of the conformance suite: a pool of this process over each fabric.
#include "engine/forwarding_engine.h"
#include "engine/testing/conformance.h"
#include "pool/testing/pool_worlds.h"

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

const EngineInfo kMem = {"pool", "over shared memory", &Make<pool::MemWorld>};
const EngineInfo kTcp = {"pool", "over TCP", &Make<pool::TcpWorld>};

}  // namespace

std::vector<EngineVariant> EnginesUnderTest() {
  return {{.name = "pool_mem", .info = &kMem, .in_process = false},
          {.name = "pool_tcp", .info = &kTcp, .in_process = false}};
}

}  // namespace skep
