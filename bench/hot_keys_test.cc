#include "bench/hot_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace skep::bench {
namespace {

std::string KeyOf(const KeyFormat& format, uint64_t number) {
  std::string rendered(format.bytes(), '\0');
  format.Render(number, rendered.data());
  return std::string(format.KeyAt(rendered.data()));
}

// Goal: the keys are the first ones of all, in order.
// Method: all keys sorted.
TEST(HotKeys, AreTheFirstInOrder) {
  constexpr uint64_t kItems = 700;
  for (const KeyFormat format : {KeyFormat::Random(8), KeyFormat::Random(24), KeyFormat::Mixed()}) {
    std::map<std::string, uint64_t> sorted;
    for (uint64_t number = 0; number < kItems; ++number) sorted[KeyOf(format, number)] = number;
    ASSERT_EQ(sorted.size(), kItems);
    std::vector<uint64_t> numbers;
    for (const auto& [key, number] : sorted) numbers.push_back(number);
    for (uint32_t count : {1, 32, 700, 1000}) {
      const std::vector<uint64_t> first = FirstKeys(format, kItems, count);
      ASSERT_EQ(first.size(), std::min<uint64_t>(count, kItems));
      EXPECT_TRUE(std::ranges::equal(first, std::span(numbers).first(first.size())));
    }
  }
}

// Goal: all of these keys are read, and no others.
TEST(HotKeys, AreAllRead) {
  const KeyFormat format = KeyFormat::Random(16);
  const std::vector<uint64_t> numbers = {7, 3, 11};
  OpStream stream(format);
  HotKeys(numbers, 1).Fill(stream, 200);
  std::map<std::string, int> reads;
  for (size_t i = 0; i < stream.size(); ++i) {
    EXPECT_EQ(stream.at(i).kind, OpKind::kRead);
    ++reads[std::string(stream.at(i).key)];
  }
  EXPECT_EQ(reads.size(), numbers.size());
  for (uint64_t number : numbers) EXPECT_GT(reads[KeyOf(format, number)], 20);
}

}  // namespace
}  // namespace skep::bench
