#include "collections/check.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collections/change.h"
#include "collections/counts.h"
#include "collections/large_call.h"
#include "collections/names.h"

namespace skep::collections {
namespace {

// The items of one id, by their keys.
using Items = std::map<std::string, std::string>;

// A part as it is in the tree.
struct Found {
  Pieces pieces;
  std::vector<std::pair<std::string, Segment>> segments;  // with their separators
};

// Reads a part, and checks that its fences are right (C1) and its pieces within them (C2).
const char* ReadPart(const Items& items, uint64_t id, Part part, Form form, Found* found) {
  const std::string prefix = SegmentKey(id, part, {});
  std::optional<std::string> fence = std::string();
  for (auto at = items.lower_bound(prefix); at != items.end() && at->first.starts_with(prefix);
       ++at) {
    const auto segment = ReadItem(part, at->second);
    if (!segment) return "a segment is malformed";
    const std::string separator(SeparatorOf(at->first));
    if (fence != separator) return "C1: a fence is not the separator of the next segment";
    fence = segment->fence ? std::optional(std::string(*segment->fence)) : std::nullopt;
    found->segments.emplace_back(separator, *segment);
    if (part == Part::kCounts) continue;
    const auto pieces = ReadPieces(form, segment->body);
    if (!pieces || pieces->size() != segment->pieces) return "C2: a segment counts wrong";
    for (const Piece& piece : *pieces) {
      const std::string key = SortKey(form, piece.place);
      if (key < separator || (fence && key >= *fence)) return "C2: a piece lies outside";
      if (!found->pieces.empty() && !IsBefore(found->pieces.back(), piece)) {
        return "C2: pieces do not ascend";
      }
      found->pieces.push_back(piece);
    }
  }
  return found->segments.empty() || fence ? "C1: the last segment of a part is missing" : nullptr;
}

const char* CheckCounts(const Items& items, uint64_t id, Form form, const Pieces& pieces) {
  Found counts;
  if (const char* const broken = ReadPart(items, id, Part::kCounts, form, &counts)) return broken;
  for (const auto& [separator, block] : counts.segments) {
    uint64_t count = 0;
    for (const Piece& piece : pieces) {
      const std::string key = SortKey(form, piece.place);
      if (key >= separator && (!block.fence || key < *block.fence)) ++count;
    }
    if (count != block.pieces) return "C5: a block counts wrong";
  }
  return nullptr;
}

const char* CheckList(const Items& items, const types::LargeRecord& record) {
  uint64_t elements = 0;
  uint64_t segments = 0;
  const std::string prefix = SegmentKey(record.id, Part::kElements, {});
  for (auto at = items.lower_bound(prefix); at != items.end() && at->first.starts_with(prefix);
       ++at) {
    if (NumberOf(SeparatorOf(at->first)) != record.first + segments++) {
      return "C6: the numbers of a list have a gap";
    }
    const auto segment = ReadItem(Part::kElements, at->second);
    if (!segment) return "a list's segment is malformed";
    const auto pieces = ReadPieces(Form::kElement, segment->body);
    if (!pieces || pieces->size() != segment->pieces) return "C2: a list's segment counts wrong";
    elements += segment->pieces;
  }
  if (segments != record.last - record.first + 1) return "C6: a list's last segment is not there";
  return elements == record.members ? nullptr : "C3: a list has not as many elements as it says";
}

const char* CheckCollection(const Items& items, uint8_t kind, const types::LargeRecord& record) {
  if (kind == types::kList) return CheckList(items, record);
  const Part main = MainPart(kind);
  const Form form = FormOf(main, kind);
  Found found;
  if (const char* const broken = ReadPart(items, record.id, main, form, &found)) return broken;
  if (found.pieces.size() != record.members) return "C3: there are not as many members as it says";
  if (const char* const broken = CheckCounts(items, record.id, form, found.pieces)) return broken;
  if (kind != types::kSortedSet) return nullptr;
  Found members;
  const Form by_member = FormOf(Part::kMembers, kind);
  if (const char* const broken = ReadPart(items, record.id, Part::kMembers, by_member, &members)) {
    return broken;
  }
  Scratch scratch;
  const bool agrees = Difference(ByMember(found.pieces, scratch), members.pieces).empty();
  return agrees ? nullptr : "C4: the parts of a sorted set differ";
}

}  // namespace

const char* CheckCollections(Engine& engine) {
  Access access(engine, 0, 0);
  Batch batch;
  batch.Scan(Range::From(kHiddenFrom), {.any_type = true});
  access.Execute(batch);
  std::map<uint64_t, Items> by_id;
  for (const Item& item : batch.items(0)) {
    by_id[IdOf(item.key)].emplace(item.key, item.value);
  }
  for (const auto& [id, items] : by_id) {
    for (const std::string& name : ReadNames(access, id)) {
      const uint8_t type = access.TypeOf(name);
      const auto record = AnyRecord(access, name);
      if (!record || record->id != id) continue;
      const char* const broken = CheckCollection(items, types::KindOf(type), *record);
      if (broken != nullptr) return broken;
    }
  }
  return nullptr;
}

}  // namespace skep::collections
