// crc32c_step.h: CRC-32C a word or a byte at a time, by the processor's instruction if it has one:
// for whoever has the bytes in several pieces. crc32c.h is for one.
//
// A CRC is begun with kCrc32cBegin, and is what crc32c.h computes once its bits are inverted.
#pragma once

#include <cstdint>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace skep {

inline constexpr uint32_t kCrc32cBegin = ~uint32_t{0};

// Adds one byte; eight, or four, as a little-endian number.
#if defined(__SSE4_2__)
inline uint32_t Crc32cByte(uint32_t crc, uint8_t byte) { return _mm_crc32_u8(crc, byte); }
inline uint32_t Crc32cHalf(uint32_t crc, uint32_t half) { return _mm_crc32_u32(crc, half); }
inline uint32_t Crc32cWord(uint32_t crc, uint64_t word) {
  return static_cast<uint32_t>(_mm_crc32_u64(crc, word));
}
#elif defined(__ARM_FEATURE_CRC32)
inline uint32_t Crc32cByte(uint32_t crc, uint8_t byte) { return __crc32cb(crc, byte); }
inline uint32_t Crc32cHalf(uint32_t crc, uint32_t half) { return __crc32cw(crc, half); }
inline uint32_t Crc32cWord(uint32_t crc, uint64_t word) { return __crc32cd(crc, word); }
#else
// By tables.
uint32_t Crc32cByte(uint32_t crc, uint8_t byte);
uint32_t Crc32cHalf(uint32_t crc, uint32_t half);
uint32_t Crc32cWord(uint32_t crc, uint64_t word);
#endif

}  // namespace skep
