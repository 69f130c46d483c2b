#include "tools/escape.h"

#include <gtest/gtest.h>

#include <random>

namespace skep {
namespace {

TEST(Escape, Quoted) {
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted(std::string_view("a\"b\\c\n\r\t\0\x7f\xff ~", 13)),
            "\"a\\\"b\\\\c\\n\\r\\t\\x00\\x7f\\xff ~\"");
  EXPECT_EQ(Quoted("\a\b"), "\"\\a\\b\"");
}

TEST(Escape, IsUtf8) {
  for (const char* text : {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x9f\x90\x9d", "\xf4\x8f\xbf\xbf", "a\xc3\xa9z"}) {
    EXPECT_TRUE(IsUtf8(text)) << Quoted(text);
  }
  for (const char* text :
       {"\x80", "\xff", "\xc3", "\xc3z", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xe2\x82",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "a\xe2\x82z"}) {
    EXPECT_FALSE(IsUtf8(text)) << Quoted(text);
  }
  EXPECT_TRUE(IsUtf8(std::string_view("\0", 1)));
}

// The examples of RFC 4648.
TEST(Escape, Base64) {
  const std::pair<const char*, const char*> examples[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  std::string bytes;
  for (const auto& [plain, encoded] : examples) {
    EXPECT_EQ(ToBase64(plain), encoded);
    EXPECT_TRUE(FromBase64(encoded, &bytes));
    EXPECT_EQ(bytes, plain);
  }
  for (const char* wrong :
       {"Z", "Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zm9*", "Zh==", "Zm9=", "=Zm9", "Zm 9"}) {
    EXPECT_FALSE(FromBase64(wrong, &bytes)) << wrong;
  }
}

TEST(Escape, Base64OfAnyBytes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (size_t size = 0; size < 100; ++size) {
    std::string bytes(size, '\0');
    for (char& c : bytes) c = static_cast<char>(rng());
    std::string back;
    ASSERT_TRUE(FromBase64(ToBase64(bytes), &back));
    EXPECT_EQ(back, bytes);
  }
}

}  // namespace
}  // namespace skep
