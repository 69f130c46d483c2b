#include "sim/trace.h"

#include <bit>

namespace skep {
namespace {

// Invertible in both arguments, so that no difference is lost, and spreads each bit over the word.
uint64_t Stir(uint64_t hash, uint64_t word) {
  hash = (std::rotl(hash, 5) ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 32);
}

}  // namespace

void Trace::Mix(Event event, uint64_t a, uint64_t b) {
  hash_ = Stir(Stir(Stir(hash_, static_cast<uint64_t>(event)), a), b);
}

// FNV-1a: https://datatracker.ietf.org/doc/html/draft-eastlake-fnv
uint64_t Trace::Of(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace skep
