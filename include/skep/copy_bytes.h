// copy_bytes.h: memcpy for bytes that are mostly few.
#pragma once

#include <cstddef>
#include <cstring>

namespace skep {

// Copies as memcpy does, without a call for the usual sizes of keys and values, of which batches
// and merges copy hundreds. The bytes may not overlap.
template <class Byte>
void CopyBytes(Byte* to, const char* from, size_t bytes) {
  if (bytes > 32) {
    std::memcpy(to, from, bytes);
  } else if (bytes >= 16) {
    std::memcpy(to, from, 16);
    std::memmove(to + bytes - 16, from + bytes - 16, 16);
  } else if (bytes >= 8) {
    std::memcpy(to, from, 8);
    std::memmove(to + bytes - 8, from + bytes - 8, 8);
  } else if (bytes >= 4) {
    std::memcpy(to, from, 4);
    std::memmove(to + bytes - 4, from + bytes - 4, 4);
  } else {
    for (size_t i = 0; i < bytes; ++i) to[i] = static_cast<Byte>(from[i]);
  }
}

}  // namespace skep
