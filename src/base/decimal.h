// decimal.h: integers as the Redis protocol writes them, in messages and in values.
//
// A number has one form: no plus sign, no leading zero, no minus zero, no blanks. Redis's string2ll
// takes the same set, so that a value is an integer here if and only if it is one there.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace skep {

// The length of the longest integers: "-9223372036854775808" and "18446744073709551615".
inline constexpr size_t kDecimalBytesMax = 20;

// Returns the number if `text` is its one form and Integer can hold it; else nullopt.
template <typename Integer>
std::optional<Integer> ParseDecimal(std::string_view text) {
  const size_t sign = text.starts_with('-') ? 1 : 0;
  if (text.size() > sign && text[sign] == '0' && text != "0") return std::nullopt;
  Integer number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

inline std::optional<int64_t> ParseInt64(std::string_view text) {
  return ParseDecimal<int64_t>(text);
}
inline std::optional<uint64_t> ParseUint64(std::string_view text) {
  return ParseDecimal<uint64_t>(text);
}

// Writes at most kDecimalBytesMax bytes at `at`; returns where they end.
template <typename Integer>
char* WriteDecimal(char* at, Integer value) {
  if (value >= 0 && value < 10) {
    *at = static_cast<char>('0' + value);
    return at + 1;
  }
  return std::to_chars(at, at + kDecimalBytesMax, value).ptr;
}

}  // namespace skep
