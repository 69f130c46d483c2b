// counts.h: how many members lie before a place of a large collection, and where the n-th one is.
//
// The main part of a hash, a set or a sorted set (MainPart) is divided into blocks of neighbouring
// segments. Part 'c' has an item for each block: its separator, which is that of the block's first
// segment when it was made, its fence, and how many members lie between. A rank is the sum of the
// counts of the blocks before, and of the pieces of the segments before in the block: for a million
// members that is a scan of some hundred short items and of some segments.
//
// A write that adds or removes members adds to the counts of their blocks, in its atomic batch, by
// a function at the data that also checks the fence (types/large_record.h): so writers of one block
// do not make each other try again.
//
// A block of more than kBlockMax members is divided, one of less than an eighth joined with the one
// to its right, each in an atomic batch that requires all it has read. Who has made a block too
// large or too small tries that once; if it fails, the next writer tries again.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collections/access.h"
#include "collections/change.h"
#include "collections/view.h"

namespace skep::collections {

inline constexpr uint64_t kBlockMax = 2048;

// Divides or joins the block that has the place, if its count calls for that. Returns how many
// items there are more now.
int64_t MendBlock(Access& access, uint64_t id, uint8_t kind, std::string_view place);

// Where a member lies in the order of the main part.
struct RankPlace {
  std::string block;    // the separator of its block
  uint64_t before = 0;  // members before the block
};
// The block that has the n-th member, and how many are before. Nothing: there is none, or the view
// is gone.
std::optional<RankPlace> FindRank(View& view, uint64_t rank);
// The number of members whose sort key (pieces.h) is below `key`. Nothing: the view is gone.
std::optional<uint64_t> CountBelow(View& view, uint8_t kind, std::string_view key);
// The pieces of a segment that lie from `lo` up to `fence`: segments are joined across the borders
// of blocks. Nothing if its body has no pieces of this form.
std::optional<uint64_t> PiecesWithin(Form form, std::string_view separator, const Segment& segment,
                                     std::string_view lo, std::optional<std::string_view> fence);

}  // namespace skep::collections
