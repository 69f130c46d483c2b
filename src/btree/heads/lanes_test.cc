#include "btree/heads/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>

#include "base/random.h"
#include "btree/heads/extract_bits.h"
#include "btree/heads/squeeze_letters.h"

namespace skep::btree {
namespace {

// Values at which signed and unsigned, and saturated and other, arithmetic differ.
constexpr uint16_t kEdges[] = {0, 1, 2, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffd, 0xfffe, 0xffff};

uint16_t Edge(Random& random) { return kEdges[random.Below(std::size(kEdges))]; }

template <size_t kCount>
uint32_t CountBelow(const std::array<uint16_t, kCount>& numbers, uint16_t bound) {
  return static_cast<uint32_t>(
      std::ranges::count_if(numbers, [&](uint16_t number) { return number < bound; }));
}

// Goal: numbers are counted as plain loops count them, at any alignment of numbers in memory.
// Method: each edge against each bound at each place alone; then random edges at all places.
TEST(Lanes, CountAsPlainLoops) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  std::array<uint16_t, 33> room;
  for (size_t shift = 0; shift < 2; ++shift) {
    uint16_t* const at = room.data() + shift;
    const auto expect_counts = [&](uint16_t bound) {
      std::array<uint16_t, 32> numbers;
      std::copy_n(at, 32, numbers.begin());
      ASSERT_EQ(CountBelow32(at, bound), CountBelow(numbers, bound)) << bound;
      std::array<uint16_t, 8> first;
      std::copy_n(at, 8, first.begin());
      ASSERT_EQ(CountBelow8(at, bound), CountBelow(first, bound)) << bound;
    };
    for (const uint16_t number : kEdges) {
      for (size_t place = 0; place < 32; ++place) {
        for (const uint16_t other : {uint16_t{0}, uint16_t{0xffff}}) {
          std::fill_n(at, 32, other);
          at[place] = number;
          for (const uint16_t bound : kEdges) ASSERT_NO_FATAL_FAILURE(expect_counts(bound));
        }
      }
    }
    for (int round = 0; round < 20000; ++round) {
      std::generate_n(at, 32, [&] { return Edge(random); });
      ASSERT_NO_FATAL_FAILURE(expect_counts(Edge(random)));
    }
  }
}

// Goal: bytes below a bound, and equal bytes, are counted as plain loops count them.
// Method: random bytes near the ends and the middle of their range, against plain loops.
TEST(Lanes, BytesAsPlainLoops) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  constexpr uint8_t kByteEdges[] = {0, 1, 0x7e, 0x7f, 0x80, 0x81, 0xfe, 0xff};
  const auto edge = [&] { return kByteEdges[random.Below(std::size(kByteEdges))]; };
  for (int round = 0; round < 20000; ++round) {
    std::array<uint8_t, 33> room;
    std::ranges::generate(room, edge);
    const uint8_t* const bytes = room.data() + random.Below(2);
    const auto* const at = reinterpret_cast<const std::byte*>(bytes);
    const uint8_t bound = edge();
    const auto is_below = [&](uint8_t byte) { return byte < bound; };
    ASSERT_EQ(CountBytesBelow7(at, bound), std::count_if(bytes, bytes + 7, is_below));
    ASSERT_EQ(CountBytesBelow24(at, bound), std::count_if(bytes, bytes + 24, is_below));
    std::array<uint64_t, 3> words;
    std::memcpy(words.data(), bytes, sizeof(words));
    uint32_t equal = 0;
    for (uint32_t i = 0; i < 24; ++i) equal |= uint32_t{bytes[i] == bound} << i;
    ASSERT_EQ(EqualBytes24(words[0], words[1], words[2], bound), equal);
  }
}

// Goal: each bit says whether the number at its place is the one looked for.
TEST(Lanes, EqualHasABitForEachNumber) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (int round = 0; round < 20000; ++round) {
    const uint16_t number = Edge(random);
    std::array<uint16_t, 8> numbers;
    std::array<uint64_t, 2> words = {};
    uint32_t expected = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      numbers[i] = Edge(random);
      words[i / 4] |= uint64_t{numbers[i]} << (16 * (i % 4));
      expected |= uint32_t{numbers[i] == number} << i;
    }
    ASSERT_EQ(Equal8(words[0], words[1], number), expected) << number;
  }
}

// Goal: places are those of a stable sort of the first numbers, whatever lies behind these; equal
// neighbours are found among the first numbers only.
// Method: few values, so that many are equal, up to the largest that is allowed; plain code says
// the same.
TEST(Lanes, PlacesAreThoseOfAStableSort) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (int round = 0; round < 20000; ++round) {
    std::array<uint16_t, 24> numbers;
    const auto count = static_cast<uint32_t>(random.Below(numbers.size() + 1));
    const uint64_t values = 1 + random.Below(random.Chance(1, 2) ? 30 : 0x8000);
    for (uint32_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<uint16_t>(random.Below(values));
      if (random.Chance(1, 8)) numbers[i] = random.Chance(1, 2) ? 0 : 0x7fff;
      if (i >= count) numbers[i] = Edge(random);
    }
    std::array<uint16_t, 24> places;
    PlacesAmong24(numbers.data(), count, places.data());
    std::array<uint16_t, 24> sorted = numbers;
    for (uint32_t i = 0; i < count; ++i) {
      uint16_t before = 0;
      for (uint32_t j = 0; j < count; ++j) {
        before += numbers[j] < numbers[i] || (numbers[j] == numbers[i] && j < i);
      }
      ASSERT_EQ(places[i], before) << i << " of " << count;
      sorted[before] = numbers[i];
    }
    if (count == 0) continue;
    const bool has =
        std::adjacent_find(sorted.begin(), sorted.begin() + count) != sorted.begin() + count;
    ASSERT_EQ(HasEqualNeighbors24(sorted.data(), count), has) << count;
  }
}

// Goal: of ascending numbers, those that are not above a bound are counted as a plain loop counts
// them, also where signed and unsigned order differ, and where many are equal.
TEST(Lanes, CountNotAbove) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  const auto edge = [&] {
    constexpr uint64_t kEnds[] = {0, 1, INT64_MAX, uint64_t{1} << 63, UINT64_MAX - 1, UINT64_MAX};
    return random.Chance(1, 2) ? kEnds[random.Below(std::size(kEnds))] : random.Next();
  };
  for (int round = 0; round < 20000; ++round) {
    std::array<uint64_t, 16> numbers;
    std::ranges::generate(numbers, edge);
    std::ranges::sort(numbers);
    for (const uint64_t bound : {edge(), numbers[random.Below(16)]}) {
      const auto expected =
          std::ranges::count_if(numbers, [&](uint64_t number) { return number <= bound; });
      ASSERT_EQ(CountNotAbove16(numbers.data(), bound), static_cast<uint32_t>(expected));
    }
  }
}

// Goal: with an instruction and without, the bits of a mask are put side by side in their order.
// Method: random masks, with runs of all lengths, against bits taken one by one.
TEST(Lanes, ExtractsBits) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (int round = 0; round < 20000; ++round) {
    const uint64_t word = random.Next();
    uint64_t mask = random.Next();
    if (random.Chance(1, 2)) mask &= random.Next();
    if (random.Chance(1, 2)) mask |= ~uint64_t{0} >> random.Below(64);
    if (random.Chance(1, 2)) mask &= ~uint64_t{0} << random.Below(64);
    if (random.Chance(1, 100)) mask = random.Chance(1, 2) ? 0 : ~uint64_t{0};
    uint64_t expected = 0;
    int at = 0;
    for (int bit = 0; bit < 64; ++bit) {
      if ((mask >> bit & 1) != 0) expected |= (word >> bit & 1) << at++;
    }
    const auto [zero, extracted] = ExtractBits(0, word, mask);
    ASSERT_EQ(zero, 0u);
    ASSERT_EQ(extracted, expected) << std::hex << word << ", " << mask;
    ASSERT_EQ(ExtractBitsByRuns(word, mask), expected) << std::hex << word << ", " << mask;
  }
}

// Goal: squeezing tells the sixteen digits apart in four bits, and never changes the order of two
// words.
// Method: every byte at every place; and pairs of words of bytes near the ends of the gap, which
// begin alike.
TEST(Lanes, SqueezedLettersAreNextToDigits) {
  const std::string digits = "0123456789abcdef";
  for (int at = 0; at < 64; at += 8) {
    for (uint64_t byte = 0; byte < 256; ++byte) {
      const bool is_text = byte < '0' || digits.find(static_cast<char>(byte)) != std::string::npos;
      ASSERT_EQ(IsHexadecimal(byte << at), is_text) << byte;
    }
    for (size_t digit = 0; digit < digits.size(); ++digit) {
      const uint64_t word = uint64_t{static_cast<uint8_t>(digits[digit])} << at;
      ASSERT_EQ(SqueezeLetters(word) >> at, 0x30 + digit);
    }
  }
}
TEST(Lanes, SqueezingKeepsTheOrderOfWords) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  const std::string alphabet = {'\0', '0', '4', '9', ':', 'Z', '`', 'a', 'b', 'f', 'g', '\xff'};
  for (int round = 0; round < 100'000; ++round) {
    uint64_t a = 0;
    for (int i = 0; i < 8; ++i) {
      a = a << 8 | static_cast<uint8_t>(alphabet[random.Below(alphabet.size())]);
    }
    uint64_t b = a;
    for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
      const uint64_t at = 8 * random.Below(8);
      b &= ~(uint64_t{0xff} << at);
      b |= uint64_t{static_cast<uint8_t>(alphabet[random.Below(alphabet.size())])} << at;
    }
    const bool is_kept =
        a <= b ? SqueezeLetters(a) <= SqueezeLetters(b) : SqueezeLetters(a) >= SqueezeLetters(b);
    ASSERT_TRUE(is_kept) << std::hex << a << ", " << b;
  }
}

}  // namespace
}  // namespace skep::btree
