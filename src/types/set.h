// set.h: a set in one value.
//
//   +------------------+---------------+---------------+----
//   | varint, members  | member, text  | member, text  | ...      text.h
//   +------------------+---------------+---------------+----
//
// Members ascend, in the order of unsigned bytes, each once. So sets are joined and compared by
// going through them side by side.
//
// The functions, their operands, and what they return beside the answer of an error:
//
//   name            operand        integer                      returned
//   set-add         member, ...    how many are new
//   set-remove      member, ...    how many there were
//   set-has         member, ...    how many there are           for each a byte, 1 or 0
//   set-length                     how many members
//   set-all                                                     member, ...
//   set-pop         DrawRequest    how many are gone            those members
//   set-draw        DrawRequest                                 member, ...
//   set-scan        from, count                                  the next member, or none; then
//                                                                member, ...
//   set-take        member         1: it was there and is gone  the member, or that there is none;
//                                                               nothing if there is no set
//   set-unite       member, ...                                 the operand's members and the set's
//   set-intersect   member, ...                                 the operand's that the set has
//   set-subtract    member, ...                                 the operand's that the set has not
//   set-store       member, ...    how many                     the set has the operand's members
//
// The last four take members that ascend, each once: what another of these functions has returned.
//
// Cost: a look at each member; to store, a copy of the set.
#pragma once

#include <string_view>

namespace skep::types {

// The function set-take returns this if the set does not have the member: a list that has nothing.
inline constexpr std::string_view kNoMember("\0", 1);

}  // namespace skep::types
