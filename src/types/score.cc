#include "types/score.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace skep::types {

std::optional<ScoreBound> ParseScoreBound(std::string_view text) {
  ScoreBound bound;
  const std::string copy(text);
  const char* at = copy.c_str();
  bound.is_open = *at == '(';
  if (bound.is_open) ++at;
  char* end = nullptr;
  bound.score = std::strtod(at, &end);
  if (*end != '\0' || std::isnan(bound.score)) return std::nullopt;
  return bound;
}

// A positive score has its sign bit set, a negative one all bits inverted.
uint64_t NumberOfScore(double score) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  const auto bits = std::bit_cast<uint64_t>(score + 0.0);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

std::string ScoreText(double score) {
  if (std::isinf(score)) return score > 0 ? "inf" : "-inf";
  // The digits of whole numbers, which most scores are, need no conversion of a fraction.
  constexpr double kWholeMax = 1e15;
  if (score == std::trunc(score) && std::fabs(score) < kWholeMax &&
      (score != 0 || !std::signbit(score))) {
    return std::to_string(static_cast<int64_t>(score));
  }
  char text[40];
  const int bytes = std::snprintf(text, sizeof text, "%.17g", score);
  return {text, static_cast<size_t>(bytes)};
}

}  // namespace skep::types
