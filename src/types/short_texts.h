// short_texts.h: quick looks at texts (text.h) of up to 126 bytes, in walks through many of them.
// Everything is passed by value, so that a compiler keeps it in registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace skep::types {

// The bytes of the text at the front, its length included; 0 if the bytes begin with none, or with
// one whose length takes several bytes.
inline size_t ShortTextBytes(std::string_view from) {
  const size_t bytes = from.empty() ? 0 : static_cast<uint8_t>(from.front());
  return bytes < 0x80 && bytes <= from.size() ? bytes : 0;
}
// The string of such a text of so many bytes.
inline std::string_view ShortText(std::string_view from, size_t bytes) {
  return {from.data() + 1, bytes - 1};
}
// What is behind the first bytes, of which there are as many.
inline std::string_view Behind(std::string_view from, size_t bytes) {
  return {from.data() + bytes, from.size() - bytes};
}

// Whether two strings are equal. Looks at their last bytes first: the names in one collection often
// begin alike.
inline bool AreEqual(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  if (a.size() < sizeof(uint64_t)) return a == b;
  const size_t before = a.size() - sizeof(uint64_t);
  uint64_t x = 0;
  uint64_t y = 0;
  std::memcpy(&x, a.data() + before, sizeof(x));
  std::memcpy(&y, b.data() + before, sizeof(y));
  return x == y && std::memcmp(a.data(), b.data(), before) == 0;
}

}  // namespace skep::types
