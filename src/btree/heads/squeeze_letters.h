// squeeze_letters.h: moves letters next to digits, in words of hexadecimal text.
//
// The digits are the bytes 0x30 to 0x39, and the letters a to f are 0x61 to 0x66: these sixteen
// differ in six bits. Squeezed, the letters are 0x3a to 0x3f, and four bits are enough:
//
//   byte   00 .. 39    3a .. 60    61 .. ff
//   becomes  itself       3a       less 0x27
//
// That never changes the order of two words, but makes some of them equal that have bytes between
// the digits and the letters; so it is for words that have none.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace skep::btree {

inline constexpr uint8_t kBehindDigits = 0x3a;
inline constexpr uint8_t kFirstLetter = 0x61;
inline constexpr uint8_t kLastLetter = 0x66;
inline constexpr uint8_t kLetterGap = kFirstLetter - kBehindDigits;

inline uint64_t SqueezeLetters(uint64_t word) {
#if defined(__SSE2__)
  const __m128i bytes = _mm_cvtsi64_si128(static_cast<int64_t>(word));
  const __m128i low = _mm_min_epu8(bytes, _mm_set1_epi8(kBehindDigits));
  const __m128i moved = _mm_subs_epu8(bytes, _mm_set1_epi8(kLetterGap));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_max_epu8(low, moved)));
#else
  uint64_t squeezed = 0;
  for (int at = 0; at < 64; at += 8) {
    const auto byte = static_cast<uint8_t>(word >> at);
    const uint8_t low = byte < kBehindDigits ? byte : kBehindDigits;
    const uint8_t moved = byte < kLetterGap ? 0 : byte - kLetterGap;
    squeezed |= uint64_t{low < moved ? moved : low} << at;
  }
  return squeezed;
#endif
}

// Whether no byte lies between the digits and the letters, nor behind the letters.
inline bool IsHexadecimal(uint64_t word) {
  for (int at = 0; at < 64; at += 8) {
    const auto byte = static_cast<uint8_t>(word >> at);
    if (byte > kLastLetter || (byte >= kBehindDigits && byte < kFirstLetter)) return false;
  }
  return true;
}

}  // namespace skep::btree
