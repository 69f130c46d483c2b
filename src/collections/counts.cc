#include "collections/counts.h"

#include <utility>
#include <vector>

namespace skep::collections {
namespace {

// Whether a place's sort key is below another one.
bool IsBelow(Form form, const Place& place, std::string_view key) {
  if (form != Form::kEntry) return place.member < key;
  const std::string score = OrderedScore(place.score);
  const int order = score.compare(key.substr(0, score.size()));
  return order != 0 ? order < 0 : place.member < key.substr(score.size());
}

// A batch that requires what was read.
class Required {
 public:
  void AddSegment(const Loaded& loaded) {
    static const Function* const edit = FindFunction("large-segment-edit");
    batch_.Apply(batch_.scratch().Copy(loaded.key), edit,
                 types::KeepSegment(loaded.segment.stamp, batch_.scratch()));
  }
  void AddBlock(const Loaded& loaded) {
    batch_.Add({.op = Op::kRequireValue,
                .type = types::kSegment,
                .key = batch_.scratch().Copy(loaded.key),
                .other = batch_.scratch().Copy(loaded.bytes)});
  }
  void Put(std::string_view key, std::string_view value) {
    batch_.Add({.op = Op::kPut,
                .type = types::kSegment,
                .key = batch_.scratch().Copy(key),
                .value = batch_.scratch().Copy(value)});
  }
  void Delete(std::string_view key) { batch_.Delete(key); }
  bool Execute(Access& access) {
    Status unwanted;
    return ExecuteChange(access, batch_, &unwanted) == WriteResult::kDone;
  }

 private:
  Batch batch_{Batch::Kind::kAtomic};
};

int64_t JoinWithNext(Access& access, Segments& blocks, const Loaded& block) {
  const Loaded* const next = blocks.FindNext(block);
  if (next == nullptr || SeparatorOf(next->key) != *block.segment.fence) return 0;
  Required required;
  required.AddBlock(block);
  required.AddBlock(*next);
  required.Put(block.key,
               BlockOf(next->segment.fence, block.segment.pieces + next->segment.pieces));
  required.Delete(next->key);
  return required.Execute(access) ? -1 : 0;
}

// Divides a block at the segment that is behind half of its members.
int64_t Divide(Access& access, uint64_t id, uint8_t kind, const Loaded& block) {
  const Form form = FormOf(MainPart(kind), kind);
  Segments segments(access, id, MainPart(kind));
  Required required;
  required.AddBlock(block);
  const std::string first(SeparatorOf(block.key));
  const auto& fence = block.segment.fence;
  uint64_t count = 0;
  std::string middle;
  uint64_t before_middle = 0;
  for (const Loaded* at = segments.Find(first); at != nullptr; at = segments.FindNext(*at)) {
    const std::string_view separator = SeparatorOf(at->key);
    if (fence && separator >= *fence) break;
    if (middle.empty() && count >= block.segment.pieces / 2 && separator > first) {
      middle = separator;
      before_middle = count;
    }
    required.AddSegment(*at);
    count += PiecesWithin(form, separator, at->segment, first, fence).value_or(0);
  }
  if (middle.empty() || count != block.segment.pieces) return 0;
  required.Put(block.key, BlockOf(middle, before_middle));
  required.Put(SegmentKey(id, Part::kCounts, middle), BlockOf(fence, count - before_middle));
  return required.Execute(access) ? 1 : 0;
}

}  // namespace

std::optional<uint64_t> PiecesWithin(Form form, std::string_view separator, const Segment& segment,
                                     std::string_view lo, std::optional<std::string_view> fence) {
  const bool ends_within = !fence || (segment.fence && *segment.fence <= *fence);
  if (separator >= lo && ends_within) return segment.pieces;
  std::string_view body = segment.body;
  Piece piece;
  uint64_t count = 0;
  while (!body.empty()) {
    if (!TakePiece(form, body, &piece)) return std::nullopt;
    if (IsBelow(form, piece.place, lo)) continue;
    if (fence && !IsBelow(form, piece.place, *fence)) break;
    ++count;
  }
  return count;
}

int64_t MendBlock(Access& access, uint64_t id, uint8_t kind, std::string_view place) {
  Segments blocks(access, id, Part::kCounts);
  const Loaded* const block = blocks.Find(place);
  if (block == nullptr) return 0;
  if (block->segment.pieces > kBlockMax) return Divide(access, id, kind, *block);
  const bool is_small = block->segment.pieces < kBlockMax / 8 && block->segment.fence;
  return is_small ? JoinWithNext(access, blocks, *block) : 0;
}

std::optional<RankPlace> FindRank(View& view, uint64_t rank) {
  std::optional<RankPlace> found;
  uint64_t before = 0;
  const auto visit = [&](std::string_view separator, const Segment& block) {
    if (rank < before + block.pieces) {
      found = RankPlace{.block = std::string(separator), .before = before};
      return false;
    }
    before += block.pieces;
    return true;
  };
  // A block that was divided has half of kBlockMax members, or more.
  view.ForEach(Part::kCounts, std::nullopt, false, visit, {.segments = 1 + rank * 2 / kBlockMax});
  return found;
}

std::optional<uint64_t> CountBelow(View& view, uint8_t kind, std::string_view key) {
  uint64_t count = 0;
  std::string block;
  const auto visit_block = [&](std::string_view separator, const Segment& found) {
    block = separator;
    if (!found.fence || key < *found.fence) return false;
    count += found.pieces;
    return true;
  };
  // All blocks whose separator is not above the key.
  const std::string behind = std::string(key) + '\0';
  if (!view.ForEach(Part::kCounts, std::nullopt, false, visit_block,
                    {.until = behind, .segments = UINT32_MAX})) {
    return std::nullopt;
  }
  const Form form = FormOf(MainPart(kind), kind);
  bool is_whole = true;
  const auto visit = [&](std::string_view separator, const Segment& segment) {
    if (separator >= key) return false;
    const auto pieces = PiecesWithin(form, separator, segment, block, key);
    is_whole = pieces.has_value();
    count += pieces.value_or(0);
    return is_whole;
  };
  const Extent extent = {.until = key, .segments = view.SegmentsOf(kBlockMax)};
  if (!view.ForEach(MainPart(kind), block, false, visit, extent) || !is_whole) return std::nullopt;
  return count;
}

}  // namespace skep::collections
