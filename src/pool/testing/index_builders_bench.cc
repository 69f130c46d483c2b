// Question: how many keys a second does a server that has the tree alone add to a new hash index?
// Sketch:   a scan of the tree 0.05 us a key, two SipHashes 0.04 us, cache misses that overlap with
//           those of other keys 0.1 us: 0.2 us, 5 M keys a second.
// Compare:  skep-bench hstore --figure 11a, where a server answers between the steps.
// Smoke:    CTest runs keys:100000.
#include <benchmark/benchmark.h>

#include "pool/index_builders.h"
#include "pool/index_memory_test.h"
#include "pool/testing/local_pool.h"
#include "rma/mem_fabric.h"

namespace skep::pool {
namespace {

constexpr DigestKeys kKeys = {.index = {1, 2}, .tag = {3, 4}};

std::unique_ptr<Engine> TreeOf(uint64_t keys) {
  auto tree = MakePoolTree();
  Batch batch;
  for (uint64_t begin = 0; begin < keys; begin += 1000) {
    batch.Clear();
    for (uint64_t i = begin; i < begin + 1000; ++i) {
      const std::string key = "key" + std::to_string(1'000'000'000'000 + i);
      const KeyDigest digest = DigestOf(kKeys, key);
      const Slot slot(digest.signature(), 1, 0, static_cast<uint32_t>(i >> 15), i & 32767);
      batch.Put(batch.scratch().Copy(key), batch.scratch().Copy(BytesOf(slot)));
    }
    tree->Execute(batch);
  }
  return tree;
}

void BM_BuildHash(benchmark::State& state) {
  const auto keys = static_cast<uint64_t>(state.range(0));
  const auto tree = TreeOf(keys);
  rma::MemFabric fabric;
  const auto endpoint = fabric.Open({}).value();
  for (auto _ : state) {
    state.PauseTiming();
    IndexMemory memory(keys / 2 + 2048, keys / 8);
    const auto hash = memory.Create({});
    IndexState index(kKeys);
    index.set_tree(tree.get(), true);
    index.set_hash(hash.get(), false);
    IndexContext context = {.endpoint = *endpoint,
                            .clock = SystemClock(),
                            .times = {},
                            .keys_per_piece = 0,
                            .keys_per_step = 256,
                            .free_chunks_min = 0,
                            .replicas = 1,
                            .removes_lost = false,
                            .applies_first = false,
                            .log = nullptr,
                            .state = index,
                            .map = {},
                            .reply = {}};
    HashBuilder builder(context, *hash);
    state.ResumeTiming();
    for (bool is_whole = false; !is_whole;) SKEP_CHECK(builder.Step(&is_whole));
    SKEP_CHECK(hash->items() == keys);
  }
  state.counters["keys/s"] = benchmark::Counter(static_cast<double>(keys * state.iterations()),
                                                benchmark::Counter::kIsRate);
}
BENCHMARK(BM_BuildHash)
    ->ArgName("keys")
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Arg(4'000'000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace skep::pool

BENCHMARK_MAIN();
