// The merged order of a leaf's sorted block and log.

#include <algorithm>

#include "btree/head_layout_search.h"

namespace skep::btree {

using heads::LogItem;

HeadLayout::LeafCursor::LeafCursor(const Leaf& leaf) : leaf_(&leaf), sorted_(leaf.node()) {
  SortLog();
}

// By insertion: a log is short, and the heads lie together. A later item of a key takes the place
// of an earlier one.
void HeadLayout::LeafCursor::SortLog() {
  const NodeHeader* const node = leaf_->node_;
  const Codec& codec = *leaf_->codec_;
  std::array<uint16_t, kLogItemsMax> sorted_heads;
  for (uint32_t i = 0; i < leaf_->visible_; ++i) {
    const uint16_t head = heads::LogHead(node, i);
    uint32_t to = entry_count_;
    int order = 1;
    for (; to > 0 && sorted_heads[to - 1] >= head; --to) {
      if (sorted_heads[to - 1] > head) continue;
      order = codec.Compare(leaf_->Log(i).key(), Entry(to - 1).key());
      if (order >= 0) break;
    }
    if (order == 0 && to > 0 && sorted_heads[to - 1] == head) {
      order_[to - 1] = static_cast<uint8_t>(i);
      continue;
    }
    for (uint32_t from = entry_count_++; from > to; --from) {
      sorted_heads[from] = sorted_heads[from - 1];
      order_[from] = order_[from - 1];
    }
    sorted_heads[to] = head;
    order_[to] = static_cast<uint8_t>(i);
  }
}

// <0, 0, >0 as the log item is below, equal to, above the sorted item.
int HeadLayout::LeafCursor::CompareWithSorted(uint32_t entry, uint32_t item) const {
  const int order = int{heads::LogHead(leaf_->node_, order_[entry])} - int{sorted_.head(item)};
  return order != 0 ? order : leaf_->codec_->Compare(Entry(entry).key(), sorted_.key(item));
}

void HeadLayout::LeafCursor::SeekFirst() {
  at_ = 0;
  entry_ = 0;
  StepForward();
}

void HeadLayout::LeafCursor::SeekLast() {
  at_ = sorted_.count();
  entry_ = entry_count_;
  StepBack();
}

void HeadLayout::LeafCursor::SeekAtLeast(std::string_view key) {
  GoToGapBefore(key);
  StepForward();
}

void HeadLayout::LeafCursor::SeekBelow(std::string_view key) {
  GoToGapBefore(key);
  StepBack();
}

// The key may be one that does not belong to the leaf. False then.
bool HeadLayout::LeafCursor::GoToGapBefore(std::string_view key) {
  const NodeHeader* const node = leaf_->node_;
  const Codec& codec = *leaf_->codec_;
  if (const uint32_t guaranteed = heads::FormOf(node).guaranteed; guaranteed > 0) {
    const std::string_view lower = FencesOf(codec, node).lower.bytes;
    const int order = key.substr(0, guaranteed).compare(lower.substr(0, guaranteed));
    if (order != 0) {
      at_ = order < 0 ? 0 : sorted_.count();
      entry_ = order < 0 ? 0 : entry_count_;
      return false;
    }
  }
  const uint16_t head = HeadInLeaf(sorted_, node, key);
  bool equal;
  at_ = sorted_.Seek(codec, key, head, &equal);
  const auto is_below = [&](uint8_t i) {
    const uint16_t other = heads::LogHead(node, i);
    return other != head ? other < head : codec.Compare(key, leaf_->Log(i).key()) > 0;
  };
  const auto begin = order_.begin();
  entry_ =
      static_cast<uint32_t>(std::partition_point(begin, begin + entry_count_, is_below) - begin);
  return true;
}

void HeadLayout::LeafCursor::StepForward() {
  for (TakeNext(); HasExpired(); TakeNext()) PassCurrent();
}

void HeadLayout::LeafCursor::TakeNext() {
  for (;; ++entry_) {
    const bool has_sorted = at_ < sorted_.count();
    if (entry_ == entry_count_) {
      source_ = has_sorted ? Source::kSorted : Source::kNone;
      return;
    }
    const int order = has_sorted ? CompareWithSorted(entry_, at_) : -1;
    source_ = order > 0 ? Source::kSorted : Source::kLog;
    hides_ = order == 0;
    if (order > 0 || !Entry(entry_).deleted()) return;
    at_ += hides_;
  }
}

void HeadLayout::LeafCursor::PassCurrent() {
  if (source_ == Source::kSorted) {
    ++at_;
    return;
  }
  at_ += hides_;
  ++entry_;
}

void HeadLayout::LeafCursor::Next() {
  PassCurrent();
  StepForward();
}

void HeadLayout::LeafCursor::Prev() { StepBack(); }

void HeadLayout::LeafCursor::StepBack() {
  do TakePrevious();
  while (HasExpired());
}

void HeadLayout::LeafCursor::TakePrevious() {
  for (;;) {
    if (entry_ == 0) {
      source_ = at_ > 0 ? Source::kSorted : Source::kNone;
      at_ -= at_ > 0;
      return;
    }
    const int order = at_ == 0 ? 1 : CompareWithSorted(entry_ - 1, at_ - 1);
    if (order < 0) {
      --at_;
      source_ = Source::kSorted;
      return;
    }
    --entry_;
    hides_ = order == 0;
    at_ -= hides_;
    if (Entry(entry_).deleted()) continue;
    source_ = Source::kLog;
    return;
  }
}

StoredKey HeadLayout::LeafCursor::key() const {
  return source_ == Source::kSorted ? sorted_.key(at_) : Entry(entry_).key();
}

StoredValue HeadLayout::LeafCursor::value() const {
  return source_ == Source::kSorted ? sorted_.value(at_) : Entry(entry_).value();
}

Version HeadLayout::LeafCursor::version() const {
  return leaf_->node_version_ + (source_ == Source::kSorted ? 0 : Entry(entry_).delta());
}

PlainRun HeadLayout::LeafCursor::Run(uint32_t most) const {
  if (source_ != Source::kSorted || !sorted_.is_plain()) return {};
  return {.at = reinterpret_cast<const char*>(leaf_->node_->bytes()) + sorted_.offset(at_),
          .count = RunLength(most),
          .key_bytes = sorted_.key_bytes(),
          .value_bytes = sorted_.value_bytes()};
}

// How many sorted items from the current one on come before the log's next one.
uint32_t HeadLayout::LeafCursor::RunLength(uint32_t most) const {
  const uint32_t end = std::min(sorted_.count(), at_ + std::min(most, sorted_.count()));
  if (entry_ == entry_count_) return end - at_;
  const uint16_t next = heads::LogHead(leaf_->node_, order_[entry_]);
  if (sorted_.head(end - 1) < next) return end - at_;
  // The current item comes before the log's next one; those with lower heads do, too.
  uint32_t run_end = at_ + 1;
  while (run_end < end && sorted_.head(run_end) < next) ++run_end;
  return run_end - at_;
}

void HeadLayout::LeafCursor::SkipRun(uint32_t count) {
  at_ += count;
  StepForward();
}

}  // namespace skep::btree
