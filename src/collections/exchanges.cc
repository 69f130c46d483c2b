#include "collections/exchanges.h"

#include <algorithm>
#include <optional>
#include <span>

#include "types/large_exchange.h"

namespace skep::collections {

// Whether the pieces before the edits are known, and the segment can take what comes.
bool Exchanges::IsKnown(std::span<const Edit> edits) const {
  if (edits.size() > kEditsMax) return false;
  size_t inserted = 0;
  for (const Edit& edit : edits) {
    if (edit.was_there && edit.before.empty()) return false;
    if (edit.bytes) inserted += edit.bytes->size();
  }
  return inserted <= access_.segment_bytes();
}

std::string_view Exchanges::OperandOf(Form form, std::span<const Edit> edits) {
  edits_.clear();
  for (const Edit& edit : edits) {
    if (edit.was_there) types::AppendRemoval(edit.before, edits_);
    if (edit.bytes) types::AppendInsertion(*edit.bytes, edits_);
  }
  return types::WriteExchange({.stamp = NextStamp(),
                               .bytes_max = static_cast<uint32_t>(access_.segment_bytes()),
                               .by_score = form == Form::kEntry,
                               .edits = edits_},
                              access_.scratch());
}

void Exchanges::Take(Segments& read, Form form, std::vector<Edit>& edits) {
  SegmentHints::Reading hints(*access_.hints(), id_);
  if (!hints) return;
  hints.BeginPart(read.part());
  Scratch& scratch = access_.scratch();
  std::string_view place;
  // The segment of an edit; nothing if it was read, or no hint tells.
  const auto segment_of = [&](const Edit& edit) -> std::optional<std::string_view> {
    place = SortKey(form, edit.place, scratch);
    return read.FindRead(place) == nullptr ? hints.Find(place) : std::nullopt;
  };
  size_t left = 0;
  auto segment = edits.empty() ? std::nullopt : segment_of(edits.front());
  for (size_t i = 0; i < edits.size();) {
    const size_t begin = i++;
    const auto own = segment;
    std::string_view last = place;
    for (; i < edits.size(); ++i) {
      segment = segment_of(edits[i]);
      if (!segment || !own || segment->data() != own->data()) break;
      last = place;
    }
    const auto of_segment = std::span(edits).subspan(begin, i - begin);
    if (own && IsKnown(of_segment)) {
      segments_.push_back({.part = read.part(),
                           .key = scratch.Concat(read.prefix(), *own),
                           .operand = OperandOf(form, of_segment),
                           .last = last});
      continue;
    }
    for (const Edit& edit : of_segment) edits[left++] = edit;
  }
  edits.resize(left);
}

bool Exchanges::Has(std::string_view key) const {
  return std::ranges::binary_search(segments_, key, {}, &OfSegment::key);
}

void Exchanges::AddBelow(Batch& batch, std::string_view key, size_t* next) {
  static const Function* const exchange = FindFunction("large-segment-exchange");
  for (; *next < segments_.size() && CompareBytes(segments_[*next].key, key) < 0; ++*next) {
    OfSegment& segment = segments_[*next];
    segment.slot = batch.Apply(segment.key, exchange, segment.operand);
  }
}

bool Exchanges::Correct(const Batch& batch) const {
  bool was_wrong = false;
  for (const OfSegment& segment : segments_) {
    was_wrong |= access_.hints()->CorrectRefused(access_, batch, segment.slot, segment.last);
  }
  return was_wrong;
}

std::vector<ToMend> Exchanges::LongOrSparse(const Batch& batch) const {
  std::vector<ToMend> segments;
  for (const OfSegment& segment : segments_) {
    if (batch.outcome(segment.slot).integer == 0) continue;
    segments.push_back({.part = segment.part, .key = segment.key, .place = segment.last});
  }
  return segments;
}

}  // namespace skep::collections
