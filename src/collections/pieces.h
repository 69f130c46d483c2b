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

#include "base/compare_bytes.h"
#include "collections/layout.h"
#include "skep/scratch.h"
#include "types/equal_pieces.h"
#include "types/list.h"
#include "types/text.h"

namespace skep::collections {

// The forms that pieces have.
enum class Form : uint8_t {
  kField,        // text field, text value: a hash; in front of it a deadline (types/hash_fields.h)
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
// visit(index of the member, at, piece) for each member. `at` is where its piece begins in the
// body, or where it would begin; `piece` is null if it is not there. Where a body is malformed `at`
// is null, too. Cost: of each member a search (types/equal_pieces.h), or of all a walk to the last
// one's place.
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
  bool was_there = false;    // there is a piece before the edit
  const char* at = nullptr;  // as FindPieces tells it, so that EditBody need not search; or null
  std::string_view before = {};  // the piece that is there; empty if it is not known
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
// malformed. Cost: a walk to the last edit that has no `at`, and a copy from the first edit to the
// last one if there are several.
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

// Takes a field that has a deadline from the front, all of TakePiece but its bytes.
bool TakeFieldWithDeadline(std::string_view& from, Piece* piece);
// Whether fields among the pieces of a hash have deadlines. Cost: of a body, a search for a zero
// byte, and if there is one a walk.
bool HaveDeadlines(uint8_t kind, std::string_view body);
bool HaveDeadlines(uint8_t kind, const Pieces& pieces);
// How many fields of a hash have deadlines.
size_t CountDeadlines(const Pieces& fields);

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
      is_taken =
          types::TakeShortText(from, &piece->place.member) && types::TakeShortText(from, &text);
      if (!is_taken) [[unlikely]] {
        from = {begin, from.size() + static_cast<size_t>(from.data() - begin)};
        is_taken = TakeFieldWithDeadline(from, piece);
      }
      break;
    case Form::kMember:
      is_taken = types::TakeShortText(from, &piece->place.member);
      break;
    case Form::kMemberScore:
      is_taken = types::TakeShortText(from, &piece->place.member) && take_double(&score);
      break;
    case Form::kEntry:
      is_taken =
          take_double(&piece->place.score) && types::TakeShortText(from, &piece->place.member);
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
    const types::PieceShape shape = {.has_value = of == Form::kField,
                                     .trail = of == Form::kMemberScore ? sizeof(double) : 0};
    if (const types::EqualPieces pieces(body, shape); pieces) {
      size_t at = 0;
      for (size_t i = 0; i < members.size(); ++i) {
        at = pieces.FirstNotBelow(at, [&](std::string_view, std::string_view member) {
          return CompareBytes(member, members[i]) < 0;
        });
        std::string_view rest = body.substr(at * pieces.stride());
        const bool is_there = at < pieces.count() && pieces.text(at) == members[i];
        const char* const begin = rest.data();
        const bool is_taken = is_there && TakePiece(of, rest, &piece);
        visit(i, is_there == is_taken ? begin : nullptr, is_taken ? &piece : nullptr);
      }
      return;
    }
    size_t i = 0;
    while (i < members.size() && !body.empty()) {
      const char* at = body.data();
      const bool is_taken = TakePiece(of, body, &piece);
      if (!is_taken) at = nullptr;
      int order = is_taken ? 1 : -1;
      while (i < members.size() &&
             (!is_taken || (order = CompareBytes(members[i], piece.place.member)) < 0)) {
        visit(i++, at, nullptr);
      }
      if (order == 0) visit(i++, at, &piece);
    }
    for (; i < members.size(); ++i) visit(i, body.data(), nullptr);
  });
}

}  // namespace skep::collections
