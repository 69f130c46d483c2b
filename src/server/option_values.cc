#include "server/option_values.h"

#include <arpa/inet.h>

#include <algorithm>

namespace skep {
namespace {

struct Unit {
  std::string_view name;
  uint64_t bytes;
};

constexpr Unit kUnits[] = {
    {"", 1},
    {"b", 1},
    {"k", 1000},
    {"kb", 1024},
    {"m", 1000'000},
    {"mb", 1024 * 1024},
    {"g", 1000'000'000},
    {"gb", 1024 * 1024 * 1024},
};

}  // namespace

std::optional<uint64_t> ParseBytes(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<uint64_t> number = ParseUint64(text.substr(0, digits));
  if (!number) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (!EqualsIgnoringCase(text.substr(digits), unit.name)) continue;
    if (*number > UINT64_MAX / unit.bytes) return std::nullopt;
    return *number * unit.bytes;
  }
  return std::nullopt;
}

std::vector<std::string> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    words.emplace_back(text.substr(0, text.find(' ')));
    text.remove_prefix(words.back().size());
  }
}

bool IsNumericAddress(std::string_view address) {
  const std::string text(address);
  in6_addr parsed;
  return inet_pton(AF_INET, text.c_str(), &parsed) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &parsed) == 1;
}

}  // namespace skep
