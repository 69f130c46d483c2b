// pieces.h: the members of collections as bytes that have an order.
//
// A piece is what a member takes in the body of a segment (layout.h): it has a place in the order
// of its part, and pieces are merged, cut and counted without a look at what else is in them.
//
// Thread safety: all functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collections/layout.h"

namespace skep::collections {

// The forms that pieces have.
enum class Form : uint8_t {
  kField,        // text field, text value: a hash
  kMember,       // text member: a set
  kMemberScore,  // text member, double score: a sorted set by member
  kEntry,        // double score, text member: a sorted set by score
  kElement,      // an element of a list, which has no place of its own
};

// Where a piece stands in its part.
struct Place {
  double score = 0;  // kEntry; else 0
  std::string_view member;
  friend bool operator==(const Place&, const Place&) = default;
};
inline bool operator<(const Place& a, const Place& b) {
  return a.score != b.score ? a.score < b.score : a.member < b.member;
}
// The bytes that are in the order of places of this form; separators are the first of them.
std::string SortKey(Form form, const Place& place);

struct Piece {
  Place place;
  std::string_view bytes;
};
inline bool IsBefore(const Piece& a, const Piece& b) { return a.place < b.place; }
using Pieces = std::vector<Piece>;

// Takes a piece from the front. False: the bytes do not begin with one.
bool TakePiece(Form form, std::string_view& from, Piece* piece);
// All pieces of a body, in their order there; nothing if it is something else.
std::optional<Pieces> ReadPieces(Form form, std::string_view body);

// A change of one piece: what it becomes, or that it is removed. A piece that is not there is
// inserted.
struct Edit {
  Place place;
  std::optional<std::string_view> bytes;
};
// The pieces with the edits; both ascend by place, and no place is edited twice.
Pieces WithEdits(const Pieces& pieces, const std::vector<Edit>& edits);
// The edits, ascending, that make `after` of `before`; both ascend.
std::vector<Edit> Difference(const Pieces& before, const Pieces& after);

size_t BytesOf(const Pieces& pieces);

// Pieces that lie in one segment, and the separator in front of them.
struct Run {
  std::string separator;
  size_t begin, end;
};
// Cuts pieces into runs of about `bytes` each, where a separator of at most kSeparatorBytesMax
// tells them apart. The first run has the separator `first`.
std::vector<Run> CutIntoRuns(Form form, const Pieces& pieces, size_t bytes, std::string first);

}  // namespace skep::collections
