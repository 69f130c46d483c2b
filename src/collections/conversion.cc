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

// Adds the nodes that count the members of the main part (counts.h); returns how many.
int64_t AddCounts(Batch& batch, uint64_t id, const std::vector<Run>& runs, uint64_t* levels) {
  std::vector<types::CountEntry> entries;
  for (size_t i = 0; i < runs.size();) {
    const size_t begin = i++;
    while (i < runs.size() && runs[i].end - runs[begin].begin <= kEntryMax * 3 / 4) ++i;
    entries.push_back(
        {.separator = runs[begin].separator, .count = runs[i - 1].end - runs[begin].begin});
  }
  int64_t nodes = 0;
  *levels = MakeCounts(id, std::move(entries), [&](std::string_view key, std::string_view value) {
    AddItem(batch, key, value);
    ++nodes;
  });
  return nodes;
}

// Adds the segments of a part to the batch, and the counts if it is the main one; returns how many
// items. `record` has the id, and gets the number of levels of counts.
int64_t AddSegments(Batch& batch, types::LargeRecord& record, Part part, uint8_t kind,
                    const Pieces& pieces, size_t segment_bytes) {
  const uint64_t id = record.id;
  const size_t run_bytes = segment_bytes - segment_bytes / 4;
  const auto runs = CutIntoRuns(FormOf(part, kind), pieces, run_bytes, {});
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool is_last = i + 1 == runs.size();
    const auto fence =
        is_last ? std::nullopt : std::optional<std::string_view>(runs[i + 1].separator);
    AddItem(batch, SegmentKey(id, part, runs[i].separator),
            SegmentOf(pieces, runs[i].begin, runs[i].end, fence));
  }
  const int64_t nodes = part == MainPart(kind) ? AddCounts(batch, id, runs, &record.first) : 0;
  return nodes + static_cast<int64_t>(runs.size());
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
  if (kind == types::kHash) record.last = conversion.deadlines = CountDeadlines(*pieces);
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
    std::vector<uint64_t> elements;
    for (const ElementRun& run : segments) elements.push_back(run.elements);
    ListCounts counts(access);
    counts.Make(elements, &record);
    conversion.segments = static_cast<int64_t>(segments.size()) + counts.AddTo(batch, id);
  } else {
    conversion.segments =
        AddSegments(batch, record, MainPart(kind), kind, *pieces, access.segment_bytes());
    if (kind == types::kSortedSet) {
      conversion.segments += AddSegments(batch, record, Part::kMembers, kind,
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
