#include "btree/paper_layout_sorted.h"

namespace skep::btree::paper {

void SortedPosition::SeekEnd() {
  segment_ = FirstSegment();
  while (segment_.end != node_->log_begin) segment_ = SegmentOf(NextEntry());
  item_ = segment_.end;
  before_count_ = 0;
}

uint32_t SortedPosition::PreviousOffset() {
  if (item_ == first_item_) return 0;
  if (before_count_ == 0) KeepOffsetsBefore();
  return before_[(before_end_ - 1) % kBeforeMax];
}

void SortedPosition::Previous() {
  const uint32_t previous = PreviousOffset();
  if (item_ == segment_.begin) segment_ = PreviousSegment();
  item_ = previous;
  --before_end_;
  --before_count_;
}

SortedPosition::Segment SortedPosition::PreviousSegment() const {
  Segment earlier = FirstSegment();
  uint32_t entry = kShortcutBegin;
  while (earlier.end != segment_.begin) {
    earlier = SegmentOf(entry);
    entry = AfterEntry(node_, entry);
  }
  return earlier;
}

void SortedPosition::KeepOffsetsBefore() {
  const Segment segment = item_ == segment_.begin ? PreviousSegment() : segment_;
  before_end_ = 0;
  for (uint32_t at = segment.begin; at != item_;) {
    before_[before_end_++ % kBeforeMax] = static_cast<uint16_t>(at);
    at = at == segment.begin ? FirstItemEnd(segment) : OtherItemEnd(at);
  }
  before_count_ = std::min(before_end_, kBeforeMax);
}

}  // namespace skep::btree::paper
