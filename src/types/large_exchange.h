// large_exchange.h: a function that exchanges pieces in a segment of a large sorted set that nobody
// has read.
//
//   name                      on           operand
//   large-segment-exchange    a segment    stamp 8, bytes max 4, form 1; for each edit, ascending
//                                          by places: '-' or '+', piece
//
// A piece of form 'e' is an entry, score and member, and segments of that form are in the order of
// scores; one of form 'm' is a member and its score, in the order of members. '-' takes a piece
// away, which has to be there, with this score. '+' adds one, at whose place there has to be none;
// both at one place, in this order, replace a piece. The segment gets the stamp.
//
// Integer: kIsLong if the pieces then have more than `bytes max` bytes; kIsSparse if a piece was
// taken away and they have less than a quarter of that, and the segment is not the last one.
// kAborted: the segment is absent, ends before the last place, has not what is taken away, or has
// what is added; or its pieces would have more than twice `bytes max` bytes. Nothing is changed.
//
// Cost: of each edit a search for its place (equal_pieces.h), or of all a walk to the last one; and
// a copy of the segment.
//
// Thread safety: all functions are pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "skep/scratch.h"
#include "types/function_table.h"

namespace skep::types {

// The integers of large-segment-exchange and large-segment-put, as bits.
inline constexpr int64_t kIsNew = 1;
inline constexpr int64_t kIsLong = 2;
inline constexpr int64_t kIsSparse = 4;

struct Exchange {
  uint64_t stamp;          // that the segment gets
  uint32_t bytes_max;      // of pieces, that a segment is meant to have
  bool by_score;           // the pieces are entries
  std::string_view edits;  // as AppendRemoval and AppendInsertion make them
};
std::string_view WriteExchange(const Exchange& exchange, Scratch& scratch);
inline void AppendRemoval(std::string_view piece, std::string& edits) { (edits += '-') += piece; }
inline void AppendInsertion(std::string_view piece, std::string& edits) { (edits += '+') += piece; }

std::span<const TypeFunction> LargeExchangeFunctions();

}  // namespace skep::types
