// Question: how near does the engine come to the memory's own rate of random reads, and what does
//           it cost beside the memory?
// Sketch:   a GET of an inline pair is one line. In the cache it is the hash (3 ns), the sort by
//           partition (2 ns), the probe (3 ns) and the outcome (5 ns); past the cache, if the lines
//           of a window overlap, the longer of this and the lines. Additions to one key never leave
//           the station: each costs the function and the outcome. A walk hashes each key again and
//           copies it: some 20 ns, and a line if there is a record; with short steps, the chain at
//           each step again. A put beside a snapshot iterator finds its interval in a tree, 100 ns
//           and more.
// Compare:  the same batches with only their lines read (lines), and for large_get and large_put
//           plain reads, or read-modify-writes, of random lines in as much memory, in turns with
//           them (of_lines, the median of the turns' ratios): what the memory allows.
//           For reduce a plain sum over as much memory, in the same way (of_sequential).
// Smoke:    CTest runs --benchmark_filter=items:1024(/|$) so the file cannot rot.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/huge_pages.h"
#include "base/random.h"
#include "hash/hash_engine.h"
#include "hash/tuning.h"

namespace skep {
namespace {

constexpr uint32_t kBatch = 256;
constexpr uint64_t kStream = 1 << 23;  // keys, before they repeat

// Items of fixed sizes: key i is the bytes of i, in a scrambled order.
class Items {
 public:
  Items(uint64_t count, size_t key_bytes, size_t value_bytes)
      : count_(count), key_bytes_(key_bytes), value_(value_bytes, 'v') {
    constexpr double kUtilisation = 0.5;  // or the highest that pairs of these sizes reach
    engine_ =
        HashEngine::Make({.budget = &budget_},
                         {.table = hash::ChooseTableOptions(key_bytes, value_bytes, kUtilisation)});
    Batch batch;
    for (uint64_t i = 0; i < count_; i += kBatch) {
      batch.Clear();
      for (uint64_t j = i; j < std::min(i + kBatch, count_); ++j) batch.Put(Key(batch, j), value_);
      engine_->Execute(batch);
    }
  }

  std::string_view Key(Batch& batch, uint64_t i) const {
    char* const at = batch.scratch().Allocate(std::max<size_t>(key_bytes_, 8));
    std::memset(at, 0, key_bytes_);
    std::memcpy(at, &i, std::min<size_t>(key_bytes_, 8));
    return {at, key_bytes_};
  }

  HashEngine& engine() { return *engine_; }
  uint64_t bytes() const { return engine_->Statistics().bytes; }

 private:
  const uint64_t count_;
  const size_t key_bytes_;
  const std::string value_;
  MemoryBudget budget_;
  std::unique_ptr<HashEngine> engine_;
};

// One batch whose keys are written anew for each execution, as those of a busy connection are.
class Requests {
 public:
  Requests(Op op, uint64_t items, size_t key_bytes, size_t value_bytes)
      : key_bytes_(key_bytes), keys_(kBatch * key_bytes + 8), value_(value_bytes, 'w') {
    SeededRandom random(7);
    stream_.resize(std::max<uint64_t>(kBatch, std::min<uint64_t>(items, kStream)));
    for (uint32_t& key : stream_) key = static_cast<uint32_t>(random.Below(items));
    for (uint32_t i = 0; i < kBatch; ++i) {
      batch_.Add({.op = op,
                  .key = {keys_.data() + i * key_bytes, key_bytes},
                  .value = op == Op::kPut ? std::string_view(value_) : ""});
    }
  }

  Batch& Next() {
    for (uint32_t i = 0; i < kBatch; ++i) {
      std::memcpy(&keys_[i * key_bytes_], &stream_[next_ + i], sizeof(uint32_t));
    }
    next_ = next_ + 2 * kBatch > stream_.size() ? 0 : next_ + kBatch;
    return batch_;
  }

 private:
  const size_t key_bytes_;
  std::vector<char> keys_;
  const std::string value_;
  std::vector<uint32_t> stream_;
  size_t next_ = 0;
  Batch batch_;
};

void Report(benchmark::State& state, uint64_t checksum) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * kBatch);
  state.counters["checksum"] = static_cast<double>(checksum);
}

// Accesses random lines, as fast as a core can.
class RandomLines {
 public:
  explicit RandomLines(uint64_t bytes)
      : lines_(bytes / 64), memory_(PageRegion::Reserve(lines_ * 64, Pages::kHuge)) {
    if (has_memory()) std::memset(memory_->begin(), 1, lines_ * 64);
  }

  bool has_memory() const { return memory_.has_value(); }

  // Returns the number of accesses a second.
  template <Op kOp>
  double Rate() {
    constexpr uint64_t kLines = 1 << 22;
    const auto begin = std::chrono::steady_clock::now();
    uint64_t sum = 0;
    for (uint64_t i = 0; i < kLines; ++i) {
      state_ = state_ * 6364136223846793005 + 1442695040888963407;
      const auto line =
          static_cast<uint64_t>((static_cast<unsigned __int128>(state_) * lines_) >> 64);
      auto* const word = reinterpret_cast<uint64_t*>(memory_->begin() + line * 64);
      sum += *word;
      if constexpr (kOp == Op::kPut) *word = sum;
    }
    benchmark::DoNotOptimize(sum);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return kLines / took.count();
  }

 private:
  const uint64_t lines_;
  Result<PageRegion> memory_;
  uint64_t state_ = 7;
};

template <Op kOp>
void BM_LargePoints(benchmark::State& state) {
  constexpr int kTurn = 4096;  // batches
  const auto count = static_cast<uint64_t>(state.range(0));
  const auto key_bytes = static_cast<size_t>(state.range(1));
  const auto value_bytes = static_cast<size_t>(state.range(2));
  Items items(count, key_bytes, value_bytes);
  Requests requests(kOp, count, key_bytes, value_bytes);
  RandomLines lines(items.bytes());
  if (!lines.has_memory()) return state.SkipWithError("no memory");
  std::vector<double> ratios;
  uint64_t checksum = 0;
  for (auto _ : state) {
    const double limit = lines.Rate<kOp>();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kTurn; ++i) {
      Batch& batch = requests.Next();
      items.engine().Execute(batch);
      checksum += batch.outcome(kBatch - 1).value.size();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(took.count());
    ratios.push_back(kTurn * kBatch / took.count() / limit);
  }
  std::ranges::nth_element(ratios, ratios.begin() + static_cast<ptrdiff_t>(ratios.size() / 2));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * kTurn * kBatch);
  state.counters["checksum"] = static_cast<double>(checksum);
  state.counters["of_lines"] = ratios[ratios.size() / 2];
  state.counters["utilisation"] =
      static_cast<double>((key_bytes + value_bytes) * count) / static_cast<double>(items.bytes());
}

template <Op kOp>
void BM_Points(benchmark::State& state) {
  const auto count = static_cast<uint64_t>(state.range(0));
  Items items(count, static_cast<size_t>(state.range(1)), static_cast<size_t>(state.range(2)));
  Requests requests(kOp, count, static_cast<size_t>(state.range(1)),
                    static_cast<size_t>(state.range(2)));
  uint64_t checksum = 0;
  for (auto _ : state) {
    Batch& batch = requests.Next();
    items.engine().Execute(batch);
    checksum += batch.outcome(kBatch - 1).value.size();
  }
  Report(state, checksum / state.iterations());
  const auto pair_bytes = static_cast<double>(state.range(1) + state.range(2));
  state.counters["utilisation"] =
      pair_bytes * static_cast<double>(count) / static_cast<double>(items.bytes());
}

// Additions to vectors of `elements` i64, over `items` keys; they return the vector before, if it
// has one element.
void BM_Add(benchmark::State& state) {
  const auto keys = static_cast<uint64_t>(state.range(0));
  const auto elements = static_cast<uint32_t>(state.range(1));
  const Function* const add = FindFunction(FunctionKind::kUpdate, "add", Element::kI64);
  const UpdateOptions options = {
      .returns = elements == 1 ? UpdateOptions::Returns::kOld : UpdateOptions::Returns::kNothing,
      .create = elements};
  MemoryBudget budget;
  const auto engine = HashEngine::Make({.budget = &budget});
  const uint64_t one = 1;
  const std::string_view operand(reinterpret_cast<const char*>(&one), sizeof(one));
  const auto bytes_of = [](const uint64_t& key) {
    return std::string_view(reinterpret_cast<const char*>(&key), sizeof(key));
  };
  Batch operands;  // its scratch must outlive the answers
  for (uint64_t key = 0; key < keys; ++key) {
    operands.Clear();
    operands.UpdateElements(bytes_of(key), add, operand, options);
    engine->Execute(operands);
  }
  std::vector<uint64_t> stream(keys == 1 ? kBatch : std::max<uint64_t>(keys, 1 << 16));
  SeededRandom random(7);
  for (uint64_t& key : stream) key = random.Below(keys);
  std::vector<uint64_t> keys_now(kBatch);
  operands.Clear();
  Batch batch;
  for (uint64_t& key : keys_now) {
    operands.UpdateElements(bytes_of(key), add, operand, options);
    batch.Add(operands.requests().back());
  }
  size_t next = 0;
  for (auto _ : state) {
    std::copy_n(&stream[next], kBatch, keys_now.begin());
    next = next + 2 * kBatch > stream.size() ? 0 : next + kBatch;
    engine->Execute(batch);
    benchmark::DoNotOptimize(batch.outcome(kBatch - 1).value);
  }
  Report(state, 0);
  state.SetBytesProcessed(state.items_processed() * elements * 8);
}

// Sums of vectors of i64, in batches of 1 MiB of elements, in the order of their keys; in turns
// with a plain sum over as much memory (of_sequential, the median of the turns' ratios).
void BM_Reduce(benchmark::State& state) {
  const auto keys = static_cast<uint64_t>(state.range(0));
  const auto elements = static_cast<size_t>(state.range(1));
  MemoryBudget budget;
  const auto engine = HashEngine::Make({.budget = &budget});
  const std::string value(elements * 8, '\1');
  const size_t batch_keys = std::max<size_t>(1, (size_t{1} << 20) / value.size());
  std::vector<std::string> names;
  for (uint64_t key = 0; key < keys; ++key) names.push_back(std::to_string(key));
  Batch batch;
  for (const std::string& name : names) {
    batch.Clear();
    batch.Put(name, value);
    engine->Execute(batch);
  }
  auto plain = PageRegion::Reserve(keys * value.size(), Pages::kHuge);
  if (!plain) return state.SkipWithError("no memory");
  std::memset(plain->begin(), 1, plain->size());
  const Function* const sum = FindFunction(FunctionKind::kReduce, "sum", Element::kI64);
  std::vector<double> ratios;
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    uint64_t total = 0;
    const auto* const words = reinterpret_cast<const uint64_t*>(plain->begin());
    for (size_t i = 0; i < plain->size() / 8; ++i) total += words[i];
    benchmark::DoNotOptimize(total);
    const std::chrono::duration<double> limit = std::chrono::steady_clock::now() - begin;
    begin = std::chrono::steady_clock::now();
    for (uint64_t key = 0; key < keys; key += batch_keys) {
      batch.Clear();
      for (uint64_t k = key; k < std::min(keys, key + batch_keys); ++k) {
        batch.ReduceElements(names[k], sum, {});
      }
      engine->Execute(batch);
      benchmark::DoNotOptimize(batch.outcome(0).value);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(took.count());
    ratios.push_back(limit / took);
  }
  std::ranges::nth_element(ratios, ratios.begin() + static_cast<ptrdiff_t>(ratios.size() / 2));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * keys * value.size()));
  state.counters["of_sequential"] = ratios[ratios.size() / 2];
}

// Whole walks, in steps of kWalk of a number of items.
void BM_Walk(benchmark::State& state) {
  Items items(static_cast<uint64_t>(state.range(0)), 8, 8);
  Batch batch;
  int64_t walked = 0;
  for (auto _ : state) {
    uint64_t cursor = 0;
    do {
      batch.Clear();
      batch.Walk(cursor, {.limit = static_cast<uint32_t>(state.range(1)), .keys_only = true});
      items.engine().Execute(batch);
      walked += batch.outcome(0).item_count;
      cursor = static_cast<uint64_t>(batch.outcome(0).integer);
    } while (cursor != 0);
  }
  state.SetItemsProcessed(walked);
}

// Puts beside an open snapshot iterator that has not taken a step: the first put of a chain saves
// it, later ones find it saved. Compare with put, where none is open.
void BM_PutBesideSnapshotIterator(benchmark::State& state) {
  const auto count = static_cast<uint64_t>(state.range(0));
  Items items(count, 8, 8);
  Requests requests(Op::kPut, count, 8, 8);
  const auto iterator = items.engine().OpenPairIterator(0);
  for (auto _ : state) items.engine().Execute(requests.Next());
  Report(state, 0);
}

// Reads all pairs by a snapshot iterator, beside no writer.
void BM_SnapshotIterator(benchmark::State& state) {
  Items items(static_cast<uint64_t>(state.range(0)), 8, 8);
  int64_t walked = 0;
  for (auto _ : state) {
    const auto iterator = items.engine().OpenPairIterator(0);
    for (auto pairs = (*iterator)->Next(); !pairs->empty(); pairs = (*iterator)->Next()) {
      walked += static_cast<int64_t>(pairs->size());
    }
  }
  state.SetItemsProcessed(walked);
}

// Reads one random line a request; all lines of a batch are fetched first.
void BM_Lines(benchmark::State& state) {
  const auto lines = static_cast<uint64_t>(state.range(0));
  auto memory = PageRegion::Reserve(lines * 64, Pages::kHuge);
  if (!memory) return state.SkipWithError("no memory");
  std::memset(memory->begin(), 1, memory->size());
  SeededRandom random(7);
  std::vector<uint32_t> order(std::clamp<uint64_t>(lines / 2 / kBatch * kBatch, kBatch, kStream));
  for (uint32_t& line : order) line = static_cast<uint32_t>(random.Below(lines));
  size_t next = 0;
  uint64_t checksum = 0;
  for (auto _ : state) {
    for (uint32_t i = 0; i < kBatch; ++i) FetchLine(memory->begin() + order[next + i] * 64UL);
    for (uint32_t i = 0; i < kBatch; ++i) {
      checksum += static_cast<uint64_t>(memory->begin()[order[next + i] * 64UL]);
    }
    next = next + kBatch >= order.size() ? 0 : next + kBatch;
  }
  Report(state, checksum / state.iterations());
}

void Sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"items", "key", "value"});
  for (const int64_t items : {1 << 10, 1 << 22}) {
    b->Args({items, 5, 5})->Args({items, 8, 7})->Args({items, 8, 8})->Args({items, 8, 40});
  }
}

// Fixes the number of iterations, so that the items are loaded once: a run of unknown length would
// load them again.
void LargeSizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"items", "key", "value"})->Iterations(9)->UseManualTime();
  b->Args({1 << 26, 5, 5})->Args({1 << 26, 8, 7})->Args({1 << 26, 8, 8});
}

BENCHMARK(BM_Points<Op::kGet>)->Name("get")->Apply(Sizes);
BENCHMARK(BM_Points<Op::kPut>)->Name("put")->Apply(Sizes);
BENCHMARK(BM_LargePoints<Op::kGet>)->Name("large_get")->Apply(LargeSizes);
BENCHMARK(BM_LargePoints<Op::kPut>)->Name("large_put")->Apply(LargeSizes);
BENCHMARK(BM_Add)
    ->Name("add")
    ->ArgNames({"items", "elements"})
    ->Args({1, 1})
    ->Args({1024, 1})
    ->Args({1 << 22, 1})
    ->Args({1, 8})
    ->Args({1 << 17, 512});
BENCHMARK(BM_Reduce)
    ->Name("reduce")
    ->ArgNames({"items", "elements"})
    ->UseManualTime()
    ->Args({1024, 512})
    ->Args({1 << 14, 1 << 13})
    ->Args({1000, 1 << 17});
BENCHMARK(BM_Walk)
    ->Name("walk")
    ->ArgNames({"items", "step"})
    ->Args({1 << 10, 10})
    ->Args({1 << 10, 1000})
    ->Args({1 << 22, 10})
    ->Args({1 << 22, 1000});
BENCHMARK(BM_SnapshotIterator)
    ->Name("snapshot_iterator")
    ->ArgName("items")
    ->Arg(1024)
    ->Arg(1 << 22);
BENCHMARK(BM_PutBesideSnapshotIterator)
    ->Name("put_beside_snapshot_iterator")
    ->ArgName("items")
    ->Arg(1024)
    ->Arg(1 << 22);
BENCHMARK(BM_Lines)->Name("lines")->ArgName("items")->Arg(1024)->Arg(1 << 22)->Arg(1 << 26);

}  // namespace
}  // namespace skep
