// slot.h: where an item of the pool lies, in one word.
//
//    63       56 55      48 47      40 39                 15 14          0
//   +-----------+----------+----------+---------------------+-------------+
//   | signature |  units   |   gen    |        chunk        |    unit     |
//   +-----------+----------+----------+---------------------+-------------+
//
//   signature  8 bits of the key's digest (key_digest.h); never 0, so no slot is 0
//   units      how many units of 64 bytes the item has; 255: that many or more, its header says
//   gen        how often the chunk was recycled, modulo 256: a slot that outlived its item differs
//              from every slot of the chunk's next items
//   chunk      the number of a chunk of 2 MiB, which lies in frames of memory servers (frames.h):
//              where it lies changes without a change of its slots
//   unit       the item's first unit in its chunk
//
// One word, so that a one-sided read sees a whole slot and a server publishes it by one store
// (HStore, section 4.1, whose slot has 8 bits of signature, 8 of length and 48 of address).
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/check.h"

namespace skep::pool {

inline constexpr uint32_t kUnitBytes = 64;
inline constexpr uint32_t kChunkBytes = 2 << 20;
inline constexpr uint32_t kChunkUnits = kChunkBytes / kUnitBytes;
inline constexpr uint32_t kChunksMax = 1 << 25;

class Slot {
 public:
  // An item that is longer than a slot can tell.
  static constexpr uint32_t kUnitsMax = 255;

  Slot() = default;  // none
  explicit Slot(uint64_t bits) : bits_(bits) {}
  // `units` of any number: from kUnitsMax on, the slot says kUnitsMax.
  Slot(uint8_t signature, uint32_t units, uint8_t gen, uint32_t chunk, uint32_t unit)
      : bits_(uint64_t{signature} << 56 | uint64_t{units < kUnitsMax ? units : kUnitsMax} << 48 |
              uint64_t{gen} << 40 | uint64_t{chunk} << 15 | unit) {}

  uint64_t bits() const { return bits_; }
  explicit operator bool() const { return bits_ != 0; }
  uint8_t signature() const { return static_cast<uint8_t>(bits_ >> 56); }
  uint32_t units() const { return bits_ >> 48 & 0xff; }
  uint8_t gen() const { return static_cast<uint8_t>(bits_ >> 40); }
  uint32_t chunk() const { return bits_ >> 15 & (kChunksMax - 1); }
  uint32_t unit() const { return bits_ & (kChunkUnits - 1); }
  // Of the item, in its chunk.
  uint32_t offset() const { return unit() * kUnitBytes; }

  friend bool operator==(const Slot&, const Slot&) = default;

 private:
  uint64_t bits_ = 0;
};

// A slot as a value of an engine.
inline std::string_view BytesOf(const Slot& slot) {
  return {reinterpret_cast<const char*>(&slot), sizeof(slot)};
}
// `bytes` are those of a slot.
inline Slot SlotOf(std::string_view bytes) {
  uint64_t word = 0;
  SKEP_CHECK(bytes.size() == sizeof(word));
  std::memcpy(&word, bytes.data(), sizeof(word));
  return Slot(word);
}

static_assert(sizeof(Slot) == 8 && std::is_trivially_copyable_v<Slot>);
static_assert(kChunkUnits == 1 << 15);

}  // namespace skep::pool
