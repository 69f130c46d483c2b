#include "types/large_find.h"

#include <cstring>

#include "base/compare_bytes.h"
#include "types/collection.h"
#include "types/hash_fields.h"
#include "types/large_segment.h"
#include "types/short_texts.h"

namespace skep::types {
namespace {

constexpr std::string_view kFindField = "large-segment-field";
constexpr std::string_view kFindMember = "large-segment-member";
constexpr std::string_view kFindScore = "large-segment-score";

// The bytes of the piece at the front, if it has short texts and no deadline; else 0. `name`: the
// bytes of its first text.
template <uint8_t kKind>
inline size_t ShortPieceBytes(std::string_view from, size_t* name) {
  *name = ShortTextBytes(from);
  if (*name == 0 || kKind == kSet) return *name;
  const std::string_view rest = Behind(from, *name);
  if (kKind == kSortedSet) return rest.size() >= sizeof(double) ? *name + sizeof(double) : 0;
  const size_t value = ShortTextBytes(rest);
  return value == 0 ? 0 : *name + value;
}

// Takes any piece from the front. False: the bytes do not begin with one.
template <uint8_t kKind>
[[gnu::noinline]] bool TakeAnyPiece(std::string_view& from, std::string_view* member) {
  if (kKind == kHash) {
    HashField field;
    if (!TakeHashField(from, &field)) return false;
    *member = field.name;
    return true;
  }
  if (!TakeText(from, member)) return false;
  if (kKind == kSet) return true;
  if (from.size() < sizeof(double)) return false;
  from.remove_prefix(sizeof(double));
  return true;
}

FunctionEffect EffectOf(SegmentFinding finding, std::string_view returned = {}) {
  return {.returned = returned, .integer = static_cast<int64_t>(finding)};
}

// Skips pieces whose texts are as long as those of the first one and that are not the wanted one;
// none if the first piece is not short. Returns their bytes.
template <uint8_t kKind>
size_t SkipAlike(std::string_view body, std::string_view wanted) {
  constexpr size_t kTailBytes = sizeof(uint64_t);
  size_t name = 0;
  const size_t stride = ShortPieceBytes<kKind>(body, &name);
  if (stride == 0 || name <= kTailBytes || name != wanted.size() + 1) return 0;
  const char name_length = body.front();
  const char value_length = body[kKind == kHash ? name : 0];
  uint64_t wanted_tail = 0;
  std::memcpy(&wanted_tail, wanted.data() + wanted.size() - kTailBytes, kTailBytes);
  size_t at = 0;
  for (; at + stride <= body.size(); at += stride) {
    const char* const piece = body.data() + at;
    if (*piece != name_length || (kKind == kHash && piece[name] != value_length)) break;
    uint64_t tail = 0;
    std::memcpy(&tail, piece + name - kTailBytes, kTailBytes);
    if (tail == wanted_tail && AreEqual({piece + 1, name - 1}, wanted)) break;
  }
  return at;
}

template <uint8_t kKind>
FunctionEffect FindIn(std::string_view body, std::string_view wanted) {
  body = Behind(body, SkipAlike<kKind>(body, wanted));
  while (!body.empty()) {
    size_t name = 0;
    size_t bytes = ShortPieceBytes<kKind>(body, &name);
    bool is_wanted = false;
    if (bytes != 0) [[likely]] {
      is_wanted = AreEqual(ShortText(body, name), wanted);
    } else {
      std::string_view rest = body;
      std::string_view member;
      if (!TakeAnyPiece<kKind>(rest, &member)) return Failure(kNoCollection);
      bytes = body.size() - rest.size();
      is_wanted = member == wanted;
    }
    if (is_wanted) return EffectOf(SegmentFinding::kPiece, body.substr(0, bytes));
    body = Behind(body, bytes);
  }
  return EffectOf(SegmentFinding::kNone);
}

template <uint8_t kKind>
FunctionEffect Find(const FunctionInput& input) {
  if (!input.value) return EffectOf(SegmentFinding::kNoSegment);
  const auto segment = ReadSegment(*input.value);
  if (!segment) return Failure(kNoCollection);
  if (segment->fence && CompareBytes(input.operand, *segment->fence) >= 0) {
    return EffectOf(SegmentFinding::kEndsBefore, *segment->fence);
  }
  return FindIn<kKind>(segment->body, input.operand);
}

constexpr TypeFunction kLargeFindFunctions[] = {
    {kFindField, Find<kHash>, kSegment, true},
    {kFindMember, Find<kSet>, kSegment, true},
    {kFindScore, Find<kSortedSet>, kSegment, true},
};

}  // namespace

std::string_view FindFunctionName(uint8_t kind) {
  return kind == kHash ? kFindField : kind == kSet ? kFindMember : kFindScore;
}

std::optional<FunctionEffect> AnswerOfPiece(uint8_t kind, std::optional<std::string_view> piece,
                                            Scratch& scratch) {
  static constexpr std::string_view kNo("\0", 1);
  static constexpr std::string_view kYes("\1", 1);
  if (kind == kSet) return FunctionEffect{.returned = piece ? kYes : kNo, .integer = piece ? 1 : 0};
  if (!piece) return FunctionEffect{.returned = kNo};
  if (kind == kSortedSet) {
    const std::string_view score = piece->substr(piece->size() - sizeof(double));
    return FunctionEffect{.returned = scratch.Concat(kYes, score)};
  }
  std::string_view value = *piece;
  std::string_view field;
  // A field with a deadline begins with no text.
  if (!TakeShortText(value, &field)) return std::nullopt;
  return FunctionEffect{.returned = value};
}

std::span<const TypeFunction> LargeFindFunctions() { return kLargeFindFunctions; }

}  // namespace skep::types
