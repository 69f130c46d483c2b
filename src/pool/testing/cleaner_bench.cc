// Question: what does the cleaner write for each byte that clients write, and how fast do they
//           write, when a pool is so full of live items and random ones are overwritten?
// Sketch:   greedy cleaning of random overwrites meets victims that are emptier than the average:
//           where u is the live share of the chunks that are used, victims have a live share f with
//           u = (f - 1) / ln f, and f / (1 - f) bytes are moved for each byte written: 0.26 at 50 %
//           (f = 0.2), 1.7 at 80 % (f = 0.63), 9 at 95 % (f = 0.9). The chunks that are kept free
//           make the others fuller: 5 of 128 make 95 % of 99. A chunk is cleaned if a 64th of it is
//           garbage; where that was a sixteenth, a pool that was filled to 95 % refused overwrites.
// Compare:  pool_engine_bench has the writes of a pool with room.
// Smoke:    CTest runs --benchmark_filter=fill:50 so the file cannot rot.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "pool/item.h"
#include "pool/testing/pool_worlds.h"

namespace skep::pool {
namespace {

constexpr size_t kValueBytes = 1000;
constexpr size_t kBatch = 64;

// How many chunks: SKEP_POOL_CHUNKS of the environment.
uint32_t ChunkCount() {
  const char* const text = std::getenv("SKEP_POOL_CHUNKS");
  return text == nullptr ? 16 : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

class Overwrites {
 public:
  explicit Overwrites(uint64_t fill) : items_(Capacity() * fill / 100) {}

  static uint64_t Capacity() { return uint64_t{ChunkCount()} * kChunkUnits / kItemUnits; }
  void Load() {
    for (uint64_t i = 0; i < items_ && !is_full_; i += kBatch) {
      Put([&](size_t j) { return std::min(i + j, items_ - 1); });
    }
  }
  // So many random items, if the pool does not refuse them for ever.
  void Run(uint64_t writes) {
    for (uint64_t i = 0; i < writes && !is_full_; i += kBatch) {
      Put([&](size_t) { return random_.Below(items_); });
    }
  }
  // One batch was refused kRefusalsMax times in a row: there is next to no garbage.
  bool is_full() const { return is_full_; }
  uint64_t Figure(std::string_view name) const {
    uint64_t found = 0;
    engine_->Describe(0, [&](std::string_view at, uint64_t value) {
      if (at == name) found = value;
    });
    return found;
  }
  uint64_t refused() const { return refused_; }
  static constexpr uint32_t kItemUnits =
      (sizeof(ItemHeader) + 8 + kValueBytes + kUnitBytes - 1) / kUnitBytes;

 private:
  // A batch, again if it is refused.
  template <typename Nth>
  void Put(Nth nth) {
    std::vector<std::string> keys;
    for (size_t j = 0; j < kBatch; ++j) keys.push_back(std::to_string(10'000'000 + nth(j)));
    int refusals = 0;
    for (bool is_done = false; !is_done;) {
      batch_.Clear();
      for (const std::string& key : keys) batch_.Put(key, value_);
      engine_->Execute(batch_);
      is_done = true;
      for (uint32_t j = 0; j < kBatch; ++j) is_done &= batch_.outcome(j).status.ok();
      if (is_done) break;
      ++refused_;
      if (++refusals == kRefusalsMax) is_full_ = true;
      if (is_full_) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  static constexpr int kRefusalsMax = 10'000;

  const uint64_t items_;
  bool is_full_ = false;
  const std::string value_ = std::string(kValueBytes, 'v');
  MemWorld world_;
  LocalPool servers_{world_.fabric, [this] {
                       LocalPoolOptions options = PoolOptionsOf(world_, {});
                       options.chunks = ChunkCount();
                       options.has_agents = true;
                       return options;
                     }()};
  std::unique_ptr<PoolEngine> engine_ = servers_.OpenEngine({});
  SeededRandom random_{1};
  Batch batch_;
  uint64_t refused_ = 0;
};

// After as many writes as the pool has room for, twice as many are measured.
void BM_Overwrite(benchmark::State& state) {
  Overwrites pool(static_cast<uint64_t>(state.range(0)));
  pool.Load();
  pool.Run(Overwrites::Capacity());
  const uint64_t writes = 2 * Overwrites::Capacity();
  const uint64_t moved = pool.Figure("pool_bytes_moved");
  const uint64_t refused = pool.refused();
  for (auto _ : state) pool.Run(writes);
  if (pool.is_full()) state.SkipWithError("the pool is full: it refuses overwrites");
  const auto written = static_cast<double>(writes * Overwrites::kItemUnits * kUnitBytes);
  state.counters["moved_per_written"] =
      static_cast<double>(pool.Figure("pool_bytes_moved") - moved) / written;
  state.counters["refused"] = static_cast<double>(pool.refused() - refused);
  state.SetItemsProcessed(static_cast<int64_t>(writes));
}

BENCHMARK(BM_Overwrite)
    ->ArgName("fill")
    ->Arg(50)
    ->Arg(80)
    ->Arg(90)
    ->Arg(95)
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace skep::pool
