// Question: what does a search of a leaf cost, and a walk, beside the cache misses that reach it?
// Sketch:   8 KB leaf, 200 items of 16-byte keys and values, a log of 6 items. Find compares with
//           half of 22 shortcuts, half of 9 items of a segment and the whole log: about 22 keys at
//           2 to 3 ns and three mispredicted exits: about 70 ns in cache. Many leaves: three
//           places that depend on each other, about 100 ns each: 300 to 400 ns.
//           Seek and 24 items: 30 ns to rebuild the order of the log, a search of 60 ns, 24 steps
//           at 3 to 5 ns: about 200 ns.
// Compare:  std::lower_bound over the same keys in a plain array (BM_LowerBound, the floor):
//           8 steps, half of them mispredicted, about 30 ns.
// Smoke:    CTest runs what has one leaf.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "btree/paper_layout_test_node.h"

namespace skep::btree {
namespace {

constexpr uint64_t kSeed = 1;
constexpr uint32_t kItems = 200;
constexpr uint32_t kLogItems = 6;
constexpr size_t kProbes = 4096;

// A key of 16 bytes; even numbers are in the leaf, odd ones come by the log.
std::string KeyOf(uint64_t number) {
  char key[17];
  std::snprintf(key, sizeof(key), "user%012llu", static_cast<unsigned long long>(number));
  return key;
}

struct Leaves {
  explicit Leaves(int64_t count) : store({}) {
    SeededRandom random(kSeed);
    const StoredValue value = {.bytes = "0123456789abcdef"};
    std::vector<PaperLayout::LeafItem> items;
    for (uint32_t i = 0; i < kItems; ++i) items.push_back({store.Key(KeyOf(2 * i)), value});
    for (int64_t i = 0; i < count; ++i) {
      nodes.push_back(std::make_unique<TestNode>(store.codec()));
      nodes.back()->BuildLeaf(items);
      for (uint32_t j = 0; j < kLogItems; ++j) {
        const std::string key = KeyOf(random.Below(2 * kItems));
        nodes.back()->Append(key, {.bytes = key}, &value, j + 1);
      }
    }
    for (size_t i = 0; i < kProbes; ++i) {
      probes.push_back(
          {nodes[random.Below(nodes.size())].get(), KeyOf(2 * random.Below(kItems - 24))});
    }
  }

  struct Probe {
    const TestNode* node;
    std::string key;
  };
  TestStore store;
  std::vector<std::unique_ptr<TestNode>> nodes;
  std::vector<Probe> probes;
};

void BM_LowerBound(benchmark::State& state) {
  const Leaves leaves(1);
  struct Key {
    char bytes[16];
  };
  std::vector<Key> keys(kItems);
  for (uint32_t i = 0; i < kItems; ++i) std::memcpy(keys[i].bytes, KeyOf(2 * i).data(), 16);
  uint64_t checksum = 0;
  size_t next = 0;
  for (auto _ : state) {
    const std::string& key = leaves.probes[next++ % kProbes].key;
    const auto found = std::ranges::lower_bound(
        keys, key, {}, [](const Key& stored) { return std::string_view(stored.bytes, 16); });
    checksum += static_cast<uint64_t>(found - keys.begin());
  }
  benchmark::DoNotOptimize(checksum);
}

void BM_Find(benchmark::State& state) {
  const Leaves leaves(state.range(0));
  uint64_t checksum = 0;
  size_t next = 0;
  for (auto _ : state) {
    const auto& probe = leaves.probes[next++ % kProbes];
    checksum += probe.node->leaf().Find(probe.key).value.bytes.size();
  }
  benchmark::DoNotOptimize(checksum);
}

void BM_SeekAndWalk(benchmark::State& state) {
  const Leaves leaves(state.range(0));
  uint64_t checksum = 0;
  size_t next = 0;
  for (auto _ : state) {
    const auto& probe = leaves.probes[next++ % kProbes];
    const auto leaf = probe.node->leaf();
    PaperLayout::LeafCursor cursor(leaf);
    cursor.SeekAtLeast(probe.key);
    for (int64_t i = 0; i < state.range(1) && cursor.valid(); ++i, cursor.Next()) {
      checksum += cursor.key().bytes.size() + cursor.value().bytes.size();
    }
  }
  benchmark::DoNotOptimize(checksum);
}

void BM_SeekAndWalkBack(benchmark::State& state) {
  const Leaves leaves(state.range(0));
  uint64_t checksum = 0;
  size_t next = 0;
  for (auto _ : state) {
    const auto& probe = leaves.probes[next++ % kProbes];
    const auto leaf = probe.node->leaf();
    PaperLayout::LeafCursor cursor(leaf);
    cursor.SeekBelow(probe.key);
    for (int64_t i = 0; i < state.range(1) && cursor.valid(); ++i, cursor.Prev()) {
      checksum += cursor.key().bytes.size() + cursor.value().bytes.size();
    }
  }
  benchmark::DoNotOptimize(checksum);
}

BENCHMARK(BM_LowerBound);
BENCHMARK(BM_Find)->ArgName("leaves")->Arg(1)->Arg(16384);
BENCHMARK(BM_SeekAndWalk)->ArgNames({"leaves", "items"})->ArgsProduct({{1, 16384}, {1, 24}});
BENCHMARK(BM_SeekAndWalkBack)->ArgNames({"leaves", "items"})->ArgsProduct({{1}, {1, 24}});

}  // namespace
}  // namespace skep::btree
