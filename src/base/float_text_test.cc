#include "base/float_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace skep {
namespace {

// Goal: the texts are those of Redis.
// Method: texts that people write and those at the edges, read and written again.
TEST(FloatText, RoundTrips) {
  const std::pair<std::string_view, std::string_view> texts[] = {
      {"10.5", "10.5"},     {"3", "3"},         {"3.0", "3"},     {"-0", "0"},
      {"-0.0", "0"},        {"5.0e3", "5000"},  {"1e-2", "0.01"}, {"0x10", "16"},
      {"+1.25", "1.25"},    {"-1.25", "-1.25"}, {"1e-20", "0"},   {"-1e-20", "0"},
      {"100000", "100000"}, {"0.1", "0.1"},     {".5", "0.5"},    {"1e20", "100000000000000000000"},
  };
  for (const auto& [text, written] : texts) {
    const auto number = ParseLongDouble(text);
    ASSERT_TRUE(number) << text;
    EXPECT_EQ(TextOf(*number), written) << text;
  }
}

// Goal: the largest number has all its digits; what is no number is none.
TEST(FloatText, Edges) {
  const long double largest = std::numeric_limits<long double>::max();
  EXPECT_EQ(ParseLongDouble(TextOf(largest)), largest);
  EXPECT_TRUE(ParseLongDouble("inf"));
  const std::string zero_inside("1\0", 2);
  const std::string too_long(kFloatTextBytesMax, '1');
  for (const std::string& text :
       {std::string(), std::string(" 1"), std::string("1 "), std::string("abc"), std::string("nan"),
        std::string("1e99999"), std::string("1e-99999"), std::string("1.2.3"), zero_inside,
        too_long}) {
    EXPECT_FALSE(ParseLongDouble(text)) << text.substr(0, 20);
    EXPECT_FALSE(ParseDouble(text)) << text.substr(0, 20);
  }
  EXPECT_FALSE(ParseDouble("1e999"));
  EXPECT_EQ(ParseDouble("-0.5e1"), -5.0);
  // These forms are read by strtod alone; minus zero keeps its sign.
  EXPECT_EQ(ParseDouble("+1.25"), 1.25);
  EXPECT_EQ(ParseDouble("0x10"), 16.0);
  EXPECT_EQ(ParseDouble("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(ParseDouble("5e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::signbit(ParseDouble("-0").value_or(1)));
}

}  // namespace
}  // namespace skep
