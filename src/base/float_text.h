// float_text.h: floating-point numbers as Redis reads them, and as INCRBYFLOAT writes them.
//
// Numbers are computed as `long double`. Their text has at most 17 digits behind the point, no
// exponent, and no zero at its end: what Redis calls the human-friendly form.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace skep {

// A longer text is not read as a number.
inline constexpr size_t kFloatTextBytesMax = 5 * 1024;

// Each returns the number if all of `text` is one that strtod, or strtold, reads, without a blank
// before it, and that is neither NaN nor beyond the range of the type; else nullopt. Infinity has a
// text. Thread-safe. Both allocate for texts of more than a few dozen bytes.
std::optional<double> ParseDouble(std::string_view text);
std::optional<long double> ParseLongDouble(std::string_view text);

// Requires a finite number. Thread-safe.
std::string TextOf(long double number);

}  // namespace skep
