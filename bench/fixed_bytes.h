// fixed_bytes.h: keys and values of 8, 16, 24 or 32 bytes, or both of 4, as plain structs, for
// containers whose types are fixed at compile time. In a mixture each takes as much as the largest,
// and a word for its size: a pointer to a block of its own size would cost more, and a cache miss.
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
#include <type_traits>
#include <utility>

#include "bench/loop_target.h"
#include "bench/peer.h"

namespace skep::bench {

static_assert(std::endian::native == std::endian::little);

// A view of the first `length` of some bytes.
struct FixedView {
  const char* data() const { return bytes.data(); }
  size_t size() const { return length; }

  std::array<char, kMixedBytesMax> bytes;
  size_t length;
};

// The bytes of a key as big-endian words: their order is memcmp's.
template <size_t kBytes>
struct WordKey {
  using Word = std::conditional_t<kBytes == 4, uint32_t, uint64_t>;
  static constexpr size_t kWords = kBytes / sizeof(Word);

  static WordKey Of(std::string_view bytes) {
    std::array<Word, kWords> words;
    std::memcpy(words.data(), bytes.data(), sizeof(words));
    return {.words = Swapped(words)};
  }
  std::array<char, kBytes> Bytes() const {
    return std::bit_cast<std::array<char, kBytes>>(Swapped(words));
  }
  friend bool operator<(const WordKey& a, const WordKey& b) {
    for (size_t i = 0; i + 1 < kWords; ++i) {
      if (a.words[i] != b.words[i]) return a.words[i] < b.words[i];
    }
    return a.words[kWords - 1] < b.words[kWords - 1];
  }
  friend bool operator==(const WordKey&, const WordKey&) = default;

  std::array<Word, kWords> words;

 private:
  static std::array<Word, kWords> Swapped(std::array<Word, kWords> words) {
    for (Word& word : words) word = std::byteswap(word);
    return words;
  }
};

// A key of mixed sizes: zeros follow the key. It is one of a set where no key is the beginning of
// another.
template <>
struct WordKey<0> {
  static WordKey Of(std::string_view bytes) {
    std::array<char, kMixedBytesMax> padded = {};
    std::memcpy(padded.data(), bytes.data(), std::min(bytes.size(), padded.size()));
    return {.words = WordKey<kMixedBytesMax>::Of({padded.data(), padded.size()}).words,
            .size = bytes.size()};
  }
  FixedView Bytes() const {
    return {.bytes = WordKey<kMixedBytesMax>{.words = words}.Bytes(), .length = size};
  }
  friend auto operator<=>(const WordKey&, const WordKey&) = default;

  std::array<uint64_t, kMixedSizes> words;
  uint64_t size;
};

// Hashes by a multiplication a word, with both halves of the product folded: every bit of the
// result depends on all bits of the key.
struct WordKeyHash {
  using is_avalanching = void;  // Boost's name for that
  template <size_t kBytes>
  size_t operator()(const WordKey<kBytes>& key) const {
    uint64_t hash = 0x9e3779b97f4a7c15;
    for (uint64_t word : key.words) {
      const auto product = static_cast<unsigned __int128>(hash ^ word) * 0xa0761d6478bd642f;
      hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    }
    return hash;
  }
};

template <size_t kBytes>
struct FixedValue {
  static FixedValue Of(std::string_view bytes) {
    FixedValue value;
    std::memcpy(value.bytes.data(), bytes.data(), value.bytes.size());
    return value;
  }
  std::string_view view() const { return {bytes.data(), bytes.size()}; }

  std::array<char, kBytes> bytes;
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

// Opens a target on the index for the sizes of the setup: Index<key bytes, value bytes>,
// loop_target.h; both are 0 for mixed sizes.
//   kNotSupported  keys or values are not of 8, 16, 24 or 32 bytes, and not both of 4
template <template <size_t, size_t> typename Index>
Result<std::unique_ptr<YcsbTarget>> OpenFixed(const PeerSetup& setup) {
  // The order is: keys of 8 bytes with values of 8, 16, ..., keys of 16 bytes, ...
  static constexpr size_t kStep = kMixedStepBytes;
  static constexpr auto kOpen = []<size_t... kAt>(std::index_sequence<kAt...>) {
    return std::array{&LoopTarget<
        Index<(kAt / kMixedSizes + 1) * kStep, (kAt % kMixedSizes + 1) * kStep>>::Open...};
  }(std::make_index_sequence<kMixedSizes * kMixedSizes>());
  if (setup.values.mixed()) return LoopTarget<Index<0, 0>>::Open(setup);
  const size_t value_bytes = setup.values.value_bytes();
  if (setup.key_bytes == 4 && value_bytes == 4) return LoopTarget<Index<4, 4>>::Open(setup);
  if (!IsMixedSize(setup.key_bytes) || !IsMixedSize(value_bytes)) {
    return Fail(Code::kNotSupported, "keys and values are of 8, 16, 24 or 32 bytes, or both of 4");
  }
  return kOpen[(setup.key_bytes / kStep - 1) * kMixedSizes + value_bytes / kStep - 1](setup);
}

}  // namespace skep::bench
