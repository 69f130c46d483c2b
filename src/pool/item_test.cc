#include "pool/item.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"

namespace skep::pool {
namespace {

std::vector<std::byte> ItemOf(const ItemPlace& place, std::string_view key,
                              std::string_view value) {
  std::vector<std::byte> bytes(size_t{UnitsOf(key.size(), value.size())} * kUnitBytes,
                               std::byte{0xee});
  WriteItem(place, 7, 9, key, value, bytes);
  return bytes;
}

constexpr ItemPlace kPlace = {.chunk = 12, .unit = 345, .gen = 6};

TEST(Slot, HasItsParts) {
  const Slot slot(0xff, 254, 0xfe, kChunksMax - 1, kChunkUnits - 2);
  EXPECT_EQ(slot.signature(), 0xff);
  EXPECT_EQ(slot.units(), 254u);
  EXPECT_EQ(slot.gen(), 0xfe);
  EXPECT_EQ(slot.chunk(), kChunksMax - 1);
  EXPECT_EQ(slot.unit(), kChunkUnits - 2);
  EXPECT_EQ(slot.offset(), (kChunkUnits - 2) * 64);
  EXPECT_EQ(Slot(1, 70'000, 0, 0, 0).units(), Slot::kUnitsMax);
  EXPECT_FALSE(Slot());
}

TEST(Item, ReadsWhatWasWritten) {
  for (const size_t key : {0, 1, 31, 32, 4096}) {
    for (const size_t value : {0, 1, 100, 1 << 20}) {
      const auto bytes = ItemOf(kPlace, std::string(key, 'k'), std::string(value, 'v'));
      EXPECT_EQ(UnitsToldBy(std::span(bytes).first(kUnitBytes)), bytes.size() / kUnitBytes);
      const auto item = ReadItem(kPlace, bytes);
      ASSERT_TRUE(item);
      EXPECT_EQ(item->key, std::string(key, 'k'));
      EXPECT_EQ(item->value, std::string(value, 'v'));
      EXPECT_EQ(item->client, 7u);
      EXPECT_EQ(item->sequence, 9u);
    }
  }
}

TEST(Item, IsOfOnePlace) {
  const auto bytes = ItemOf(kPlace, "key", "value");
  for (const ItemPlace place : {ItemPlace{13, 345, 6}, {12, 346, 6}, {12, 345, 7}}) {
    EXPECT_FALSE(ReadItem(place, bytes));
  }
}

// The version is written later than the rest; all other bytes count.
TEST(Item, EveryFlippedBitIsSeen) {
  const auto whole = ItemOf(kPlace, "a key", "some value");
  const size_t used = sizeof(ItemHeader) + 15;
  for (size_t bit = 0; bit < 8 * used; ++bit) {
    auto bytes = whole;
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    const bool is_version = bit / 8 >= offsetof(ItemHeader, version) && bit / 8 < 32;
    EXPECT_EQ(ReadItem(kPlace, bytes).has_value(), is_version) << bit;
  }
}

// A torn read: lines of two items of one place, as a client sees them that reads while another
// writes.
TEST(Item, LinesOfTwoItemsAreNone) {
  const auto a = ItemOf(kPlace, "key", std::string(500, 'a'));
  const auto b = ItemOf(kPlace, "key", std::string(500, 'b'));
  for (size_t mask = 1; mask < (size_t{1} << a.size() / 64) - 1; ++mask) {
    auto torn = a;
    for (size_t line = 0; line < a.size() / 64; ++line) {
      if ((mask >> line & 1) == 0) continue;
      std::copy_n(b.begin() + line * 64, 64, torn.begin() + line * 64);
    }
    EXPECT_FALSE(ReadItem(kPlace, torn)) << mask;
  }
}

TEST(Item, AnyBytesAreRead) {
  SeededRandom random(1);
  for (int i = 0; i < 10'000; ++i) {
    std::vector<std::byte> bytes(random.Below(200));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Below(4));
    EXPECT_FALSE(ReadItem(kPlace, bytes));
    UnitsToldBy(bytes);
  }
}

TEST(Item, LengthsBeyondTheLimitsCannotBe) {
  auto bytes = ItemOf(kPlace, "key", "value");
  reinterpret_cast<ItemHeader*>(bytes.data())->key_bytes = kKeyBytesMax + 1;
  EXPECT_EQ(UnitsToldBy(bytes), 0u);
  reinterpret_cast<ItemHeader*>(bytes.data())->key_bytes = 3;
  reinterpret_cast<ItemHeader*>(bytes.data())->value_bytes = kValueBytesMax + 1;
  EXPECT_EQ(UnitsToldBy(bytes), 0u);
  EXPECT_EQ(UnitsToldBy({}), 0u);
}

}  // namespace
}  // namespace skep::pool
