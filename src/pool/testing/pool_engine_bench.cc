// Question: what do operations on a pool cost a client, in batches and one at a time?
// Sketch:   mem, 8 M items: a GET is two lines of other processes' memory and a page walk each,
//           then a checksum and the outcome: of 64 at once about 80 ns, one at a time two misses,
//           0.5 us. A PUT is written, then committed: one call to the hash server, which ships it,
//           that 64 share: some microseconds each with three threads on two cores.
// Compare:  rma_fabric_bench has the reads without a pool; depth is the number of requests a batch.
// Smoke:    CTest runs --benchmark_filter=depth:1(/|$) so the file cannot rot.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "base/check.h"
#include "pool/testing/pool_worlds.h"

namespace skep::pool {
namespace {

constexpr size_t kDraws = size_t{1} << 20;

// How many: SKEP_POOL_ITEMS of the environment.
uint64_t Items() {
  const char* const text = std::getenv("SKEP_POOL_ITEMS");
  return text == nullptr ? 10'000 : std::strtoull(text, nullptr, 10);
}

// 16 bytes, in no order.
std::string KeyOf(uint64_t number) {
  number *= 0x9e3779b97f4a7c15;
  std::string key(16, '\0');
  for (size_t i = 0; i < key.size(); ++i) key[i] = "0123456789abcdef"[number >> (60 - 4 * i) & 15];
  return key;
}

// A pool with the items in it, for all benchmarks over one fabric.
template <typename World>
struct LoadedPool {
  LoadedPool() {
    const std::string value(16, 'v');
    for (uint64_t i = 0; i < Items();) {
      Batch batch;
      std::vector<std::string> some;
      for (; some.size() < 256 && i < Items(); ++i) some.push_back(KeyOf(i));
      for (const std::string& key : some) batch.Put(key, value);
      engine->Execute(batch);
      SKEP_CHECK(batch.outcome(0).verdict == Verdict::kDone);
    }
    std::mt19937_64 random(1);
    for (size_t i = 0; i < kDraws; ++i) keys.push_back(KeyOf(random() % Items()));
  }

  static LoadedPool& Get() {
    static LoadedPool pool;
    return pool;
  }

  World world;
  LocalPool servers{world.fabric, [this] {
                      LocalPoolOptions options = PoolOptionsOf(world, {});
                      options.chunks = static_cast<uint32_t>(256 + Items() * 128 / kChunkBytes);
                      return options;
                    }()};
  std::unique_ptr<PoolEngine> engine = servers.OpenEngine({});
  std::vector<std::string> keys;
};

// Batches of so many of what `add` adds for a key.
template <typename World, typename Add>
void Run(benchmark::State& state, Add add) {
  LoadedPool<World>& pool = LoadedPool<World>::Get();
  const auto depth = static_cast<size_t>(state.range(0));
  size_t next = 0;
  Batch batch;
  for (auto _ : state) {
    batch.Clear();
    for (size_t i = 0; i < depth; ++i) add(batch, pool.keys[next++ % kDraws]);
    pool.engine->Execute(batch);
    SKEP_CHECK(batch.outcome(0).verdict == Verdict::kDone);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * depth));
}

template <typename World>
void BM_Get(benchmark::State& state) {
  Run<World>(state, [](Batch& batch, const std::string& key) { batch.Get(key); });
}
template <typename World>
void BM_Put(benchmark::State& state) {
  Run<World>(state,
             [](Batch& batch, const std::string& key) { batch.Put(key, "0123456789abcdef"); });
}
template <typename World>
void BM_Scan100(benchmark::State& state) {
  Run<World>(state, [](Batch& batch, const std::string& key) {
    batch.Scan(Range::From(key), {.limit = 100});
  });
}

void Depths(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("depth")->Arg(1)->Arg(64)->Arg(1024)->UseRealTime();
}

BENCHMARK_TEMPLATE(BM_Get, MemWorld)->Apply(Depths);
BENCHMARK_TEMPLATE(BM_Put, MemWorld)->Apply(Depths);
BENCHMARK_TEMPLATE(BM_Scan100, MemWorld)->Apply(Depths);
BENCHMARK_TEMPLATE(BM_Get, TcpWorld)->Apply(Depths);
BENCHMARK_TEMPLATE(BM_Put, TcpWorld)->Apply(Depths);

}  // namespace
}  // namespace skep::pool
