// Question: what does a search of a leaf cost, and a walk, beside the cache misses that reach it?
// Sketch:   8 KB leaf, 200 items of 16-byte keys and values, a log of 6 items. Find compares with
//           half of 22 shortcuts, half of 9 items of a segment and the whole log: about 22 keys at
//           2 to 3 ns and three mispredicted exits: about 70 ns in cache. Many leaves: three
//           places that depend on each other, about 100 ns each: 300 to 400 ns.
//           Seek and 24 items: 30 ns to rebuild the order of the log, a search of 60 ns, 24 steps
//           at 3 to 5 ns: about 200 ns.
//           Leaves lie on huge pages, as an arena's do.
// Compare:  std::lower_bound over the same keys in a plain array (BM_LowerBound, the floor):
//           8 steps, half of them mispredicted, about 30 ns.
// Smoke:    CTest runs the benchmarks of one leaf.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/huge_pages.h"
#include "btree/paper/paper_layout.h"
#include "btree/testing/layout_test_node.h"

namespace skep::btree {
namespace {

using TestNode = LayoutTestNode<PaperLayout>;
constexpr uint64_t kSeed = 1;
constexpr uint32_t kItems = 200;
constexpr uint32_t kLogItems = 6;
constexpr size_t kProbes = 4096;

// A key of 16 bytes; even numbers are in the sorted block, odd ones in the log.
std::string KeyOf(uint64_t number) {
  char key[17];
  std::snprintf(key, sizeof(key), "user%012llu", static_cast<unsigned long long>(number));
  return key;
}

class Leaves {
 public:
  struct Probe {
    const NodeHeader* node;
    uint32_t used;
    std::string key;
  };

  explicit Leaves(int64_t count)
      : store_({}),
        pages_(*PageRegion::Reserve(static_cast<size_t>(count) * kNodeBytes, Pages::kHuge)) {
    SeededRandom random(kSeed);
    std::vector<uint32_t> used;
    for (int64_t i = 0; i < count; ++i) used.push_back(Place(i, random));
    for (size_t i = 0; i < kProbes; ++i) {
      const auto leaf = static_cast<size_t>(random.Below(static_cast<uint64_t>(count)));
      probes_.push_back({NodeAt(leaf), used[leaf], KeyOf(2 * random.Below(kItems - 24))});
    }
  }

  const Probe& Next() { return probes_[next_++ % kProbes]; }
  PaperLayout::Leaf LeafOf(const Probe& probe) const {
    return PaperLayout::Leaf(store_.codec(), probe.node, probe.used);
  }

 private:
  static constexpr size_t kNodeBytes = 8192;

  const NodeHeader* NodeAt(size_t index) const {
    return reinterpret_cast<const NodeHeader*>(pages_.begin() + index * kNodeBytes);
  }

  // Builds the leaf of this number; returns its bytes in use.
  uint32_t Place(int64_t index, Random& random) {
    const StoredValue value = {.bytes = "0123456789abcdef"};
    std::vector<std::string> keys;
    for (uint32_t i = 0; i < kItems; ++i) keys.push_back(KeyOf(2 * i));
    std::vector<PaperLayout::LeafItem> items;
    for (const std::string& key : keys) items.push_back({{.bytes = key}, value});
    TestNode node(store_.codec());
    node.BuildLeaf(items);
    for (uint32_t i = 0; i < kLogItems; ++i) {
      const std::string key = KeyOf(random.Below(2 * kItems));
      node.Append(key, {.bytes = key}, &value, i + 1);
    }
    std::memcpy(pages_.begin() + static_cast<size_t>(index) * kNodeBytes, node.node()->bytes(),
                node.used());
    return node.used();
  }

  TestStore store_;
  PageRegion pages_;
  std::vector<Probe> probes_;
  size_t next_ = 0;
};

void BM_LowerBound(benchmark::State& state) {
  Leaves leaves(1);
  struct Key {
    char bytes[16];
  };
  std::vector<Key> keys(kItems);
  for (uint32_t i = 0; i < kItems; ++i) std::memcpy(keys[i].bytes, KeyOf(2 * i).data(), 16);
  uint64_t checksum = 0;
  for (auto _ : state) {
    const std::string& key = leaves.Next().key;
    const auto found = std::ranges::lower_bound(
        keys, key, {}, [](const Key& stored) { return std::string_view(stored.bytes, 16); });
    checksum += static_cast<uint64_t>(found - keys.begin());
  }
  benchmark::DoNotOptimize(checksum);
}

void BM_Find(benchmark::State& state) {
  Leaves leaves(state.range(0));
  uint64_t checksum = 0;
  for (auto _ : state) {
    const auto& probe = leaves.Next();
    checksum += leaves.LeafOf(probe).Find(probe.key).value.bytes.size();
  }
  benchmark::DoNotOptimize(checksum);
}

void BM_SeekAndWalk(benchmark::State& state) {
  Leaves leaves(state.range(0));
  uint64_t checksum = 0;
  for (auto _ : state) {
    const auto& probe = leaves.Next();
    const auto leaf = leaves.LeafOf(probe);
    PaperLayout::LeafCursor cursor(leaf);
    cursor.SeekAtLeast(probe.key);
    for (int64_t i = 0; i < state.range(1) && cursor.valid(); ++i, cursor.Next()) {
      checksum += cursor.key().bytes.size() + cursor.value().bytes.size();
    }
  }
  benchmark::DoNotOptimize(checksum);
}

void BM_SeekAndWalkBack(benchmark::State& state) {
  Leaves leaves(state.range(0));
  uint64_t checksum = 0;
  for (auto _ : state) {
    const auto& probe = leaves.Next();
    const auto leaf = leaves.LeafOf(probe);
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
