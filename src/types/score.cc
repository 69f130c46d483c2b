#include "types/score.h"

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

std::string ScoreText(double score) {
  if (std::isinf(score)) return score > 0 ? "inf" : "-inf";
  char text[40];
  const int bytes = std::snprintf(text, sizeof text, "%.17g", score);
  return {text, static_cast<size_t>(bytes)};
}

}  // namespace skep::types
