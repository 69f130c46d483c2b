// Question: what does a node buffer cost when a tree builds a new one and retires the old?
// Sketch:   from the cache an allocation and a free are a handful of instructions on two warm
//           lines, about 5 ns a pair. Past it, half of a magazine moves at a time under the lock:
//           20 ns for the lock, and a bitmap and its span's line for each slot.
// Compare:  malloc and free of the same size.
// Smoke:    CTest runs --benchmark_filter=buffers:1(/|$) so the file cannot rot.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "base/arena.h"

namespace skep {
namespace {

constexpr size_t kNodeBytes = 5632;

class ArenaBuffers {
 public:
  ArenaBuffers() : arena_({.budget = &budget_}) {}
  ~ArenaBuffers() { arena_.Flush(cache_); }
  std::byte* Take() {
    const ArenaAddress at = arena_.Allocate(cache_, kNodeBytes, Arena::Limit::kObey);
    last_ = at;
    return arena_.At(at);
  }
  ArenaAddress last() const { return last_; }
  void Give(ArenaAddress at) { arena_.Free(cache_, at, kNodeBytes); }

 private:
  MemoryBudget budget_;
  Arena arena_;
  Arena::Cache cache_;
  ArenaAddress last_;
};

class MallocBuffers {
 public:
  std::byte* Take() { return last_ = static_cast<std::byte*>(std::malloc(kNodeBytes)); }
  std::byte* last() const { return last_; }
  void Give(std::byte* at) { std::free(at); }

 private:
  std::byte* last_ = nullptr;
};

// A step is a pair: the oldest of `buffers` live ones, which lie in random order of address, is
// freed, and a new one is allocated. With one buffer the slot that is free is the last one freed;
// with many, nearly every pair leaves the cache. The header line of each buffer is written, as a
// node's would be.
template <typename Buffers>
void BM_Replace(benchmark::State& state) {
  Buffers buffers;
  std::vector<decltype(buffers.last())> live(static_cast<size_t>(state.range(0)));
  for (auto& at : live) {
    *buffers.Take() = std::byte{1};
    at = buffers.last();
  }
  std::ranges::shuffle(live, std::mt19937(1));
  size_t next = 0;
  for (auto _ : state) {
    buffers.Give(live[next]);
    *buffers.Take() = std::byte{1};
    live[next] = buffers.last();
    next = next + 1 == live.size() ? 0 : next + 1;
  }
  for (auto at : live) buffers.Give(at);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Replace<ArenaBuffers>)->ArgName("buffers")->Arg(1)->Arg(100000);
BENCHMARK(BM_Replace<MallocBuffers>)->ArgName("buffers")->Arg(1)->Arg(100000);

// A step is a wave: all buffers are freed and allocated again, so that every slot goes through its
// span.
template <typename Buffers>
void BM_Waves(benchmark::State& state) {
  Buffers buffers;
  std::vector<decltype(buffers.last())> live(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    for (auto& at : live) {
      *buffers.Take() = std::byte{1};
      at = buffers.last();
    }
    for (auto at : live) buffers.Give(at);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Waves<ArenaBuffers>)->ArgName("buffers")->Arg(1)->Arg(1000)->Arg(100000);
BENCHMARK(BM_Waves<MallocBuffers>)->ArgName("buffers")->Arg(1)->Arg(1000)->Arg(100000);

}  // namespace
}  // namespace skep
