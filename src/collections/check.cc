#include "collections/check.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collections/change.h"
#include "collections/counts.h"
#include "collections/large_call.h"
#include "collections/list_counts.h"
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
    if (IsCounts(part)) continue;
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

const char* CheckCounts(const Items& items, const types::LargeRecord& record, Form form,
                        const Pieces& pieces) {
  std::vector<std::string> below;  // the separators of the nodes of the level below
  for (uint64_t level = 0; level <= kCountLevelsMax; ++level) {
    Found found;
    const char* const broken = ReadPart(items, record.id, CountsPart(level), form, &found);
    if (level > record.first) {
      if (!found.segments.empty()) return "C5: a level of counts is not in the record";
      continue;
    }
    if (broken != nullptr) return broken;
    std::vector<std::string> nodes;
    std::vector<std::string> separators;
    std::vector<uint64_t> counts;
    for (const auto& [separator, item] : found.segments) {
      const auto node = types::ReadCountNode(item.body);
      if (!node) return "C5: a node of counts is malformed";
      nodes.push_back(separator);
      for (size_t i = 0; i < node->entries.size(); ++i) {
        separators.emplace_back(i == 0 ? separator : node->entries[i].separator);
        counts.push_back(node->entries[i].count);
      }
    }
    std::vector<uint64_t> expected(counts.size());
    for (const Piece& piece : pieces) {
      const auto behind = std::ranges::upper_bound(separators, SortKey(form, piece.place));
      ++expected[static_cast<size_t>(behind - separators.begin()) - 1];
    }
    if (counts != expected) return "C5: an entry counts wrong";
    if (level > 0 && separators != below) return "C5: entries are not those of the nodes below";
    below = std::move(nodes);
  }
  return nullptr;
}

// `blocks`: the elements of each block of segments.
const char* CheckListCounts(const Items& items, const types::LargeRecord& record,
                            const std::map<uint64_t, uint64_t>& blocks) {
  uint64_t before = 0;
  uint64_t counted = 0;
  std::set<std::string> nodes;
  for (const auto& [block, elements] : blocks) {
    if (block < record.blocks_begin) before += elements;
    if (block < record.blocks_begin || block >= record.blocks_end) continue;
    counted += elements;
    const std::string key =
        SegmentKey(record.id, Part::kBlocks, OrderedNumber(block / kBlocksOfNode));
    nodes.insert(key);
    const auto node = items.find(key);
    uint32_t count = 0;
    const size_t at = block % kBlocksOfNode * sizeof(count);
    if (node == items.end() || node->second.size() < at + sizeof(count)) {
      return "C6: a node of counts of a list is missing";
    }
    std::memcpy(&count, node->second.data() + at, sizeof(count));
    if (count != elements) return "C6: a block of a list counts wrong";
  }
  const bool has_blocks = record.blocks_begin < record.blocks_end;
  if (counted != record.counted || (has_blocks && before != record.before)) {
    return "C6: a record counts the blocks of a list wrong";
  }
  for (const auto& [key, value] : items) {
    const bool is_node = key.starts_with(SegmentKey(record.id, Part::kBlocks, {}));
    if (is_node && !nodes.contains(key)) return "C6: a list has a node without counted blocks";
  }
  return nullptr;
}

const char* CheckList(const Items& items, const types::LargeRecord& record) {
  uint64_t elements = 0;
  uint64_t segments = 0;
  std::map<uint64_t, uint64_t> blocks;
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
    blocks[(record.first + segments - 1) / kSegmentsOfBlock] += segment->pieces;
  }
  if (const char* const broken = CheckListCounts(items, record, blocks)) return broken;
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
  if (const char* const broken = CheckCounts(items, record, form, found.pieces)) return broken;
  if (kind == types::kHash && CountDeadlines(found.pieces) != record.last) {
    return "C7: there are not as many fields with deadlines as it says";
  }
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
