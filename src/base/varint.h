// varint.h: numbers in as many bytes as they need: seven bits a byte, the lowest first; the high
// bit says that another byte follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace skep {

inline constexpr size_t kVarintBytesMax = 10;

constexpr size_t VarintBytes(uint64_t number) {
  size_t bytes = 1;
  for (; number >= 0x80; number >>= 7) ++bytes;
  return bytes;
}

// Writes a number at `at`, where its bytes have room. Returns where they end.
inline char* WriteVarint(char* at, uint64_t number) {
  for (; number >= 0x80; number >>= 7) *at++ = static_cast<char>(number | 0x80);
  *at++ = static_cast<char>(number);
  return at;
}

inline void AppendVarint(std::string& to, uint64_t number) {
  char bytes[16];  // room for kVarintBytesMax, and for what GCC 12 warns of
  to.append(bytes, static_cast<size_t>(WriteVarint(bytes, number) - bytes));
}

// Takes a number from the front. Returns false if there is none, or it has more than 64 bits.
inline bool TakeVarint(std::string_view& from, uint64_t* number) {
  uint64_t result = 0;
  for (size_t i = 0; i < from.size() && i < kVarintBytesMax; ++i) {
    const auto byte = static_cast<uint8_t>(from[i]);
    if (i == 9 && byte > 1) return false;
    result |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte >= 0x80) continue;
    *number = result;
    from.remove_prefix(i + 1);
    return true;
  }
  return false;
}

inline void AppendBytes(std::string& to, std::string_view bytes) {
  AppendVarint(to, bytes.size());
  to.append(bytes);
}

// Takes a length and that many bytes from the front. Returns false if there are not as many.
inline bool TakeBytes(std::string_view& from, std::string_view* bytes) {
  uint64_t length = 0;
  if (!TakeVarint(from, &length) || length > from.size()) return false;
  *bytes = from.substr(0, length);
  from.remove_prefix(length);
  return true;
}

}  // namespace skep
