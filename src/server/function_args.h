// function_args.h: functions of elements (function.h) as commands name them, and the numbers that
// are their operands and answers.
//
//   VUPDATE key fn type [operand ... | VECTOR bytes] [RETURN OLD | NEW | NONE] [CREATE n]
//   VREDUCE key fn type [init]
//   VFILTER key predicate type operand
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "skep/function.h"

namespace skep {

struct FunctionArgs {
  const Function* function = nullptr;
  std::string operands;  // elements; for a reduction its first state, or empty
  UpdateOptions options;
};

// Reads the words from the function's name on. Returns an error text without a code, or an empty
// one. Errors: no such type, no such function for the type, operands that are not numbers of the
// type, too few or too many operands, no such option.
std::string ParseFunctionArgs(FunctionKind kind, std::span<const std::string_view> words,
                              FunctionArgs* args);

// Appends the number as an element, little-endian. False: it is not a number, or out of range.
bool AppendElement(std::string_view number, Element element, std::string* bytes);

}  // namespace skep
