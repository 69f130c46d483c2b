#include "types/large_exchange.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "base/compare_bytes.h"
#include "types/collection.h"
#include "types/equal_pieces.h"
#include "types/large_segment.h"
#include "types/score.h"

namespace skep::types {
namespace {

constexpr Status kNotSo(Code::kAborted, "the segment has other pieces");

enum class Form : char { kEntry = 'e', kMemberScore = 'm' };
enum class Action : char { kRemove = '-', kInsert = '+' };

struct Piece {
  double score = 0;
  std::string_view member;
  std::string_view bytes;
};

struct Edit {
  Action action = Action::kRemove;
  Piece piece;
};

// Takes a piece from the front. False: the bytes begin with none.
template <Form kForm>
bool TakePiece(std::string_view& from, Piece* piece) {
  const char* const begin = from.data();
  const bool is_taken = kForm == Form::kEntry
                            ? TakeFixed(from, &piece->score) && TakeShortText(from, &piece->member)
                            : TakeShortText(from, &piece->member) && TakeFixed(from, &piece->score);
  piece->bytes = {begin, static_cast<size_t>(from.data() - begin)};
  return is_taken && !std::isnan(piece->score);
}

// Below 0, 0 or above 0 as the place of `a` is before, at or behind that of `b`.
template <Form kForm>
int Compare(const Piece& a, const Piece& b) {
  if (kForm == Form::kEntry && a.score != b.score) return a.score < b.score ? -1 : 1;
  return CompareBytes(a.member, b.member);
}

template <Form kForm>
bool TakeEdit(std::string_view& from, Edit* edit) {
  return TakeFixed(from, &edit->action) &&
         (edit->action == Action::kRemove || edit->action == Action::kInsert) &&
         TakePiece<kForm>(from, &edit->piece);
}

// Whether a segment with this fence ends before the place. Of a score the fence may have some bytes
// only: the others are zeros.
template <Form kForm>
bool EndsBefore(std::string_view fence, const Piece& place) {
  if (kForm == Form::kMemberScore) return CompareBytes(place.member, fence) >= 0;
  char score[sizeof(uint64_t)];
  uint64_t number = NumberOfScore(place.score);
  for (size_t i = sizeof(score); i-- > 0; number >>= 8) score[i] = static_cast<char>(number);
  const std::string_view of_fence = fence.substr(0, sizeof(score));
  const int order = CompareBytes({score, sizeof(score)}, of_fence);
  return order != 0 ? order > 0 : CompareBytes(place.member, fence.substr(of_fence.size())) >= 0;
}

// What edits make of the numbers of pieces and bytes.
struct Sum {
  uint64_t inserted = 0;  // pieces
  uint64_t removed = 0;
  size_t inserted_bytes = 0;
  size_t removed_bytes = 0;
  Piece last;
};
// Nothing if the bytes are no edits, or they do not ascend.
template <Form kForm>
std::optional<Sum> SumUp(std::string_view edits) {
  Sum sum;
  Edit edit;
  Action before = Action::kInsert;
  while (!edits.empty()) {
    if (!TakeEdit<kForm>(edits, &edit)) return std::nullopt;
    if (sum.inserted + sum.removed > 0) {
      const int order = Compare<kForm>(sum.last, edit.piece);
      const bool replaces = before == Action::kRemove && edit.action == Action::kInsert;
      if (order > 0 || (order == 0 && !replaces)) return std::nullopt;
    }
    const bool inserts = edit.action == Action::kInsert;
    ++(inserts ? sum.inserted : sum.removed);
    (inserts ? sum.inserted_bytes : sum.removed_bytes) += edit.piece.bytes.size();
    before = edit.action;
    sum.last = edit.piece;
  }
  return sum.inserted + sum.removed > 0 ? std::optional(sum) : std::nullopt;
}

template <Form kForm>
constexpr PieceShape kShape = {.lead = kForm == Form::kEntry ? sizeof(double) : 0,
                               .trail = kForm == Form::kEntry ? 0 : sizeof(double)};

// Goes on from the piece at which *rest begins to the first one that is not before the edit.
template <Form kForm>
void SkipBefore(const EqualPieces& pieces, std::string_view body, const Piece& edit,
                std::string_view* rest) {
  const size_t from = (body.size() - rest->size()) / pieces.stride();
  const size_t at =
      pieces.FirstNotBelow(from, [&](std::string_view bytes, std::string_view member) {
        Piece piece = {.member = member};
        if (kForm == Form::kEntry) std::memcpy(&piece.score, bytes.data(), sizeof(piece.score));
        return Compare<kForm>(piece, edit) < 0;
      });
  *rest = body.substr(at * pieces.stride());
}

// Makes the edits of a body, which has room for them. False: it has other pieces.
template <Form kForm>
bool WriteEdited(std::string_view body, std::string_view edits, TextWriter& writer) {
  const EqualPieces pieces(body, kShape<kForm>);
  std::string_view rest = body;
  size_t written = 0;  // bytes of the body that are copied or left out
  Edit edit;
  while (!edits.empty() && TakeEdit<kForm>(edits, &edit)) {
    Piece piece;
    bool is_there = false;
    if (pieces) SkipBefore<kForm>(pieces, body, edit.piece, &rest);
    std::string_view behind = rest;
    for (; !rest.empty(); rest = behind) {
      if (!TakePiece<kForm>(behind, &piece)) return false;
      const int order = Compare<kForm>(piece, edit.piece);
      is_there = order == 0;
      if (order >= 0) break;
    }
    const size_t at = body.size() - rest.size();
    writer.Bytes(body.substr(written, at - written));
    written = at;
    if (is_there != (edit.action == Action::kRemove)) return false;
    if (!is_there) {
      writer.Bytes(edit.piece.bytes);
      continue;
    }
    if (piece.bytes != edit.piece.bytes) return false;
    written += piece.bytes.size();
    rest = behind;
  }
  writer.Bytes(body.substr(written));
  return true;
}

template <Form kForm>
FunctionEffect Edited(const Segment& segment, uint64_t stamp, uint32_t bytes_max,
                      std::string_view edits, Scratch& scratch) {
  const auto sum = SumUp<kForm>(edits);
  if (!sum) return Failure(kBadOperand);
  if (segment.fence && EndsBefore<kForm>(*segment.fence, sum->last)) return Failure(kNotSo);
  const size_t before = segment.body.size() + sum->inserted_bytes;
  if (segment.pieces + sum->inserted < sum->removed || before < sum->removed_bytes) {
    return Failure(kNotSo);
  }
  const size_t bytes = before - sum->removed_bytes;
  if (bytes > size_t{2} * bytes_max && bytes > segment.body.size()) return Failure(kNotSo);
  const Segment now = {.stamp = stamp,
                       .fence = segment.fence,
                       .pieces = segment.pieces + sum->inserted - sum->removed,
                       .body = {}};
  // More than the segment takes in the end: removals come after what is in front of them.
  TextWriter writer(scratch, HeaderBytes(now) + before);
  WriteHeader(now, writer);
  if (!WriteEdited<kForm>(segment.body, edits, writer)) return Failure(kNotSo);
  const bool is_sparse = sum->removed > 0 && segment.fence && bytes < bytes_max / 4;
  return {.action = FunctionEffect::Action::kReplace,
          .value = writer.bytes(),
          .returned = {},
          .integer = (bytes > bytes_max ? kIsLong : 0) | (is_sparse ? kIsSparse : 0)};
}

FunctionEffect ExchangePieces(const FunctionInput& input) {
  std::string_view edits = input.operand;
  uint64_t stamp = 0;
  uint32_t bytes_max = 0;
  auto form = Form::kEntry;
  if (!TakeFixed(edits, &stamp) || !TakeFixed(edits, &bytes_max) || !TakeFixed(edits, &form)) {
    return Failure(kBadOperand);
  }
  if (!input.value) return Failure(kNotSo);
  const auto segment = ReadSegment(*input.value);
  if (!segment) return Failure(kNoCollection);
  switch (form) {
    case Form::kEntry:
      return Edited<Form::kEntry>(*segment, stamp, bytes_max, edits, *input.scratch);
    case Form::kMemberScore:
      return Edited<Form::kMemberScore>(*segment, stamp, bytes_max, edits, *input.scratch);
  }
  return Failure(kBadOperand);
}

constexpr TypeFunction kLargeExchangeFunctions[] = {
    {"large-segment-exchange", ExchangePieces, kSegment}};

}  // namespace

std::string_view WriteExchange(const Exchange& exchange, Scratch& scratch) {
  TextWriter writer(scratch, sizeof(exchange.stamp) + sizeof(exchange.bytes_max) + sizeof(Form) +
                                 exchange.edits.size());
  writer.Fixed(exchange.stamp);
  writer.Fixed(exchange.bytes_max);
  writer.Fixed(exchange.by_score ? Form::kEntry : Form::kMemberScore);
  writer.Bytes(exchange.edits);
  return writer.bytes();
}

std::span<const TypeFunction> LargeExchangeFunctions() { return kLargeExchangeFunctions; }

}  // namespace skep::types
