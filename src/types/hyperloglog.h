// hyperloglog.h: Redis's HyperLogLog, a string that estimates how many different elements it was
// given (Heule et al., "HyperLogLog in Practice", and Ertl, "New cardinality estimation algorithms
// for HyperLogLog sketches").
//
//   offset  size  field
//        0     4  magic     "HYLL"
//        4     1  encoding  0 dense, 1 sparse
//        5     3  (zero)
//        8     8  count     as it was when somebody asked last; its highest bit: it is not known
//       16        registers
//
//   dense   16384 registers of 6 bits each, from the least significant bit of each byte on
//   sparse  runs of registers, one behind the other:
//             00xxxxxx             x+1 registers are 0
//             01xxxxxx yyyyyyyy    xy+1 registers are 0
//             1vvvvvxx             x+1 registers are v+1
//
// The bytes are Redis's: each reads what the other has written, and the same elements in the same
// order make the same bytes, but for the count, which Redis stores when PFCOUNT asks for it and
// which is not stored here: a read writes nothing. A sparse one that would exceed kSparseBytesMax,
// or has a register above 32, becomes dense.
//
// The functions, on strings, their operands, and what they return beside the answer of an error:
//
//   name       operand                     integer           returned
//   hll-add    element, ... as texts       1: it has changed
//   hll-count                              the estimate
//   hll-union  nothing, or a Registers     the estimate      a Registers: the larger of each
//   hll-store  a Registers                                   the larger ones are stored
//   hll-dense                              1: it was sparse  it is dense, if there is one
//   hll-runs                               1: it is sparse   its runs, as PFDEBUG DECODE has them
//
// Thread safety: all functions are pure. Cost: a pass over the registers; to store, a copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace skep::types {

inline constexpr size_t kRegisters = 16384;
inline constexpr size_t kSparseBytesMax = 3000;

// What stands behind each other in operands and answers: 1 if one of them was dense, and a byte for
// each register.
struct Registers {
  uint8_t is_dense = 0;
  std::array<uint8_t, kRegisters> values{};
};
static_assert(sizeof(Registers) == 1 + kRegisters);

// The estimated number of elements.
int64_t EstimateOf(std::span<const uint8_t, kRegisters> registers);

// Whether estimates have the errors that they may have, and the forms agree on each register. Cost:
// some milliseconds.
bool PassesSelfTest();

}  // namespace skep::types
