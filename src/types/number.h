// number.h: numbers as Redis reads and writes them in collections.
//
// Thread safety: all functions are pure. They take the C locale's decimal point.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace skep::types {

// The number that the whole text is, as strtod reads it; nothing if it is not one, begins with a
// blank, is not a number or exceeds the range of the type.
std::optional<double> ParseDouble(std::string_view text);
std::optional<long double> ParseLongDouble(std::string_view text);

// The bound of a range of scores: a number, behind "(" if it does not belong to the range itself.
struct ScoreBound {
  double score = 0;
  bool is_open = false;
};
// Nothing if the text is no bound. As in Redis, the text ends at its first zero byte, an empty one
// is 0, and blanks may stand before the number.
std::optional<ScoreBound> ParseScoreBound(std::string_view text);

// A score as replies have it: 17 significant digits at most; "inf", "-inf".
std::string ScoreText(double score);
// A sum as HINCRBYFLOAT stores it: no exponent, at most 17 decimals, no zeroes behind them.
std::string DecimalText(long double number);

}  // namespace skep::types
