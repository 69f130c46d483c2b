#include "btree/paper/paper_layout_sorted.h"

#include "base/prefetch.h"

namespace skep::btree::paper {

void SortedPosition::SeekEnd() {
  segment_ = FirstSegment();
  while (segment_.end != node_->log_begin) segment_ = SegmentOf(NextEntry());
  item_ = segment_.end;
  before_count_ = 0;
}

void SortedPosition::PrefetchSegmentOf(std::string_view key) {
  EnterSegmentOf(key);
  for (uint32_t at = segment_.begin; at < segment_.end; at += 64) {
    FetchLine(node_->bytes() + at);
  }
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
  before_segment_ = segment;
  before_end_ = 0;
  for (uint32_t at = segment.begin; at != item_;) {
    before_[before_end_++ % kBeforeMax] = static_cast<uint16_t>(at);
    at = at == segment.begin ? FirstItemEnd(segment) : OtherItemEnd(at);
  }
  before_count_ = std::min(before_end_, kBeforeMax);
}

}  // namespace skep::btree::paper
