// score.h: the scores of sorted sets as Redis reads and writes them.
//
// Thread safety: all functions are pure. They take the C locale's decimal point.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace skep::types {

// The bound of a range of scores: a number, behind "(" if it does not belong to the range itself.
struct ScoreBound {
  double score = 0;
  bool is_open = false;
};
// Nothing if the text is no bound. As in Redis, the text ends at its first zero byte, an empty one
// is 0, and blanks may stand before the number.
std::optional<ScoreBound> ParseScoreBound(std::string_view text);

// A number for each score, in the order of the scores; minus zero has that of zero. Not for NaN.
uint64_t NumberOfScore(double score);

// A score as replies have it: 17 significant digits at most; "inf", "-inf".
std::string ScoreText(double score);

}  // namespace skep::types
