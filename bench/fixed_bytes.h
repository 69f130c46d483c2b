// fixed_bytes.h: keys and values of 8, 16, 24 or 32 bytes as plain structs, for containers whose
// types are fixed when they are compiled. Of a mixture each takes as much as the largest, and a
// word for its size: a pointer to a block of its own size would cost more, and a miss.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "bench/loop_target.h"
#include "bench/peer.h"

namespace skep::bench {

inline constexpr size_t kWordBytes = sizeof(uint64_t);
inline constexpr size_t kWordsMax = kMixedSizes;
static_assert(kWordBytes == kMixedStepBytes);
static_assert(std::endian::native == std::endian::little);

// The first `length` of some bytes.
struct FixedView {
  const char* data() const { return bytes.data(); }
  size_t size() const { return length; }

  std::array<char, kMixedBytesMax> bytes;
  size_t length;
};

// The bytes of a key as big-endian words: their order is memcmp's.
template <size_t kWords>
struct WordKey {
  static WordKey Of(std::string_view bytes) {
    std::array<uint64_t, kWords> words;
    std::memcpy(words.data(), bytes.data(), sizeof(words));
    return {.words = Swapped(words)};
  }
  std::array<char, kWords * kWordBytes> Bytes() const {
    return std::bit_cast<std::array<char, kWords * kWordBytes>>(Swapped(words));
  }
  friend bool operator<(const WordKey& a, const WordKey& b) {
    for (size_t i = 0; i + 1 < kWords; ++i) {
      if (a.words[i] != b.words[i]) return a.words[i] < b.words[i];
    }
    return a.words[kWords - 1] < b.words[kWords - 1];
  }
  friend bool operator==(const WordKey&, const WordKey&) = default;

  std::array<uint64_t, kWords> words;

 private:
  static std::array<uint64_t, kWords> Swapped(std::array<uint64_t, kWords> words) {
    for (uint64_t& word : words) word = __builtin_bswap64(word);
    return words;
  }
};

// Of mixed sizes: zeros behind the key, which is one of a set where no key begins another.
template <>
struct WordKey<0> {
  static WordKey Of(std::string_view bytes) {
    std::array<char, kMixedBytesMax> padded = {};
    std::memcpy(padded.data(), bytes.data(), std::min(bytes.size(), padded.size()));
    return {.words = WordKey<kWordsMax>::Of({padded.data(), padded.size()}).words,
            .size = bytes.size()};
  }
  FixedView Bytes() const {
    return {.bytes = WordKey<kWordsMax>{.words = words}.Bytes(), .length = size};
  }
  friend auto operator<=>(const WordKey&, const WordKey&) = default;

  std::array<uint64_t, kWordsMax> words;
  uint64_t size;
};

// A multiplication a word, both halves of the product folded: every bit of the result depends on
// all.
struct WordKeyHash {
  using is_avalanching = void;  // Boost's name for that
  template <size_t kWords>
  size_t operator()(const WordKey<kWords>& key) const {
    uint64_t hash = 0x9e3779b97f4a7c15;
    for (uint64_t word : key.words) {
      const auto product = static_cast<unsigned __int128>(hash ^ word) * 0xa0761d6478bd642f;
      hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    }
    return hash;
  }
};

template <size_t kWords>
struct FixedValue {
  static FixedValue Of(std::string_view bytes) {
    FixedValue value;
    std::memcpy(value.bytes.data(), bytes.data(), value.bytes.size());
    return value;
  }
  std::string_view view() const { return {bytes.data(), bytes.size()}; }

  std::array<char, kWords * kWordBytes> bytes;
};

template <>
struct FixedValue<0> {
  static FixedValue Of(std::string_view bytes) {
    FixedValue value;
    value.size = std::min(bytes.size(), value.bytes.size());
    std::memcpy(value.bytes.data(), bytes.data(), value.size);
    return value;
  }
  std::string_view view() const { return {bytes.data(), size}; }

  std::array<char, kMixedBytesMax> bytes;
  uint64_t size;
};

// A target on the index for the sizes of the setup: Index<key words, value words>, loop_target.h;
// both 0 for mixed sizes.
//   kNotSupported  keys or values are not of 8, 16, 24 or 32 bytes
template <template <size_t, size_t> typename Index>
Result<std::unique_ptr<YcsbTarget>> OpenFixed(const PeerSetup& setup) {
  // Keys of 1 word with values of 1, 2, ..., keys of 2 words, ...
  static constexpr auto kOpen = []<size_t... kAt>(std::index_sequence<kAt...>) {
    return std::array{&LoopTarget<Index<kAt / kWordsMax + 1, kAt % kWordsMax + 1>>::Open...};
  }(std::make_index_sequence<kWordsMax * kWordsMax>());
  if (setup.values.mixed()) return LoopTarget<Index<0, 0>>::Open(setup);
  const size_t value_bytes = setup.values.value_bytes();
  if (!IsMixedSize(setup.key_bytes) || !IsMixedSize(value_bytes)) {
    return Fail(Code::kNotSupported, "keys and values are of 8, 16, 24 or 32 bytes");
  }
  const size_t key_words = setup.key_bytes / kWordBytes;
  return kOpen[(key_words - 1) * kWordsMax + value_bytes / kWordBytes - 1](setup);
}

}  // namespace skep::bench
