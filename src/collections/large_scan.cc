#include "collections/large_scan.h"

#include <cstring>
#include <string>

#include "base/varint.h"
#include "types/collection.h"
#include "types/hash_fields.h"
#include "types/sorted_set.h"

namespace skep::collections {
namespace {

// Appends a member, as texts; not a field that is due. Returns whether it has.
bool AppendMember(uint8_t kind, const Piece& piece, uint64_t now_ms, std::string& to) {
  if (kind != types::kSortedSet) {
    std::string_view texts = piece.bytes;
    uint64_t deadline_ms = 0;
    const bool has_deadline = kind == types::kHash && types::TakeFieldDeadline(texts, &deadline_ms);
    if (has_deadline && deadline_ms <= now_ms) return false;
    to += texts;
    return true;
  }
  types::Entry entry = {.score = 0, .member = piece.place.member};
  std::memcpy(&entry.score, piece.bytes.data() + piece.bytes.size() - sizeof(entry.score),
              sizeof(entry.score));
  types::AppendMemberAndScore(entry, to);
  return true;
}

}  // namespace

Answer ScanMembers(Access& access, View& view, uint8_t kind, std::string_view operand) {
  Answer answer;
  const auto request = types::ReadMemberScan(operand);
  if (!request) {
    answer.status = types::kBadOperand;
    return answer;
  }
  std::string members;
  std::optional<std::string> next;
  uint64_t count = 0;
  const auto visit = [&](std::string_view, const Segment& segment) {
    std::string_view body = segment.body;
    Piece piece;
    while (TakePiece(FormOf(Part::kMembers, kind), body, &piece)) {
      if (piece.place.member < request->from) continue;
      if (AppendMember(kind, piece, access.now_ms(), members)) ++count;
    }
    const bool goes_on = count < request->count && members.size() < access.portion_bytes_max();
    if (!goes_on && segment.fence) next = std::string(*segment.fence);
    return goes_on;
  };
  if (!view.ForEach(Part::kMembers, request->from, false, visit)) {
    answer.status = access.status();
    return answer;
  }
  AppendVarint(answer.value, next ? next->size() + 1 : 0);
  if (next) answer.value += *next;
  answer.value += members;
  return answer;
}

}  // namespace skep::collections
