// paper_layout_sorted.h: a position in the sorted block of a node of PaperLayout.
//
// The segments lie one after the other, so the offsets of items have the order of their keys. The
// first item of a segment that has a shortcut keeps its key there; its offset is that of its
// payload.
//
// A step forward decodes one item. A step back needs the offsets before: the items of one segment
// are decoded from its beginning, and the last kBeforeMax offsets before the position are kept,
// which are all of them but in odd nodes. So a position is small, however many tiny items a segment
// has.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "btree/paper/paper_layout_bytes.h"
#include "btree/stored.h"

namespace skep::btree::paper {

// Thread safety: a value. The codec and the node must outlive it.
// It has 26 methods: half of them decode one field, for the others alone.
class SortedPosition {
 public:
  // Begins at the first item.
  SortedPosition(const Codec& codec, const NodeHeader* node);

  // Whether the position is past the last item: then the offset is log_begin.
  bool at_end() const { return item_ == node_->log_begin; }
  uint32_t offset() const { return item_; }

  // Go to the place of the key; return whether the item there has it. Key: std::string_view or
  // StoredKey.
  template <class Key>
  bool SeekAtLeast(const Key& key);  // the first item with a key >= `key`, or the end
  template <class Key>
  bool SeekAtMost(const Key& key);  // the last item with a key <= `key`; false: none, at the first
  void SeekFirst();
  void SeekEnd();
  // Fetches the lines of the segment in which a search for the key will end.
  void PrefetchSegmentOf(std::string_view key);

  // Requires that the position is not at the end.
  void Next();
  StoredKey key() const { return KeyAt(node_, key_in_shortcut() ? segment_.shortcut : item_); }
  uint32_t payload() const { return key_in_shortcut() ? item_ : AfterField(node_, item_); }

  // The offset of the item before; 0 if there is none.
  uint32_t PreviousOffset();
  void Previous();  // to the item before

 private:
  static constexpr uint32_t kBeforeMax = 64;

  struct Segment {
    uint32_t shortcut;  // the entry of its first key; 0: the first segment, which has no entry
    uint32_t begin;
    uint32_t end;
  };

  bool key_in_shortcut() const { return item_ == segment_.begin && segment_.shortcut != 0; }
  uint32_t PayloadEnd(uint32_t payload) const {
    return node_->is_leaf() ? AfterField(node_, payload) : payload + kLinkBytes;
  }
  uint32_t FirstItemEnd(const Segment& segment) const {
    return PayloadEnd(segment.shortcut != 0 ? segment.begin : AfterField(node_, segment.begin));
  }
  uint32_t OtherItemEnd(uint32_t item) const { return PayloadEnd(AfterField(node_, item)); }

  static uint32_t AfterEntry(const NodeHeader* node, uint32_t entry) {
    return AfterField(node, entry) + kOffsetBytes;
  }
  // The entry may be the end of the shortcut block: its segment begins where the sorted block ends.
  uint32_t SegmentBegin(uint32_t entry) const {
    return entry < node_->shortcut_end ? Load<uint16_t>(node_, AfterField(node_, entry))
                                       : node_->log_begin;
  }
  uint32_t NextEntry() const {
    return segment_.shortcut == 0 ? kShortcutBegin : AfterEntry(node_, segment_.shortcut);
  }
  Segment FirstSegment() const { return {0, first_item_, SegmentBegin(kShortcutBegin)}; }
  Segment SegmentOf(uint32_t entry) const {
    return {entry, SegmentBegin(entry), SegmentBegin(AfterEntry(node_, entry))};
  }
  // The segment that ends where the current one begins, which is not the first.
  Segment PreviousSegment() const;
  // At the end of a segment, makes the next one the current one, if there is one.
  void LeaveFinishedSegment() {
    if (item_ == segment_.end && !at_end()) segment_ = SegmentOf(NextEntry());
  }
  void KeepOffsetsBefore();

  // Goes to the segment of the last key <= `key`. Returns whether the segment's first key is `key`.
  template <class Key>
  bool EnterSegmentOf(const Key& key);

  const Codec* codec_;
  const NodeHeader* node_;
  uint32_t first_item_;
  Segment segment_;
  uint32_t item_;
  // A ring of offsets just before item_, the nearest at before_end_ - 1, all of one segment.
  Segment before_segment_;
  uint32_t before_end_ = 0;
  uint32_t before_count_ = 0;
  std::array<uint16_t, kBeforeMax> before_;
};

// The offset after the fences, where the sorted block begins.
inline uint32_t SortedBegin(const Geometry& geometry, const NodeHeader* node) {
  const uint32_t upper = AfterField(node, geometry.fences_begin());
  return Load<uint16_t>(node, upper) == kNoFence ? upper + kLengthBytes : AfterField(node, upper);
}

inline SortedPosition::SortedPosition(const Codec& codec, const NodeHeader* node)
    : codec_(&codec), node_(node), first_item_(SortedBegin(codec.geometry, node)) {
  SeekFirst();
}

inline void SortedPosition::SeekFirst() {
  segment_ = FirstSegment();
  item_ = first_item_;
  before_count_ = 0;
}

inline void SortedPosition::Next() {
  item_ = item_ == segment_.begin ? FirstItemEnd(segment_) : OtherItemEnd(item_);
  before_count_ = 0;
  LeaveFinishedSegment();
}

inline uint32_t SortedPosition::PreviousOffset() {
  if (item_ == first_item_) return 0;
  if (before_count_ == 0) KeepOffsetsBefore();
  return before_[(before_end_ - 1) % kBeforeMax];
}

inline void SortedPosition::Previous() {
  item_ = PreviousOffset();
  segment_ = before_segment_;
  --before_end_;
  --before_count_;
}

template <class Key>
bool SortedPosition::EnterSegmentOf(const Key& key) {
  before_count_ = 0;
  uint32_t entry = 0;
  bool equal = false;
  for (uint32_t next = kShortcutBegin; next < node_->shortcut_end && !equal;) {
    const int order = codec_->Compare(key, KeyAt(node_, next));
    if (order < 0) break;
    equal = order == 0;
    entry = next;
    next = AfterEntry(node_, next);
  }
  segment_ = entry == 0 ? FirstSegment() : SegmentOf(entry);
  item_ = segment_.begin;
  return equal;
}

template <class Key>
bool SortedPosition::SeekAtLeast(const Key& key) {
  if (EnterSegmentOf(key)) return true;
  if (segment_.shortcut != 0) item_ = FirstItemEnd(segment_);
  while (item_ != segment_.end) {
    const int order = codec_->Compare(key, KeyAt(node_, item_));
    if (order <= 0) return order == 0;
    item_ = OtherItemEnd(item_);
  }
  LeaveFinishedSegment();
  return false;
}

template <class Key>
bool SortedPosition::SeekAtMost(const Key& key) {
  if (EnterSegmentOf(key)) return true;
  uint32_t next = segment_.shortcut != 0 ? FirstItemEnd(segment_) : item_;
  bool found = segment_.shortcut != 0;
  while (next != segment_.end && codec_->Compare(key, KeyAt(node_, next)) >= 0) {
    item_ = next;
    found = true;
    next = OtherItemEnd(next);
  }
  return found;
}

}  // namespace skep::btree::paper
