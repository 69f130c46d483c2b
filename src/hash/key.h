// key.h: a key, what is computed of it once, and which bits of its hash decide what.
//
//    63         56 55          47 46                                 0
//   +-------------+--------------+-----------------------------------+
//   |  partition  |  secondary   |  bucket, from bit 0 upwards       |
//   +-------------+--------------+-----------------------------------+
//
// The three do not overlap: keys of one bucket still differ in their secondary hash.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace skep::hash {

inline constexpr uint32_t kSecondaryBits = 9;
inline constexpr uint32_t kIndexBits = 47;
inline constexpr uint32_t kPartitionsMax = 256;

inline uint32_t SecondaryOf(uint64_t hash) {
  return static_cast<uint32_t>(hash >> kIndexBits) & ((1u << kSecondaryBits) - 1);
}
inline uint64_t IndexOf(uint64_t hash) { return hash & ((uint64_t{1} << kIndexBits) - 1); }
// Of `partitions` <= kPartitionsMax, a power of two.
inline uint32_t PartitionOf(uint64_t hash, uint32_t partitions) {
  return static_cast<uint32_t>(hash >> 56) & (partitions - 1);
}

// The first bytes of a key as a number, zeros behind a shorter one.
inline uint64_t HeadOf(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t head = 0;
  const char* const at = bytes.data();
  const size_t size = bytes.size();
  if (size >= 8) {
    std::memcpy(&head, at, 8);
  } else if (size >= 4) {
    uint32_t low = 0;
    uint32_t high = 0;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + size - 4, 4);
    head = low | uint64_t{high} << (8 * (size - 4));
  } else if (size > 0) {
    const auto byte = [&](size_t i) { return uint64_t{static_cast<uint8_t>(at[i])}; };
    head = byte(0) | byte(size / 2) << (8 * (size / 2)) | byte(size - 1) << (8 * (size - 1));
  }
  return head;
}

struct Key {
  std::string_view bytes;
  uint64_t hash;
  uint64_t head;  // HeadOf(bytes)
};

inline uint64_t HashOf(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }
inline Key KeyOf(std::string_view bytes) {
  return {.bytes = bytes, .hash = HashOf(bytes), .head = HeadOf(bytes)};
}

}  // namespace skep::hash
