// answer_checksum.h: one number computed from all answers to operations.
//
// The checksum keeps the compiler and the engine honest (every answer is read), and two engines
// that ran the same operations must have the same one. Positions are weighed in, so that items in a
// wrong order and answers in a wrong slot change it.
// The checksum must not dominate the measurement. So it reads one word of each cache line of a key
// or value, and the last word: all of 16 bytes, every line of longer ones. Its terms do not depend
// on each other; an item of 16 + 16 bytes costs about ten instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace skep::bench {

namespace internal {

inline uint64_t WordAt(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// Returns the sum of bytes shorter than a word, or of those words of long bytes that SumOfBytes
// does not read.
inline uint64_t SumOfShortOrLong(std::string_view bytes) {
  constexpr size_t kLineBytes = 64;
  uint64_t sum = 0;
  if (bytes.empty()) return 0;  // data() may be null
  if (bytes.size() < sizeof(sum)) {
    std::memcpy(&sum, bytes.data(), bytes.size());
    return 3 * sum + bytes.size();
  }
  for (size_t at = kLineBytes; at + sizeof(sum) < bytes.size(); at += kLineBytes) {
    sum += (at + 1) * WordAt(bytes.data() + at);
  }
  return sum;
}

}  // namespace internal

inline uint64_t SumOfBytes(std::string_view bytes) {
  constexpr size_t kShort = sizeof(uint64_t);
  constexpr size_t kLong = 64 + sizeof(uint64_t);
  if (bytes.size() < kShort) [[unlikely]]
    return internal::SumOfShortOrLong(bytes);
  const uint64_t sum = internal::WordAt(bytes.data()) + bytes.size() +
                       3 * internal::WordAt(bytes.data() + bytes.size() - kShort);
  if (bytes.size() <= kLong) return sum;
  return sum + internal::SumOfShortOrLong(bytes);
}

// `index`: the operation's, in its batch.
inline uint64_t ChecksumOfValue(size_t index, std::string_view value) {
  return (2 * index + 1) * SumOfBytes(value);
}

// Returns the sum of a scan's items so far, with one more. ChecksumOfScan weighs the final sum.
inline uint64_t AddItem(uint64_t sum, std::string_view key, std::string_view value) {
  return 3 * sum + SumOfBytes(key) + 5 * SumOfBytes(value);
}

inline uint64_t ChecksumOfScan(size_t index, uint64_t items_sum) {
  return (2 * index + 1) * items_sum;
}

}  // namespace skep::bench
