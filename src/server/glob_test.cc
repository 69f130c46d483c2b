#include "server/glob.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>
#include <string>
#include <vector>

namespace skep {
namespace {

using Class = std::bitset<256>;

struct Element {
  bool star = false;
  Class bytes = {};
};

void AddRange(Class& bytes, char first, char last) {
  int low = static_cast<signed char>(first), high = static_cast<signed char>(last);
  if (low > high) std::swap(low, high);
  for (int c = low; c <= high; ++c) bytes.set(static_cast<uint8_t>(c));
}

// The pattern as a list of sets of bytes: all parsing is done before any matching.
std::vector<Element> Parse(std::string pattern) {
  std::vector<Element> elements;
  const auto take = [&] {
    const char c = pattern.front();
    pattern.erase(0, 1);
    return c;
  };
  while (!pattern.empty()) {
    Element element;
    char c = take();
    if (c == '*') {
      element.star = true;
    } else if (c == '?') {
      element.bytes.set();
    } else if (c == '[') {
      const bool negated = pattern.starts_with('^');
      if (negated) take();
      while (!pattern.empty() && (c = take()) != ']') {
        if (c == '\\' && !pattern.empty()) {
          element.bytes.set(static_cast<uint8_t>(take()));
        } else if (pattern.size() >= 2 && pattern[0] == '-') {
          take();
          AddRange(element.bytes, c, take());
        } else {
          element.bytes.set(static_cast<uint8_t>(c));
        }
      }
      if (negated) element.bytes.flip();
    } else {
      if (c == '\\' && !pattern.empty()) c = take();
      element.bytes.set(static_cast<uint8_t>(c));
    }
    elements.push_back(element);
  }
  return elements;
}

// reach[i]: the first i elements match the text so far. There is no backtracking that could be
// wrong.
bool ReferenceMatch(const std::string& pattern, const std::string& text) {
  if (text.empty()) return pattern.empty() || pattern == "*";
  const std::vector<Element> elements = Parse(pattern);
  std::vector<bool> reach(elements.size() + 1);
  reach[0] = true;
  const auto skip_stars = [&] {
    for (size_t i = 0; i < elements.size(); ++i) {
      if (reach[i] && elements[i].star) reach[i + 1] = true;
    }
  };
  skip_stars();
  for (const char c : text) {
    std::vector<bool> next(reach.size());
    for (size_t i = 0; i < elements.size(); ++i) {
      if (!reach[i]) continue;
      if (elements[i].star)
        next[i] = true;
      else if (elements[i].bytes.test(static_cast<uint8_t>(c)))
        next[i + 1] = true;
    }
    reach = std::move(next);
    skip_stars();
  }
  return reach.back();
}

std::string RandomString(std::mt19937& rng, std::string_view alphabet, size_t size_max) {
  std::string bytes;
  for (size_t left = rng() % (size_max + 1); left > 0; --left) {
    bytes.push_back(alphabet[rng() % alphabet.size()]);
  }
  return bytes;
}

// Goal: the answers are those of the reference for every form of pattern.
// Method: few letters and every special byte, so that classes, escapes and stars nest and break in
// all ways and a good part of the pairs match. A failure prints its seed, pattern and text.
TEST(Glob, AgreesWithReference) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  int matches = 0;
  for (int step = 0; step < 100'000; ++step) {
    const std::string pattern = RandomString(rng, "aab**??[[]]^--\\\xff", 9);
    const std::string text = RandomString(rng, "aaabb]-\\\xff", 6);
    const bool expected = ReferenceMatch(pattern, text);
    ASSERT_EQ(GlobMatch(pattern, text), expected) << "pattern " << pattern << " text " << text;
    matches += expected;
  }
  EXPECT_GT(matches, 1000);
}

// Goal: corner cases are as in Redis.
// Method: the answers of redis-server 7.0.15 on x86-64 to SET text 1, KEYS pattern.
TEST(Glob, AgreesWithRedisOnCorners) {
  using namespace std::string_literals;
  const struct {
    std::string text, pattern;
    bool matches;
  } facts[] = {
      {"", "**", false},
      {"", "*", true},
      {"", "", true},
      {"", "?*", false},
      {"", "[^", false},
      {"a", "[a", true},
      {"[", "[", false},
      {"a", "[^", true},
      {"a", "[a-", true},
      {"-", "[a-", true},
      {"b", "[a-c", true},
      {"]", "[a-]", true},
      {"b", "[c-a]", true},
      {"\\", "\\", true},
      {"a\\", "a\\", true},
      {"\\", "[\\", true},
      {"\xff", "[a-\xff]", true},
      {"z", "[a-\xff]", false},
      {"A", "[a-\xff]", true},
      {"a", "[]a]", false},
      {"x", "[^]", true},
      {"-", "[\\a-z]", true},
      {"b", "[\\a-z]", false},
      {"\\", "[a-\\]", true},
      {"ax", "[a-\\]x", true},
      {"a*b", "a\\*b", true},
      {"\x90", "[\x80-\xa0]", true},
      {"a[", "a[[", true},
      {"^", "[a^]", true},
      {"!", "[!a]", true},
  };
  for (const auto& fact : facts) {
    EXPECT_EQ(GlobMatch(fact.pattern, fact.text), fact.matches)
        << "pattern " << fact.pattern << " text " << fact.text;
  }
}

// Goal: many stars cost no more than |pattern| * |text| steps.
// Method: a pattern on which a matcher that tries every way to share the text among the stars
// needs more steps than there are atoms; ctest's timeout would see it.
TEST(Glob, ManyStarsEnd) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  const std::string text(20'000, 'a');
  EXPECT_FALSE(GlobMatch(pattern + "b", text));
  EXPECT_TRUE(GlobMatch(pattern, text));
}

// Goal: the prefix holds for every match, and `whole` and GlobIsLiteral tell the truth.
// Method: random patterns and texts; texts often start with the prefix.
TEST(Glob, PrefixHoldsForEveryMatch) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (int step = 0; step < 100'000; ++step) {
    const std::string pattern = RandomString(rng, "aab*?[]\\", 6);
    SCOPED_TRACE(testing::Message() << "pattern " << pattern);
    bool whole = false;
    const std::string prefix = LiteralPrefix(pattern, &whole);
    const std::string tail = RandomString(rng, "ab*\\", 3);
    const std::string text = rng() % 4 == 0 ? tail : prefix + tail;
    const bool matches = GlobMatch(pattern, text);
    const bool starts = text.starts_with(prefix);
    ASSERT_TRUE(starts || !matches) << text;
    ASSERT_TRUE(!whole || matches == starts) << text;
    if (GlobIsLiteral(pattern)) {
      ASSERT_FALSE(whole);
      ASSERT_EQ(matches, text == prefix) << text;
      ASSERT_TRUE(GlobMatch(pattern, prefix));
    }
  }
}

// Goal: the prefix is as long as it can be, and the two special forms are recognised.
TEST(Glob, PrefixExamples) {
  const struct {
    std::string_view pattern, prefix;
    bool whole, literal;
  } examples[] = {
      {"", "", false, true},
      {"*", "", true, false},
      {"user:*", "user:", true, false},
      {"user:?*", "user:", false, false},
      {"a\\*b*", "a*b", true, false},
      {"a\\*b", "a*b", false, true},
      {"a**", "a", false, false},
      {"[a]*", "", false, false},
      {"ab\\", "ab\\", false, true},
      {"a]b-^", "a]b-^", false, true},
      {"a\\\\*", "a\\", true, false},
  };
  for (const auto& example : examples) {
    bool whole = !example.whole;
    EXPECT_EQ(LiteralPrefix(example.pattern, &whole), example.prefix) << example.pattern;
    EXPECT_EQ(whole, example.whole) << example.pattern;
    EXPECT_EQ(GlobIsLiteral(example.pattern), example.literal) << example.pattern;
  }
}

}  // namespace
}  // namespace skep
