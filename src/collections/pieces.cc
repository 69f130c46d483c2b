#include "collections/pieces.h"

#include <algorithm>
#include <functional>

#include "types/hash_fields.h"
#include "types/score.h"
#include "types/value_type.h"

namespace skep::collections {
namespace {

// The bytes of a separator between two pieces; empty if there is no short one.
std::string SeparatorBetween(Form form, const Place& left, const Place& right) {
  const std::string below = SortKey(form, left);
  const std::string above = SortKey(form, right);
  const auto [at, unused] = std::ranges::mismatch(below, above);
  const auto common = static_cast<size_t>(at - below.begin());
  return common < kSeparatorBytesMax ? above.substr(0, common + 1) : std::string();
}

// Compares places of pieces of this form: below 0, 0 or above 0 as `a` is before, at or behind `b`.
template <class OfForm>
int ComparePlaces(OfForm form, const Place& a, const Place& b) {
  if constexpr (form == Form::kEntry) {
    if (a.score != b.score) return a.score < b.score ? -1 : 1;
  }
  return CompareBytes(a.member, b.member);
}

// Whether a place that was found lies in this body: that of another segment is no help.
bool Holds(std::string_view body, const char* at) {
  return at != nullptr && !std::less<>()(at, body.data()) &&
         !std::less<>()(body.data() + body.size(), at);
}

template <class OfForm>
std::optional<EditedBody> EditBodyOf(OfForm form, std::string_view body, uint64_t pieces,
                                     std::span<const Edit> edits, Scratch& scratch) {
  EditedBody edited = {.pieces = pieces};
  const bool are_several = edits.size() > 1;
  std::string inserted;            // by several edits
  std::string_view rest = body;    // from the next piece on
  std::string_view behind = body;  // behind that piece
  Piece piece;
  size_t copied = 0;  // bytes of the old body that are copied or left out
  for (const Edit& edit : edits) {
    int order = 1;  // of the next piece and the edit; 1 at the end, too
    const bool is_found = Holds(body, edit.at);
    if (is_found) {
      rest = behind = body.substr(static_cast<size_t>(edit.at - body.data()));
      if (edit.was_there && !TakePiece(form, behind, &piece)) return std::nullopt;
      order = edit.was_there ? 0 : 1;
    }
    for (; !is_found && !rest.empty(); rest = behind) {
      behind = rest;
      if (!TakePiece(form, behind, &piece)) return std::nullopt;
      order = ComparePlaces(form, piece.place, edit.place);
      if (order >= 0) break;
      order = 1;
    }
    const size_t at = body.size() - rest.size();
    if (&edit == &edits.front()) {
      edited.offset = copied = at;
      edited.appends = rest.empty() && pieces > 0;
    }
    if (are_several) inserted += body.substr(copied, at - copied);
    copied = at;
    if (order == 0) {
      copied += piece.bytes.size();
      --edited.pieces;
      rest = behind;
    }
    if (!edit.bytes) continue;
    ++edited.pieces;
    if (are_several) {
      inserted += *edit.bytes;
    } else {
      edited.inserted = *edit.bytes;
    }
  }
  edited.removed = copied - edited.offset;
  if (are_several) edited.inserted = scratch.Copy(inserted);
  return edited;
}

}  // namespace

bool TakeFieldWithDeadline(std::string_view& from, Piece* piece) {
  types::HashField field;
  if (!types::HasDeadlineForm(from) || !types::TakeHashField(from, &field)) return false;
  piece->place.member = field.name;
  return true;
}

bool HaveDeadlines(uint8_t kind, std::string_view body) {
  if (kind != types::kHash || !body.contains('\0')) return false;
  Piece piece;
  while (!body.empty() && !types::HasDeadlineForm(body)) {
    if (!TakePiece(Form::kField, body, &piece)) return false;
  }
  return !body.empty();
}

size_t CountDeadlines(const Pieces& fields) {
  return static_cast<size_t>(std::ranges::count_if(
      fields, [](const Piece& field) { return types::HasDeadlineForm(field.bytes); }));
}

bool HaveDeadlines(uint8_t kind, const Pieces& pieces) {
  return kind == types::kHash && CountDeadlines(pieces) > 0;
}

std::string SortKey(Form form, const Place& place) {
  if (form != Form::kEntry) return std::string(place.member);
  return OrderedScore(place.score).append(place.member);
}

std::string_view SortKey(Form form, const Place& place, Scratch& scratch) {
  if (form != Form::kEntry) return place.member;
  const uint64_t ordered = __builtin_bswap64(types::NumberOfScore(place.score));
  return scratch.Concat({reinterpret_cast<const char*>(&ordered), sizeof(ordered)}, place.member);
}

std::optional<Pieces> ReadPieces(Form form, std::string_view body) {
  Pieces pieces;
  Piece piece;
  while (!body.empty()) {
    if (!TakePiece(form, body, &piece)) return std::nullopt;
    pieces.push_back(piece);
  }
  return pieces;
}

std::optional<EditedBody> EditBody(Form form, std::string_view body, uint64_t pieces,
                                   std::span<const Edit> edits, Scratch& scratch) {
  return WithForm(form, [&](auto of) { return EditBodyOf(of, body, pieces, edits, scratch); });
}

std::vector<Edit> Difference(const Pieces& before, const Pieces& after) {
  std::vector<Edit> edits;
  const auto take_away = [&](const Piece& piece) {
    edits.push_back({.place = piece.place, .bytes = std::nullopt, .was_there = true});
  };
  auto old = before.begin();
  for (const Piece& piece : after) {
    for (; old != before.end() && old->place < piece.place; ++old) take_away(*old);
    if (old != before.end() && old->place == piece.place) {
      if (old->bytes != piece.bytes) {
        edits.push_back({.place = piece.place, .bytes = piece.bytes, .was_there = true});
      }
      ++old;
    } else {
      edits.push_back({.place = piece.place, .bytes = piece.bytes});
    }
  }
  std::for_each(old, before.end(), take_away);
  return edits;
}

size_t BytesOf(const Pieces& pieces) {
  size_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.bytes.size();
  return bytes;
}

std::vector<Run> CutIntoRuns(Form form, const Pieces& pieces, size_t bytes, std::string first) {
  std::vector<Run> runs = {{.separator = std::move(first), .begin = 0, .end = pieces.size()}};
  size_t in_run = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const size_t with_it = in_run + pieces[i].bytes.size();
    if (in_run > 0 && with_it > bytes) {
      std::string separator = SeparatorBetween(form, pieces[i - 1].place, pieces[i].place);
      if (!separator.empty()) {
        runs.back().end = i;
        runs.push_back({.separator = std::move(separator), .begin = i, .end = pieces.size()});
        in_run = 0;
      }
    }
    in_run += pieces[i].bytes.size();
  }
  return runs;
}

}  // namespace skep::collections
