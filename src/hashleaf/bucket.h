// bucket.h: compares the keys of a bucket side by side.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/cpu.h"
#include "hashleaf/key.h"

#if defined(__SSE4_1__)
#include <nmmintrin.h>
#endif

namespace skep::hashleaf {

#if defined(__SSE4_1__)
// The kernels use the registers from 16 on, which code for older processors does not know, so that
// no vzeroupper is needed behind them.
namespace wide {

#if defined(__AVX512F__)
#define SKEP_WIDE_CLOBBERS "xmm16", "xmm17", "k1"
#else
#define SKEP_WIDE_CLOBBERS
#endif

using Line = const std::byte (*)[Format::kBucketBytes];

// Kernels for keys of 4 and of 8 bytes, which differ in the names of the instructions:
//   Equal          returns a bit for each number of the line that equals the key
//   Within         returns a bit for each number from `first` to `first + span`
//   CountNotAbove  returns how many numbers are not above the key
#define SKEP_WIDE_KERNELS(Key, LANE, BITS)                             \
  inline uint32_t Equal(const std::byte* line, Key key) {              \
    uint32_t equal;                                                    \
    asm("vpbroadcast" LANE                                             \
        " %1, %%zmm16\n\t"                                             \
        "vpcmpeq" LANE                                                 \
        " %2, %%zmm16, %%k1\n\t"                                       \
        "kmovw %%k1, %0"                                               \
        : "=r"(equal)                                                  \
        : "r"(key), "m"(*reinterpret_cast<Line>(line))                 \
        : SKEP_WIDE_CLOBBERS);                                         \
    return equal;                                                      \
  }                                                                    \
  inline uint32_t Within(const std::byte* line, Key first, Key span) { \
    uint32_t within;                                                   \
    asm("vpbroadcast" LANE                                             \
        " %1, %%zmm16\n\t"                                             \
        "vmovdqu" BITS                                                 \
        " %3, %%zmm17\n\t"                                             \
        "vpsub" LANE                                                   \
        " %%zmm16, %%zmm17, %%zmm17\n\t"                               \
        "vpbroadcast" LANE                                             \
        " %2, %%zmm16\n\t"                                             \
        "vpcmpleu" LANE                                                \
        " %%zmm16, %%zmm17, %%k1\n\t"                                  \
        "kmovw %%k1, %0"                                               \
        : "=r"(within)                                                 \
        : "r"(first), "r"(span), "m"(*reinterpret_cast<Line>(line))    \
        : SKEP_WIDE_CLOBBERS);                                         \
    return within;                                                     \
  }                                                                    \
  inline uint32_t CountNotAbove(const std::byte* line, Key key) {      \
    uint32_t count;                                                    \
    asm("vpbroadcast" LANE                                             \
        " %1, %%zmm16\n\t"                                             \
        "vpcmpnltu" LANE                                               \
        " %2, %%zmm16, %%k1\n\t"                                       \
        "kmovw %%k1, %0\n\t"                                           \
        "popcntl %0, %0"                                               \
        : "=r"(count)                                                  \
        : "r"(key), "m"(*reinterpret_cast<Line>(line))                 \
        : SKEP_WIDE_CLOBBERS);                                         \
    return count;                                                      \
  }

SKEP_WIDE_KERNELS(uint32_t, "d", "32")
SKEP_WIDE_KERNELS(uint64_t, "q", "64")

#undef SKEP_WIDE_KERNELS
#undef SKEP_WIDE_CLOBBERS

}  // namespace wide
#endif

// Returns a bit for each slot with this key. `slots` is the Format's.
inline uint32_t SlotsWith(const std::byte* bucket, uint32_t key, uint32_t slots) {
  const uint32_t all = (1u << slots) - 1;
#if defined(__SSE4_1__)
  if (kUsesAvx512) return wide::Equal(bucket, key) & all;
  const auto* const lines = reinterpret_cast<const __m128i*>(bucket);
  const __m128i wanted = _mm_set1_epi32(static_cast<int>(key));
  const auto equal = [&](int i) { return _mm_cmpeq_epi32(_mm_load_si128(lines + i), wanted); };
  // A bucket has at most 8 keys of 4 bytes.
  const __m128i halves = _mm_packs_epi32(equal(0), equal(1));
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(halves, halves))) & all;
#else
  uint32_t found = 0;
  for (uint32_t i = 0; i < slots; ++i) {
    uint32_t other;
    std::memcpy(&other, bucket + i * sizeof(other), sizeof(other));
    found |= uint32_t{other == key} << i;
  }
  return found & all;
#endif
}

inline uint32_t SlotsWith(const std::byte* bucket, uint64_t key, uint32_t slots) {
#if defined(__SSE4_1__)
  if (kUsesAvx512) return wide::Equal(bucket, key) & ((1u << slots) - 1);
#endif
  uint32_t found = 0;
  for (uint32_t i = 0; i < slots; ++i) {
    uint64_t other;
    std::memcpy(&other, bucket + i * sizeof(other), sizeof(other));
    found |= uint32_t{other == key} << i;
  }
  return found;
}

inline uint32_t SlotsWith(const std::byte* bucket, Key128 key, uint32_t slots) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < slots; ++i) {
    Key128 other;
    std::memcpy(&other, bucket + i * sizeof(other), sizeof(other));
    found |= uint32_t{other == key} << i;
  }
  return found;
}

// Returns a bit for each slot whose key is in [first, last].
template <typename K>
inline uint32_t SlotsWithin(const std::byte* bucket, K first, K last, uint32_t slots) {
#if defined(__SSE4_1__)
  if constexpr (sizeof(K) <= 8) {
    if (kUsesAvx512) {
      return wide::Within(bucket, first, static_cast<K>(last - first)) & ((1u << slots) - 1);
    }
  }
#endif
  uint32_t found = 0;
  for (uint32_t i = 0; i < slots; ++i) {
    K key;
    std::memcpy(&key, bucket + i * sizeof(K), sizeof(K));
    found |= uint32_t{first <= key && key <= last} << i;
  }
  return found;
}

}  // namespace skep::hashleaf
