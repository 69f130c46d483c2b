// string_functions.h: built-in functions (skep/function.h) that change the bytes of one value: a
// part of it, a bit, fields of bits, or the floating-point number that it is.
//
// Bits are numbered from the first byte on, and within a byte from the most significant bit on. An
// absent key counts as an empty value, and bytes behind a value's end as 0. A value grows to the
// last byte that a write touches.
//
//   function     operand
//   set-range    8 bytes: the offset in bytes; then the bytes to write there, at least one
//   set-bit      8 bytes: the offset in bits; 1 byte: 0 or 1. `integer` is the bit before. A bit
//                that is the wanted one already changes nothing
//   bit-field    for each operation kBitFieldBytes, below; `returned` has kBitFieldResultBytes each
//   add-float    the decimal number to add (float_text.h). `returned` is the sum, which is
//                the new value
//
// Numbers in operands and results are little-endian. Operands come from clients of the packed
// protocol, too: one that is malformed is kInvalidArgument. A value beyond the limit of its
// keyspace is kTooLarge, and no bytes are built for it.
//
// Thread safety: all of it is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/value_parts.h"
#include "skep/function.h"
#include "skep/scratch.h"

namespace skep {

// ---- The bodies. function.cc registers them.

FunctionEffect SetRange(const FunctionInput& input);
FunctionEffect SetBit(const FunctionInput& input);
FunctionEffect ChangeBitFields(const FunctionInput& input);
FunctionEffect AddFloat(const FunctionInput& input);
// Those that do the same to values in parts.
PartsEffect AppendToParts(const PartsInput& input);
PartsEffect SetRangeOfParts(const PartsInput& input);
PartsEffect SetBitOfParts(const PartsInput& input);
PartsEffect ChangeBitFieldsOfParts(const PartsInput& input);

// ---- Operands

std::string_view SetRangeOperand(uint64_t offset, std::string_view bytes, Scratch& scratch);
std::string_view SetBitOperand(uint64_t bit_offset, bool bit, Scratch& scratch);

// One operation of bit-field.
//
//   offset  size  field
//        0     1  kind
//        1     1  overflow
//        2     1  is_signed
//        3     1  bits, 1 to 64; 63 at most if unsigned
//        4     8  offset, in bits; at most kBitOffsetMax
//       12     8  value
struct BitFieldOperation {
  enum class Kind : uint8_t { kGet, kSet, kAdd };
  enum class Overflow : uint8_t { kWrap, kSaturate, kFail };

  Kind kind = Kind::kGet;
  Overflow overflow = Overflow::kWrap;
  bool is_signed = false;
  uint8_t bits = 1;
  uint64_t offset = 0;
  int64_t value = 0;  // kSet: the new number; kAdd: what is added
};
inline constexpr size_t kBitFieldBytes = 20;
// The offset of a bit that no value has, below which a sum of an offset and a width does not wrap.
inline constexpr uint64_t kBitOffsetMax = uint64_t{1} << 62;

void WriteBitFieldOperation(const BitFieldOperation& operation, char* to);

// The result of one operation: the number, for kSet the one before; or none, because kFail found an
// overflow.
inline constexpr size_t kBitFieldResultBytes = 9;
std::optional<int64_t> ReadBitFieldResult(std::string_view returned, size_t index);
// Whether an operation of the operand has written its field, if only the number that was there.
bool HasWrittenBitField(std::string_view operand, std::string_view returned);

// ---- Reading

// The number at the bits [offset, offset + bits) of a value, 64 bits at most.
uint64_t BitsOf(std::string_view value, uint64_t offset, unsigned bits);
// The same as a result of kGet.
int64_t BitFieldOf(std::string_view value, const BitFieldOperation& field);

}  // namespace skep
