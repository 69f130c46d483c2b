// answer_checksum.h: one number over everything that operations returned.
//
// It keeps the compiler and the engine honest (every answer is read), and two engines that ran the
// same operations must have the same one. Positions are weighed in, so that items in a wrong order
// and answers in the wrong slot show.
//
// It must not be what is measured. So it reads one word of each cache line of a key or value, and
// the last word: all there is of 16 bytes, every line of longer ones. Terms do not wait for each
// other; an item of 16 + 16 bytes costs about ten instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace skep::bench {

inline uint64_t SumOfBytes(std::string_view bytes) {
  constexpr size_t kLineBytes = 64;
  uint64_t last = 0;
  if (bytes.size() < sizeof(last)) {
    std::memcpy(&last, bytes.data(), bytes.size());
    return 3 * last + bytes.size();
  }
  std::memcpy(&last, bytes.data() + bytes.size() - sizeof(last), sizeof(last));
  uint64_t sum = 3 * last + bytes.size();
  for (size_t at = 0; at + sizeof(last) < bytes.size(); at += kLineBytes) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    sum += (at + 5) * word;
  }
  return sum;
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
