// Goal: a table agrees with std::map after any sequence of additions, erasures and moves, for every
// size of keys and values.
#include "hashleaf/table.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <random>

namespace skep::hashleaf {

template <typename K>
struct TablePeer {
  static void ForgetBits(Table<K>& table) { std::memset(table.bits_, 0, table.bitmap_.bytes()); }
};

namespace {

template <typename K>
class TableTest : public testing::Test {
 protected:
  using Value = std::array<char, kValueBytesMax>;
  using Model = std::map<K, Value>;

  static Format FormatOf(uint32_t value_bytes) {
    return {.key_bytes = sizeof(K),
            .value_bytes = value_bytes,
            .secret = 0x1234567890abcdef,
            .chunk_bytes = 16 * 1024};
  }
  static Value ValueOf(uint64_t number) {
    Value value{};
    std::memcpy(value.data(), &number, sizeof(number));
    std::memcpy(value.data() + 8, &number, sizeof(number));
    return value;
  }
  // Returns keys of which some are near zero, some near the largest key, some anywhere.
  K AnyKey(uint64_t range) {
    const uint64_t lot = rng_() % range;
    switch (rng_() % 3) {
      case 0:
        return static_cast<K>(lot);
      case 1:
        return static_cast<K>(kKeyMax<K> - lot);
      default:
        return static_cast<K>(static_cast<K>(lot) * static_cast<K>(0x9e3779b97f4a7c15));
    }
  }
  static uint64_t Hash(K key, const Format& format) { return HashOf(key, format.secret); }

  static void ExpectHolds(const Table<K>& table, const Model& model, const Format& format) {
    ASSERT_STREQ(table.Verify(), nullptr);
    ASSERT_EQ(table.items(), model.size());
    for (const auto& [key, value] : model) {
      const std::byte* const found = table.Find(key, Hash(key, format));
      ASSERT_NE(found, nullptr);
      ASSERT_EQ(std::memcmp(found, value.data(), format.value_bytes), 0);
    }
    Model seen;
    table.ForEach([&](K key, const std::byte* value) {
      std::memcpy(seen[key].data(), value, format.value_bytes);
    });
    ASSERT_EQ(seen.size(), model.size());
  }

  MemoryBudget budget_;
  Memory memory_{budget_};
  std::mt19937_64 rng_{std::random_device{}()};
};

using Keys = testing::Types<uint32_t, uint64_t, Key128>;
TYPED_TEST_SUITE(TableTest, Keys);

TYPED_TEST(TableTest, AgreesWithModel) {
  using K = TypeParam;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  this->rng_.seed(seed);
  for (const uint32_t value_bytes : {4u, 8u, 16u}) {
    const Format format = this->FormatOf(value_bytes);
    Table<K> table(this->memory_, format);
    ASSERT_TRUE(table.Resize(Table<K>::kBytesMin, Arena::Limit::kObey));
    typename TestFixture::Model model;
    for (int step = 0; step < 4000; ++step) {
      const K key = this->AnyKey(300);
      const uint64_t hash = this->Hash(key, format);
      std::byte* const found = table.Find(key, hash);
      ASSERT_EQ(found != nullptr, model.contains(key));
      const auto value = this->ValueOf(this->rng_());
      switch (this->rng_() % 4) {
        case 0:
          ASSERT_EQ(table.Erase(key, hash), model.erase(key) == 1);
          break;
        case 1:
          if (step % 500 == 1) table.Rehash();
          break;
        default:
          if (found != nullptr) {
            CopyValue(found, value.data(), value_bytes);
          } else if (!table.Add(key, hash, value.data())) {
            ASSERT_TRUE(
                table.Resize(Table<K>::NextBytes(format, table.bytes()), Arena::Limit::kObey));
            ASSERT_TRUE(table.Add(key, hash, value.data()));
          }
          model[key] = value;
      }
      if (step % 200 == 0) this->ExpectHolds(table, model, format);
    }
    this->ExpectHolds(table, model, format);
    table.Clear();
    this->ExpectHolds(table, {}, format);
  }
}

// Goal: tables fill up as far as they say, and absent keys are not found.
TYPED_TEST(TableTest, FillsUp) {
  using K = TypeParam;
  for (const uint32_t value_bytes : {4u, 8u, 16u}) {
    const Format format = this->FormatOf(value_bytes);
    Table<K> table(this->memory_, format);
    ASSERT_TRUE(table.Resize(64 * 1024, Arena::Limit::kObey));
    uint32_t refused = 0;
    for (uint32_t i = 0; table.items() < table.items_max() && refused < 100; ++i) {
      const K key = static_cast<K>(i) * 3;
      const auto value = this->ValueOf(i);
      if (!table.Add(key, this->Hash(key, format), value.data())) ++refused;
    }
    // By chance some keys may be refused before.
    EXPECT_LT(refused, 100u) << table.items() << " of " << table.items_max();
    ASSERT_STREQ(table.Verify(), nullptr);
    for (uint32_t i = 0; i < 10'000; ++i) {
      const K key = static_cast<K>(i) * 3 + 1;
      ASSERT_EQ(table.Find(key, this->Hash(key, format)), nullptr);
    }
  }
}

// Goal: a search trusts the bitmap: if it has not found its key in the first choice it looks at the
// second one only if the key's bit is set. And few bits are set beside those of keys, so that few
// searches look in vain.
// Method: the bitmap of a table is cleared behind its back: keys in their first choice are still
// found, and others are not.
TYPED_TEST(TableTest, TheBitmapSparesTheSecondLook) {
  using K = TypeParam;
  const Format format = this->FormatOf(8);
  Table<K> table(this->memory_, format);
  ASSERT_TRUE(table.Resize(64 * 1024, Arena::Limit::kObey));
  std::vector<K> keys;
  for (uint32_t i = 0; table.items() < table.items_max() * 3 / 4; ++i) {
    const K key = static_cast<K>(i) * 3;
    const auto value = this->ValueOf(i);
    if (table.Add(key, this->Hash(key, format), value.data())) keys.push_back(key);
  }
  int maybe = 0;
  constexpr int kAbsent = 10'000;
  for (uint32_t i = 0; i < kAbsent; ++i) {
    maybe += table.MayHave(this->Hash(static_cast<K>(i) * 3 + 1, format)) ? 1 : 0;
  }
  // A bucket has 16 bits, of which at most one is set for each of its keys, and at most eight keys.
  EXPECT_LT(maybe, kAbsent / 2);
  EXPECT_GT(maybe, 0);

  TablePeer<K>::ForgetBits(table);
  int second = 0;
  for (const K key : keys) {
    const uint64_t hash = this->Hash(key, format);
    const std::byte* const first = table.FindFirst(key, hash);
    ASSERT_EQ(table.Find(key, hash), first);
    second += first == nullptr ? 1 : 0;
  }
  EXPECT_GT(second, 0);
}

// Goal: bits of erased keys are cleared in the end.
TYPED_TEST(TableTest, BitsOfErasedKeysAreTakenBack) {
  using K = TypeParam;
  const Format format = this->FormatOf(8);
  Table<K> table(this->memory_, format);
  ASSERT_TRUE(table.Resize(64 * 1024, Arena::Limit::kObey));
  const auto key_of = [](uint32_t i) { return static_cast<K>(i) * 3; };
  const uint32_t keys = table.items_max() / 2;
  for (uint32_t i = 0; i < keys; ++i) {
    const auto value = this->ValueOf(i);
    ASSERT_TRUE(table.Add(key_of(i), this->Hash(key_of(i), format), value.data()));
  }
  const auto bits = [&] {
    uint32_t set = 0;
    for (uint32_t i = 0; i < keys; ++i) {
      set += table.MayHave(this->Hash(key_of(i), format)) ? 1 : 0;
    }
    return set;
  };
  EXPECT_EQ(bits(), keys);
  for (uint32_t i = 0; i < keys; ++i) {
    ASSERT_TRUE(table.Erase(key_of(i), this->Hash(key_of(i), format)));
  }
  EXPECT_LT(bits(), keys);
}

// Goal: a split moves exactly the upper pairs, a merge brings them back.
TYPED_TEST(TableTest, MovesPairs) {
  using K = TypeParam;
  const Format format = this->FormatOf(8);
  Table<K> lower(this->memory_, format);
  Table<K> upper(this->memory_, format);
  ASSERT_TRUE(lower.Resize(64 * 1024, Arena::Limit::kObey));
  ASSERT_TRUE(upper.Resize(64 * 1024, Arena::Limit::kObey));
  typename TestFixture::Model model;
  for (int i = 0; i < 1000; ++i) {
    const K key = this->AnyKey(100'000);
    const auto value = this->ValueOf(this->rng_());
    if (!model.emplace(key, value).second) continue;
    ASSERT_TRUE(lower.Add(key, this->Hash(key, format), value.data()));
  }
  const K middle = std::next(model.begin(), 400)->first;
  lower.MoveAbove(middle, upper);
  typename TestFixture::Model low(model.begin(), std::next(model.begin(), 401));
  typename TestFixture::Model high(std::next(model.begin(), 401), model.end());
  this->ExpectHolds(lower, low, format);
  this->ExpectHolds(upper, high, format);
  lower.MoveAll(upper);
  this->ExpectHolds(lower, model, format);
  this->ExpectHolds(upper, {}, format);
}

// Goal: the kernels that compare slots agree with a plain loop.
TYPED_TEST(TableTest, ComparesAllSlots) {
  using K = TypeParam;
  alignas(64) std::array<std::byte, Format::kBucketBytes> line;
  for (int round = 0; round < 2000; ++round) {
    const Format format = this->FormatOf(4);
    for (uint32_t slot = 0; slot < format.slots; ++slot) {
      const K key = this->AnyKey(4);
      std::memcpy(line.data() + slot * sizeof(K), &key, sizeof(K));
    }
    K first = this->AnyKey(4);
    K last = this->AnyKey(4);
    if (last < first) std::swap(first, last);
    uint32_t equal = 0;
    uint32_t within = 0;
    for (uint32_t slot = 0; slot < format.slots; ++slot) {
      K key;
      std::memcpy(&key, line.data() + slot * sizeof(K), sizeof(K));
      equal |= uint32_t{key == first} << slot;
      within |= uint32_t{first <= key && key <= last} << slot;
    }
    ASSERT_EQ(SlotsWith(line.data(), first, format.slots), equal);
    ASSERT_EQ(SlotsWithin(line.data(), first, last, format.slots), within);
  }
}

// Goal: a bound of any length divides keys as the order of bytes does.
TYPED_TEST(TableTest, BoundsOfAnyLength) {
  using K = TypeParam;
  const auto bytes_of = [](K key) {
    std::string bytes(sizeof(K), '\0');
    StoreKey(bytes.data(), key);
    return bytes;
  };
  for (int round = 0; round < 5000; ++round) {
    const K key = this->AnyKey(3);
    std::string bound = bytes_of(this->AnyKey(3));
    bound.resize(this->rng_() % (sizeof(K) + 3), static_cast<char>(this->rng_() % 2));
    const auto from = FirstKeyFrom<K>(bound);
    ASSERT_EQ(from && key >= *from, bytes_of(key) >= bound);
    const auto to = LastKeyTo<K>(bound);
    ASSERT_EQ(to && key <= *to, bytes_of(key) <= bound);
    ASSERT_EQ(LoadKey<K>(bytes_of(key).data()), key);
  }
}

}  // namespace
}  // namespace skep::hashleaf
