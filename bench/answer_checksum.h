// answer_checksum.h: one number over everything that operations returned.
//
// It keeps the compiler and the engine honest (every byte of every answer is read), and two engines
// that ran the same operations must have the same one. Positions are weighed in, so that items in a
// wrong order and answers in the wrong slot show. Terms do not wait for each other, so that it
// costs about a nanosecond for each 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace skep::bench {

inline uint64_t SumOfBytes(std::string_view bytes) {
  uint64_t sum = bytes.size();
  uint64_t word = 0;
  size_t at = 0;
  for (; at + sizeof(word) <= bytes.size(); at += sizeof(word)) {
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    sum = sum * 3 + word;
  }
  if (at == bytes.size()) return sum;
  word = 0;
  std::memcpy(&word, bytes.data() + at, bytes.size() - at);
  return sum * 3 + word;
}

// `index`: of the operation in its batch.
inline uint64_t ChecksumOfValue(size_t index, std::string_view value) {
  return (2 * index + 1) * SumOfBytes(value);
}

// `position`: of the item in its scan. The sum over a scan is its answer's; weigh it by
// ChecksumOfScan.
inline uint64_t ChecksumOfItem(size_t position, std::string_view key, std::string_view value) {
  return (2 * position + 1) * (SumOfBytes(key) + 7 * SumOfBytes(value));
}

inline uint64_t ChecksumOfScan(size_t index, uint64_t items_sum) {
  return (2 * index + 1) * items_sum;
}

}  // namespace skep::bench
