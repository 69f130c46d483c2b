// key.h: keys of fixed size as numbers, and values of fixed size.
//
// A key of 4, 8 or 16 bytes is held as the number that its bytes are, the first one highest, so
// that the order of numbers is the order of bytes. A value is held as its bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace skep::hashleaf {

__extension__ using Key128 = unsigned __int128;

// A key type's maximum: std::numeric_limits knows Key128 only with the compiler's extensions.
template <typename K>
inline constexpr K kKeyMax = static_cast<K>(~K{0});

inline constexpr size_t kValueBytesMax = 16;

template <typename K>
inline K LoadKey(const char* at) {
  if constexpr (sizeof(K) == 16) {
    return static_cast<Key128>(LoadKey<uint64_t>(at)) << 64 | LoadKey<uint64_t>(at + 8);
  } else {
    K bytes;
    std::memcpy(&bytes, at, sizeof(K));
    return std::endian::native == std::endian::little ? std::byteswap(bytes) : bytes;
  }
}

template <typename K>
inline void StoreKey(char* at, K key) {
  if constexpr (sizeof(K) == 16) {
    StoreKey(at, static_cast<uint64_t>(key >> 64));
    StoreKey(at + 8, static_cast<uint64_t>(key));
  } else {
    const K bytes = std::endian::native == std::endian::little ? std::byteswap(key) : key;
    std::memcpy(at, &bytes, sizeof(K));
  }
}

// Copies a value; `bytes` is 4, 8 or 16.
inline void CopyValue(void* to, const void* from, uint32_t bytes) {
  if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else {
    std::memcpy(to, from, 16);
  }
}

// Returns the smallest key that is not before this bound, of any length; none if every key is
// before it.
template <typename K>
inline std::optional<K> FirstKeyFrom(std::string_view bound) {
  char bytes[sizeof(K)] = {};
  bound.substr(0, sizeof(K)).copy(bytes, sizeof(K));
  const K key = LoadKey<K>(bytes);
  if (bound.size() <= sizeof(K)) return key;
  if (key == kKeyMax<K>) return std::nullopt;
  return static_cast<K>(key + 1);
}

// Returns the largest key that is not behind this bound; none if every key is.
template <typename K>
inline std::optional<K> LastKeyTo(std::string_view bound) {
  if (bound.size() >= sizeof(K)) return LoadKey<K>(bound.data());
  // A bound shorter than a key is before the keys that begin with it.
  const K first = *FirstKeyFrom<K>(bound);
  if (first == 0) return std::nullopt;
  return static_cast<K>(first - 1);
}

// An interval of keys, [first, last], which is not empty.
template <typename K>
struct Interval {
  K first;
  K last;
  bool Has(K key) const { return first <= key && key <= last; }
  // Returns the keys of [lo, hi), or from lo on; none if there can be no key.
  static std::optional<Interval> Of(std::string_view lo, std::string_view hi, bool unbounded) {
    const auto first = FirstKeyFrom<K>(lo);
    if (!first) return std::nullopt;
    if (unbounded) return Interval{*first, kKeyMax<K>};
    const auto end = FirstKeyFrom<K>(hi);
    if (!end) return Interval{*first, kKeyMax<K>};
    if (*end <= *first) return std::nullopt;
    return Interval{*first, static_cast<K>(*end - 1)};
  }
};

// The layout of pairs of one size in a bucket of 64 bytes: the keys, then the values.
//
//   key   4, value 4: 8 slots    4, 8: 5    4, 16: 3
//   key   8, value 4: 5 slots    8, 8: 4    8, 16: 2
//   key  16, value 4: 3 slots   16, 8: 2   16, 16: 2
struct Format {
  static constexpr uint32_t kBucketBytes = 64;

  uint32_t key_bytes;
  uint32_t value_bytes;
  uint32_t slots = kBucketBytes / (key_bytes + value_bytes);
  uint32_t values_at = slots * key_bytes;
  uint64_t secret;  // of hashes: an adversary who chooses keys must not know it
  // Size of the chunks that tables are made of, a power of two.
  uint32_t chunk_bytes = 64 * 1024;
  int chunk_shift = std::countr_zero(chunk_bytes / kBucketBytes);

  uint32_t stride() const { return key_bytes + value_bytes; }
};

// Returns a number of 64 bits in which every bit depends on all bits of the key.
template <typename K>
inline uint64_t HashOf(K key, uint64_t secret) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  const auto fold = [](uint64_t a, uint64_t b) {
    const Key128 product = static_cast<Key128>(a) * b;
    return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
  };
  if constexpr (sizeof(K) == 16) {
    const uint64_t high = fold(static_cast<uint64_t>(key >> 64) ^ secret, kOdd);
    return fold(static_cast<uint64_t>(key) ^ std::rotl(secret, 32) ^ high, kOdd);
  } else {
    return fold(key ^ secret, kOdd);
  }
}

}  // namespace skep::hashleaf
