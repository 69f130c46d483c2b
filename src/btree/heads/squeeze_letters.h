// squeeze_letters.h: moves letters next to digits, in words of hexadecimal text.
//
// The digits are the bytes 0x30 to 0x39, and the letters a to f are 0x61 to 0x66: these sixteen
// differ in six bits. Squeezed, the letters are 0x3a to 0x3f, and four bits are enough:
//
//   byte     00 .. 39    3a .. 60    61 .. ff
//   becomes   itself        3a       less 0x27, so a becomes 3a
//
// It is for words that have no byte of the gap 3a .. 60. A word that has one must not overtake
// those that have the letter a there, which is larger: so the bytes behind its first byte of the
// gap become zeros. Then squeezing keeps the order of all words, though it makes some equal: of two
// words that differ, look at the first byte that does. If it becomes the same in both, the smaller
// word has a byte of the gap there, and zeros behind it.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace skep::btree {

inline constexpr uint8_t kBehindDigits = 0x3a;
inline constexpr uint8_t kFirstLetter = 0x61;
inline constexpr uint8_t kLastLetter = 0x66;
inline constexpr uint8_t kLetterGap = kFirstLetter - kBehindDigits;

// Zeros for the bytes behind the first one, the highest, that `gap` has a bit for.
inline uint64_t EndAtFirst(uint64_t word, uint32_t gap) {
  return word & ~uint64_t{0} << 8 * (std::bit_width(gap) - 1);
}

inline uint64_t SqueezeLetters(uint64_t word) {
#if defined(__SSE2__)
  const __m128i bytes = _mm_cvtsi64_si128(static_cast<int64_t>(word));
  const __m128i behind_digits = _mm_set1_epi8(kBehindDigits);
  const __m128i moved = _mm_subs_epu8(bytes, _mm_set1_epi8(kLetterGap));
  const __m128i squeezed = _mm_max_epu8(_mm_min_epu8(bytes, behind_digits), moved);
  const __m128i letter_a = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(kFirstLetter));
  const __m128i in_gap = _mm_andnot_si128(letter_a, _mm_cmpeq_epi8(squeezed, behind_digits));
  const auto result = static_cast<uint64_t>(_mm_cvtsi128_si64(squeezed));
  const auto gap = static_cast<uint32_t>(_mm_movemask_epi8(in_gap)) & 0xff;
  return gap == 0 ? result : EndAtFirst(result, gap);
#else
  uint64_t squeezed = 0;
  uint32_t gap = 0;
  for (int i = 0; i < 8; ++i) {
    const auto byte = static_cast<uint8_t>(word >> 8 * i);
    const bool is_in_gap = byte >= kBehindDigits && byte < kFirstLetter;
    const uint64_t moved = byte < kBehindDigits ? byte
                           : is_in_gap          ? kBehindDigits
                                                : static_cast<uint8_t>(byte - kLetterGap);
    squeezed |= moved << 8 * i;
    gap |= uint32_t{is_in_gap} << i;
  }
  return gap == 0 ? squeezed : EndAtFirst(squeezed, gap);
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
