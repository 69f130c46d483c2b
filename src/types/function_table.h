// function_table.h: the functions of collections (skep/function.h), which run at the data.
//
// Each command on a collection is one of them, so that it is one atomic operation and one slot of a
// batch. The operand has the command's arguments, as text.h writes them unless the function says
// otherwise; the returned bytes are the answer. An absent key is an empty collection, and a
// collection that becomes empty is erased: none that is stored is empty.
//
// Nothing is believed of stored bytes and operands, for a log, a snapshot or a client may have
// brought them: a function that finds them wrong answers kCorrupt or kInvalidArgument and changes
// nothing.
//
// Errors: kTooLarge, the collection would exceed kOneValueBytesMax; others have the text that
// Redis has for them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "skep/function.h"

namespace skep::types {

// A function, and the name and the type under which the registry has it.
struct TypeFunction {
  std::string_view name;
  FunctionBody body;
  uint8_t type;
  bool reads_only = false;
};

std::span<const TypeFunction> HashFunctions();
std::span<const TypeFunction> SetFunctions();
std::span<const TypeFunction> ListFunctions();
std::span<const TypeFunction> SortedSetFunctions();
std::span<const TypeFunction> SortedSetJoinFunctions();
std::span<const TypeFunction> HyperLogLogFunctions();

}  // namespace skep::types
