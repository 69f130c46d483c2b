// Question: what does one client of the tree do to another one?
// Targets:  (two cores)
//           a hot leaf, 4 and 16 threads: the worst Put 250 ms, all have ended 100 ms after the
//           stop, 64 MB at most; a writer beside one who deletes or asks for empty ranges: half of
//           its rate alone; a Put of 1 MiB beside a busy neighbour in its leaf: 5 times its time
//           alone in the median; 10,000 snapshots: a Put of the hot leaf costs twice what it does
//           with one; a snapshot that is held: a hot key has 0.8 of its rate.
// Method:   the public library. What is compared takes turns of half a second, five each; medians.
//           These are times of real threads on a machine that has other things to do: tests count
//           the same in steps (btree/tree_liveness_test.cc, btree/reclaim_test.cc).
// Smoke:    CTest runs the snapshots.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "skep/store.h"

namespace skep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTurns = 5;
constexpr auto kTurn = std::chrono::milliseconds(500);
constexpr auto kHotLeafTime = std::chrono::seconds(10);

double MsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

std::unique_ptr<Store> Open() {
  auto store = Store::Open({.keyspaces = 2});
  SKEP_CHECK(store.has_value());
  return std::move(*store);
}

void Put(Store& store, std::string_view key, std::string_view value) {
  SKEP_CHECK(store.Put(key, value).ok());
}

std::string KeyOf(uint32_t number) { return "key" + std::to_string(1000 + number); }

// Does something in a thread of its own, again and again, until it is destroyed.
class Neighbour {
 public:
  explicit Neighbour(std::function<void()> act)
      : thread_([this, act = std::move(act)] {
          while (!ends_.load(std::memory_order_relaxed)) act();
        }) {}
  ~Neighbour() {
    ends_ = true;
    thread_.join();
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

// How often `act` is done in a second.
double RateOf(const std::function<void()>& act) {
  uint64_t done = 0;
  const auto begin = Clock::now();
  while (Clock::now() - begin < kTurn) {
    for (int i = 0; i < 16; ++i) act();
    done += 16;
  }
  return static_cast<double>(done) / MsSince(begin) * 1000;
}

// Rates alone and beside `neighbour`, in turns; tells the medians and their ratio.
void Compare(benchmark::State& state, const std::function<void()>& act,
             const std::function<void()>& neighbour) {
  std::vector<double> alone;
  std::vector<double> beside;
  for (auto _ : state) {
    for (int turn = 0; turn < kTurns; ++turn) {
      alone.push_back(RateOf(act));
      const Neighbour other(neighbour);
      beside.push_back(RateOf(act));
    }
  }
  state.counters["alone_per_s"] = Median(alone);
  state.counters["beside_per_s"] = Median(beside);
  state.counters["ratio"] = Median(beside) / Median(alone);
}

void BM_HotLeaf(benchmark::State& state) {
  constexpr uint32_t kKeys = 100;
  const auto threads = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    const auto store = Open();
    std::atomic<bool> ends{false};
    std::vector<double> worst_ms(threads);
    std::vector<uint64_t> puts(threads);
    std::vector<std::thread> writers;
    for (size_t t = 0; t < threads; ++t) {
      writers.emplace_back([&, t] {
        for (uint32_t i = 0; !ends.load(std::memory_order_relaxed); ++i, ++puts[t]) {
          const auto begin = Clock::now();
          Put(*store, KeyOf((i * 7 + static_cast<uint32_t>(t) * 13) % kKeys), "value");
          worst_ms[t] = std::max(worst_ms[t], MsSince(begin));
        }
      });
    }
    uint64_t most_bytes = 0;
    for (const auto begin = Clock::now(); Clock::now() - begin < kHotLeafTime;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      most_bytes = std::max<uint64_t>(most_bytes, store->Statistics().memory_bytes);
    }
    ends = true;
    const auto stopped = Clock::now();
    for (std::thread& writer : writers) writer.join();
    state.counters["ended_after_ms"] = MsSince(stopped);
    state.counters["worst_put_ms"] = std::ranges::max(worst_ms);
    state.counters["mib"] = static_cast<double>(most_bytes) / (1 << 20);
    uint64_t all = 0;
    for (const uint64_t n : puts) all += n;
    state.counters["puts_per_s"] =
        static_cast<double>(all) / std::chrono::duration<double>(kHotLeafTime).count();
  }
}
BENCHMARK(BM_HotLeaf)->Arg(4)->Arg(16)->Iterations(1)->UseRealTime();

// A writer of 100,000 keys.
class Writer {
 public:
  explicit Writer(Store& store) : store_(store) {
    for (uint32_t i = 0; i < kKeys; ++i) Put(store_, KeyOf(i), "value");
  }
  void operator()() { Put(store_, KeyOf(++next_ * 7919 % kKeys), "value"); }

 private:
  static constexpr uint32_t kKeys = 100'000;
  Store& store_;
  uint32_t next_ = 0;
};

void BM_BesideDeletesOfAnEmptyRange(benchmark::State& state) {
  const auto store = Open();
  Writer writer(*store);
  Compare(
      state, [&] { writer(); },
      [&] { SKEP_CHECK(*store->DeleteRange(Range::Between("x", "y")) == 0); });
}
BENCHMARK(BM_BesideDeletesOfAnEmptyRange)->Iterations(1)->UseRealTime();

void BM_BesideConditionsOnAnEmptyRange(benchmark::State& state) {
  const auto store = Open();
  const auto keyspace = static_cast<uint32_t>(state.range(0));
  Writer writer(*store);
  Compare(
      state, [&] { writer(); },
      [&] {
        Batch batch(Batch::Kind::kAtomic);
        batch.RequireEmpty(Range::Between("x", "y"));
        batch.Put("other", "value");
        SKEP_CHECK(store->Execute(batch, keyspace).ok());
      });
}
BENCHMARK(BM_BesideConditionsOnAnEmptyRange)->Arg(0)->Arg(1)->Iterations(1)->UseRealTime();

void BM_LargePutBesideABusyNeighbour(benchmark::State& state) {
  const std::string large(1 << 20, 'v');
  const auto store = Open();
  Put(*store, "neighbour", "value");
  Put(*store, "large", large);
  const auto times = [&](std::vector<double>* ms) {
    for (const auto begin = Clock::now(); Clock::now() - begin < kTurn;) {
      const auto one = Clock::now();
      Put(*store, "large", large);
      ms->push_back(MsSince(one));
    }
  };
  std::vector<double> alone_ms;
  std::vector<double> beside_ms;
  for (auto _ : state) {
    for (int turn = 0; turn < kTurns; ++turn) {
      times(&alone_ms);
      const Neighbour other([&] { Put(*store, "neighbour", "value"); });
      times(&beside_ms);
    }
  }
  state.counters["alone_ms"] = Median(alone_ms);
  state.counters["beside_ms"] = Median(beside_ms);
  state.counters["worst_beside_ms"] = std::ranges::max(beside_ms);
  state.counters["ratio"] = Median(beside_ms) / Median(alone_ms);
}
BENCHMARK(BM_LargePutBesideABusyNeighbour)->Iterations(1)->UseRealTime();

// A hot leaf of which each of so many snapshots keeps a version.
void BM_PutBesideSnapshots(benchmark::State& state) {
  const auto store = Open();
  std::vector<Snapshot> snapshots;
  for (int64_t i = 0; i < state.range(0); ++i) {
    Put(*store, KeyOf(0), std::to_string(i));
    snapshots.push_back(*store->TakeSnapshot());
  }
  uint32_t i = 0;
  for (auto _ : state) Put(*store, KeyOf(++i % 100), "value");
}
BENCHMARK(BM_PutBesideSnapshots)->Arg(1)->Arg(1000)->Arg(10'000);

// A hot key, with a snapshot that is held and without.
void BM_HotKeyUnderASnapshot(benchmark::State& state) {
  const auto store = Open();
  Writer writer(*store);
  std::vector<double> without;
  std::vector<double> with;
  const auto put = [&] { Put(*store, KeyOf(7), "value"); };
  for (auto _ : state) {
    for (int turn = 0; turn < kTurns; ++turn) {
      without.push_back(RateOf(put));
      const Snapshot snapshot = *store->TakeSnapshot();
      with.push_back(RateOf(put));
    }
  }
  state.counters["without_per_s"] = Median(without);
  state.counters["with_per_s"] = Median(with);
  state.counters["ratio"] = Median(with) / Median(without);
}
BENCHMARK(BM_HotKeyUnderASnapshot)->Iterations(1)->UseRealTime();

}  // namespace
}  // namespace skep
