// sanitized.h: tells tests whether a sanitizer makes the program slower and larger.
#pragma once

#include <algorithm>

namespace skep {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Returns how often a test repeats something random that it repeats `rounds` times at full speed.
// The preset release makes all rounds; a sanitizer needs to see each line, not each number.
template <typename Int>
constexpr Int Rounds(Int rounds) {
  return kSanitized ? std::max<Int>(rounds / 5, 1) : rounds;
}

}  // namespace skep
