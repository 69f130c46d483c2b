#include "hash/bucket.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace skep::hash {
namespace {

// An item as the test expects it.
struct Known {
  bool is_pair;
  std::string key;
  std::string value;
  Bucket::Pointer pointer;
  uint32_t slots() const { return is_pair ? Bucket::SlotsFor(key.size() + value.size()) : 1; }
};

std::string RandomBytes(std::mt19937_64& rng, size_t size) {
  std::string bytes(size, '\0');
  // Zeros are as frequent as they are in padding.
  for (char& c : bytes) c = rng() % 3 == 0 ? '\0' : static_cast<char>(rng());
  return bytes;
}

Known RandomPointer(std::mt19937_64& rng) {
  return {.is_pair = false,
          .key = {},
          .value = {},
          .pointer = {.size_class = static_cast<uint8_t>(rng() % 5),
                      .secondary = static_cast<uint32_t>(rng() % 512),
                      .address = 1 + static_cast<SlabAddress>(rng() % kSlabAddressMax)}};
}

Known RandomPair(std::mt19937_64& rng, size_t bytes_max) {
  const size_t bytes = rng() % (bytes_max + 1);
  const size_t key = rng() % (bytes + 1);
  return {.is_pair = true,
          .key = RandomBytes(rng, key),
          .value = RandomBytes(rng, bytes - key),
          .pointer = {}};
}

void Add(Bucket& bucket, const Known& known) {
  if (known.is_pair) {
    bucket.AddPair(known.key, known.value);
  } else {
    bucket.AddPointer(known.pointer);
  }
}

// Asks the bucket everything that it can be asked.
void ExpectHas(const Bucket& bucket, const std::vector<Known>& items, SlabAddress chain) {
  ASSERT_STREQ(bucket.Verify(), nullptr);
  ASSERT_EQ(bucket.chain(), chain);
  uint32_t slot = 0;
  size_t i = 0;
  uint32_t pointers = 0;
  bucket.ForEach([&](BucketItem item) {
    ASSERT_LT(i, items.size());
    const Known& known = items[i++];
    ASSERT_EQ(item.slot, slot);
    ASSERT_EQ(item.slots, known.slots());
    ASSERT_EQ(bucket.IsPair(item), known.is_pair);
    if (known.is_pair) {
      const Bucket::Pair pair = bucket.PairOf(item);
      ASSERT_EQ(pair.key, known.key);
      ASSERT_EQ(pair.value, known.value);
    } else {
      pointers |= 1u << slot;
      const Bucket::Pointer pointer = bucket.PointerAt(slot);
      ASSERT_EQ(pointer.size_class, known.pointer.size_class);
      ASSERT_EQ(pointer.secondary, known.pointer.secondary);
      ASSERT_EQ(pointer.address, known.pointer.address);
      ASSERT_NE(bucket.Match(known.pointer.secondary) & 1u << slot, 0u);
      ASSERT_EQ(bucket.Match(known.pointer.secondary ^ 1) & 1u << slot, 0u);
    }
    slot += item.slots;
  });
  ASSERT_EQ(i, items.size());
  ASSERT_EQ(bucket.used(), slot);
  ASSERT_EQ(bucket.pointers(), pointers);
  // The first of equal keys is found.
  for (const Known& known : items) {
    if (!known.is_pair) continue;
    const BucketItem found = bucket.Find(KeyOf(known.key));
    ASSERT_NE(found.slots, 0u);
    ASSERT_EQ(bucket.PairOf(found).key, known.key);
    std::string_view value;
    ASSERT_TRUE(bucket.FindValue(KeyOf(known.key), &value));
    ASSERT_EQ(value, bucket.PairOf(found).value);
  }
}

// Goal: a pair of any lengths from 0 to 50 bytes is read as it was written, at any slot.
// Method: all of them, behind every number of pointers that leaves room.
TEST(Bucket, EveryLengthOfKeyAndValueAtEverySlot) {
  std::mt19937_64 rng(1);
  for (uint32_t before = 0; before < Bucket::kSlots; ++before) {
    for (size_t bytes = 0; bytes <= (Bucket::kSlots - before) * kSlotBytes; ++bytes) {
      for (size_t key = 0; key <= bytes; ++key) {
        Bucket bucket{};
        std::vector<Known> items;
        for (uint32_t i = 0; i < before; ++i) items.push_back(RandomPointer(rng));
        items.push_back({.is_pair = true,
                         .key = RandomBytes(rng, key),
                         .value = RandomBytes(rng, bytes - key),
                         .pointer = {}});
        for (const Known& known : items) Add(bucket, known);
        ExpectHas(bucket, items, 0);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Goal: a bucket agrees with a list of its items after any sequence of changes.
// Method: random adds, copies from another bucket, removes and changes in place; after every step
// everything is asked. A failure prints its seed.
TEST(Bucket, AgreesWithAList) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  Bucket bucket{};
  std::vector<Known> items;
  SlabAddress chain = 0;
  for (int step = 0; step < 30'000; ++step) {
    const auto at = items.empty() ? 0 : rng() % items.size();
    BucketItem item{};
    size_t i = 0;
    bucket.ForEach([&](BucketItem one) {
      if (i++ == at) item = one;
    });
    const uint64_t lot = rng() % 8;
    if (lot == 0) {
      chain = static_cast<SlabAddress>(rng() % (uint64_t{kSlabAddressMax} + 1));
      bucket.set_chain(chain);
    } else if (lot < 4) {
      const Known known = rng() % 2 == 0 ? RandomPointer(rng) : RandomPair(rng, 50);
      if (known.slots() > bucket.room()) continue;
      if (rng() % 2 == 0) {
        Add(bucket, known);
      } else {
        Bucket other{};
        Add(other, RandomPointer(rng));
        if (known.slots() == Bucket::kSlots) continue;
        Add(other, known);
        bucket.Add(other, other.ItemAt(1));
      }
      items.push_back(known);
    } else if (items.empty()) {
      continue;
    } else if (lot < 7) {
      bucket.Remove(item);
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (items[at].is_pair) {
      const size_t pad = items[at].slots() * 5 - items[at].key.size() - items[at].value.size();
      items[at].value = RandomBytes(rng, items[at].value.size() + pad);
      bucket.SetPair(item, items[at].key, items[at].value);
    }
    ExpectHas(bucket, items, chain);
    if (HasFatalFailure()) return;
  }
}

// Goal: bytes that look like a key at another place, or that are its prefix, are not found.
// Method: values and neighbours that hold the bytes of the key; keys that differ in length alone.
TEST(Bucket, FindsWholeKeysOnly) {
  Bucket bucket{};
  bucket.AddPair("abcde", "fghij");
  bucket.AddPair("abcdefghijkl", "mno");
  bucket.AddPair("", "v");
  for (const std::string_view absent : {"fghij", "abcd", "abcdef", "abcdefgh", "abcdefghijk",
                                        "abcdefghijklm", "abcdefghijkX", "v", "klmno"}) {
    EXPECT_EQ(bucket.Find(KeyOf(absent)).slots, 0u) << absent;
  }
  EXPECT_EQ(bucket.Find(KeyOf("abcde")).slot, 0u);
  EXPECT_EQ(bucket.Find(KeyOf("abcdefghijkl")).slot, 2u);
  EXPECT_EQ(bucket.Find(KeyOf("")).slot, 5u);
  EXPECT_EQ(bucket.Find(KeyOf(std::string_view("\0", 1))).slots, 0u);
}

// Goal: Verify() recognises bytes that are no bucket.
// Method: every bit of a full bucket, of one that is half full and of an empty one is flipped: the
// result is found broken, or can be read without a fault.
TEST(Bucket, AFlippedBitIsFoundOrHarmless) {
  for (const int count : {0, 2, 4}) {
    for (uint32_t bit = 0; bit < 512; ++bit) {
      Bucket bucket{};
      for (int i = 0; i < count; ++i) {
        i % 2 == 0 ? bucket.AddPointer({.size_class = 4, .secondary = 511, .address = 1})
                   : bucket.AddPair("key", "val");
      }
      reinterpret_cast<uint8_t*>(&bucket)[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      if (bucket.Verify() != nullptr) continue;
      bucket.ForEach([&](BucketItem item) {
        if (!bucket.IsPair(item)) return;
        const Bucket::Pair pair = bucket.PairOf(item);
        EXPECT_LE(pair.key.size() + pair.value.size(), item.slots * kSlotBytes);
      });
    }
  }
}

}  // namespace
}  // namespace skep::hash
