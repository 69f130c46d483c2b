#include "sim/trace.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace skep {
namespace {

// Mixes a word into the hash. Invertible in both arguments, so that no difference is lost; each bit
// spreads over the word.
uint64_t Stir(uint64_t hash, uint64_t word) {
  hash = (std::rotl(hash, 5) ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 32);
}

}  // namespace

void Trace::Mix(Event event, uint64_t a, uint64_t b) {
  hash_ = Stir(Stir(Stir(hash_, static_cast<uint64_t>(event)), a), b);
}

uint64_t Trace::Of(std::string_view bytes) {
  uint64_t hash = bytes.size();
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t count = std::min(bytes.size(), sizeof(word));
    std::memcpy(&word, bytes.data(), count);
    hash = Stir(hash, word);
    bytes.remove_prefix(count);
  }
  return hash;
}

}  // namespace skep
