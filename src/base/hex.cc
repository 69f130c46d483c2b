#include "base/hex.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <iterator>

namespace skep {

std::string ToHex(std::string_view bytes) {
  std::string text = "0x";
  text.reserve(2 + 2 * bytes.size());
  for (const char c : bytes) {
    fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<uint8_t>(c));
  }
  return text;
}

bool FromHex(std::string_view text, std::string* bytes) {
  bytes->clear();
  if (!text.starts_with("0x") || text.size() % 2 != 0) return false;
  for (text.remove_prefix(2); !text.empty(); text.remove_prefix(2)) {
    uint8_t byte = 0;
    const auto [stopped, error] = std::from_chars(text.data(), text.data() + 2, byte, 16);
    if (error != std::errc() || stopped != text.data() + 2) return false;
    *bytes += static_cast<char>(byte);
  }
  return true;
}

}  // namespace skep
