#include "server/bit_args.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace skep {
namespace {

// Goal: bits are counted and found as if looked at one by one.
// Method: random values, mostly of long runs of equal bytes, and random slices. A failure prints
// its seed.
TEST(BitArgs, CountsAndFinds) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (int step = 0; step < 3000; ++step) {
    std::string value(rng() % 40, static_cast<char>(rng() % 2 == 0 ? 0 : 0xff));
    for (uint64_t changes = rng() % 3; changes > 0 && !value.empty(); --changes) {
      value[rng() % value.size()] = static_cast<char>(rng());
    }
    const auto bits = static_cast<int64_t>(8 * value.size());
    const int64_t begin = static_cast<int64_t>(rng() % (8 * value.size() + 1));
    const int64_t end = begin + static_cast<int64_t>(rng()) % (bits - begin + 1);
    int64_t count = 0;
    std::optional<int64_t> first[2];
    for (int64_t at = begin; at < end; ++at) {
      const bool bit = BitsOf(value, static_cast<uint64_t>(at), 1) != 0;
      count += bit ? 1 : 0;
      if (!first[bit]) first[bit] = at;
    }
    const Slice slice{.begin = begin, .end = end};
    ASSERT_EQ(CountBits(value, slice), count) << step;
    ASSERT_EQ(FindBit(value, slice, false), first[0]) << step;
    ASSERT_EQ(FindBit(value, slice, true), first[1]) << step;
  }
}

// Goal: offsets count fields only where there are some, and never wrap around.
TEST(BitArgs, Offsets) {
  EXPECT_EQ(ParseBitOffset("7", 0), 7u);
  EXPECT_EQ(ParseBitOffset("#7", 5), 35u);
  EXPECT_EQ(ParseBitOffset("4294967295", 0), 4294967295u);
  for (const char* const wrong : {"-1", "4294967296", "#1", "a", ""}) {
    EXPECT_FALSE(ParseBitOffset(wrong, 0)) << wrong;
  }
  EXPECT_FALSE(ParseBitOffset("#9223372036854775807", 2));
  EXPECT_FALSE(ParseBitOffset("#-1", 8));
}

}  // namespace
}  // namespace skep
