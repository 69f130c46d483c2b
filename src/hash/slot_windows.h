// slot_windows.h: finds the slots of a bucket that begin with given bytes, comparing all at once.
//
// Slots are 5 bytes; a window is the 8 bytes from the beginning of a slot on: the slot and the next
// three bytes. With AVX-512 VBMI two permutations make all ten windows of the line; else they are
// loaded two at a time.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/cpu.h"

namespace skep::hash {

inline constexpr uint32_t kSlotBytes = 5;
inline constexpr uint32_t kSlotCount = 10;

#if defined(__x86_64__)
namespace wide {

// Says which byte of the line goes where: window i begins at byte 5 * i.
struct alignas(64) WindowBytes {
  uint8_t first[64];
  uint8_t last[64];  // windows 8 and 9; the others are not looked at
};
inline constexpr WindowBytes kWindowBytes = [] {
  WindowBytes bytes = {};
  for (uint8_t i = 0; i < 64; ++i) {
    bytes.first[i] = static_cast<uint8_t>(i / 8 * kSlotBytes + i % 8);
    bytes.last[i] = i < 16 ? static_cast<uint8_t>((8 + i / 8) * kSlotBytes + i % 8) : uint8_t{0};
  }
  return bytes;
}();

#if defined(__AVX512F__)
#define SKEP_WIDE_CLOBBERS , "xmm16", "xmm17", "xmm18", "xmm19", "k1", "k2"
#else
#define SKEP_WIDE_CLOBBERS
#endif
inline uint32_t WindowsLike(const uint8_t* line, uint64_t word, uint64_t mask) {
  uint32_t first;
  uint32_t last;
  asm("vpbroadcastq %[word], %%zmm18\n\t"
      "vpbroadcastq %[mask], %%zmm19\n\t"
      "vmovdqa64 %[to_first], %%zmm16\n\t"
      "vmovdqa64 %[to_last], %%zmm17\n\t"
      "vpermb %[line], %%zmm16, %%zmm16\n\t"
      "vpermb %[line], %%zmm17, %%zmm17\n\t"
      "vpandq %%zmm19, %%zmm16, %%zmm16\n\t"
      "vpandq %%zmm19, %%zmm17, %%zmm17\n\t"
      "vpcmpeqq %%zmm18, %%zmm16, %%k1\n\t"
      "vpcmpeqq %%zmm18, %%zmm17, %%k2\n\t"
      "kmovd %%k1, %[first]\n\t"
      "kmovd %%k2, %[last]"
      : [first] "=&r"(first), [last] "=r"(last)
      : [word] "r"(word), [mask] "r"(mask), [to_first] "m"(kWindowBytes.first),
        [to_last] "m"(kWindowBytes.last), [line] "m"(*reinterpret_cast<const uint8_t(*)[64]>(line))
      : "cc" SKEP_WIDE_CLOBBERS);
  return first | last << 8;
}
#undef SKEP_WIDE_CLOBBERS

}  // namespace wide
#endif

// Returns a bit for each of ten slots whose window is `word` under the mask; `word` is zero where
// the mask is. Bits from 10 on are unspecified.
inline uint32_t SlotsLike(const uint8_t* line, uint64_t word, uint64_t mask) {
#if defined(__x86_64__)
  if (kUsesAvx512Vbmi) return wide::WindowsLike(line, word, mask);
#endif
  using Two = uint64_t __attribute__((vector_size(16)));
  const auto window = [&](uint32_t slot) {
    uint64_t bytes;
    std::memcpy(&bytes, line + slot * kSlotBytes, sizeof(bytes));
    return bytes;
  };
  const Two words = {word, word};
  const Two masks = {mask, mask};
  Two all = {0, 0};
  for (uint32_t slot = 0; slot < kSlotCount; slot += 2) {
    const Two two = {window(slot), window(slot + 1)};
    const Two bits = {uint64_t{1} << slot, uint64_t{2} << slot};
    all |= static_cast<Two>((two & masks) == words) & bits;
  }
  return static_cast<uint32_t>(all[0] | all[1]);
}

}  // namespace skep::hash
