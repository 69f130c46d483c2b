// element_functions.h: how updates, reductions and filters of elements are run.
//
// The operand of an update, as a request carries it:
//
//   +---------+-----------+---+---+-------------+-----------------------------------+
//   | returns | is_vector | 0 | 0 | create, u32 | operands, elements little-endian  |
//   +---------+-----------+---+---+-------------+-----------------------------------+
//
// The operand of a reduction is empty, or a state of 8 bytes; that of a filter is an element.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "skep/function.h"

namespace skep {

inline constexpr size_t kUpdateHeaderBytes = 8;
inline constexpr size_t kStateBytes = 8;

std::string_view UpdateOperand(const UpdateOptions& options, std::string_view operands,
                               Scratch& scratch);

struct UpdateOperands {
  UpdateOptions::Returns returns;
  bool is_vector;
  uint32_t create = 0;
  std::string_view operands;
};
// Reads the operand of an update. kInvalidArgument: its header is malformed.
Result<UpdateOperands> ParseUpdate(std::string_view operand);
// Whether this update suits a value of `bytes` bytes: kOk, or what is wrong.
Status CheckUpdate(const Function& update, const UpdateOperands& operands, size_t bytes);

// Likewise of a reduction, and of a filter.
Status CheckReduce(const Function& reduce, size_t bytes, std::string_view operand);
Status CheckFilter(const Function& filter, size_t bytes, std::string_view operand);

// The body of all functions of a kind.
FunctionBody BodyOf(FunctionKind kind);

// Likewise for values in parts (value_parts.h), which it looks at in chunks of kElementChunkBytes.
// Null for a sum of floats, whose sums (function.h) begin anew with each call of the kernel.
PartsBody PartsBodyOf(const Function& function);
inline constexpr size_t kElementChunkBytes = size_t{16} << 10;

// Whether a value of `bytes` bytes is a vector of the function's elements: kOk, or what is wrong.
Status CheckElements(const Function& function, size_t bytes);
// The bytes of the state that a reduction begins with.
std::string_view FirstState(const Function& reduce);

// The built-in functions, without bodies, with the kernels of the best instructions the machine
// has.
std::vector<Function> BuiltInElementFunctions();

}  // namespace skep
