#include "collections/pieces.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "types/list.h"
#include "types/sorted_set.h"
#include "types/text.h"

namespace skep::collections {
namespace {

bool TakeDouble(std::string_view& from, double* number) {
  if (from.size() < sizeof(*number)) return false;
  std::memcpy(number, from.data(), sizeof(*number));
  from.remove_prefix(sizeof(*number));
  return !std::isnan(*number);
}

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

bool TakePiece(Form form, std::string_view& from, Piece* piece) {
  const char* const begin = from.data();
  std::string_view text;
  double score = 0;
  piece->place.score = 0;
  switch (form) {
    case Form::kField:
      if (!types::TakeText(from, &piece->place.member) || !types::TakeText(from, &text)) {
        return false;
      }
      break;
    case Form::kMember:
      if (!types::TakeText(from, &piece->place.member)) return false;
      break;
    case Form::kMemberScore:
      if (!types::TakeText(from, &piece->place.member) || !TakeDouble(from, &score)) return false;
      break;
    case Form::kEntry: {
      types::Entry entry;
      if (!types::TakeEntry(from, &entry)) return false;
      piece->place = {.score = entry.score, .member = entry.member};
      break;
    }
    case Form::kElement:
      if (!types::TakeElement(from, &text)) return false;
      piece->place.member = {};
      break;
  }
  piece->bytes = {begin, static_cast<size_t>(from.data() - begin)};
  return true;
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

Pieces WithEdits(const Pieces& pieces, const std::vector<Edit>& edits) {
  Pieces result;
  result.reserve(pieces.size() + edits.size());
  auto at = pieces.begin();
  for (const Edit& edit : edits) {
    for (; at != pieces.end() && at->place < edit.place; ++at) result.push_back(*at);
    if (at != pieces.end() && at->place == edit.place) ++at;
    if (edit.bytes) result.push_back({.place = edit.place, .bytes = *edit.bytes});
  }
  result.insert(result.end(), at, pieces.end());
  return result;
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
