#include "server/compare_args.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/ascii.h"

namespace skep {
namespace {

std::string Text(Digest digest) {
  const auto text = DigestText(digest);
  return {text.data(), text.size()};
}

// Goal: a digest is what every XXH3 prints, so that clients can compute it themselves.
// Method: the published value for no bytes; the order of the halves, by hand.
TEST(CompareArgs, DigestsHaveTheCanonicalForm) {
  EXPECT_EQ(Text(DigestOf("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(Text({.low = 0x0123456789abcdef, .high = 1}), "00000000000000010123456789abcdef");
}

// Goal: a digest reads back as it was written, in any case; nothing else is one.
TEST(CompareArgs, DigestsReadBack) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  for (int i = 0; i < 1000; ++i) {
    const Digest digest{.low = rng() >> (rng() % 64), .high = rng() >> (rng() % 64)};
    const std::string text = Text(digest);
    ASSERT_EQ(ParseDigest(text), digest) << text;
    ASSERT_EQ(ParseDigest(UpperCase(text)), digest) << text;
    std::string broken = text;
    broken[rng() % broken.size()] = "gG -+x\0"[rng() % 7];
    ASSERT_EQ(ParseDigest(broken), std::nullopt) << broken;
  }
  const std::string good(32, '0');
  EXPECT_TRUE(ParseDigest(good));
  EXPECT_FALSE(ParseDigest(""));
  EXPECT_FALSE(ParseDigest(good.substr(1)));
  EXPECT_FALSE(ParseDigest(good + "0"));
  EXPECT_FALSE(ParseDigest("0x" + good.substr(2)));
}

// Goal: each option becomes its own condition with its operand; another one is left unread.
TEST(CompareArgs, ReadsOneOption) {
  const std::string digest = Text(DigestOf("v"));
  const std::vector<std::pair<std::string_view, Request::When>> options = {
      {"IFEQ", Request::kEquals},
      {"ifne", Request::kDiffers},
      {"IFDEQ", Request::kDigestEquals},
      {"IfDne", Request::kDigestDiffers}};
  for (const auto& [name, when] : options) {
    for (const auto& [second, ignored] : options) {
      const std::vector<std::string_view> words = {name, digest, second, digest};
      CompareOption compare;
      size_t i = 0;
      ASSERT_TRUE(compare.Read(words, i));
      ASSERT_EQ(i, 2u);
      ASSERT_EQ(compare.Read(words, i), name == second);
      Request request{.op = Op::kPut, .other = {}};
      ASSERT_TRUE(compare.Apply(request));
      ASSERT_EQ(request.when, when);
      if (when == Request::kEquals || when == Request::kDiffers) {
        ASSERT_EQ(request.other, digest);
      } else {
        ASSERT_EQ(request.digest, DigestOf("v"));
      }
    }
    CompareOption lone;
    size_t i = 0;
    EXPECT_FALSE(lone.Read(std::vector{name}, i)) << "no operand";
    EXPECT_FALSE(lone.given());
  }
  CompareOption none;
  Request request{.op = Op::kPut, .other = "kept"};
  EXPECT_TRUE(none.Apply(request));
  EXPECT_EQ(request.other, "kept");
  EXPECT_EQ(request.when, 0);

  size_t i = 0;
  CompareOption wrong;
  ASSERT_TRUE(wrong.Read(std::vector<std::string_view>{"IFDEQ", "abc"}, i));
  EXPECT_FALSE(wrong.Apply(request));
}

}  // namespace
}  // namespace skep
