// Tests of what the hash engine does beside what all engines do.
#include "hash/hash_engine.h"

#include <gtest/gtest.h>

#include <string>

namespace skep {
namespace {

std::string KeyAt(uint64_t i) { return "key:" + std::to_string(i); }

// Puts pairs, which lie in slabs, until one is refused. Returns how many pairs the engine has then.
uint64_t Fill(HashEngine& engine) {
  constexpr uint64_t kFarTooMany = 10'000'000;
  const std::string value(100, 'v');
  for (uint64_t i = 0; i < kFarTooMany; ++i) {
    Batch batch;
    const std::string key = KeyAt(i);
    batch.Put(key, value);
    engine.Execute(batch);
    if (batch.outcome(0).verdict == Verdict::kRefused) return i;
  }
  return kFarTooMany;
}

// Goal: a keyspace may hold more than the 64 GiB that the addresses of one arena's slabs reach.
// Method: regions of 8 MiB instead, filled until there is no room: one arena holds a region's worth
// of pairs, four arenas nearly four times as much; all pairs are found.
TEST(HashEngine, ArenasAddressARegionEach) {
  constexpr uint64_t kRegionBytes = uint64_t{8} << 20;
  constexpr uint64_t kSlabBytes = 128;
  uint64_t with_one = 0;
  for (const uint32_t arenas : {1u, 4u}) {
    MemoryBudget budget;
    const auto engine = HashEngine::Make(
        {.budget = &budget}, {.partitions = 16, .arenas = arenas, .region_bytes = kRegionBytes});
    const uint64_t count = Fill(*engine);
    if (arenas == 1) {
      with_one = count;
      EXPECT_LE(count, kRegionBytes / kSlabBytes);
      EXPECT_GE(count, kRegionBytes / kSlabBytes * 3 / 4);
    } else {
      // Fill() ends when the first of the arenas is full.
      EXPECT_GE(count, with_one * 7 / 2);
    }
    for (uint64_t i = 0; i < count; ++i) {
      Batch batch;
      const std::string key = KeyAt(i);
      batch.Get(key);
      engine->Execute(batch);
      ASSERT_EQ(batch.outcome(0).verdict, Verdict::kDone) << i;
    }
    EXPECT_STREQ(engine->Verify(), nullptr);
  }
}

}  // namespace
}  // namespace skep
