// pieces.h: the members of collections as bytes that have an order.
//
// A piece is what a member takes in the body of a segment (layout.h): it has a place in the order
// of its part, and pieces are merged, cut and counted without a look at what else is in them.
//
// Thread safety: all functions are pure.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "collections/layout.h"
#include "skep/scratch.h"
#include "types/list.h"
#include "types/text.h"

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
// Likewise, without a copy of bytes that exist.
std::string_view SortKey(Form form, const Place& place, Scratch& scratch);

struct Piece {
  Place place;
  std::string_view bytes;
};
inline bool IsBefore(const Piece& a, const Piece& b) { return a.place < b.place; }
using Pieces = std::vector<Piece>;

// Finds the pieces of members, which ascend, in a body whose pieces ascend by member: calls
// visit(index of the member, piece) for each that is there.
template <class Visit>
void FindPieces(Form form, std::string_view body, std::span<const std::string_view> members,
                Visit visit);

// Takes a piece from the front. False: the bytes do not begin with one.
inline bool TakePiece(Form form, std::string_view& from, Piece* piece);
// All pieces of a body, in their order there; nothing if it is something else.
std::optional<Pieces> ReadPieces(Form form, std::string_view body);

// A change of one piece: what it becomes, or that it is removed. A piece that is not there is
// inserted.
struct Edit {
  Place place;
  std::optional<std::string_view> bytes;
  bool was_there = false;  // there is a piece before the edit
};
// The new body that edits make of an old one: `inserted` replaces the `removed` bytes that begin at
// `offset`.
struct EditedBody {
  uint64_t pieces = 0;  // of the new body
  size_t offset = 0;
  size_t removed = 0;
  std::string_view inserted = {};
  bool appends = false;  // all edits are behind the last old piece
};
// Edits a body of so many pieces, in whose order the edits ascend; no place is edited twice. The
// inserted bytes are those of a single edit, or lie in the scratch. Nothing if the body is
// malformed. Cost: a walk to the last edit, and a copy from the first one to there if there are
// several.
std::optional<EditedBody> EditBody(Form form, std::string_view body, uint64_t pieces,
                                   std::span<const Edit> edits, Scratch& scratch);
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

// types::TakeText, in fewer instructions for a text whose length takes one byte.
inline bool TakeShortText(std::string_view& from, std::string_view* text) {
  const size_t bytes = from.empty() ? 0 : static_cast<uint8_t>(from.front());
  if (bytes == 0 || bytes >= 0x80 || bytes > from.size()) return types::TakeText(from, text);
  *text = from.substr(1, bytes - 1);
  from.remove_prefix(bytes);
  return true;
}

inline bool TakePiece(Form form, std::string_view& from, Piece* piece) {
  const char* const begin = from.data();
  std::string_view text;
  const auto take_double = [&from](double* number) {
    if (from.size() < sizeof(*number)) return false;
    std::memcpy(number, from.data(), sizeof(*number));
    from.remove_prefix(sizeof(*number));
    return !std::isnan(*number);
  };
  double score = 0;
  piece->place.score = 0;
  bool is_taken = false;
  switch (form) {
    case Form::kField:
      is_taken = TakeShortText(from, &piece->place.member) && TakeShortText(from, &text);
      break;
    case Form::kMember:
      is_taken = TakeShortText(from, &piece->place.member);
      break;
    case Form::kMemberScore:
      is_taken = TakeShortText(from, &piece->place.member) && take_double(&score);
      break;
    case Form::kEntry:
      is_taken = take_double(&piece->place.score) && TakeShortText(from, &piece->place.member);
      break;
    case Form::kElement:
      is_taken = types::TakeElement(from, &text);
      piece->place.member = {};
      break;
  }
  piece->bytes = {begin, static_cast<size_t>(from.data() - begin)};
  return is_taken;
}

// Calls body(form) with the form as a constant, so that a loop over pieces does not ask for it.
template <class Body>
auto WithForm(Form form, Body body) {
  switch (form) {
    case Form::kField:
      return body(std::integral_constant<Form, Form::kField>());
    case Form::kMember:
      return body(std::integral_constant<Form, Form::kMember>());
    case Form::kMemberScore:
      return body(std::integral_constant<Form, Form::kMemberScore>());
    case Form::kEntry:
      return body(std::integral_constant<Form, Form::kEntry>());
    default:
      return body(std::integral_constant<Form, Form::kElement>());
  }
}

template <class Visit>
void FindPieces(Form form, std::string_view body, std::span<const std::string_view> members,
                Visit visit) {
  WithForm(form, [&](auto of) {
    Piece piece;
    size_t at = 0;
    while (at < members.size() && TakePiece(of, body, &piece)) {
      int order = 1;
      while (at < members.size() && (order = members[at].compare(piece.place.member)) < 0) ++at;
      if (order == 0) visit(at++, piece);
    }
  });
}

}  // namespace skep::collections
