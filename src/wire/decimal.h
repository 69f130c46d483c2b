// decimal.h: integers as RESP writes them.
//
// One form a number: no plus sign, no leading zero, no minus zero, no blanks. Redis's string2ll
// takes the same set, so "is this value an integer" has the same answer here and there.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace skep {

// The longest: "-9223372036854775808" and "18446744073709551615".
inline constexpr size_t kDecimalBytesMax = 20;

// True and `value` set if `text` is the one form of an int64_t; else false and `value` untouched.
inline bool ParseDecimal(std::string_view text, int64_t& value) {
  const size_t sign = text.starts_with('-') ? 1 : 0;
  if (text.size() > sign && text[sign] == '0' && text != "0") return false;
  int64_t parsed = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, parsed);
  if (failure != std::errc{} || stopped != end) return false;
  value = parsed;
  return true;
}

// Writes at most kDecimalBytesMax bytes at `at`; answers the byte behind the last.
template <typename Integer>
inline char* WriteDecimal(char* at, Integer value) {
  if (value >= 0 && value < 10) {
    *at = static_cast<char>('0' + value);
    return at + 1;
  }
  return std::to_chars(at, at + kDecimalBytesMax, value).ptr;
}

}  // namespace skep
