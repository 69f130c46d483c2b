#include "collections/pieces.h"

#include <algorithm>

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

}  // namespace

std::string SortKey(Form form, const Place& place) {
  if (form != Form::kEntry) return std::string(place.member);
  return OrderedScore(place.score).append(place.member);
}

std::string_view SortKey(Form form, const Place& place, Scratch& scratch) {
  if (form != Form::kEntry) return place.member;
  return scratch.Concat(OrderedScore(place.score), place.member);
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
                                   std::span<const Edit> edits) {
  EditedBody edited = {.body = {}, .pieces = pieces, .offset = body.size()};
  size_t more = 0;
  for (const Edit& edit : edits) more += edit.bytes ? edit.bytes->size() : 0;
  edited.body.reserve(body.size() + more);
  std::string_view rest = body;    // from the next piece on
  std::string_view behind = rest;  // behind that piece
  Piece piece;
  bool is_end = rest.empty();
  const auto take = [&] {
    is_end = rest.empty();
    behind = rest;
    return is_end || TakePiece(form, behind, &piece);
  };
  size_t copied = 0;  // bytes of the old body that are copied or left out
  size_t changed_end = 0;
  if (!take()) return std::nullopt;
  for (const Edit& edit : edits) {
    while (!is_end && piece.place < edit.place) {
      rest = behind;
      if (!take()) return std::nullopt;
    }
    const size_t at = body.size() - rest.size();
    edited.body += body.substr(copied, at - copied);
    copied = at;
    if (&edit == &edits.front()) {
      edited.offset = at;
      edited.appends = is_end && pieces > 0;
    }
    if (!is_end && piece.place == edit.place) {
      copied = at + piece.bytes.size();
      --edited.pieces;
      rest = behind;
      if (!take()) return std::nullopt;
    }
    if (edit.bytes) {
      edited.body += *edit.bytes;
      ++edited.pieces;
    }
    changed_end = edited.body.size();
  }
  edited.removed = copied - std::min(copied, edited.offset);
  edited.inserted = changed_end - std::min(changed_end, edited.offset);
  edited.body += body.substr(copied);
  return edited;
}

std::vector<Edit> Difference(const Pieces& before, const Pieces& after) {
  std::vector<Edit> edits;
  auto old = before.begin();
  for (const Piece& piece : after) {
    for (; old != before.end() && old->place < piece.place; ++old) {
      edits.push_back({.place = old->place, .bytes = std::nullopt});
    }
    if (old != before.end() && old->place == piece.place) {
      if (old->bytes != piece.bytes) edits.push_back({.place = piece.place, .bytes = piece.bytes});
      ++old;
    } else {
      edits.push_back({.place = piece.place, .bytes = piece.bytes});
    }
  }
  for (; old != before.end(); ++old) edits.push_back({.place = old->place, .bytes = std::nullopt});
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
