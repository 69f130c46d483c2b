#include "types/number.h"

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace skep::types {
namespace {

constexpr size_t kNumberBytesMax = 5 * 1024;  // as in Redis; a longer text is no number

template <typename Number>
std::optional<Number> Parse(std::string_view text, Number (*parse)(const char*, char**)) {
  if (text.empty() || text.size() >= kNumberBytesMax) return std::nullopt;
  if (std::isspace(static_cast<unsigned char>(text[0])) != 0) return std::nullopt;
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  const Number number = parse(copy.c_str(), &end);
  const bool is_whole = end == copy.c_str() + copy.size();
  const bool is_out = errno == ERANGE && (std::isinf(number) || number == 0);
  if (!is_whole || is_out || std::isnan(number)) return std::nullopt;
  return number;
}

}  // namespace

std::optional<double> ParseDouble(std::string_view text) { return Parse(text, std::strtod); }
std::optional<long double> ParseLongDouble(std::string_view text) {
  return Parse(text, std::strtold);
}

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

std::string DecimalText(long double number) {
  char digits[kNumberBytesMax];
  const int bytes = std::snprintf(digits, sizeof digits, "%.17Lf", number);
  std::string text(digits, static_cast<size_t>(bytes));
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace skep::types
