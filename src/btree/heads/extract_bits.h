// extract_bits.h: takes chosen bits of a word and puts them side by side.
#pragma once

#include <bit>
#include <cstdint>

namespace skep::btree {

#if defined(__x86_64__)
// Whether the processor has the instruction that extracts bits (BMI2), and is quick at it. AMD's
// first two Zen take it apart into hundreds of steps.
inline const bool kUsesPext = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("bmi2") && !__builtin_cpu_is("znver1") &&
         !__builtin_cpu_is("znver2");
}();
#endif

// ExtractBits without an instruction for it. Cost: a turn for each run of ones in the mask; the
// masks of text have one run a byte.
inline uint64_t ExtractBitsByRuns(uint64_t word, uint64_t mask) {
  uint64_t extracted = 0;
  int at = 0;
  while (mask != 0) {
    const int begin = std::countr_zero(mask);
    const int length = std::countr_one(mask >> begin);
    const uint64_t ones = ~uint64_t{0} >> (64 - length);
    extracted |= (word >> begin & ones) << at;
    mask &= ~(ones << begin);
    at += length;
  }
  return extracted;
}

// The bits of two words that are set in `mask`, side by side in their order, from the lowest bit of
// an answer on. So words that differ in these bits only are in the order of the answers.
struct ExtractedBits {
  uint64_t first;
  uint64_t second;
};
inline ExtractedBits ExtractBits(uint64_t first, uint64_t second, uint64_t mask) {
#if defined(__x86_64__)
  if (kUsesPext) [[likely]] {
    asm("pext %1, %0, %0" : "+r"(first) : "r"(mask));
    asm("pext %1, %0, %0" : "+r"(second) : "r"(mask));
    return {first, second};
  }
#endif
  return {ExtractBitsByRuns(first, mask), ExtractBitsByRuns(second, mask)};
}

}  // namespace skep::btree
