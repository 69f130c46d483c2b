// Question: how much more do two threads do on one large sorted set than one?
// Target:   1.6 times (two cores).
// Method:   the engine in process, a sorted set of a million members. Each thread executes batches
//           of 16 calls, each about a member chosen at random. One thread and two take turns of
//           half a second, five each; medians of the rates and of the ratios of neighbouring turns.
// Smoke:    CTest runs the reads.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "collections/collection_engine.h"
#include "keyspace/factory.h"
#include "types/sorted_set.h"
#include "types/text.h"

namespace skep::collections {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMembers = 1'000'000;
constexpr int kBatch = 16;
constexpr int kTurns = 5;
constexpr auto kTurn = std::chrono::milliseconds(500);

enum class Load : int64_t { kScore, kAdd };

double Median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

std::string MemberOf(uint64_t number) { return "member:" + std::to_string(10'000'000 + number); }

// A ZADD of one member.
std::string_view AddOperand(std::string_view member, double score, Scratch& scratch) {
  constexpr char kRule[] = {0};
  return scratch.Concat({kRule, 1},
                        types::WriteEntries({{.score = score, .member = member}}, scratch));
}

class HotSortedSet {
 public:
  HotSortedSet() {
    Batch batch;
    SeededRandom random(1);
    for (uint64_t member = 0; member < kMembers;) {
      batch.Clear();
      for (int i = 0; i < 1000; ++i, ++member) {
        batch.Apply("zset", add_,
                    AddOperand(MemberOf(member), static_cast<double>(random.Below(kMembers)),
                               batch.scratch()));
      }
      engine_->Execute(batch);
      while (engine_->Maintain(0)) {
      }
    }
  }

  // Calls a second of so many threads.
  double RateOf(Load load, int threads) {
    std::atomic<uint64_t> calls{0};
    const auto begin = Clock::now();
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        SeededRandom random(static_cast<uint64_t>(++seed_) * 2 + static_cast<uint64_t>(i));
        Batch batch;
        uint64_t own = 0;
        while (Clock::now() - begin < kTurn) {
          Run(load, batch, random);
          own += kBatch;
        }
        calls += own;
      });
    }
    for (std::thread& thread : running) thread.join();
    return static_cast<double>(calls) / std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  void Run(Load load, Batch& batch, SeededRandom& random) {
    batch.Clear();
    for (int i = 0; i < kBatch; ++i) {
      Scratch& scratch = batch.scratch();
      const std::string member = MemberOf(random.Below(kMembers));
      if (load == Load::kAdd) {
        batch.Apply("zset", add_,
                    AddOperand(member, static_cast<double>(random.Below(kMembers)), scratch));
      } else {
        const std::string_view texts[] = {member};
        batch.Apply("zset", score_, types::JoinTexts(texts, scratch));
      }
    }
    engine_->Execute(batch);
    SKEP_CHECK(batch.outcome(0).status.ok());
    engine_->Maintain(0);
  }

  MemoryBudget budget_{0};
  std::unique_ptr<Engine> engine_ =
      std::make_unique<CollectionEngine>(FindEngine("btree")->make({.budget = &budget_}), 8192);
  const Function* const add_ = FindFunction("zset-add");
  const Function* const score_ = FindFunction("zset-score");
  std::atomic<int> seed_{0};
};

void BM_HotSortedSet(benchmark::State& state) {
  static HotSortedSet set;
  const auto load = static_cast<Load>(state.range(0));
  std::vector<double> one;
  std::vector<double> two;
  std::vector<double> ratios;
  for (auto _ : state) {
    for (int turn = 0; turn < kTurns; ++turn) {
      one.push_back(set.RateOf(load, 1));
      two.push_back(set.RateOf(load, 2));
      ratios.push_back(two.back() / one.back());
    }
  }
  state.counters["one_per_s"] = Median(one);
  state.counters["two_per_s"] = Median(two);
  state.counters["ratio"] = Median(ratios);
}

BENCHMARK(BM_HotSortedSet)
    ->ArgName("add")
    ->Arg(static_cast<int64_t>(Load::kScore))
    ->Arg(static_cast<int64_t>(Load::kAdd))
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace skep::collections
