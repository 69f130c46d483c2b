#include "base/float_text.h"

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace skep {

namespace {

template <typename Number>
std::optional<Number> Parse(std::string_view text, Number (*parse)(const char*, char**)) {
  if (text.empty() || text.size() >= kFloatTextBytesMax) return std::nullopt;
  if (std::isspace(static_cast<unsigned char>(text[0])) != 0) return std::nullopt;
  const std::string terminated(text);  // the function needs the zero at the end
  char* end = nullptr;
  errno = 0;
  const Number number = parse(terminated.c_str(), &end);
  if (end != terminated.c_str() + terminated.size() || std::isnan(number)) return std::nullopt;
  const bool is_out_of_range = errno == ERANGE && (std::isinf(number) || number == 0);
  if (is_out_of_range || errno == EINVAL) return std::nullopt;
  return number;
}

}  // namespace

std::optional<double> ParseDouble(std::string_view text) {
  // Decimal numbers, which are most, take a fifth of what strtod takes. What it does not know, as
  // hexadecimal numbers, is left to strtod.
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const bool is_short = text.size() < kFloatTextBytesMax;
  if (is_short && parsed.ec == std::errc() && parsed.ptr == end && !std::isnan(number)) {
    return number;
  }
  return Parse(text, std::strtod);
}
std::optional<long double> ParseLongDouble(std::string_view text) {
  return Parse(text, std::strtold);
}

std::string TextOf(long double number) {
  const int bytes = std::snprintf(nullptr, 0, "%.17Lf", number);
  std::string text(static_cast<size_t>(bytes), '\0');
  std::snprintf(text.data(), text.size() + 1, "%.17Lf", number);
  text.resize(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace skep
