#include "pool/hash_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"
#include "pool/index_memory_test.h"

namespace skep::pool {
namespace {

constexpr uint64_t kLimit = 1000;  // L
constexpr HashIndexOptions kOneBucket = {.first_depth = 0, .read_limit_ns = kLimit};

// An index beside a map. Keys are numbers.
class IndexAndMap {
 public:
  IndexAndMap(uint64_t table, uint64_t overflow, const HashIndexOptions& options)
      : memory_(table, overflow), index_(memory_.Create(options)) {}

  HashIndex& index() { return *index_; }
  uint64_t items() const { return map_.size(); }
  const std::map<uint32_t, Slot>& map() const { return map_; }

  void Set(uint32_t key, uint32_t version) {
    const KeyDigest digest = DigestAt(key);
    const Slot slot = SlotAt(digest, key, version);
    index_->Prefetch(digest);
    const Result<Slot> before = index_->Set(digest, slot);
    if (before) {
      ASSERT_EQ(*before, Current(key));
      map_[key] = slot;
    } else {
      ASSERT_EQ(before.error().code(), Code::kOutOfMemory);
      ASSERT_FALSE(Current(key));
      ++refused_;
    }
  }
  void Remove(uint32_t key) {
    ASSERT_EQ(index_->Remove(DigestAt(key)), Current(key));
    map_.erase(key);
  }
  void Find(uint32_t key) const { ASSERT_EQ(index_->Find(DigestAt(key)), Current(key)); }
  void CheckAll(uint32_t keys) const {
    ASSERT_EQ(index_->Verify(), nullptr);
    ASSERT_EQ(index_->items(), map_.size());
    for (uint32_t key = 0; key < keys; ++key) Find(key);
  }
  // Lets all leftovers and unlinked buckets go.
  void Settle() {
    while (index_->leftovers() + index_->overflow_waiting() != 0) Pass(2 * kLimit);
  }
  void Pass(uint64_t ns) { index_->Maintain(now_ += ns); }
  uint64_t refused() const { return refused_; }

 private:
  Slot Current(uint32_t key) const {
    const auto at = map_.find(key);
    return at == map_.end() ? Slot() : at->second;
  }

  IndexMemory memory_;
  std::unique_ptr<HashIndex> index_;
  std::map<uint32_t, Slot> map_;
  uint64_t now_ = 0;
  uint64_t refused_ = 0;
};

void RandomStep(IndexAndMap& both, Random& random, uint32_t keys, uint32_t step) {
  const auto key = static_cast<uint32_t>(random.Below(keys));
  // Times of many writes and of many removals.
  const uint64_t removals = step / 500 % 2 == 0 ? 2 : 6;
  if (random.Below(8) < removals) {
    both.Remove(key);
  } else {
    both.Set(key, step % kChunkUnits);
  }
  if (random.Chance(1, 4)) both.Pass(random.Below(kLimit));
}

// Goal: the index agrees with a map, and its invariants hold, after any operations.
// Method: few keys in tables of all kinds, among them some without room for chains or for splits.
TEST(HashIndexTest, AgreesWithAMap) {
  constexpr uint32_t kKeys = 120;
  uint64_t refused = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SeededRandom random(seed);
    const auto first_depth = static_cast<uint32_t>(random.Below(3));
    const uint64_t table = (uint64_t{1} << first_depth) + random.Below(60);
    IndexAndMap both(table, random.Below(20),
                     {.first_depth = first_depth,
                      .items_per_bucket = 1 + static_cast<uint32_t>(random.Below(9)),
                      .read_limit_ns = kLimit});
    for (uint32_t step = 0; step < 2000; ++step) {
      ASSERT_NO_FATAL_FAILURE(RandomStep(both, random, kKeys, step));
      ASSERT_NO_FATAL_FAILURE(both.CheckAll(step % 50 == 0 ? kKeys : 0));
    }
    refused += both.refused();
    both.Settle();
    both.CheckAll(kKeys);
  }
  EXPECT_GT(refused, 0u);
}

// Goal: a table that was made large for keys that come has room for them, so that no split has any
// of them to move; in pieces as small as the caller wants. Keys that it has already are found
// throughout.
TEST(HashIndexTest, GrowsAheadOfKeys) {
  constexpr uint32_t kKeys = 10'000;
  constexpr uint32_t kSplits = 100;
  IndexAndMap both(kKeys / 4, kKeys / 10, kOneBucket);
  for (uint32_t key = 0; key < 20; ++key) both.Set(key, 1);
  for (bool is_grown = false; !is_grown;) {
    const uint64_t buckets = both.index().buckets();
    is_grown = both.index().Grow(kKeys, kSplits);
    ASSERT_LE(both.index().buckets() - buckets, kSplits);
    ASSERT_NO_FATAL_FAILURE(both.CheckAll(20));
  }
  EXPECT_EQ(both.index().buckets(), kKeys / 4);
  EXPECT_TRUE(both.index().Grow(2 * kKeys, kSplits)) << "there are no more buckets";
  const uint64_t moved = both.index().leftovers();
  for (uint32_t key = 20; key < kKeys; ++key) both.Set(key, 1);
  EXPECT_EQ(both.index().leftovers(), moved);
  both.Settle();
  EXPECT_EQ(both.index().leftovers(), 0u);
  ASSERT_NO_FATAL_FAILURE(both.CheckAll(kKeys));
}

// Goal: a table of one bucket grows to 10^5 keys and agrees with a map, all the way and back. An
// insertion splits one bucket at most, and that is enough.
TEST(HashIndexTest, GrowsFromOneBucket) {
  constexpr uint32_t kKeys = 100'000;
  SeededRandom random(1);
  const auto below = [&random](uint32_t bound) {
    return static_cast<uint32_t>(random.Below(bound));
  };
  IndexAndMap both(kKeys / 4, kKeys / 10, kOneBucket);
  for (uint32_t key = 0; key < kKeys; ++key) {
    const uint64_t buckets = both.index().buckets();
    ASSERT_NO_FATAL_FAILURE(both.Set(key, 1));
    ASSERT_LE(both.index().buckets(), buckets + 1);
    ASSERT_LE(both.items(), 5 * both.index().buckets());
    if (random.Chance(1, 50)) both.Pass(random.Below(kLimit));
    ASSERT_NO_FATAL_FAILURE(both.Remove(key / 2 + below(10 * kKeys)));
    ASSERT_NO_FATAL_FAILURE(both.Set(below(key + 1), 2));
    if (key % 10'000 == 0) both.CheckAll(0);
  }
  both.CheckAll(kKeys);
  for (uint32_t key = 0; key < kKeys; ++key) ASSERT_NO_FATAL_FAILURE(both.Remove(key));
  both.Settle();
  both.CheckAll(kKeys);
  EXPECT_EQ(both.index().overflow_buckets(), 0u);
}

struct Figures {
  double bytes;    // an item
  double outside;  // items in overflow buckets, of all items
};

Figures FiguresOf(const IndexMemory& memory, const HashIndex& index) {
  uint64_t inside = 0;
  for (const Bucket& bucket : std::span(memory.table).first(index.buckets())) {
    for (const auto& word : bucket.slots) inside += word != 0 ? 1 : 0;
  }
  const auto items = static_cast<double>(index.items());
  return {.bytes = static_cast<double>(index.bytes()) / items,
          .outside = 1 - static_cast<double>(inside) / items};
}

// Goal: the figures that hash_index.h gives.
// Method: they are taken between a number of buckets and twice that number.
TEST(HashIndexTest, BytesAnItem) {
  for (const auto& [items_per_bucket, expected] :
       {std::pair{3u, Figures{54, 0.032}}, {4u, Figures{45, 0.08}}, {5u, Figures{40, 0.14}}}) {
    IndexMemory memory(1 << 14, 1 << 13);
    const auto index = memory.Create(
        {.first_depth = 0, .items_per_bucket = items_per_bucket, .read_limit_ns = kLimit});
    uint64_t now = 0;
    for (uint32_t key = 0; key < items_per_bucket << 14; ++key) {
      const KeyDigest digest = DigestAt(key);
      ASSERT_TRUE(index->Set(digest, SlotAt(digest, key, 1)));
      if (key % 512 != 0) continue;
      while (index->leftovers() + index->overflow_waiting() != 0)
        index->Maintain(now += 2 * kLimit);
      if (key < items_per_bucket << 13) continue;
      const Figures figures = FiguresOf(memory, *index);
      ASSERT_LT(figures.bytes, expected.bytes);
      ASSERT_GT(figures.bytes, 0.95 * expected.bytes);
      ASSERT_LT(figures.outside, expected.outside);
    }
  }
}

// Keys whose index words are given, with tags of their own.
KeyDigest WithIndex(uint64_t index, uint64_t tag) { return {.index = index, .tag = tag}; }

// Goal: without memory, a new key is refused and nothing changes; known keys can be changed. A
// split without memory is put off until it has some. Method: one overflow bucket, and keys that a
// split would all move.
TEST(HashIndexTest, WithoutOverflowBuckets) {
  IndexMemory memory(2, 1);
  const auto index =
      memory.Create({.first_depth = 0, .items_per_bucket = kBucketSlots, .read_limit_ns = kLimit});
  const auto key = [](uint32_t i) { return WithIndex(2 * i + 1, i); };
  const auto set = [&](uint32_t i, uint32_t version) {
    return index->Set(key(i), SlotAt(key(i), i, version)).has_value();
  };
  for (uint32_t i = 0; i < 14; ++i) ASSERT_TRUE(set(i, 1)) << i;
  EXPECT_EQ(index->buckets(), 1u);
  EXPECT_EQ(index->overflow_buckets(), 1u);
  const auto refused = index->Set(key(14), SlotAt(key(14), 14, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kOutOfMemory);
  EXPECT_EQ(refused.error().detail(), 1u);
  EXPECT_TRUE(set(3, 2));
  for (uint32_t i = 0; i < 14; ++i) {
    EXPECT_EQ(index->Find(key(i)), SlotAt(key(i), i, i == 3 ? 2 : 1));
  }
  EXPECT_FALSE(index->Find(key(14)));
  EXPECT_EQ(index->Verify(), nullptr);

  for (uint32_t i = 7; i < 14; ++i) EXPECT_TRUE(index->Remove(key(i)));
  EXPECT_EQ(index->overflow_waiting(), 1u);
  // One that stays: the others fit in one bucket.
  const KeyDigest even = WithIndex(2, 99);
  EXPECT_FALSE(index->Set(even, SlotAt(even, 99, 1)));  // the unlinked bucket waits
  EXPECT_FALSE(index->Maintain(0));
  EXPECT_FALSE(index->Maintain(2 * kLimit));
  EXPECT_EQ(index->overflow_waiting(), 0u);
  EXPECT_TRUE(index->Set(even, SlotAt(even, 99, 1)));
  EXPECT_EQ(index->buckets(), 2u);
  EXPECT_EQ(index->Verify(), nullptr);
}

// Goal: what a split moved stays as it was for 2L from the next Maintain() on, and an update does
// not change it.
TEST(HashIndexTest, LeftoversStayAsTheyWere) {
  IndexMemory memory(2, 1);
  const auto index =
      memory.Create({.first_depth = 0, .items_per_bucket = 1, .read_limit_ns = kLimit});
  const KeyDigest stays = WithIndex(0, 1);
  const KeyDigest moves = WithIndex(1, 2);
  const Slot slot = SlotAt(moves, 1, 1);
  ASSERT_TRUE(index->Set(moves, slot));
  ASSERT_TRUE(index->Set(stays, SlotAt(stays, 0, 1)));
  ASSERT_EQ(index->buckets(), 2u);
  ASSERT_TRUE(index->Set(moves, SlotAt(moves, 1, 2)));
  index->Maintain(5000);
  index->Maintain(5000 + 2 * kLimit - 1);
  EXPECT_EQ(memory.table[0].slots[0], slot.bits());
  EXPECT_EQ(Link(memory.table[0].link).depth(), 1u);
  EXPECT_EQ(index->Find(moves), SlotAt(moves, 1, 2));
  EXPECT_EQ(index->leftovers(), 1u);
  EXPECT_EQ(index->Verify(), nullptr);
  index->Maintain(5000 + 2 * kLimit);
  EXPECT_EQ(memory.table[0].slots[0], 0u);
  EXPECT_EQ(index->leftovers(), 0u);
}

// Goal: a call of Maintain() clears a bounded number of chains, and says that there is more.
TEST(HashIndexTest, MaintainsInPieces) {
  IndexAndMap both(1 << 10, 1 << 10, kOneBucket);
  for (uint32_t key = 0; key < 2000; ++key) both.Set(key, 1);
  both.Pass(0);
  const uint64_t splits = both.index().buckets() - 1;
  uint64_t calls = 1;
  while (both.index().Maintain(2 * kLimit)) ++calls;
  EXPECT_EQ(calls, splits / HashIndex::kMaintainChains + 1);
  EXPECT_EQ(both.index().leftovers(), 0u);
}

// Goal: ForEach shows every item once, and in pieces with splits in between every item at least
// once.
TEST(HashIndexTest, ShowsItsItems) {
  IndexAndMap both(1 << 10, 1 << 10, kOneBucket);
  for (uint32_t key = 0; key < 1000; ++key) both.Set(key, 1);
  std::multiset<uint64_t> seen;
  const auto visit = [&seen](uint32_t index, uint64_t tag, Slot slot) {
    const KeyDigest digest = DigestAt(slot.chunk());
    EXPECT_EQ(index, static_cast<uint32_t>(digest.index));
    EXPECT_EQ(tag, digest.tag);
    seen.insert(slot.bits());
  };
  both.index().ForEach(0, both.index().buckets(), visit);
  EXPECT_EQ(seen.size(), 1000u);
  for (const auto& [key, slot] : both.map()) EXPECT_EQ(seen.count(slot.bits()), 1u);

  seen.clear();
  const auto before = both.map();
  for (uint64_t at = 0, key = 1000; at < both.index().buckets(); ++at, ++key) {
    both.index().ForEach(at, at + 1, visit);
    if (key < 3000) both.Set(static_cast<uint32_t>(key), 1);
  }
  for (const auto& [key, slot] : before) EXPECT_GE(seen.count(slot.bits()), 1u) << key;
}

TEST(HashIndexTest, RefusesWhatCannotBe) {
  IndexMemory memory(4, 1);
  EXPECT_TRUE(HashIndex::Create(memory.Shared(), {.first_depth = 2}));
  EXPECT_FALSE(HashIndex::Create(memory.Shared(), {.first_depth = 3}));
  EXPECT_FALSE(HashIndex::Create(memory.Shared(), {.first_depth = 33}));
  EXPECT_FALSE(HashIndex::Create(memory.Shared(), {.first_depth = 2, .items_per_bucket = 0}));
}

}  // namespace
}  // namespace skep::pool
