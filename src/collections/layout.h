// layout.h: where the parts of large collections lie in the tree.
//
// A large collection is a record under the user's key (types/large_record.h), and segments: items
// with keys behind all that a user can have.
//
//   key      +-------------+-----------+------+-----------+
//            | 8 x FF      | id, 8     | part | separator |      the id is big-endian
//            +-------------+-----------+------+-----------+
//
//   part   of            separator                            pieces of the body
//    'b'   list          number of the node, 8, in order      none: list_counts.h
//    'c'   not of lists  that of a segment of the main part   none: counts.h
//    '1'.. not of lists  that of an item of the level below   none: counts.h
//    'e'   list          number of the segment, 8, in order   elements: types/list.h
//    'm'   hash          the least field, or less             field, value: types/hash.h
//          set           the least member, or less            member: types/set.h
//          sorted set    the least member, or less            member, score
//    's'   sorted set    the least score, 8, in order, and    score, member: types/sorted_set.h
//                        member, or less
//    'z'   all           none: one item, the names, names.h
//
// A segment's value is drawn in types/large_segment.h, that of a node of counts.h in
// types/large_counts.h.
//
// A segment has the pieces from its separator up to its fence, which is the separator of the next
// one; without a fence it is the last of its part. Pieces ascend, each once, so a body behind its
// varint is a collection in the small form, and so are several bodies one behind the other.
//
// Invariants of a collection whose id a record has; CheckCollection (check.h) checks them.
//   C1  Parts 'm' and 's', where they are, have a first segment, whose separator is empty, and each
//       segment's fence is the separator of the next one.
//   C2  Every piece lies between its segment's separator and fence.
//   C3  The pieces of each part are as many as the record says there are members.
//   C4  A sorted set's parts have the same pairs of member and score.
//   C5  The parts of counts.h, as many as the record says, have the same first item and fences, and
//       each entry counts the pieces from its separator to the next one. Above the lowest level the
//       separators of the entries are those of the nodes of the level below.
//   C6  A list's segments have the numbers from first to last, without a gap, and its counts are as
//       list_counts.h says.
//   C7  As many fields of a hash have deadlines as the record says.
//
// Thread safety: all functions are pure, but NextStamp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "types/large_segment.h"

namespace skep::collections {

// Every user's key is below this.
inline constexpr std::string_view kHiddenFrom = "\xff\xff\xff\xff\xff\xff\xff\xff";
inline bool IsHidden(std::string_view key) {
  return !key.empty() && key.front() == kHiddenFrom.front() && key >= kHiddenFrom;
}

enum class Part : char {
  kBlocks = 'b',
  kCounts = 'c',
  kElements = 'e',
  kMembers = 'm',
  kScores = 's',
  kNames = 'z'
};

// The part of the nodes of a level of counts.h, 0 being the lowest one; at most kCountLevelsMax.
inline constexpr uint64_t kCountLevelsMax = 9;
constexpr Part CountsPart(uint64_t level) {
  return level == 0 ? Part::kCounts : static_cast<Part>('0' + level);
}
constexpr bool IsCounts(Part part) {
  return part == Part::kCounts || (part > static_cast<Part>('0') && part <= static_cast<Part>('9'));
}

// The longest separator, which fits into a key; between pieces that are not told apart by so few
// bytes nothing is split.
inline constexpr size_t kSeparatorBytesMax = 60 * 1024;

// Where the keys of an id begin; those of `id + 1` begin where they end.
std::string KeysOf(uint64_t id);
std::string SegmentKey(uint64_t id, Part part, std::string_view separator);
// The separator, and the part, in the key of a segment of one part of one id.
std::string_view SeparatorOf(std::string_view key);
Part PartOf(std::string_view key);
// The id in a hidden key; 0 if there is none.
uint64_t IdOf(std::string_view key);

// Numbers whose bytes are in the order of the numbers.
std::string OrderedNumber(uint64_t number);
uint64_t NumberOf(std::string_view ordered);
// Bytes that are in the order of the scores. Not for NaN.
std::string OrderedScore(double score);

using types::Segment;
// The value of an item of a part that has segments, or of a node of counts, which becomes a segment
// without a stamp and pieces, whose body is the whole value; that of a list has no fence, either.
// Nothing if the bytes are none. The result views them.
std::optional<Segment> ReadItem(Part part, std::string_view bytes);

// A stamp for a segment that is written, which no write of this process has given. It begins at a
// random number, so that none of an earlier process is like it but by a chance of one in 2^64 for
// each segment that is read.
//
// Thread-safe.
uint64_t NextStamp();

}  // namespace skep::collections
