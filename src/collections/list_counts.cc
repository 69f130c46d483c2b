#include "collections/list_counts.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "collections/change.h"
#include "collections/large_list.h"

namespace skep::collections {
namespace {

// Blocks that are counted at once, at most.
constexpr uint64_t kBlocksOfStep = 32;

using BlockCount = uint32_t;
constexpr size_t kNodeBytes = kBlocksOfNode * sizeof(BlockCount);

std::string NodeKey(uint64_t id, uint64_t node) {
  return SegmentKey(id, Part::kBlocks, OrderedNumber(node));
}
BlockCount ReadCount(std::string_view counts, uint64_t block) {
  BlockCount count;
  std::memcpy(&count, counts.data() + block % kBlocksOfNode * sizeof(count), sizeof(count));
  return count;
}

// The blocks that lie between the ends of the list as a whole.
struct Blocks {
  uint64_t begin;
  uint64_t end;
};
Blocks WholeBlocks(const types::LargeRecord& record) {
  return {(record.first + kSegmentsOfBlock - 1) / kSegmentsOfBlock,
          (record.last + 1) / kSegmentsOfBlock};
}
bool HasCounted(const types::LargeRecord& record) {
  return record.blocks_begin < record.blocks_end;
}
void ForgetCounted(types::LargeRecord* record) {
  record->blocks_begin = record->blocks_end = record->before = record->counted = 0;
}

}  // namespace

ListCounts::Node& ListCounts::NodeOf(uint64_t id, uint64_t block) {
  const auto [at, is_new] = nodes_.try_emplace(block / kBlocksOfNode);
  Node& node = at->second;
  if (!is_new) return node;
  node.read = access_.Get(NodeKey(id, at->first), types::kSegment);
  node.counts = node.read.value_or(std::string());
  node.counts.resize(kNodeBytes);
  return node;
}

uint64_t ListCounts::CountOf(uint64_t id, uint64_t block) {
  return ReadCount(NodeOf(id, block).counts, block);
}

void ListCounts::Store(uint64_t id, uint64_t block, uint64_t elements) {
  Node& node = NodeOf(id, block);
  const auto count = static_cast<BlockCount>(elements);
  std::memcpy(node.counts.data() + block % kBlocksOfNode * sizeof(count), &count, sizeof(count));
  node.is_changed = true;
}

// Notes the nodes that have counted blocks before, and none after.
void ListCounts::DropNodes(const types::LargeRecord& before, const types::LargeRecord& after) {
  if (!HasCounted(before)) return;
  const uint64_t last = (before.blocks_end - 1) / kBlocksOfNode;
  for (uint64_t node = before.blocks_begin / kBlocksOfNode; node <= last; ++node) {
    const bool stays = HasCounted(after) && node >= after.blocks_begin / kBlocksOfNode &&
                       node <= (after.blocks_end - 1) / kBlocksOfNode;
    if (!stays) gone_.insert(node);
  }
}

void ListCounts::Follow(const types::LargeRecord& before, std::span<const Delta> deltas,
                        types::LargeRecord* after) {
  if (!HasCounted(before)) return;
  const Blocks whole = WholeBlocks(*after);
  const uint64_t begin = std::max(before.blocks_begin, whole.begin);
  const uint64_t end = std::min(before.blocks_end, whole.end);
  if (begin >= end) {
    ForgetCounted(after);
    return DropNodes(before, *after);
  }
  for (uint64_t block = before.blocks_begin; block < begin; ++block) {
    const uint64_t count = CountOf(before.id, block);
    after->before += count;
    after->counted -= count;
  }
  for (uint64_t block = end; block < before.blocks_end; ++block) {
    after->counted -= CountOf(before.id, block);
  }
  after->blocks_begin = begin;
  after->blocks_end = end;
  for (const Delta& delta : deltas) {
    if (delta.elements == 0) continue;
    const uint64_t block = delta.segment / kSegmentsOfBlock;
    const auto elements = static_cast<uint64_t>(delta.elements);
    if (block < begin) {
      after->before += elements;
    } else if (block < end) {
      after->counted += elements;
      const auto index = static_cast<uint32_t>(block % kBlocksOfNode);
      std::string& operand = additions_[block / kBlocksOfNode];
      operand.append(reinterpret_cast<const char*>(&index), sizeof(index));
      operand.append(reinterpret_cast<const char*>(&delta.elements), sizeof(delta.elements));
    }
  }
  DropNodes(before, *after);
}

void ListCounts::Make(std::span<const uint64_t> elements, types::LargeRecord* record) {
  const Blocks whole = WholeBlocks(*record);
  if (whole.begin >= whole.end) return;
  record->blocks_begin = whole.begin;
  record->blocks_end = whole.end;
  for (uint64_t i = 0; i < elements.size(); ++i) {
    const uint64_t block = (record->first + i) / kSegmentsOfBlock;
    if (block < whole.begin) record->before += elements[i];
    if (block < whole.begin || block >= whole.end) continue;
    record->counted += elements[i];
    Store(record->id, block, CountOf(record->id, block) + elements[i]);
  }
}

int64_t ListCounts::AddTo(Batch& batch, uint64_t id) const {
  int64_t added = 0;
  Scratch& scratch = batch.scratch();
  static const Function* const add = FindFunction("large-blocks-add");
  for (const auto& [number, node] : nodes_) {
    const std::string_view key = scratch.Copy(NodeKey(id, number));
    if (node.read) {
      batch.Add({.op = Op::kRequireValue,
                 .type = types::kSegment,
                 .key = key,
                 .other = scratch.Copy(*node.read)});
    } else {
      batch.RequireAbsent(key);
    }
    if (!node.is_changed) continue;
    batch.Add(
        {.op = Op::kPut, .type = types::kSegment, .key = key, .value = scratch.Copy(node.counts)});
    added += node.read ? 0 : 1;
  }
  for (const auto& [number, operand] : additions_) {
    batch.Apply(scratch.Copy(NodeKey(id, number)), add, scratch.Copy(operand));
  }
  for (const uint64_t number : gone_) {
    batch.Delete(scratch.Copy(NodeKey(id, number)));
    --added;
  }
  return added;
}

// ---- Mending ----

namespace {

// Blocks that lie at one end and are to be counted.
struct Missing {
  Blocks blocks;
  bool is_left = false;
};
std::optional<Missing> MissingOf(const types::LargeRecord& record) {
  const Blocks whole = WholeBlocks(record);
  if (whole.end < whole.begin + kLagBlocks) return std::nullopt;
  if (!HasCounted(record)) {
    return Missing{{whole.begin, std::min(whole.end, whole.begin + kBlocksOfStep)}};
  }
  if (whole.end >= record.blocks_end + kLagBlocks) {
    return Missing{{record.blocks_end, std::min(whole.end, record.blocks_end + kBlocksOfStep)}};
  }
  if (whole.begin + kLagBlocks <= record.blocks_begin) {
    const uint64_t end = record.blocks_begin;
    return Missing{{std::max(whole.begin, end - kBlocksOfStep), end}, true};
  }
  return std::nullopt;
}

// The elements of the segments [from, to) by their order, when the list has this record; nothing if
// they were not found.
std::optional<std::vector<uint64_t>> ReadElements(Access& access, std::string_view key,
                                                  const types::LargeRecord& record, uint64_t from,
                                                  uint64_t to) {
  Batch batch(Batch::Kind::kAtomic);
  RequireRecord(batch, key, types::kList, record);
  const uint32_t slot =
      batch.Scan(Range::Between(batch.scratch().Copy(ElementsKey(record.id, from)),
                                batch.scratch().Copy(ElementsKey(record.id, to))),
                 {.any_type = true});
  access.Execute(batch);
  if (!batch.applied()) return std::nullopt;
  std::vector<uint64_t> elements;
  for (const Item& item : batch.items(slot)) {
    const auto segment = types::ReadSegment(item.value);
    if (!segment || NumberOf(SeparatorOf(item.key)) != from + elements.size()) return std::nullopt;
    elements.push_back(segment->pieces);
  }
  return elements.size() == to - from ? std::optional(elements) : std::nullopt;
}

}  // namespace

bool NeedsListCounts(const types::LargeRecord& record) { return MissingOf(record).has_value(); }

int64_t MendListCounts(Access& access, std::string_view key, uint64_t id) {
  int64_t added = 0;
  while (true) {
    const auto record = access.Record(key, types::kList);
    if (!record || record->id != id) return added;
    const auto missing = MissingOf(*record);
    if (!missing) return added;
    const auto [begin, end] = missing->blocks;
    // The first blocks that are counted need the elements of all segments before them, too.
    const bool is_new = !HasCounted(*record);
    const uint64_t from = is_new ? record->first : begin * kSegmentsOfBlock;
    const auto elements = ReadElements(access, key, *record, from, end * kSegmentsOfBlock);
    if (!elements) return added;
    types::LargeRecord after = *record;
    ListCounts counts(access);
    after.blocks_begin = is_new || missing->is_left ? begin : record->blocks_begin;
    after.blocks_end = missing->is_left ? record->blocks_end : end;
    for (uint64_t block = begin; block < end; ++block) counts.Store(id, block, 0);
    for (uint64_t i = 0; i < elements->size(); ++i) {
      const uint64_t block = (from + i) / kSegmentsOfBlock;
      if (block < begin) {
        after.before += (*elements)[i];
        continue;
      }
      after.counted += (*elements)[i];
      if (missing->is_left) after.before -= (*elements)[i];
      counts.Store(id, block, counts.CountOf(id, block) + (*elements)[i]);
    }
    Batch batch(Batch::Kind::kAtomic);
    RequireRecord(batch, key, types::kList, *record);
    const int64_t more = counts.AddTo(batch, id);
    batch.Apply(key, RecordFunction(types::kList), batch.scratch().Copy(types::BytesOf(after)));
    Status unwanted;
    if (ExecuteChange(access, batch, &unwanted) != WriteResult::kDone) return added;
    added += more;
  }
}

// ---- Indexes ----

std::optional<ListPlace> FindInCounted(View& view, uint64_t index) {
  const types::LargeRecord& record = view.record();
  if (index < record.before || index - record.before >= record.counted) return std::nullopt;
  const bool reverse = index - record.before > record.counted / 2;
  uint64_t at = reverse ? record.before + record.counted : record.before;
  std::optional<ListPlace> found;
  const auto visit = [&](std::string_view separator, const Segment& node) {
    if (node.body.size() != kNodeBytes) return false;
    const uint64_t first = NumberOf(separator) * kBlocksOfNode;
    const uint64_t begin = std::max(first, record.blocks_begin);
    const uint64_t end = std::min(first + kBlocksOfNode, record.blocks_end);
    if (reverse) {
      for (uint64_t block = begin; block < end; ++block) at -= ReadCount(node.body, block);
      if (index < at) return true;
    }
    uint64_t own = at;
    for (uint64_t block = begin; block < end; ++block) {
      const uint64_t count = ReadCount(node.body, block);
      if (index < own + count) {
        found = ListPlace{.segment = block * kSegmentsOfBlock, .begin = own};
        return false;
      }
      own += count;
    }
    at = own;
    return !reverse;
  };
  const uint64_t node = (reverse ? record.blocks_end - 1 : record.blocks_begin) / kBlocksOfNode;
  view.ForEach(Part::kBlocks, OrderedNumber(node), reverse, visit, {.segments = 1});
  return found;
}

}  // namespace skep::collections
