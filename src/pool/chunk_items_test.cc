// Which items are found in a chunk's bytes.
#include "pool/chunk_items.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace skep::pool {
namespace {

class ChunkItemsTest : public testing::Test {
 protected:
  static constexpr uint32_t kChunk = 7;

  // Writes an item; the next one goes behind it.
  void Write(const std::string& key, size_t value_bytes, uint8_t gen) {
    const std::string value(value_bytes, 'v');
    const uint32_t units = UnitsOf(key.size(), value.size());
    WriteItem({.chunk = kChunk, .unit = next_, .gen = gen}, 1, 1, key, value,
              std::span(bytes_).subspan(size_t{next_} * kUnitBytes, size_t{units} * kUnitBytes));
    next_ += units;
  }
  std::string Keys(uint8_t gen) {
    std::string keys;
    for (const ChunkItem& item : ItemsIn(kChunk, gen, bytes_)) keys += item.view.key;
    return keys;
  }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(kChunkBytes);
  uint32_t next_ = 0;
};

TEST_F(ChunkItemsTest, AreFoundOneBehindTheOther) {
  EXPECT_EQ(Keys(0), "");
  Write("a", 10, 0);
  Write("b", 100'000, 0);
  Write("c", 0, 0);
  const auto items = ItemsIn(kChunk, 0, bytes_);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[1].unit, 1u);
  EXPECT_EQ(items[1].units, UnitsOf(1, 100'000));
  EXPECT_EQ(items[2].unit, items[1].unit + items[1].units);
}

TEST_F(ChunkItemsTest, TheLastUnitHasAnItem) {
  next_ = kChunkUnits - 1;
  Write("z", 10, 0);
  EXPECT_EQ(Keys(0), "z");
}

// What a client did not write to its end is passed over, and what a generation before has left.
TEST_F(ChunkItemsTest, WhatDoesNotCheckIsPassedOver) {
  for (const char* const key : {"o", "p", "q", "r", "s"}) Write(key, 1000, 3);
  next_ = 0;
  Write("a", 10, 4);
  const uint32_t torn = next_;
  Write("b", 2000, 4);
  std::memset(bytes_.data() + size_t{torn + 3} * kUnitBytes, 0, kUnitBytes);
  Write("c", 10, 4);
  EXPECT_EQ(Keys(4), "ac");
  EXPECT_EQ(Keys(3), "qrs") << "those that nothing was written over";
}

}  // namespace
}  // namespace skep::pool
