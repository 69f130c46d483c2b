#include "server/range_args.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace skep {
namespace {

using namespace std::string_literals;

bool Holds(const Range& range, std::string_view key) {
  return range.lo <= key && (range.unbounded || key < range.hi);
}

// The table of the header, for one key, without half-open ranges.
bool AboveMin(const std::string& min, const std::string& key) {
  if (min == "-") return true;
  if (min == "+") return false;
  return min[0] == '[' ? key >= min.substr(1) : key > min.substr(1);
}
bool BelowMax(const std::string& max, const std::string& key) {
  if (max == "+") return true;
  if (max == "-") return false;
  return max[0] == '[' ? key <= max.substr(1) : key < max.substr(1);
}

// Every key of up to `size_max` bytes, each the lowest, a middle or the highest byte.
std::vector<std::string> AllKeys(size_t size_max) {
  std::vector<std::string> keys = {""};
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].size() == size_max) continue;
    for (const char c : {'\0', 'a', '\xff'}) keys.push_back(keys[i] + c);
  }
  return keys;
}

// Goal: a range holds exactly the keys its two bounds allow.
// Method: all pairs of bounds in all forms over short keys, against all slightly longer keys.
TEST(RangeArgs, HoldsWhatTheBoundsAllow) {
  std::vector<std::string> bounds = {"-", "+"};
  for (const std::string& key : AllKeys(2)) {
    bounds.push_back("[" + key);
    bounds.push_back("(" + key);
  }
  const std::vector<std::string> keys = AllKeys(3);
  Scratch scratch;
  for (const std::string& min : bounds) {
    for (const std::string& max : bounds) {
      scratch.Clear();
      const Result<Range> range = ParseRange(min, max, scratch);
      ASSERT_TRUE(range.has_value());
      bool any = false;
      for (const std::string& key : keys) {
        const bool expected = AboveMin(min, key) && BelowMax(max, key);
        any |= expected;
        ASSERT_EQ(Holds(*range, key), expected)
            << testing::PrintToString(min) << " " << testing::PrintToString(max) << " "
            << testing::PrintToString(key);
      }
      if (IsEmpty(*range)) {
        ASSERT_FALSE(any);
        ASSERT_EQ(range->lo, range->hi) << "an empty range has one form";
      }
    }
  }
}

// Goal: a word that is no bound is refused, with a text that begins as Redis's.
TEST(RangeArgs, RefusesOtherForms) {
  Scratch scratch;
  for (const std::string& bad : {""s, "a"s, "--"s, "++"s, "-a"s, "+a"s, " [a"s, "-\0"s, "]a"s}) {
    for (const auto& [min, max] :
         {std::pair(bad, "+"s), std::pair("-"s, bad), std::pair(bad, bad)}) {
      const Result<Range> range = ParseRange(min, max, scratch);
      ASSERT_FALSE(range.has_value()) << min << " " << max;
      EXPECT_EQ(range.error().code(), Code::kInvalidArgument);
      EXPECT_EQ(std::string_view(range.error().what()), kNotABound);
    }
  }
}

// Goal: the two words of a range are bounds, or PREFIX and a prefix of any bytes.
TEST(RangeArgs, TakesAPrefixForBounds) {
  Scratch scratch;
  for (const std::string& prefix : {""s, "a"s, "-"s, "PREFIX"s, "\xff"s}) {
    const Result<Range> range = ParseRangeWords("Prefix", prefix, scratch);
    ASSERT_TRUE(range.has_value());
    for (const std::string& key : {""s, "a"s, "ab"s, "-x"s, "PREFIX"s, "\xff\xff"s}) {
      EXPECT_EQ(Holds(*range, key), key.starts_with(prefix)) << prefix << " " << key;
    }
  }
  EXPECT_TRUE(ParseRangeWords("[a", "+", scratch).has_value());
  EXPECT_FALSE(ParseRangeWords("[a", "prefix", scratch).has_value());
}

}  // namespace
}  // namespace skep
