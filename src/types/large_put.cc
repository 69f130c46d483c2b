#include "types/large_put.h"

#include <bit>
#include <cstring>
#include <optional>

#include "base/compare_bytes.h"
#include "types/collection.h"
#include "types/equal_pieces.h"
#include "types/hash_fields.h"
#include "types/large_counts.h"
#include "types/large_record.h"
#include "types/large_segment.h"

namespace skep::types {
namespace {

constexpr Status kNotHere(Code::kAborted, "the member is not of this segment");
constexpr Status kOtherNode(Code::kAborted, "the members are of another node");
constexpr Status kReplaced(Code::kAborted, "the collection was replaced");

// The head of a tally; its bits are behind it.
struct Tally {
  int64_t bytes = 0;
  uint32_t puts = 0;
  uint32_t writes = 0;
};
static_assert(std::has_unique_object_representations_v<Tally>);

size_t BitBytes(uint32_t puts) { return (size_t{puts} + 7) / 8; }

// Takes a whole tally. False: the bytes are none.
bool ReadTally(std::string_view from, Tally* tally, std::string_view* bits) {
  if (!TakeFixed(from, tally) || from.size() != BitBytes(tally->puts)) return false;
  *bits = from;
  return true;
}

// The members that puts from `first` up to `end` have added.
int64_t CountNew(std::string_view bits, size_t first, size_t end) {
  int64_t count = 0;
  for (size_t i = first; i < end; ++i) count += static_cast<uint8_t>(bits[i / 8]) >> (i % 8) & 1;
  return count;
}

int64_t CountAllNew(std::string_view bits) {
  int64_t count = 0;
  for (const char byte : bits) count += std::popcount(static_cast<uint8_t>(byte));
  return count;
}

// ---- Puts ----

constexpr char kFieldForm = 'f';
constexpr char kMemberForm = 'm';

struct PutOperand {
  uint64_t stamp = 0;
  uint32_t bytes_max = 0;
  char form = 0;
  char only_new = 0;
  std::string_view member;
  std::string_view piece;
  Tally tally;
  std::string_view bits;  // of the puts before
};

// Takes a piece from the front. False: the bytes begin with no piece, or with one that has a
// deadline.
inline bool TakePutPiece(char form, std::string_view& from, std::string_view* member) {
  std::string_view value;
  return TakeShortText(from, member) && (form == kMemberForm || TakeShortText(from, &value));
}

std::optional<PutOperand> ReadPut(std::string_view from) {
  PutOperand put;
  if (!TakeFixed(from, &put.stamp) || !TakeFixed(from, &put.bytes_max) ||
      !TakeFixed(from, &put.form) || !TakeFixed(from, &put.only_new) ||
      (put.form != kFieldForm && put.form != kMemberForm)) {
    return std::nullopt;
  }
  const char* const begin = from.data();
  if (!TakePutPiece(put.form, from, &put.member)) return std::nullopt;
  put.piece = {begin, static_cast<size_t>(from.data() - begin)};
  if (!from.empty() && !ReadTally(from, &put.tally, &put.bits)) return std::nullopt;
  return put;
}

// Where a member is in a body, or would be.
struct Spot {
  size_t at = 0;
  size_t bytes = 0;  // of its piece; 0: it is not there
};
std::optional<Spot> FindSpot(const PutOperand& put, std::string_view body) {
  if (const EqualPieces pieces(body, {.has_value = put.form == kFieldForm}); pieces) {
    const size_t i = pieces.FirstNotBelow(0, [&](std::string_view, std::string_view member) {
      return CompareBytes(member, put.member) < 0;
    });
    const bool is_there = i < pieces.count() && pieces.text(i) == put.member;
    return Spot{.at = i * pieces.stride(), .bytes = is_there ? pieces.stride() : 0};
  }
  std::string_view rest = body;
  std::string_view member;
  while (!rest.empty()) {
    const size_t at = body.size() - rest.size();
    if (!TakePutPiece(put.form, rest, &member)) return std::nullopt;
    const int order = CompareBytes(member, put.member);
    if (order > 0) return Spot{.at = at};
    if (order == 0) return Spot{.at = at, .bytes = body.size() - rest.size() - at};
  }
  return Spot{.at = body.size()};
}

std::string_view WriteTally(const PutOperand& put, bool is_new, bool writes, int64_t bytes,
                            Scratch& scratch) {
  const Tally tally = {.bytes = put.tally.bytes + bytes,
                       .puts = put.tally.puts + 1,
                       .writes = put.tally.writes + (writes ? 1 : 0)};
  const size_t size = sizeof(tally) + BitBytes(tally.puts);
  char* const at = scratch.Allocate(size);
  std::memcpy(at, &tally, sizeof(tally));
  char* const bits = at + sizeof(tally);
  CopyBytes(bits, put.bits.data(), put.bits.size());
  if (put.tally.puts % 8 == 0) bits[put.tally.puts / 8] = 0;
  if (is_new) bits[put.tally.puts / 8] |= static_cast<char>(1 << (put.tally.puts % 8));
  return {at, size};
}

FunctionEffect PutMember(const FunctionInput& input) {
  const auto put = ReadPut(input.operand);
  if (!put) return Failure(kBadOperand);
  if (!input.value) return Failure(kNotHere);
  const auto segment = ReadSegment(*input.value);
  if (!segment) return Failure(kNoCollection);
  if (segment->fence && CompareBytes(put->member, *segment->fence) >= 0) return Failure(kNotHere);
  const auto spot = FindSpot(*put, segment->body);
  if (!spot) return Failure(kNotHere);
  Scratch& scratch = *input.scratch;
  const std::string_view body = segment->body;
  const bool is_new = spot->bytes == 0;
  const bool stays =
      !is_new && (put->only_new != 0 || body.substr(spot->at, spot->bytes) == put->piece);
  if (stays) {
    // A field that is set to the value it has is written, as those who watch the key see.
    const bool writes = put->form == kFieldForm && put->only_new == 0;
    return {.returned = WriteTally(*put, false, writes, 0, scratch)};
  }
  const size_t bytes = body.size() - spot->bytes + put->piece.size();
  if (bytes > size_t{2} * put->bytes_max) {
    return Failure(Status(Code::kTooLarge, "a segment would be too long", put->bytes_max));
  }
  const Segment now = {.stamp = put->stamp,
                       .fence = segment->fence,
                       .pieces = segment->pieces + (is_new ? 1 : 0),
                       .body = {}};
  const std::string_view value = SplicedSegment(
      now, body, {.at = spot->at, .removed = spot->bytes, .inserted = put->piece}, scratch);
  const int64_t more = static_cast<int64_t>(put->piece.size()) - static_cast<int64_t>(spot->bytes);
  return {.action = FunctionEffect::Action::kReplace,
          .value = value,
          .returned = WriteTally(*put, is_new, true, more, scratch),
          .integer = (is_new ? kIsNew : 0) | (bytes > put->bytes_max ? kIsLong : 0)};
}

// ---- Sums ----

FunctionEffect TallyCounts(const FunctionInput& input) {
  std::string_view operand = input.operand;
  uint32_t list_bytes = 0;
  uint32_t first = 0;
  uint64_t count_max = 0;
  Tally tally;
  std::string_view bits;
  if (!TakeFixed(operand, &list_bytes) || !TakeFixed(operand, &first) ||
      !TakeFixed(operand, &count_max) || list_bytes > operand.size() ||
      !ReadTally(operand.substr(list_bytes), &tally, &bits)) {
    return Failure(kBadOperand);
  }
  std::string_view list = operand.substr(0, list_bytes);
  if (!input.value) return Failure(kOtherNode);
  CountsCopy node(*input.value, tally.puts, *input.scratch);
  if (!node.Begin()) return Failure(kNoCollection);
  size_t put = first;
  bool has_more = false;
  size_t over = 0;
  for (uint64_t puts = 0; !list.empty();) {
    std::string_view place;
    if (!TakeVarint(list, &puts) || !TakeText(list, &place) || put > tally.puts ||
        puts > tally.puts - put) {
      return Failure(kBadOperand);
    }
    const int64_t added = CountNew(bits, put, put + puts);
    put += puts;
    if (added == 0) continue;
    has_more = true;
    if (node.EndsBefore(place)) return Failure(kOtherNode);
    if (!node.GoTo(place)) return Failure(kNoCollection);
    *node.count() += static_cast<uint64_t>(added);
    if (*node.count() > count_max) over = put;
  }
  if (!has_more) return {};
  return {.action = FunctionEffect::Action::kReplace,
          .value = node.End(),
          .returned = {},
          .integer = static_cast<int64_t>(over)};
}

template <uint8_t kKind>
FunctionEffect TallyRecord(const FunctionInput& input) {
  std::string_view operand = input.operand;
  uint64_t id = 0;
  uint64_t levels = 0;
  Tally tally;
  std::string_view bits;
  if (!TakeFixed(operand, &id) || !TakeFixed(operand, &levels) ||
      !ReadTally(operand, &tally, &bits)) {
    return Failure(kBadOperand);
  }
  auto record = input.value ? ReadLargeRecord(*input.value) : std::nullopt;
  const bool is_as_known = record && record->id == id && record->first == levels &&
                           (kKind != kHash || record->last == 0);
  if (!is_as_known) return Failure(kReplaced);
  record->members += static_cast<uint64_t>(CountAllNew(bits));
  record->bytes += static_cast<uint64_t>(tally.bytes);
  ++record->writes;
  FunctionEffect effect = {.integer = static_cast<int64_t>(record->members)};
  if (tally.writes == 0) return effect;
  effect.action = FunctionEffect::Action::kReplace;
  effect.value = input.scratch->Copy(BytesOf(*record));
  return effect;
}

constexpr TypeFunction kLargePutFunctions[] = {
    {"large-counts-tally", TallyCounts, kSegment},
    {"large-hash-tally", TallyRecord<kHash>, kLargeForm + kHash},
    {"large-segment-put", PutMember, kSegment},
    {"large-set-tally", TallyRecord<kSet>, kLargeForm + kSet},
};

}  // namespace

std::string_view WritePut(const Put& put, Scratch& scratch) {
  TextWriter writer(scratch, sizeof(put.stamp) + sizeof(put.bytes_max) + 2 + put.piece.size());
  writer.Fixed(put.stamp);
  writer.Fixed(put.bytes_max);
  writer.Fixed(put.has_value ? kFieldForm : kMemberForm);
  writer.Fixed(static_cast<char>(put.only_new ? 1 : 0));
  writer.Bytes(put.piece);
  return writer.bytes();
}

std::string_view WriteRecordTally(uint64_t id, uint64_t levels, Scratch& scratch) {
  TextWriter writer(scratch, sizeof(id) + sizeof(levels));
  writer.Fixed(id);
  writer.Fixed(levels);
  return writer.bytes();
}

std::string_view WriteCountsTally(uint32_t first_put, uint64_t count_max, std::string_view list,
                                  Scratch& scratch) {
  TextWriter writer(scratch, 2 * sizeof(first_put) + sizeof(count_max) + list.size());
  writer.Fixed(static_cast<uint32_t>(list.size()));
  writer.Fixed(first_put);
  writer.Fixed(count_max);
  writer.Bytes(list);
  return writer.bytes();
}

void AppendPlace(uint64_t puts, std::string_view place, std::string& list) {
  AppendVarint(list, puts);
  AppendVarint(list, place.size() + 1);
  list += place;
}

std::span<const TypeFunction> LargePutFunctions() { return kLargePutFunctions; }

}  // namespace skep::types
