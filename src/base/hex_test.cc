// Bytes as hexadecimal digits, and back.
#include "base/hex.h"

#include <gtest/gtest.h>

#include <string>

namespace skep {
namespace {

TEST(Hex, ThereAndBack) {
  const std::string every = [] {
    std::string bytes;
    for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
    return bytes;
  }();
  std::string bytes;
  EXPECT_EQ(ToHex(""), "0x");
  EXPECT_EQ(ToHex(std::string_view("\0k\xff", 3)), "0x006bff");
  EXPECT_TRUE(FromHex(ToHex(every), &bytes));
  EXPECT_EQ(bytes, every);
  EXPECT_TRUE(FromHex("0x", &bytes));
  EXPECT_EQ(bytes, "");
  EXPECT_TRUE(FromHex("0xAbcD", &bytes));
  EXPECT_EQ(bytes, "\xab\xcd");
  for (const char* wrong :
       {"", "00", "0x0", "0x000", "0xg0", "0x0g", "0x-1", "0x+1", "0x 1", "0X00"}) {
    EXPECT_FALSE(FromHex(wrong, &bytes)) << wrong;
  }
}

}  // namespace
}  // namespace skep
