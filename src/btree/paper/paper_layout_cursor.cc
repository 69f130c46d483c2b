// Walks the merged order of a leaf's sorted block and log.

#include <algorithm>
#include <cstring>

#include "btree/paper/paper_layout.h"

namespace skep::btree {

using paper::LogItem;

PaperLayout::LeafCursor::LeafCursor(const Leaf& leaf)
    : leaf_(&leaf), sorted_(leaf.codec(), leaf.node()) {
  std::array<uint16_t, kLogItemsMax> order;
  const uint32_t count = RebuildOrder(order.data());
  KeepNewest(order.data(), count);
}

// Inserts each item at the position of its hint; the items from there on move up by one. Afterwards
// the offsets are in the order of keys, and the versions of one key from old to new.
uint32_t PaperLayout::LeafCursor::RebuildOrder(uint16_t* order) const {
  uint32_t count = 0;
  leaf_->ForEachVisible([&](uint32_t at, const LogItem& item) {
    uint16_t* const place = order + item.order_hint();
    std::memmove(place + 1, place, (count - item.order_hint()) * sizeof(uint16_t));
    *place = static_cast<uint16_t>(at);
    ++count;
  });
  return count;
}

// The versions of one key are neighbours in `order`, and each replaces the one before. The oldest
// has the key's place among the sorted items, the newest its present state.
void PaperLayout::LeafCursor::KeepNewest(const uint16_t* order, uint32_t count) {
  const NodeHeader* const node = leaf_->node_;
  LogEntry entry = {};
  for (uint32_t i = 0; i < count; ++i) {
    const LogItem item(node, order[i]);
    const uint32_t back_pointer = item.back_pointer();
    if (!item.replaces() || back_pointer < node->log_begin) {
      entry.place = static_cast<uint16_t>(back_pointer);
      entry.hides = item.replaces();
    }
    if (i + 1 < count) {
      const LogItem next(node, order[i + 1]);
      if (next.replaces() && next.back_pointer() == order[i]) continue;
    }
    entry.item = order[i];
    entry.deleted = item.deleted();
    entries_[entry_count_++] = entry;
  }
}

void PaperLayout::LeafCursor::SeekFirst(uint32_t /*items*/) {
  sorted_.SeekFirst();
  entry_ = 0;
  StepForward();
}

void PaperLayout::LeafCursor::SeekLast() {
  sorted_.SeekEnd();
  entry_ = entry_count_;
  StepBack();
}

void PaperLayout::LeafCursor::SeekAtLeast(std::string_view key, KeyIs) {
  GoToGapBefore(key);
  StepForward();
}

void PaperLayout::LeafCursor::SeekAtMost(std::string_view key, const LeafSpot&) {
  SeekAtLeast(key);
  if (!valid()) return SeekLast();
  if (leaf_->codec().Compare(key, this->key()) != 0) Prev();
}

void PaperLayout::LeafCursor::SeekBelow(std::string_view key, KeyIs) {
  GoToGapBefore(key);
  StepBack();
}

void PaperLayout::LeafCursor::GoToGapBefore(std::string_view key) {
  sorted_.SeekAtLeast(key);
  const auto below = [&](const LogEntry& entry) {
    return leaf_->codec_->Compare(key, LogItem(leaf_->node_, entry.item).key()) > 0;
  };
  const LogEntry* const begin = entries_.data();
  entry_ = static_cast<uint32_t>(std::partition_point(begin, begin + entry_count_, below) - begin);
}

void PaperLayout::LeafCursor::Prev() { StepBack(); }

void PaperLayout::LeafCursor::StepBack() {
  do TakePrevious();
  while (HasExpired());
}

void PaperLayout::LeafCursor::TakePrevious() {
  for (;;) {
    const uint32_t before = sorted_.PreviousOffset();
    const LogEntry* const entry = entry_ > 0 ? &entries_[entry_ - 1] : nullptr;
    const bool hides = entry != nullptr && entry->hides && entry->place == before;
    if (hides || (entry != nullptr && entry->place > before)) {
      --entry_;
      if (hides) sorted_.Previous();
      if (entry->deleted) continue;
      source_ = Source::kLog;
      return;
    }
    source_ = before == 0 ? Source::kNone : Source::kSorted;
    if (before != 0) sorted_.Previous();
    return;
  }
}

Version PaperLayout::LeafCursor::version() const {
  if (source_ == Source::kSorted) return leaf_->node_version_;
  return leaf_->node_version_ + LogItem(leaf_->node_, entries_[entry_].item).delta();
}

}  // namespace skep::btree
