#include "collections/conversion.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/varint.h"
#include "collections/counts.h"
#include "collections/large_call.h"
#include "collections/large_list.h"
#include "collections/names.h"

namespace skep::collections {
namespace {

// Adds a put of a hidden item to the batch.
void AddItem(Batch& batch, std::string_view key, std::string_view value) {
  Scratch& scratch = batch.scratch();
  batch.Add({.op = Op::kPut,
             .type = types::kSegment,
             .key = scratch.Copy(key),
             .value = scratch.Copy(value)});
}

// Adds the blocks of the main part (counts.h); returns how many.
int64_t AddBlocks(Batch& batch, uint64_t id, const std::vector<Run>& runs) {
  int64_t blocks = 0;
  for (size_t i = 0; i < runs.size();) {
    const Run& first = runs[i];
    while (i < runs.size() && runs[i].end - first.begin <= kBlockMax / 2) ++i;
    if (i < runs.size() && &runs[i] == &first) ++i;  // a segment of so many members
    const bool is_last = i == runs.size();
    const auto fence = is_last ? std::nullopt : std::optional<std::string_view>(runs[i].separator);
    const size_t end = is_last ? runs.back().end : runs[i].begin;
    AddItem(batch, SegmentKey(id, Part::kCounts, first.separator),
            BlockOf(fence, end - first.begin));
    ++blocks;
  }
  return blocks;
}

// Adds the segments of a part to the batch, and the blocks if it is the main one; returns how many.
int64_t AddSegments(Batch& batch, uint64_t id, Part part, uint8_t kind, const Pieces& pieces,
                    size_t segment_bytes) {
  const size_t run_bytes = segment_bytes - segment_bytes / 4;
  const auto runs = CutIntoRuns(FormOf(part, kind), pieces, run_bytes, {});
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool is_last = i + 1 == runs.size();
    const auto fence =
        is_last ? std::nullopt : std::optional<std::string_view>(runs[i + 1].separator);
    AddItem(batch, SegmentKey(id, part, runs[i].separator),
            SegmentOf(pieces, runs[i].begin, runs[i].end, fence));
  }
  const int64_t blocks = part == MainPart(kind) ? AddBlocks(batch, id, runs) : 0;
  return blocks + static_cast<int64_t>(runs.size());
}

}  // namespace

Conversion Convert(Access& access, std::string_view key, uint8_t kind, uint64_t id) {
  Conversion conversion;
  const auto value = access.Get(key, kind);
  if (!value) return conversion;
  Scratch scratch;
  auto pieces = PiecesOf(kind, *value);
  if (!pieces || pieces->empty()) return conversion;
  types::LargeRecord record = {.id = id, .members = pieces->size(), .bytes = BytesOf(*pieces)};
  Batch batch(Batch::Kind::kAtomic);
  batch.Add({.op = Op::kRequireValue, .type = kind, .key = key, .other = *value});
  if (kind == types::kList) {
    const auto segments = CutElements(*pieces, access.segment_bytes(), false);
    record.first = kFirstSegment;
    record.last = kFirstSegment + segments.size() - 1;
    for (size_t i = 0; i < segments.size(); ++i) {
      AddItem(batch, ElementsKey(id, record.first + i),
              types::WriteSegment({.stamp = NextStamp(),
                                   .fence = std::nullopt,
                                   .pieces = segments[i].elements,
                                   .body = segments[i].body}));
    }
    conversion.segments = static_cast<int64_t>(segments.size());
  } else {
    conversion.segments =
        AddSegments(batch, id, MainPart(kind), kind, *pieces, access.segment_bytes());
    if (kind == types::kSortedSet) {
      conversion.segments += AddSegments(batch, id, Part::kMembers, kind,
                                         ByMember(*pieces, scratch), access.segment_bytes());
    }
  }
  AddItem(batch, NamesKey(id), NamesValue(std::vector{std::string(key)}));
  ++conversion.segments;
  batch.Add({.op = Op::kPut,
             .type = static_cast<uint8_t>(types::kLargeForm + kind),
             .key = key,
             .value = types::BytesOf(record),
             .deadline_ms = kKeepDeadline});
  conversion.result = ExecuteChange(access, batch, &conversion.status);
  conversion.version = batch.outcome(static_cast<uint32_t>(batch.size()) - 1).version;
  return conversion;
}

}  // namespace skep::collections
