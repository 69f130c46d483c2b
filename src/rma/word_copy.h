// word_copy.h: reading and writing memory that others read and write at the same time.
//
// Word by word, each whole (F1 of fabric.h). Loads acquire and stores release, so that what is
// copied by one Post is before what is copied by a later one for whoever reads in the other order;
// x86-64 has that for nothing.
//
// AddressSanitizer does not look at these accesses: a peer may read a region's bytes that this
// process has freed, and must find out itself that they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace skep::rma {

inline constexpr size_t kWordBytes = 8;

// `from` is shared and aligned to words; `to` is the caller's. Whole words.
__attribute__((no_sanitize("address"))) inline void ReadWords(const std::byte* from, void* to,
                                                              size_t bytes) {
  auto* at = static_cast<char*>(to);
  const auto copy_word = [&](size_t i) __attribute__((no_sanitize("address"))) {
    const uint64_t word =
        __atomic_load_n(reinterpret_cast<const uint64_t*>(from + i), __ATOMIC_ACQUIRE);
    std::memcpy(at + i, &word, sizeof(word));
  };
  constexpr size_t kEightWords = 8 * kWordBytes;
  size_t i = 0;
  for (; i + kEightWords <= bytes; i += kEightWords) {
#pragma GCC unroll 8
    for (size_t word = 0; word < 8; ++word) copy_word(i + word * kWordBytes);
  }
  for (; i < bytes; i += kWordBytes) copy_word(i);
}

// `to` is shared and aligned to words; `from` is the caller's. Whole words.
__attribute__((no_sanitize("address"))) inline void WriteWords(const void* from, std::byte* to,
                                                               size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  for (size_t i = 0; i < bytes; i += kWordBytes) {
    uint64_t word;
    std::memcpy(&word, at + i, sizeof(word));
    __atomic_store_n(reinterpret_cast<uint64_t*>(to + i), word, __ATOMIC_RELEASE);
  }
}

}  // namespace skep::rma
