// lanes.h: compares many 16-bit numbers, or bytes, at a time.
//
// The code uses SSE4.1, which x86-64-v2 has, or plain loops that a compiler turns into what the
// machine has. The two compares that every descent does several times use AVX-512 where the machine
// has it: four instructions instead of twenty.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

namespace skep::btree {

#if defined(__SSE4_1__)
namespace wide {

// A compiler that targets less than AVX-512 does not know registers from 16 on, so it must not be
// told of them; and they need no vzeroupper.
#if defined(__AVX512F__)
#define SKEP_WIDE_CLOBBERS "xmm16", "k1"
#else
#define SKEP_WIDE_CLOBBERS
#endif

// Returns a bit for each of 32 numbers that is below `bound`.
inline uint32_t Below32(const uint16_t* numbers, uint16_t bound) {
  uint32_t below;
  asm("vpbroadcastw %1, %%zmm16\n\t"
      "vpcmpnleuw %2, %%zmm16, %%k1\n\t"
      "kmovd %%k1, %0"
      : "=r"(below)
      : "r"(uint32_t{bound}), "m"(*reinterpret_cast<const uint16_t(*)[32]>(numbers))
      : SKEP_WIDE_CLOBBERS);
  return below;
}
// Returns a bit for each of 24 bytes that is below `bound`. Reads 8 bytes more.
inline uint32_t BytesBelow24(const std::byte* bytes, uint8_t bound) {
  uint32_t below;
  asm("vpbroadcastb %1, %%ymm16\n\t"
      "vpcmpnleub %2, %%ymm16, %%k1\n\t"
      "kmovd %%k1, %0"
      : "=r"(below)
      : "r"(uint32_t{bound}), "m"(*reinterpret_cast<const std::byte(*)[32]>(bytes))
      : SKEP_WIDE_CLOBBERS);
  return below & 0xffffff;
}
// Returns a bit for each of 8 numbers that is not above `bound`.
inline uint32_t NotAbove8(const uint64_t* numbers, uint64_t bound) {
  uint32_t not_above;
  asm("vpbroadcastq %1, %%zmm16\n\t"
      "vpcmpnltuq %2, %%zmm16, %%k1\n\t"
      "kmovd %%k1, %0"
      : "=r"(not_above)
      : "r"(bound), "m"(*reinterpret_cast<const uint64_t(*)[8]>(numbers))
      : SKEP_WIDE_CLOBBERS);
  return not_above;
}
#undef SKEP_WIDE_CLOBBERS

}  // namespace wide
#endif

// How many of 32 numbers are below `bound`.
inline uint32_t CountBelow32(const uint16_t* numbers, uint16_t bound) {
#if defined(__SSE4_1__)
  if (kUsesAvx512) return static_cast<uint32_t>(std::popcount(wide::Below32(numbers, bound)));
  const auto* const at = reinterpret_cast<const __m128i*>(numbers);
  const __m128i bounds = _mm_set1_epi16(static_cast<int16_t>(bound));
  const auto not_below = [&](int i) {
    const __m128i lanes = _mm_loadu_si128(at + i);
    return _mm_cmpeq_epi16(_mm_max_epu16(lanes, bounds), lanes);
  };
  const auto low =
      static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(not_below(0), not_below(1))));
  const auto high =
      static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(not_below(2), not_below(3))));
  return 32 - static_cast<uint32_t>(std::popcount(low | high << 16));
#else
  uint32_t below = 0;
  for (int i = 0; i < 32; ++i) below += numbers[i] < bound;
  return below;
#endif
}

// How many of 16 numbers, which ascend, are not above `bound`.
inline uint32_t CountNotAbove16(const uint64_t* numbers, uint64_t bound) {
#if defined(__SSE4_1__)
  if (kUsesAvx512) {
    return static_cast<uint32_t>(
        std::popcount(wide::NotAbove8(numbers, bound) | wide::NotAbove8(numbers + 8, bound) << 8));
  }
#endif
  // Whole quarters first, then the numbers of the quarter in which the count ends.
  const auto not_above = [&](uint32_t i) { return uint32_t{numbers[i] <= bound}; };
  const uint32_t begin = 4 * (not_above(3) + not_above(7) + not_above(11));
  return begin + not_above(begin) + not_above(begin + 1) + not_above(begin + 2) +
         not_above(begin + 3);
}

// Returns a bit for each of 8 numbers, the first lowest, that is not below `bound`.
inline uint32_t NotBelow8(const uint16_t* numbers, uint16_t bound) {
#if defined(__SSE4_1__)
  const __m128i lanes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers));
  const __m128i bounds = _mm_set1_epi16(static_cast<int16_t>(bound));
  const __m128i not_below = _mm_cmpeq_epi16(_mm_max_epu16(lanes, bounds), lanes);
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(not_below, _mm_setzero_si128())));
#else
  uint32_t bits = 0;
  for (int i = 0; i < 8; ++i) bits |= uint32_t{numbers[i] >= bound} << i;
  return bits;
#endif
}

// How many of 8 numbers are below `bound`.
inline uint32_t CountBelow8(const uint16_t* numbers, uint16_t bound) {
  return 8 - static_cast<uint32_t>(std::popcount(NotBelow8(numbers, bound)));
}

#if defined(__SSE4_1__)
namespace wide {

// PlacesAmong24 of at most 8 * kVectors numbers.
template <int kVectors>
inline void PlacesAmong(const uint16_t* numbers, uint32_t count, uint16_t* places) {
  // To a number that comes before it a number is compared by "not below", to others by "above".
  static constexpr auto kBehind = [] {
    std::array<int16_t, 48> lanes = {};
    for (int i = 24; i < 48; ++i) lanes[static_cast<size_t>(i)] = -1;
    return lanes;
  }();
  const auto* const at = reinterpret_cast<const __m128i*>(numbers);
  __m128i lanes[kVectors];
  for (int k = 0; k < kVectors; ++k) lanes[k] = _mm_loadu_si128(at + k);
  __m128i before[kVectors] = {};
  for (uint32_t i = 0; i < count; ++i) {
    const __m128i one = _mm_set1_epi16(static_cast<int16_t>(numbers[i]));
    const auto* const behind = reinterpret_cast<const __m128i*>(kBehind.data() + 23 - i);
    for (int k = 0; k < kVectors; ++k) {
      const __m128i bound = _mm_add_epi16(one, _mm_loadu_si128(behind + k));
      before[k] = _mm_sub_epi16(before[k], _mm_cmpgt_epi16(lanes[k], bound));
    }
  }
  for (int k = 0; k < kVectors; ++k) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(places) + k, before[k]);
  }
}

}  // namespace wide
#endif

// The places of the first `count` of 24 numbers in their order, of equal ones the first first. The
// numbers are below 2^15; those behind the first are read and may be any, and their places may be
// written and have no meaning.
inline void PlacesAmong24(const uint16_t* numbers, uint32_t count, uint16_t* places) {
#if defined(__SSE4_1__)
  if (count <= 8) return wide::PlacesAmong<1>(numbers, count, places);
  if (count <= 16) return wide::PlacesAmong<2>(numbers, count, places);
  wide::PlacesAmong<3>(numbers, count, places);
#else
  for (uint32_t i = 0; i < count; ++i) {
    places[i] = 0;
    for (uint32_t j = 0; j < count; ++j) {
      places[i] += numbers[j] < numbers[i] || (numbers[j] == numbers[i] && j < i);
    }
  }
#endif
}

// Whether two of the first `count` of 24 numbers that follow each other are equal; `count` is at
// least 1.
inline bool HasEqualNeighbors24(const uint16_t* numbers, uint32_t count) {
#if defined(__SSE4_1__)
  const auto equal = [&](int first) {
    const auto* const at = reinterpret_cast<const __m128i*>(numbers + first);
    const auto* const next = reinterpret_cast<const __m128i*>(numbers + first + 1);
    const __m128i lanes = _mm_cmpeq_epi16(_mm_loadu_si128(at), _mm_loadu_si128(next));
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(lanes, _mm_setzero_si128())));
  };
  const uint32_t pairs = equal(0) | equal(8) << 8 | equal(15) << 15;
  return (pairs & ((uint32_t{1} << (count - 1)) - 1)) != 0;
#else
  bool has = false;
  for (uint32_t i = 1; i < count; ++i) has |= numbers[i - 1] == numbers[i];
  return has;
#endif
}

// How many of the first 7, or of 24 bytes are below `bound`. Behind the 7 bytes there must be one
// more, behind the 24 bytes 8 more, which may be any.
inline uint32_t CountBytesBelow7(const std::byte* bytes, uint8_t bound) {
#if defined(__SSE4_1__)
  const __m128i lanes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
  const __m128i bounds = _mm_set1_epi8(static_cast<char>(bound));
  const __m128i not_below = _mm_cmpeq_epi8(_mm_max_epu8(lanes, bounds), lanes);
  return 7 - static_cast<uint32_t>(
                 std::popcount(static_cast<uint32_t>(_mm_movemask_epi8(not_below)) & 0x7fu));
#else
  uint32_t below = 0;
  for (int i = 0; i < 7; ++i) below += static_cast<uint8_t>(bytes[i]) < bound;
  return below;
#endif
}
inline uint32_t CountBytesBelow24(const std::byte* bytes, uint8_t bound) {
#if defined(__SSE4_1__)
  const auto* const at = reinterpret_cast<const __m128i*>(bytes);
  if (kUsesAvx512) return static_cast<uint32_t>(std::popcount(wide::BytesBelow24(bytes, bound)));
  const __m128i bounds = _mm_set1_epi8(static_cast<char>(bound));
  const auto not_below = [&](__m128i lanes) {
    const __m128i mask = _mm_cmpeq_epi8(_mm_max_epu8(lanes, bounds), lanes);
    return static_cast<uint32_t>(_mm_movemask_epi8(mask));
  };
  const uint32_t first = not_below(_mm_loadu_si128(at));
  const uint32_t last = not_below(_mm_loadl_epi64(at + 1)) & 0xff;
  return 24 - static_cast<uint32_t>(std::popcount(first | last << 16));
#else
  uint32_t below = 0;
  for (int i = 0; i < 24; ++i) below += static_cast<uint8_t>(bytes[i]) < bound;
  return below;
#endif
}

// Returns a bit for each of the 24 bytes in three words, lowest first, that equals `byte`.
inline uint32_t EqualBytes24(uint64_t first, uint64_t second, uint64_t third, uint8_t byte) {
#if defined(__SSE4_1__)
  const __m128i wanted = _mm_set1_epi8(static_cast<char>(byte));
  const auto equal = [&](uint64_t high, uint64_t low) {
    const __m128i lanes = _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(lanes, wanted)));
  };
  return equal(second, first) | (equal(0, third) & 0xff) << 16;
#else
  uint32_t bits = 0;
  for (int i = 0; i < 8; ++i) {
    bits |= uint32_t{static_cast<uint8_t>(first >> (8 * i)) == byte} << i;
    bits |= uint32_t{static_cast<uint8_t>(second >> (8 * i)) == byte} << (i + 8);
    bits |= uint32_t{static_cast<uint8_t>(third >> (8 * i)) == byte} << (i + 16);
  }
  return bits;
#endif
}

// Returns a bit for each of the 8 numbers in two words, lowest first, that equals `number`.
inline uint32_t Equal8(uint64_t low, uint64_t high, uint16_t number) {
#if defined(__SSE4_1__)
  const __m128i lanes = _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
  const __m128i equal = _mm_cmpeq_epi16(lanes, _mm_set1_epi16(static_cast<int16_t>(number)));
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())));
#else
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) {
    bits |= uint32_t{static_cast<uint16_t>(low >> (16 * i)) == number} << i;
    bits |= uint32_t{static_cast<uint16_t>(high >> (16 * i)) == number} << (i + 4);
  }
  return bits;
#endif
}

}  // namespace skep::btree
