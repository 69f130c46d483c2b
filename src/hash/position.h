// position.h: an order of the keys of a table that growth does not change.
//
//   index of the key's hash (key.h)     bit 46 | ... | bit 1 | bit 0      bucket: the low bits
//   position: the same bits reversed    bit 0 | bit 1 | ... | bit 46      bucket: the high bits
//
// A bucket has the keys whose index ends in its number, of w bits; w is one of two neighbouring
// numbers, depending on whether its other half has been split off. Reversed, these are the keys
// whose position begins with these w bits: one interval of 2^(47 - w) positions. So at any time the
// chains of a table divide the positions into intervals. Growth halves one interval, shrinking
// joins two halves (linear hashing), and no key ever gets another position:
//
//   2 buckets   |        0        |        1        |
//   3 buckets   |   0    |   2    |        1        |
//   4 buckets   |   0    |   2    |   1    |   3    |      positions ->
//
// A scan that goes through the positions from 0 upwards, and remembers only how far it has come,
// meets each key that stays exactly once, however the table grows and shrinks between its steps.
#pragma once

#include <cstdint>

#include "hash/key.h"

namespace skep::hash {

using Position = uint64_t;
inline constexpr Position kPositionEnd = Position{1} << kIndexBits;  // behind all

inline uint64_t ReversedBits(uint64_t bits) {
  constexpr uint64_t kOnes = 0x5555555555555555;
  constexpr uint64_t kTwos = 0x3333333333333333;
  constexpr uint64_t kFours = 0x0f0f0f0f0f0f0f0f;
  bits = (bits >> 1 & kOnes) | (bits & kOnes) << 1;
  bits = (bits >> 2 & kTwos) | (bits & kTwos) << 2;
  bits = (bits >> 4 & kFours) | (bits & kFours) << 4;
  return __builtin_bswap64(bits);
}

// Returns the position of a hash. For the index of a bucket, this is where the bucket's keys begin.
inline Position PositionOf(uint64_t hash) {
  return ReversedBits(IndexOf(hash)) >> (64 - kIndexBits);
}
inline uint64_t IndexAt(Position position) { return ReversedBits(position) >> (64 - kIndexBits); }

}  // namespace skep::hash
