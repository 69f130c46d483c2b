#include "wire/inline_request.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>

namespace skep {
namespace {

using Words = std::vector<std::string>;

// Returns nullopt if the quotes are wrong. The line is given in a heap block of its exact size, so
// that
// AddressSanitizer sees any look behind its end.
std::optional<Words> Split(std::string_view line) {
  const std::vector<char> exact(line.begin(), line.end());
  std::unique_ptr<char[]> unquoted;
  std::vector<std::string_view> args;
  if (!SplitInlineRequest({exact.data(), exact.size()}, unquoted, args)) return std::nullopt;
  return Words(args.begin(), args.end());
}

bool CanStandBare(const std::string& word) {
  return !word.empty() && word.find_first_of(" \t\n\v\f\r\"'") == std::string::npos;
}

std::string SingleQuoted(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("\\'") : std::string(1, c);
  return quoted + "'";
}

// The word with each byte in one of the ways in which it can be written between double quotes.
std::string DoubleQuoted(const std::string& word, std::mt19937& rng) {
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr std::string_view kUpperHex = "0123456789ABCDEF";
  constexpr std::string_view kNamed = "\nn\rr\tt\bb\aa";
  std::string quoted = "\"";
  for (const char c : word) {
    const size_t named = kNamed.find(c);
    if (named % 2 == 0 && rng() % 2) {
      quoted += {'\\', kNamed[named + 1]};
    } else if (rng() % 4 == 0) {
      const std::string_view digits = rng() % 2 ? kHex : kUpperHex;
      const auto byte = static_cast<unsigned char>(c);
      quoted += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    } else if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// False if a final backslash would escape the closing single quote.
bool CanBeSingleQuoted(const std::string& word) { return !word.ends_with('\\'); }

std::string RandomWord(std::mt19937& rng) {
  constexpr std::string_view kSpecial = " \t\n\v\f\r\"'\\xn41";
  std::string word(rng() % 6, '\0');
  for (char& c : word) c = rng() % 3 ? kSpecial[rng() % kSpecial.size()] : static_cast<char>(rng());
  return word;
}

// Goal: any words, quoted in any way that the rules allow, are read back.
// Method: random words of special bytes, written bare, in single or in double quotes, with the
// escapes chosen at random.
TEST(InlineRequest, SplitsWhatWasQuoted) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (int round = 0; round < 3000; ++round) {
    Words words(rng() % 5);
    std::string line;
    for (std::string& word : words) {
      word = RandomWord(rng);
      line += std::string(1 + rng() % 2, " \t\v"[rng() % 2]);
      if (CanStandBare(word) && rng() % 2) {
        line += word;
      } else if (CanBeSingleQuoted(word) && rng() % 2) {
        line += SingleQuoted(word);
      } else {
        line += DoubleQuoted(word, rng);
      }
    }
    ASSERT_EQ(Split(line), words) << testing::PrintToString(line);
  }
}

// Goal: no byte behind the line is read, wherever the line is cut off.
// Method: every prefix of lines that end in the middle of a quote or an escape.
TEST(InlineRequest, EveryPrefixStaysInside) {
  for (const std::string_view line : {"a \"\\x41\\n\"", "a 'b\\'c'", "a\"b\" c"}) {
    for (size_t bytes = 0; bytes <= line.size(); ++bytes) {
      const std::string_view prefix = line.substr(0, bytes);
      const size_t quote = prefix.find_first_of("\"'");
      const bool open = quote != std::string_view::npos && prefix.rfind(line[quote]) == quote;
      if (open) {
        EXPECT_EQ(Split(prefix), std::nullopt) << prefix;
      }
      Split(prefix);
    }
  }
}

}  // namespace
}  // namespace skep
