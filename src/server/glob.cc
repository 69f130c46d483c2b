#include "server/glob.h"

#include <algorithm>
#include <cstddef>

namespace skep {
namespace {

constexpr bool IsSpecial(char c) { return c == '*' || c == '?' || c == '['; }

// Compares as signed bytes, as Redis does on x86.
bool InRange(char c, char first, char last) {
  const auto byte = static_cast<signed char>(c);
  const auto low = static_cast<signed char>(first);
  const auto high = static_cast<signed char>(last);
  return std::min(low, high) <= byte && byte <= std::max(low, high);
}

// Matches `c` against the class whose "[" is just before *at; moves *at behind the class.
bool MatchClass(std::string_view pattern, size_t* at, char c) {
  size_t i = *at;
  const bool negated = i < pattern.size() && pattern[i] == '^';
  if (negated) ++i;
  bool found = false;
  while (i < pattern.size() && pattern[i] != ']') {
    const size_t left = pattern.size() - i;
    if (pattern[i] == '\\' && left >= 2) {
      found |= pattern[i + 1] == c;
      i += 2;
    } else if (left >= 3 && pattern[i + 1] == '-') {
      found |= InRange(c, pattern[i], pattern[i + 2]);
      i += 3;
    } else {
      found |= pattern[i] == c;
      ++i;
    }
  }
  *at = std::min(i + 1, pattern.size());
  return found != negated;
}

// Matches `c` against the one-byte element at *at (no "*"); moves *at behind the element.
bool MatchOne(std::string_view pattern, size_t* at, char c) {
  const char element = pattern[(*at)++];
  if (element == '?') return true;
  if (element == '[') return MatchClass(pattern, at, c);
  if (element == '\\' && *at < pattern.size()) return pattern[(*at)++] == c;
  return element == c;
}

}  // namespace

// Every element but "*" takes exactly one byte, so the shortest text for a "*" leaves the most to
// the elements behind it. Hence only the last "*" ever needs to take more, and it is enough to
// remember one point to go back to.
bool GlobMatch(std::string_view pattern, std::string_view text) {
  if (text.empty()) return pattern.empty() || pattern == "*";
  constexpr size_t kNone = std::string_view::npos;
  size_t p = 0;
  size_t t = 0;
  size_t star = kNone;      // the pattern behind the last "*" seen
  size_t star_end = kNone;  // the text behind what that "*" takes
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_end = t;
    } else if (p < pattern.size() && MatchOne(pattern, &p, text[t])) {
      ++t;
    } else if (star == pattern.size()) {
      return true;
    } else if (star != kNone) {
      p = star;
      t = ++star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == kNone;
}

bool GlobIsLiteral(std::string_view pattern) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (IsSpecial(pattern[i])) return false;
    if (pattern[i] == '\\') ++i;
  }
  return true;
}

std::string LiteralPrefix(std::string_view pattern, bool* whole) {
  std::string prefix;
  size_t i = 0;
  for (; i < pattern.size() && !IsSpecial(pattern[i]); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    prefix.push_back(pattern[i]);
  }
  *whole = pattern.substr(std::min(i, pattern.size())) == "*";
  return prefix;
}

}  // namespace skep
