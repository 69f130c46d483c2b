// key_word.h: eight bytes of a key as a number, so that comparing numbers compares bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace skep::btree::heads {

// The 8 bytes of `key` from `at` on as a number, the first byte highest; zeros behind its end.
inline uint64_t WordAt(std::string_view key, size_t at) {
  uint64_t word = 0;
  if (at + 8 <= key.size()) [[likely]] {
    std::memcpy(&word, key.data() + at, 8);
    return __builtin_bswap64(word);
  }
  if (at < key.size() && key.size() >= 8) {
    std::memcpy(&word, key.data() + key.size() - 8, 8);
    return __builtin_bswap64(word) << 8 * (at + 8 - key.size());
  }
  for (size_t i = at; i < key.size(); ++i) {
    word |= uint64_t{static_cast<unsigned char>(key[i])} << (56 - 8 * (i - at));
  }
  return word;
}

}  // namespace skep::btree::heads
