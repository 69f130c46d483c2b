// key.h: a key, what is computed of it once, and what the bits of its hash decide.
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

namespace skep::hash {

inline constexpr uint32_t kSecondaryBits = 9;
inline constexpr uint32_t kIndexBits = 47;
inline constexpr uint32_t kPartitionsMax = 256;

inline uint32_t SecondaryOf(uint64_t hash) {
  return static_cast<uint32_t>(hash >> kIndexBits) & ((1u << kSecondaryBits) - 1);
}
inline uint64_t IndexOf(uint64_t hash) { return hash & ((uint64_t{1} << kIndexBits) - 1); }
// Returns the partition of a hash; `partitions` <= kPartitionsMax is a power of two.
inline uint32_t PartitionOf(uint64_t hash, uint32_t partitions) {
  return static_cast<uint32_t>(hash >> 56) & (partitions - 1);
}

// Returns the first bytes of a key as a number, with zeros behind a shorter key.
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

// Returns the mask of the bits of HeadOf() that a key of `size` bytes has.
inline uint64_t HeadMaskOf(size_t size) {
  return size >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * size) - 1;
}

struct Key {
  std::string_view bytes;
  uint64_t hash;
  uint64_t head;  // HeadOf(bytes)
};

// Whether the key is `bytes`; `head` is HeadOf(bytes).
inline bool IsSame(const Key& key, std::string_view bytes, uint64_t head) {
  const size_t size = key.bytes.size();
  return key.head == head && size == bytes.size() &&
         (size <= sizeof(head) ||
          std::memcmp(key.bytes.data() + sizeof(head), bytes.data() + sizeof(head),
                      size - sizeof(head)) == 0);
}
inline bool IsSame(const Key& key, std::string_view bytes) {
  return key.bytes.size() == bytes.size() && IsSame(key, bytes, HeadOf(bytes));
}
inline bool IsSame(const Key& a, const Key& b) {
  return a.hash == b.hash && IsSame(a, b.bytes, b.head);
}

// Secrets of the hash function, drawn anew by each process, so that an adversary cannot choose keys
// that all have one hash and make one long chain.
struct HashSecrets {
  uint64_t head, tail, mixed, size;
};
extern const HashSecrets kHashSecrets;

uint64_t LongHashOf(std::string_view bytes);

// Short keys are hashed by two multiplications to 128 bits, as wyhash does, longer ones by XXH3.
// `head` is HeadOf(bytes).
[[gnu::always_inline]] inline uint64_t HashOf(std::string_view bytes, uint64_t head) {
  const size_t size = bytes.size();
  if (size > 16) [[unlikely]]
    return LongHashOf(bytes);
  const auto mix = [](uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  uint64_t tail = 0;
  if (size > 8) std::memcpy(&tail, bytes.data() + size - 8, 8);
  const HashSecrets& secrets = kHashSecrets;
  return mix(mix(head ^ secrets.head, tail ^ secrets.tail) ^ secrets.mixed, size ^ secrets.size);
}
inline uint64_t HashOf(std::string_view bytes) { return HashOf(bytes, HeadOf(bytes)); }

// `head` is HeadOf(bytes).
inline Key KeyOf(std::string_view bytes, uint64_t head) {
  return {.bytes = bytes, .hash = HashOf(bytes, head), .head = head};
}
inline Key KeyOf(std::string_view bytes) { return KeyOf(bytes, HeadOf(bytes)); }

}  // namespace skep::hash
