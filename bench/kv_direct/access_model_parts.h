// access_model_parts.h: the common parts of the models of access_model.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "bench/kv_direct/access_model.h"

namespace skep::bench {

inline constexpr uint64_t kLineBytes = 64;

// Returns one request for bytes [at, at + bytes). bytes > 0.
inline Accesses Request(uint64_t at, uint64_t bytes) {
  return {.requests = 1, .lines = (at + bytes - 1) / kLineBytes - at / kLineBytes + 1};
}

// Returns MurmurHash3's finaliser of a key and a seed.
inline uint64_t SeededHash(uint64_t key, uint64_t seed) {
  uint64_t h = key + seed * 0x9e3779b97f4a7c15;
  h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
  h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
  return h ^ h >> 33;
}

inline uint64_t BucketsIn(const AccessModelOptions& options, uint64_t bucket_bytes) {
  const double index_bytes = static_cast<double>(options.memory_bytes) * options.index_ratio;
  return std::max<uint64_t>(1, static_cast<uint64_t>(index_bytes) / bucket_bytes);
}

// A slot of cuckoo and hopscotch: a key, and the address of its value.
struct KeySlot {
  uint64_t key = 0;
  uint64_t value_at = 0;
  uint32_t value_bytes = 0;
  bool used = false;

  Accesses ValueRequest() const {
    return value_bytes == 0 ? Accesses{} : Request(value_at, value_bytes);
  }
};

struct KeyBucket {
  static constexpr uint32_t kSlots = 4;
  std::array<KeySlot, kSlots> slots;

  KeySlot* Free() {
    const auto at = std::ranges::find(slots, false, &KeySlot::used);
    return at == slots.end() ? nullptr : &*at;
  }
  const KeySlot* Find(uint64_t key) const {
    const auto at = std::ranges::find_if(
        slots, [key](const KeySlot& slot) { return slot.used && slot.key == key; });
    return at == slots.end() ? nullptr : &*at;
  }
};

inline constexpr uint32_t kValueAddressBytes = 4;
inline constexpr uint32_t kValueSlabBytesMin = 8;

}  // namespace skep::bench
