// Question: what does a PUT in the tree pay for a map of hot keys that is told of every write?
// Sketch:   a hash of the key and a load from 64 KiB: 6 ns, beside some 450 ns of a PUT.
// Compare:  the same without the map, in turns: --benchmark_repetitions=11
//           --benchmark_enable_random_interleaving.
// Smoke:    CTest runs all of it so the file cannot rot.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "keyspace/factory.h"
#include "netindex/xdp/hot_map.h"
#include "netindex/xdp/xdp_answer.h"

namespace skep::xdp {
namespace {

// Keys that nobody asks for are put, while other keys have entries.
void BM_Put(benchmark::State& state) {
  constexpr uint64_t kRecords = 1'000'000;
  constexpr int kHotKeys = 20'000;
  constexpr int kBatch = 64;
  const auto memory = std::make_unique<XdpMap>();
  HotMap map(*memory, 1, 42);
  HotWrites writes(map, 0);
  MemoryBudget budget;
  EngineOptions options;
  options.budget = &budget;
  const auto engine = FindEngine("btree")->make(options);
  if (state.range(0) != 0) engine->Observe(&writes);
  for (int i = 0; i < kHotKeys; ++i) {
    map.BeginFill(*KeyOf(0, "user:" + std::to_string(i)));
  }
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < kRecords; ++i) keys.push_back("item:" + std::to_string(10'000'000 + i));
  Batch batch;
  SeededRandom random(1);
  const auto put = [&](auto next) {
    batch.Clear();
    for (int i = 0; i < kBatch; ++i) batch.Put(keys[next()], "sixteen bytes ..");
    engine->Execute(batch);
  };
  uint64_t loaded = 0;
  while (loaded < kRecords) put([&] { return std::min(loaded++, kRecords - 1); });
  for (auto _ : state) put([&] { return random.Below(kRecords); });
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * kBatch);
}

BENCHMARK(BM_Put)->ArgName("map")->Arg(0)->Arg(1)->Iterations(10'000);

}  // namespace
}  // namespace skep::xdp
