// large_find.h: the functions that find one member in a segment of a large collection
// (large_segment.h), so that a read of a member brings its piece and not the whole segment.
//
//   name                  pieces of the segment                  operand
//   large-segment-field   text field, text value; either with a  the field
//                         deadline in front (hash_fields.h)
//   large-segment-member  text member                            the member
//   large-segment-score   text member, 8 bytes                   the member
//
// Integer: a SegmentFinding. Returned: of kPiece the member's piece, of kEndsBefore the fence. An
// absent key is a segment that is gone: kNoSegment.
//
// Cost: a walk to the member, or to the end if it is not there, and a copy of its piece. To see
// that two names are not the same takes less than to order them, and most members that are asked
// for are there; of pieces that are as long as the first one it takes a look at eight bytes.
//
// Thread safety: all functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "skep/scratch.h"
#include "types/function_table.h"

namespace skep::types {

enum class SegmentFinding : uint8_t {
  kNone,        // the segment has the place of the member, which is not there
  kPiece,       // the member is there
  kEndsBefore,  // the fence of the segment is not above the member
  kNoSegment,   // the key has no segment
};

// The name of the function for a collection of this kind: a hash, a set or a sorted set.
std::string_view FindFunctionName(uint8_t kind);

// What hash-get, set-has or zset-score answers, as is right for the kind, if it is asked for one
// member that has this piece in its segment; `piece` is nothing if the member is not there. The
// result is nothing for a field that has a deadline. Views the piece, or the scratch.
std::optional<FunctionEffect> AnswerOfPiece(uint8_t kind, std::optional<std::string_view> piece,
                                            Scratch& scratch);

std::span<const TypeFunction> LargeFindFunctions();

}  // namespace skep::types
