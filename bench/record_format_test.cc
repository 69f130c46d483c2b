#include "bench/record_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "bench/zipf.h"

namespace skep::bench {
namespace {

std::string Render(size_t bytes, uint64_t number) {
  std::string key(bytes, '\0');
  KeyFormat(bytes).Render(number, key.data());
  return key;
}

// Goal: YCSB's own keys at 23 bytes, zero padded where the hash is short or the key is long.
TEST(KeyFormat, DecimalIsYcsbs) {
  EXPECT_EQ(Render(23, 0), "user6284781860667377211");
  EXPECT_EQ(Render(26, 0), "user0006284781860667377211");
  for (uint64_t number = 0; number < 1000; ++number) {
    const std::string key = Render(24, number);
    EXPECT_EQ(key.substr(0, 4), "user");
    EXPECT_EQ(std::stoull(key.substr(4)), ScrambleFnv(number));
  }
}

// Goal: short keys are distinct and ordered as their hashes.
TEST(KeyFormat, BinaryKeepsTheOrderOfHashes) {
  for (size_t bytes : {8, 15, 22}) {
    std::set<std::string> keys;
    for (uint64_t number = 0; number < 1000; ++number) {
      const std::string key = Render(bytes, number);
      ASSERT_EQ(key.size(), bytes);
      ASSERT_TRUE(keys.insert(key).second);
      EXPECT_EQ(key < Render(bytes, number + 1), ScrambleFnv(number) < ScrambleFnv(number + 1));
    }
  }
}

// Goal: text keys are distinct, printable at all sizes and ordered as their hashes; the large ones
// are YCSB's.
TEST(KeyFormat, TextIsPrintableAndKeepsTheOrderOfHashes) {
  const auto render = [](size_t bytes, uint64_t number) {
    std::string key(bytes, '\0');
    KeyFormat::Text(bytes).Render(number, key.data());
    return key;
  };
  for (size_t bytes : {8, 11, 16, 22}) {
    std::set<std::string> keys;
    for (uint64_t number = 0; number < 1000; ++number) {
      const std::string key = render(bytes, number);
      ASSERT_EQ(key.size(), bytes);
      ASSERT_TRUE(keys.insert(key).second);
      ASSERT_TRUE(std::ranges::all_of(key, [](char c) { return c > ' ' && c <= '~'; })) << key;
      EXPECT_EQ(key < render(bytes, number + 1), ScrambleFnv(number) < ScrambleFnv(number + 1));
    }
  }
  EXPECT_EQ(render(16, 7).substr(0, 5), "00000");
  EXPECT_EQ(render(23, 0), Render(23, 0));
}

// Goal: random keys are distinct, differ in their first bytes and in their last, and do not depend
// on their length.
TEST(KeyFormat, RandomIsRandomFromTheFirstByteOn) {
  const auto render = [](size_t bytes, uint64_t number) {
    std::string key(bytes, '\0');
    KeyFormat::Random(bytes).Render(number, key.data());
    return key;
  };
  for (size_t bytes : {8, 16, 21}) {
    std::set<std::string> heads;
    std::set<std::string> tails;
    for (uint64_t number = 0; number < 1000; ++number) {
      const std::string key = render(bytes, number);
      heads.insert(key.substr(0, 4));
      tails.insert(key.substr(bytes - 4));
      EXPECT_EQ(key, render(40, number).substr(0, bytes));
    }
    EXPECT_GT(heads.size(), 990u) << bytes;
    EXPECT_GT(tails.size(), 990u) << bytes;
  }
}

// Goal: the keys that people have are of the size and shape that record_format.h says, and all
// different.
TEST(KeyFormat, KindsAreOfOneShape) {
  const std::map<KeyKind, std::string> shapes = {
      {KeyKind::kDecimal, "[0-9]{16}"},
      {KeyKind::kHex, "[0-9a-f]{16}"},
      {KeyKind::kUser, "user:[0-9]{10}:[a-z]{5}"},
      {KeyKind::kUuid, "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"},
      {KeyKind::kUrl, "https://shop[.]example/[a-z]{3}/item/[0-9a-f]{16}"}};
  ASSERT_EQ(shapes.size() + 1, std::size(kKeyKinds));
  for (const auto& [kind, shape] : shapes) {
    const KeyFormat format = KeyFormat::Of(kind, 8);
    const std::regex expected(shape);
    std::set<std::string> keys;
    for (uint64_t number = 0; number < 20'000; ++number) {
      std::string key(format.bytes(), '\0');
      format.Render(number, key.data());
      ASSERT_EQ(format.KeyAt(key.data()), key);
      if (number < 100) {
        ASSERT_TRUE(std::regex_match(key, expected)) << key;
      }
      ASSERT_TRUE(keys.insert(key).second) << key;
    }
    EXPECT_EQ(KeyKindNamed(NameOf(kind)), kind);
  }
  EXPECT_EQ(KeyFormat::Of(KeyKind::kBinary, 24).bytes(), 24u);
  EXPECT_EQ(KeyKindNamed("text"), std::nullopt);
}

// Goal: a mixture has each size equally often, its keys are those of Random cut short, and no key
// begins another. Method: five standard deviations of a binomial.
TEST(KeyFormat, MixedHasEverySize) {
  constexpr uint64_t kKeys = 4000;
  const KeyFormat mixed = KeyFormat::Mixed();
  std::map<size_t, double> counts;
  std::set<std::string> heads;
  for (uint64_t number = 0; number < kKeys; ++number) {
    std::string rendered(mixed.bytes(), '\0');
    mixed.Render(number, rendered.data());
    const std::string key(mixed.KeyAt(rendered.data()));
    std::string random(key.size(), '\0');
    KeyFormat::Random(key.size()).Render(number, random.data());
    EXPECT_EQ(key, random);
    EXPECT_TRUE(heads.insert(key.substr(0, 8)).second);
    ++counts[key.size()];
  }
  ASSERT_EQ(counts.size(), 4u);
  for (const auto& [bytes, count] : counts) {
    EXPECT_TRUE(IsMixedSize(bytes)) << bytes;
    EXPECT_NEAR(count, kKeys / 4.0, 5 * std::sqrt(kKeys * 0.25 * 0.75)) << bytes;
  }
}

// Goal: a mixture of values has each size equally often, and knows its sizes.
TEST(ValuePool, MixedHasEverySize) {
  const ValuePool pool = ValuePool::Mixed(3);
  std::map<size_t, int> counts;
  for (uint64_t index = 0; index < 400; ++index) ++counts[pool.at(index).size()];
  EXPECT_EQ(counts, (std::map<size_t, int>{{8, 100}, {16, 100}, {24, 100}, {32, 100}}));
  for (const auto& [bytes, count] : counts) EXPECT_TRUE(pool.IsSizeOfValue(bytes));
  for (size_t bytes : {0, 7, 12, 40}) EXPECT_FALSE(pool.IsSizeOfValue(bytes)) << bytes;
  EXPECT_FALSE(ValuePool(16, 3).IsSizeOfValue(8));
}

// Goal: values have their size, stay inside the pool, and neighbours differ.
TEST(ValuePool, WindowsHaveTheirSize) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{100'000}}) {
    const ValuePool pool(bytes, 3);
    for (uint64_t index = 0; index < 5000; ++index) ASSERT_EQ(pool.at(index).size(), bytes);
    EXPECT_EQ(pool.at(UINT64_MAX).size(), bytes);
    if (bytes >= 100) {
      EXPECT_NE(pool.at(0), pool.at(1));
    }
  }
}

TEST(ValuePool, EqualSeedsMakeEqualValues) {
  EXPECT_EQ(ValuePool(50, 1).at(9), ValuePool(50, 1).at(9));
  EXPECT_NE(ValuePool(50, 1).at(9), ValuePool(50, 2).at(9));
}

std::string FileOf(const std::string& text) {
  std::string path = testing::TempDir() + "/keys_of_test";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// Goal: the keys of a file are its lines, byte by byte, whatever their sizes and whether or not the
// last one ends.
TEST(KeyFormat, TakesTheLinesOfAFile) {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) {
    if (byte != '\n') all_bytes += static_cast<char>(byte);
  }
  const std::string longest(KeyFile::kKeyBytesMax, 'x');
  const std::vector<std::string> lines = {"b", all_bytes, "a", longest, "\r", "last"};
  for (const std::string end : {"", "\n"}) {
    std::string text;
    for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
    const auto file = KeyFile::Read(FileOf(text + end));
    ASSERT_TRUE(file) << file.error();
    ASSERT_EQ(file->count(), lines.size());
    const KeyFormat format = KeyFormat::OfFile(*file);
    EXPECT_EQ(format.key_bytes(), longest.size());
    std::string rendered(format.bytes(), '?');
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(file->at(i), lines[i]);
      format.Render(i, rendered.data());
      EXPECT_EQ(format.KeyAt(rendered.data()), lines[i]);
    }
  }
}

// Goal: a file that cannot be the keys of a benchmark is refused, with its line.
TEST(KeyFormat, RefusesFilesThatAreNoKeys) {
  const auto complaint = [](const std::string& text) {
    const auto file = KeyFile::Read(FileOf(text));
    return file ? "none" : file.error();
  };
  EXPECT_THAT(complaint(""), testing::HasSubstr("has no keys"));
  EXPECT_THAT(complaint("a\n\nb\n"), testing::HasSubstr("line 2 is empty"));
  EXPECT_THAT(complaint("a\nb\nc\nb\na\n"), testing::HasSubstr("line 4 is like one before"));
  EXPECT_THAT(complaint("a\n" + std::string(KeyFile::kKeyBytesMax + 1, 'x')),
              testing::HasSubstr("line 2 is longer than 4096 bytes"));
  const auto missing = KeyFile::Read(testing::TempDir() + "/no such file");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error(), testing::HasSubstr("has no keys to read"));
}

}  // namespace
}  // namespace skep::bench
