#include "base/siphash.h"

#include <bit>
#include <cstring>

namespace skep {
namespace {

constexpr int kRoundsOfAWord = 2;
constexpr int kRoundsAtTheEnd = 4;
constexpr size_t kWordBytes = 8;

// The four words of the state, by the paper's names.
struct State {
  uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }

  void Take(uint64_t word) {
    v3 ^= word;
    for (int i = 0; i < kRoundsOfAWord; ++i) Round();
    v0 ^= word;
  }
};

// Returns the first bytes, at most eight, as a little-endian number.
uint64_t WordOf(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t word = 0;
  if (bytes.empty()) return word;
  std::memcpy(&word, bytes.data(), bytes.size() < kWordBytes ? bytes.size() : kWordBytes);
  return word;
}

}  // namespace

uint64_t SipHash(const SipKey& key, std::string_view bytes) {
  // The constants are "somepseudorandomlygeneratedbytes", which makes the state asymmetric.
  State state = {.v0 = key[0] ^ 0x736f6d6570736575,
                 .v1 = key[1] ^ 0x646f72616e646f6d,
                 .v2 = key[0] ^ 0x6c7967656e657261,
                 .v3 = key[1] ^ 0x7465646279746573};
  const uint64_t length = uint64_t{bytes.size()} << 56;
  for (; bytes.size() >= kWordBytes; bytes.remove_prefix(kWordBytes)) state.Take(WordOf(bytes));
  state.Take(WordOf(bytes) | length);
  state.v2 ^= 0xff;
  for (int i = 0; i < kRoundsAtTheEnd; ++i) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace skep
