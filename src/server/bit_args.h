// bit_args.h: reads the arguments of the commands about bits and parts of values, and finds bits.
// What is counted from the end of a value is negative, as in Redis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/string_functions.h"

namespace skep {

// The longest value of Redis: an offset beyond it is an error of its own.
inline constexpr int64_t kRedisValueBytesMax = int64_t{512} << 20;

inline constexpr std::string_view kNotABitOffset =
    "ERR bit offset is not an integer or out of range";

// The slice [begin, end) of something that has `size` pieces.
struct Slice {
  int64_t begin = 0;
  int64_t end = 0;
  bool empty() const { return begin >= end; }
};

// The slice from the piece `first` to the piece `last`, both included, as Redis's GETRANGE,
// BITCOUNT and BITPOS have it.
Slice SliceOf(int64_t first, int64_t last, int64_t size);

// The offset of a bit. A word of BITFIELD may begin with '#': then it counts fields of
// `field_bits`, which is 0 for other commands.
std::optional<uint64_t> ParseBitOffset(std::string_view word, unsigned field_bits);

// The number of bits of a value that are 1, among those of the slice, which is in bits.
int64_t CountBits(std::string_view value, Slice bits);
// The first bit of the slice that is `bit`; nullopt if there is none.
std::optional<int64_t> FindBit(std::string_view value, Slice bits, bool bit);

// The operations of BITFIELD and BITFIELD_RO.
struct BitFieldArgs {
  std::vector<BitFieldOperation> operations;
  bool writes = false;
};
// `words` are those behind the key. Returns Redis's error text, or an empty one.
std::string_view ParseBitField(std::span<const std::string_view> words, BitFieldArgs& to);

}  // namespace skep
