// size_classes.h: the sizes that an arena cuts its spans into.
//
//   up to 1024: every multiple of 64        64 128 192 .. 1024
//   above: some multiples of 256            1280 1536 .. 4096 4352 4608 4864 5376 5888 .. 21760
//   32768
//
// A size is a class if no larger one of the same alignment fits into a span as often. So the bytes
// that a class adds to a request could never be another slot's: a span of eleven buffers of 5.5 KiB
// has no room for a twelfth, and each of the eleven may as well have 5888 bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace skep::size_classes {

inline constexpr size_t kSpanBytes = 64 * 1024;
inline constexpr size_t kSlotBytesMin = 64;
inline constexpr size_t kSlotBytesMax = 32 * 1024;
inline constexpr size_t kSlotsMax = kSpanBytes / kSlotBytesMin;
inline constexpr size_t kCount = 42;

constexpr bool IsClass(size_t bytes) {
  const size_t unit = bytes < 1024 ? 64 : 256;
  return bytes % unit == 0 && kSpanBytes / bytes != kSpanBytes / (bytes + unit);
}

inline constexpr std::array<uint16_t, kCount> kSlotBytes = [] {
  std::array<uint16_t, kCount> sizes{};
  size_t count = 0;
  for (size_t bytes = kSlotBytesMin; bytes <= kSlotBytesMax; bytes += kSlotBytesMin) {
    if (IsClass(bytes)) sizes.at(count++) = static_cast<uint16_t>(bytes);
  }
  return sizes;
}();
static_assert(kSlotBytes.front() == kSlotBytesMin && kSlotBytes.back() == kSlotBytesMax);

// The class of each size; the index is the size in units of kSlotBytesMin, less one.
inline constexpr std::array<uint8_t, kSlotBytesMax / kSlotBytesMin> kClassOf = [] {
  std::array<uint8_t, kSlotBytesMax / kSlotBytesMin> of{};
  for (size_t i = 0; i < of.size(); ++i) {
    const auto* size = std::ranges::lower_bound(kSlotBytes, (i + 1) * kSlotBytesMin);
    of[i] = static_cast<uint8_t>(size - kSlotBytes.begin());
  }
  return of;
}();

// Returns the smallest class of at least `bytes`. 0 < bytes <= kSlotBytesMax.
constexpr size_t Of(size_t bytes) { return kClassOf[(bytes - 1) / kSlotBytesMin]; }
constexpr size_t SlotBytes(size_t size_class) { return kSlotBytes[size_class]; }
constexpr size_t Slots(size_t size_class) { return kSpanBytes / kSlotBytes[size_class]; }

}  // namespace skep::size_classes
