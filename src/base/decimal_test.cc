#include "base/decimal.h"

#include <gtest/gtest.h>

#include <cinttypes>
#include <limits>
#include <random>
#include <string>

namespace skep {
namespace {

using namespace std::string_literals;

// Goal: numbers are read in their one form only.
TEST(Decimal, HasOneForm) {
  EXPECT_EQ(ParseInt64("0"), 0);
  EXPECT_EQ(ParseInt64("-1"), -1);
  EXPECT_EQ(ParseInt64("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(ParseInt64("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(ParseUint64("18446744073709551615"), UINT64_MAX);
  for (const std::string& bad :
       {""s, "-"s, "+1"s, " 1"s, "1 "s, "01"s, "00"s, "-0"s, "-01"s, "1.0"s, "1e3"s, "0x1"s, "--1"s,
        "1\0"s, "9223372036854775808"s, "-9223372036854775809"s, "99999999999999999999"s}) {
    EXPECT_EQ(ParseInt64(bad), std::nullopt) << bad;
  }
  for (const std::string& bad : {""s, "-1"s, "-0"s, "01"s, "18446744073709551616"s}) {
    EXPECT_EQ(ParseUint64(bad), std::nullopt) << bad;
  }
}

// Goal: a text is accepted if and only if printing the number gives it back.
// Method: random short texts out of digits and signs; the number comes from scanf, which is lax.
TEST(Decimal, PrintsAsItWasRead) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (int step = 0; step < 100'000; ++step) {
    std::string text;
    for (size_t left = rng() % 6; left > 0; --left) text += "0012-+ 9"[rng() % 8];
    int64_t lax = 0;
    const bool canonical =
        std::sscanf(text.c_str(), "%" SCNd64, &lax) == 1 && std::to_string(lax) == text;
    ASSERT_EQ(ParseInt64(text), canonical ? std::optional(lax) : std::nullopt) << text;
  }
}

// Goal: a number that is written reads back, within the bound.
TEST(Decimal, ReadsAsItWasWritten) {
  for (const int64_t value :
       {int64_t{0}, int64_t{7}, int64_t{9}, int64_t{10}, int64_t{-1},
        std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    char text[kDecimalBytesMax];
    EXPECT_EQ(ParseInt64({text, WriteDecimal(text, value)}), value);
  }
}

}  // namespace
}  // namespace skep
