// function_args.h: functions of elements (function.h) as commands name them, and numbers as their
// operands and answers.
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
  std::string operands;  // elements; of a reduction its first state, or empty
  UpdateOptions options;
};

// Reads the words from the function's name on. Returns what is wrong with them, without a code in
// front, or nothing: no such type, no such function of it, operands that are no numbers of it, too
// few or too many of them, or no option.
std::string ParseFunctionArgs(FunctionKind kind, std::span<const std::string_view> words,
                              FunctionArgs* args);

// Appends the number as an element, little-endian. False: it is none, or out of range.
bool AppendElement(std::string_view number, Element element, std::string* bytes);

}  // namespace skep
