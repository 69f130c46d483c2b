// item.h: a key with its value in a memory server.
//
//   offset  size  field
//        0     4  crc          of all that follows but `version`, seeded with the slot's place
//        4     1  gen          of the chunk, as in the slot
//        5     1  (zero)
//        6     2  key_bytes
//        8     4  value_bytes
//       12     4  client       who wrote it
//       16     8  sequence     the number of the client's operation
//       24     8  version      0; the crc does not cover it
//       32        key, value, zero bytes up to the next unit
//
// An item checks itself: who reads it through a slot sees by the crc that the bytes are whole, are
// of this place and of this generation of its chunk, and then compares the key in full. A read that
// does not check is a read to be made again, never an absent key (hole H9).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "pool/slot.h"

namespace skep::pool {

struct ItemHeader {
  uint32_t crc;
  uint8_t gen;
  uint8_t zero;
  uint16_t key_bytes;
  uint32_t value_bytes;
  uint32_t client;
  uint64_t sequence;
  uint64_t version;
};
static_assert(sizeof(ItemHeader) == 32);

inline constexpr size_t kKeyBytesMax = 4096;
inline constexpr size_t kValueBytesMax = size_t{1} << 20;

// How many units an item takes; of these lengths, which do not exceed the limits.
inline uint32_t UnitsOf(size_t key_bytes, size_t value_bytes) {
  return static_cast<uint32_t>((sizeof(ItemHeader) + key_bytes + value_bytes + kUnitBytes - 1) /
                               kUnitBytes);
}

// Where an item lies, as its checksum knows it.
struct ItemPlace {
  uint32_t chunk;
  uint32_t unit;
  uint8_t gen;
};
inline ItemPlace PlaceOf(Slot slot) {
  return {.chunk = slot.chunk(), .unit = slot.unit(), .gen = slot.gen()};
}

// Writes an item of UnitsOf(key, value) units to `to`.
void WriteItem(const ItemPlace& place, uint32_t client, uint64_t sequence, std::string_view key,
               std::string_view value, std::span<std::byte> to);

// Views of the bytes that were read.
struct ItemView {
  std::string_view key;
  std::string_view value;
  uint32_t client;
  uint64_t sequence;
};

// The item that begins `bytes`. Nothing: they are not whole, or of another place or generation.
// Cost: the checksum, a nanosecond for 20 bytes.
std::optional<ItemView> ReadItem(const ItemPlace& place, std::span<const std::byte> bytes);

// How many units the item at the front of `bytes`, one unit or more, says that it has, if that can
// be: what to read of an item that is longer than its slot tells. 0: it cannot be.
uint32_t UnitsToldBy(std::span<const std::byte> bytes);

// The key of the item at the front of `bytes`, which need not have all of it; empty if it cannot
// be. Nothing is checked: whoever uses it knows the key by its digest.
std::string_view KeyToldBy(std::span<const std::byte> bytes);

}  // namespace skep::pool
