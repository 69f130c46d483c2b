// Goal: where a leaf is divided, when the map hears of it, and how a scan reads a leaf: none of
// these choices changes an answer.
#include "hashleaf/leaf_mutator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace skep::hashleaf {
namespace {

using K = uint32_t;
using Stored = LeafMutator<K>::Stored;

class LeafMutatorTest : public testing::Test {
 protected:
  struct World {
    explicit World(const Settings& settings)
        : core(settings,
               {.key_bytes = 4,
                .value_bytes = 4,
                .secret = kSecret,
                .chunk_bytes = std::max(Table<K>::kBytesMin, settings.leaf_bytes / 4)},
               budget, now, watches, false) {
      EXPECT_TRUE(core.Start());
    }
    Leaf<K>& First() { return *core.Map().leaf(0); }

    MemoryBudget budget;
    LatestNow now;
    Watches watches;
    Core<K> core;
  };

  static uint64_t Hash(K key) { return HashOf(key, kSecret); }
  static Stored StoreIn(LeafMutator<K>& mutator, Leaf<K>& leaf, K key) {
    const std::lock_guard lock(leaf.lock);
    return mutator.Store(leaf, key, Hash(key), &key, nullptr, Arena::Limit::kObey);
  }

  // Stores these keys in the first leaf until it is split; returns those that it had.
  static std::vector<K> FillUntilSplit(World& world, const std::vector<K>& keys) {
    LeafMutator<K> mutator(world.core);
    std::vector<K> had;
    for (const K key : keys) {
      const uint64_t splits = world.core.splits;
      StoreIn(mutator, world.First(), key);
      if (world.core.splits != splits) break;
      had.push_back(key);
    }
    std::ranges::sort(had);
    return had;
  }

  // Returns keys of which `lower` of 100 are near the smallest one, the others near the largest, in
  // any order but for the two ends, which come first.
  static std::vector<K> Keys(uint32_t lower) {
    std::vector<K> keys = {kMin, kMax};
    for (uint32_t i = 1; i < 1000; ++i) {
      keys.push_back(i * 37 % 100 < lower ? kMin + i : kMax - i);
    }
    return keys;
  }

  static constexpr uint64_t kSecret = 7;
  static constexpr K kMin = 1000;
  static constexpr K kMax = 4'000'001'000;
  static constexpr K kMiddle = 2'000'001'000;
};

// Goal: a leaf is divided at the middle of its keys' range, however many keys are on each side.
TEST_F(LeafMutatorTest, SplitsAtTheMiddleOfTheRange) {
  World world({.leaf_bytes = Table<K>::kBytesMin});
  const std::vector<K> keys = Keys(75);
  const std::vector<K> had = FillUntilSplit(world, keys);
  EXPECT_EQ(world.First().last, kMiddle);
  ASSERT_NE(had[(had.size() - 1) / 2], kMiddle);
  ASSERT_NE(world.First().next, nullptr);
  EXPECT_EQ(world.First().next->first, kMiddle + 1);
  // The pair that caused the split has gone to the lower leaf, or is not stored yet.
  auto below = std::ranges::count_if(had, [](K key) { return key <= kMiddle; });
  if (keys[had.size()] <= kMiddle) ++below;
  EXPECT_EQ(world.First().table.items(), static_cast<uint32_t>(below));
}

// Goal: where the middle leaves a side with less than a sixteenth of the keys, the leaf is divided
// at the median; but not under the paper's rule.
TEST_F(LeafMutatorTest, SplitsLopsidedLeavesAtTheMedian) {
  World world({.leaf_bytes = Table<K>::kBytesMin});
  const std::vector<K> had = FillUntilSplit(world, Keys(98));
  EXPECT_EQ(world.First().last, had[(had.size() - 1) / 2]);

  World paper({.leaf_bytes = Table<K>::kBytesMin, .split_at = SplitAt::kMidpoint});
  FillUntilSplit(paper, Keys(98));
  EXPECT_EQ(paper.First().last, kMiddle);
}

// Goal: a leaf grows to its configured size, that of the second-level cache, before it is split.
TEST_F(LeafMutatorTest, GrowsToItsSizeBeforeItIsSplit) {
  World world({.leaf_bytes = 4 * Table<K>::kBytesMin});
  const std::vector<K> had = FillUntilSplit(world, Keys(50));
  EXPECT_EQ(had.size(), Keys(50).size()) << "the keys are used up, and nothing is split";
  EXPECT_EQ(world.core.splits.load(), 0u);
  EXPECT_GT(world.First().table.bytes(), 2 * Table<K>::kBytesMin);
}

// Goal: one new map has all the splits of a batch, in the order of keys.
TEST_F(LeafMutatorTest, SplitsAreCollected) {
  World world({.leaf_bytes = Table<K>::kBytesMin});
  const Epochs::Guard guard(world.core.epochs);
  const LeafMap<K>* const before = &world.core.Map();
  {
    LeafMutator<K> mutator(world.core);
    std::mt19937 rng(1);
    while (world.core.splits < 20) {
      const auto key = static_cast<K>(rng());
      Leaf<K>* leaf = &LockLeafOf(&world.First(), key);
      if (leaf->table.Find(key, Hash(key)) == nullptr) {
        mutator.Store(*leaf, key, Hash(key), &key, nullptr, Arena::Limit::kObey);
      }
      leaf->lock.unlock();
    }
    EXPECT_EQ(&world.core.Map(), before);
    EXPECT_EQ(before->size(), 1u);
  }
  const LeafMap<K>& map = world.core.Map();
  ASSERT_EQ(map.size(), 21u);
  for (uint32_t i = 0; i < map.size(); ++i) {
    ASSERT_EQ(map.IndexOf(map.leaf(i)->first), i);
    ASSERT_EQ(map.IndexOf(map.leaf(i)->last), i);
  }
}

// Goal: a narrow scan looks up every key, and its cost is noted; when scans have paid for it, a
// sorted run is built, and read from then on.
TEST_F(LeafMutatorTest, ScansPayForARun) {
  World world({.leaf_bytes = 16 * Table<K>::kBytesMin});
  LeafMutator<K> mutator(world.core);
  for (K i = 0; i < 500; ++i) StoreIn(mutator, world.First(), i * 1'000'000);
  Leaf<K>& leaf = world.First();
  const std::lock_guard lock(leaf.lock);
  const auto scan = [&](K first, K last) {
    const Slice slice = ReadLeaf(world.core, leaf, {first, last}, {.count_max = 1000});
    return slice.count;
  };
  EXPECT_EQ(scan(1'000'000, 1'000'004), 1u);
  const uint64_t narrow_ns = leaf.swept_ns;
  EXPECT_EQ(narrow_ns, 5u * 15) << "five keys are asked for";
  EXPECT_EQ(scan(1'000'000, 2'000'000), 2u);
  EXPECT_GE(leaf.swept_ns - narrow_ns, leaf.table.buckets()) << "the whole table is swept";
  EXPECT_EQ(world.core.runs_built.load(), 0u);
  int scans = 0;
  for (; world.core.runs_built == 0 && scans < 1000; ++scans) {
    EXPECT_EQ(scan(1'000'000, 2'000'000), 2u);
  }
  EXPECT_GT(scans, 1);
  EXPECT_EQ(world.core.runs_built.load(), 1u);
  ASSERT_NE(leaf.run, nullptr);
  const uint64_t reads = leaf.run->reads();
  EXPECT_EQ(scan(1'000'000, 2'000'000), 2u);
  EXPECT_EQ(leaf.run->reads(), reads + 1);
  EXPECT_EQ(world.core.runs_built.load(), 1u);
}

}  // namespace
}  // namespace skep::hashleaf
