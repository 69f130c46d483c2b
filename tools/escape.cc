#include "tools/escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace skep {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Returns how many bytes follow a first byte of UTF-8. Negative: it is no first byte.
int FollowersOf(uint8_t first) {
  if (first < 0x80) return 0;
  if (first >= 0xc2 && first < 0xe0) return 1;
  if (first >= 0xe0 && first < 0xf0) return 2;
  if (first >= 0xf0 && first < 0xf5) return 3;
  return -1;
}

}  // namespace

std::string Quoted(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else if (c == '\t') {
      text += "\\t";
    } else if (c == '\a') {
      text += "\\a";
    } else if (c == '\b') {
      text += "\\b";
    } else if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<uint8_t>(c));
    }
  }
  return text + '"';
}

bool IsUtf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const auto first = static_cast<uint8_t>(bytes[i]);
    const int followers = FollowersOf(first);
    if (followers < 0 || bytes.size() - i <= static_cast<size_t>(followers)) return false;
    uint32_t point = first;
    if (followers > 0) point = first & (0x3fu >> followers);
    for (int k = 1; k <= followers; ++k) {
      const auto next = static_cast<uint8_t>(bytes[i + static_cast<size_t>(k)]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3f);
    }
    const bool is_long = (followers == 2 && point < 0x800) || (followers == 3 && point < 0x10000);
    if (is_long || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
    i += static_cast<size_t>(followers) + 1;
  }
  return true;
}

std::string ToBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[group >> (18 - 6 * k) & 0x3f] : '=';
    }
  }
  return text;
}

bool FromBase64(std::string_view text, std::string* bytes) {
  bytes->clear();
  if (text.size() % 4 != 0) return false;
  bytes->reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool is_last = i + 4 == text.size();
    size_t count = 4;
    while (is_last && count > 2 && text[i + count - 1] == '=') --count;
    uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      const size_t digit = k < count ? kDigits.find(text[i + k]) : 0;
      if (digit == kDigits.npos) return false;
      group = group << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t k = 0; k + 1 < count; ++k) *bytes += static_cast<char>(group >> (16 - 8 * k));
    // The bits behind the last byte are not part of the data and must be zero.
    if (count < 4 && (group & (count == 2 ? 0xffffu : 0xffu)) != 0) return false;
  }
  return true;
}

}  // namespace skep
