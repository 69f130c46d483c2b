// head_layout_search.h: the searches in nodes of HeadLayout, of which every operation does several.
#pragma once

#include <algorithm>
#include <bit>

#include "base/prefetch.h"
#include "btree/heads/head_layout.h"

namespace skep::btree {

namespace heads {

// The head of a key in a node, whose first key is `first()`. Right for keys that begin with the
// node's guaranteed prefix.
template <class First>
uint16_t HeadIn(const NodeHeader* node, std::string_view own_bytes, First first) {
  const Form& form = FormOf(node);
  if (form.is_surmised) {
    const int order = own_bytes.substr(0, form.prefix).compare(first().substr(0, form.prefix));
    if (order != 0) return order < 0 ? 0 : 0xffff;
  }
  return HeadOf(form, own_bytes);
}

// The offset in heads of the segment at which a search for `head` begins: that of the last sample
// below it. Samples are only upper bytes, so the search may have to go on beyond the next one.
inline uint32_t LeafSegment(const NodeHeader* leaf, uint16_t head) {
  const auto* const samples = reinterpret_cast<const std::byte*>(FormOf(leaf).samples);
  const uint32_t passed = CountBytesBelow7(samples, static_cast<uint8_t>(head >> 8));
  return passed << SampleShift(FormOf(leaf).count, kLeafSamplesMax);
}
inline uint32_t InnerSegment(const NodeHeader* inner, uint16_t head) {
  const uint32_t passed =
      CountBytesBelow24(inner->bytes() + kInnerSamplesAt, static_cast<uint8_t>(head >> 8));
  return passed << SampleShift(FormOf(inner).count, kInnerSamplesMax);
}

// The first of the `count` heads that is not below `head`; it is at `at` or behind.
inline uint32_t LowerBound(const uint16_t* heads, uint32_t count, uint32_t at, uint16_t head) {
  uint32_t below;
  do {
    below = CountBelow32(heads + at, head);
    at += below;
  } while (below == kSegmentHeads && at < count);
  return at;
}

// The first of the `count` heads from `at` on, which is `head`, that is another one.
inline uint32_t EndOfEqual(const uint16_t* heads, uint32_t count, uint32_t at, uint16_t head) {
  if (head == 0xffff) return count;
  return std::min(count, LowerBound(heads, count, at / kSegmentHeads * kSegmentHeads, head + 1));
}

// Finds, among the items from `at` on, whose heads are not below `head`, the first that is not
// below the key. `compare(i)` is <0, 0 or >0 as the key is below, equal to or above item i. *equal:
// the item has the key.
template <class Compare>
uint32_t SettleAmongEqual(const uint16_t* heads, uint32_t count, uint32_t at, uint16_t head,
                          Compare compare, bool* equal) {
  *equal = false;
  if (at == count || heads[at] != head) return at;
  if (const int order = compare(at); order <= 0) {
    *equal = order == 0;
    return at;
  }
  uint32_t low = at + 1;
  if (low == count || heads[low] != head) return low;
  const uint32_t end = EndOfEqual(heads, count, low, head);
  for (uint32_t high = end; low < high;) {
    const uint32_t middle = low + (high - low) / 2;
    const int order = compare(middle);
    if (order == 0) {
      *equal = true;
      return middle;
    }
    if (order > 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace heads

inline HeadLayout::Sorted::Sorted(const NodeHeader* node)
    : node_(node), heads_(heads::HeadsOf(node, true)) {
  const heads::Form& form = heads::FormOf(node);
  count_ = form.count;
  items_ = heads::AfterHeads(true, count_);
  key_form_ = form.key_form;
  value_form_ = form.value_form;
  stride_ = key_form_ == heads::kMixed ? 0 : key_bytes() + value_bytes();
}

inline StoredKey HeadLayout::Sorted::key(uint32_t i) const {
  const uint32_t at = offset(i);
  if (!is_uniform()) return field::KeyAt(node_, at);
  return {.bytes = field::BytesAt(node_, at, key_bytes()),
          .outside = (key_form_ & field::kOutside) != 0};
}

inline StoredValue HeadLayout::Sorted::value(uint32_t i) const {
  const uint32_t at = offset(i);
  if (!is_uniform()) return field::ValueAt(node_, field::AfterField(node_, at));
  return {.bytes = field::BytesAt(node_, at + key_bytes(), value_bytes()),
          .outside = (value_form_ & field::kOutside) != 0,
          .has_metadata = (value_form_ & field::kMetadata) != 0};
}

inline uint32_t HeadLayout::Sorted::LowerBound(uint16_t head) const {
  return heads::LowerBound(heads_, count_, heads::LeafSegment(node_, head), head);
}

template <class Key>
uint32_t HeadLayout::Sorted::SeekFrom(const Codec& codec, const Key& searched, uint16_t head,
                                      uint32_t lower_bound, bool* equal) const {
  const uint32_t at = heads::SettleAmongEqual(
      heads_, count_, lower_bound, head,
      [&](uint32_t i) { return codec.Compare(searched, key(i)); }, equal);
  if (*equal || !heads::HasChosenBits(heads::FormOf(node_))) return at;
  return SeekAbsent(heads::OwnBytes(searched), head, lower_bound, at);
}

// The first item with a key above `searched`, which no item has, in a leaf whose heads are made of
// discriminative bits; discriminative_bits.h has the argument. `lower_bound` is that of its head,
// and `among_equal` where comparing it with the keys that have its head has led.
inline uint32_t HeadLayout::Sorted::SeekAbsent(std::string_view searched, uint16_t head,
                                               uint32_t lower_bound, uint32_t among_equal) const {
  uint32_t near = lower_bound;
  if (near == count_ || (near > 0 && (heads_[near - 1] ^ head) < (heads_[near] ^ head))) --near;
  const auto difference =
      heads::BitsOf(heads::FormOf(node_)).FirstDifference(searched, heads::OwnBytes(key(near)));
  if (difference.is_behind) return among_equal;  // (D4)
  const auto bits_behind = static_cast<uint16_t>(0xffff >> difference.head_bits);
  if (difference.is_below) return LowerBound(static_cast<uint16_t>(head & ~bits_behind));  // (D3)
  return heads::EndOfEqual(heads_, count_, near, static_cast<uint16_t>(head | bits_behind));
}

// The head of a key in a leaf.
template <class Key>
uint16_t HeadInLeaf(const HeadLayout::Sorted& sorted, const NodeHeader* leaf, const Key& key) {
  return heads::HeadIn(leaf, heads::OwnBytes(key), [&] { return heads::OwnBytes(sorted.key(0)); });
}

inline HeadLayout::Leaf::Leaf(const Codec& codec, const NodeHeader* node, uint32_t used,
                              Version read_version, uint64_t now_ms)
    : codec_(&codec),
      node_(node),
      used_(used),
      visible_(heads::Fill::Of(used).log_items),
      node_version_(node->version.load(std::memory_order_relaxed)),
      now_ms_(now_ms != kNoTime && NodeDeadline(codec, node) <= now_ms ? now_ms : kNoTime) {
  if (read_version == kNewest || visible_ == 0) return;
  // Relaxed: `newest` is at least the version of the items that `used` covers (head_layout.h).
  if (heads::NewestOf(node).load(std::memory_order_relaxed) <= read_version) return;
  while (visible_ > 0 && Log(visible_ - 1).delta() > read_version - node_version_) --visible_;
}

// A bit for each visible log item whose key may have this head.
inline uint32_t HeadLayout::Leaf::Tagged(uint16_t head, const LeafSpot& spot) const {
  if (!spot.known || spot.used != used_) {
    return heads::LogItemsTagged(node_, visible_, heads::TagOf(head));
  }
  return spot.tagged & ((uint32_t{1} << visible_) - 1);
}

template <class Order>
inline uint32_t HeadLayout::FindAlike(const Sorted& sorted, const LeafSpot& spot, Order order) {
  if (!spot.known) return kNone;
  const uint32_t end = std::min(sorted.count(), spot.at + kAlikeMax);
  for (uint32_t i = spot.at; i < end && sorted.head(i) == spot.head; ++i) {
    const int compared = order(i);
    if (compared == 0) return i;
    if (compared < 0) break;
  }
  return kNone;
}

inline bool HeadLayout::FindPlain(const NodeHeader* leaf, uint32_t used, std::string_view key,
                                  const LeafSpot& spot, std::string_view* value) {
  if (!spot.known || spot.used != used || spot.tagged != 0) return false;
  const Sorted sorted(leaf);
  const uint32_t key_bytes = sorted.key_bytes();
  if (!sorted.is_plain() || key.size() != key_bytes) return false;
  const uint32_t at = FindAlike(sorted, spot, [&](uint32_t i) {
    return CompareBytes(key, field::BytesAt(leaf, sorted.offset(i), key_bytes));
  });
  if (at == kNone) return false;
  *value = field::BytesAt(leaf, sorted.offset(at) + key_bytes, sorted.value_bytes());
  return true;
}

inline HeadLayout::Found HeadLayout::Leaf::Find(std::string_view key, const LeafSpot& spot) const {
  const Sorted sorted(node_);
  Found found;
  found.head = spot.known ? spot.head : HeadInLeaf(sorted, node_, key);
  for (uint32_t same = Tagged(found.head, spot); same != 0;) {
    const auto newest = static_cast<uint32_t>(std::bit_width(same) - 1);
    same ^= uint32_t{1} << newest;
    const heads::LogItem item = Log(newest);
    if (codec_->Compare(key, item.key()) != 0) continue;
    found.known = true;
    found.rank = static_cast<uint16_t>(heads::kRankOfLogItem + newest);
    found.present = !item.deleted();
    found.key = item.key();
    if (found.present) found.value = item.value();
    found.version = node_version_ + item.delta();
    return found;
  }
  const uint32_t lower_bound = spot.known ? spot.at : sorted.LowerBound(found.head);
  const uint32_t i = sorted.SeekFrom(*codec_, key, found.head, lower_bound, &found.known);
  found.rank = heads::RankOf(i, found.known);
  if (!found.known) return found;
  found.present = true;
  found.key = sorted.key(i);
  found.value = sorted.value(i);
  found.version = node_version_;
  return found;
}

inline LeafSpot HeadLayout::Leaf::Prefetch(std::string_view key) const {
  const heads::Form& form = heads::FormOf(node_);
  // Only the search line has come, so a form whose heads depend on the first key is left alone.
  if (form.is_surmised) return {};
  const uint16_t head = heads::HeadOf(form, key);
  FetchLine(heads::HeadsOf(node_, true) + heads::LeafSegment(node_, head));
  const uint32_t tagged = heads::LogItemsTagged(node_, visible_, heads::TagOf(head));
  if (tagged != 0) FetchLine(heads::FrontOf(node_));
  return {.head = head, .at = 0, .known = true, .used = used_, .tagged = tagged};
}

// A bit for each visible log item with a rank in [begin, end).
inline uint32_t HeadLayout::Leaf::LogItemsRanked(uint32_t begin, uint32_t end) const {
  if (visible_ == 0) return 0;
  std::array<uint16_t, kLogItemsMax> all;
  heads::CopyLogRanks(node_, all.data());
  return heads::NotBelow24(all.data(), begin) & ~heads::NotBelow24(all.data(), end) &
         ((uint32_t{1} << visible_) - 1);
}

// The end of the sorted items that `items` items from the spot on are among: of one item, of those
// with its head.
inline uint32_t HeadLayout::Leaf::EndOfItems(const Sorted& sorted, uint32_t items,
                                             const LeafSpot& spot) {
  if (spot.at == sorted.count()) return sorted.count();
  if (items > 1) return spot.at + std::min(items, sorted.count() - spot.at);
  const uint32_t end = std::min(sorted.count(), spot.at + kAlikeMax);
  uint32_t at = spot.at;
  do ++at;
  while (at < end && sorted.head(at) == spot.head);
  return at;
}

inline bool HeadLayout::Leaf::PrefetchItems(uint32_t items, LeafSpot* spot) const {
  if (!spot->known) return false;
  if (items == 1) {
    for (uint32_t same = spot->tagged; same != 0; same &= same - 1) {
      FetchLine(node_->bytes() + heads::LogOffset(node_, std::countr_zero(same)));
    }
  }
  const Sorted sorted(node_);
  const uint32_t at = sorted.LowerBound(spot->head);
  spot->at = static_cast<uint16_t>(at);
  const uint32_t end = EndOfItems(sorted, items, *spot);
  if (items > 1 && items <= kShortScan) {
    uint32_t log_items = LogItemsRanked(heads::RankOf(at, false), heads::RankOf(end + 1, false));
    for (; log_items != 0; log_items &= log_items - 1) {
      FetchLine(node_->bytes() + heads::LogOffset(node_, std::countr_zero(log_items)));
    }
  }
  if (!sorted.is_uniform()) {
    const std::byte* const offsets =
        node_->bytes() + heads::AfterHeads(true, sorted.count()) + 2 * at;
    FetchLine(offsets);
    FetchLine(offsets + 2 * (std::min(end, at + kShortScan) - at));
    return true;
  }
  const std::byte* const item = node_->bytes() + sorted.offset(at);
  if (items == 1) {
    FetchLines(item, item + (end - at) * sorted.stride());
    return false;
  }
  // PrefetchScan fetches the rest of a longer scan.
  const uint32_t bytes = std::min(std::min(items, kScanBytesMax) * sorted.stride(), kScanBytesMax);
  for (uint32_t i = 0; i < bytes; i += 64) FetchLine(item + i);
  FetchLine(item + bytes - 1);
  return false;
}

inline void HeadLayout::Leaf::PrefetchByOffsets(uint32_t items, const LeafSpot& spot) const {
  const Sorted sorted(node_);
  const uint32_t end = EndOfItems(sorted, std::min(items, kShortScan), spot);
  if (spot.at == end) return;
  const uint32_t begin = sorted.offset(spot.at);
  constexpr uint32_t kLastItemBytes = 128;  // of the leaf's last item, this much
  const uint32_t bytes = end < sorted.count() ? sorted.offset(end) - begin
                                              : sorted.offset(end - 1) + kLastItemBytes - begin;
  const std::byte* const item = node_->bytes() + begin;
  FetchLines(item, item + std::min(bytes, kScanBytesMax));
}

inline void HeadLayout::Leaf::PrefetchWrite() const {
  const heads::Fill fill = heads::Fill::Of(used_);
  if (HasLogRoom(*codec_, node_, used_, heads::LogItem::BytesOf(Sorted(node_).stride()), 1)) {
    FetchLine(node_->bytes() + fill.bytes);
    FetchLine(node_->bytes() + fill.bytes + 63);
    return;
  }
  for (uint32_t at = heads::kLeafHeadsAt; at < fill.bytes; at += 64) {
    FetchLine(node_->bytes() + at);
  }
}

inline bool HeadLayout::Leaf::GoesBeyond(const LeafSpot& spot, uint32_t items) const {
  if (!spot.known || spot.at + uint64_t{items} <= heads::FormOf(node_).count) return false;
  FetchLine(node_->bytes() + node_->shortcut_end);
  return true;
}

inline bool HeadLayout::HasSorted(const Codec& codec, const NodeHeader* leaf, std::string_view key,
                                  const LeafSpot& spot) {
  const Sorted sorted(leaf);
  return FindAlike(sorted, spot, [&](uint32_t i) { return codec.Compare(key, sorted.key(i)); }) !=
         kNone;
}

inline bool HeadLayout::HasLogged(const Codec& codec, const NodeHeader* leaf, std::string_view key,
                                  const LeafSpot& spot) {
  if (!spot.known) return false;
  for (uint32_t same = spot.tagged; same != 0; same &= same - 1) {
    const heads::LogItem item(leaf, heads::LogOffset(leaf, std::countr_zero(same)));
    if (codec.Compare(key, item.key()) == 0) return true;
  }
  return false;
}

// The header, which says where the fences are, may not have come yet; they lie behind the items.
inline void HeadLayout::Leaf::PrefetchCovers(const LeafSpot& spot) const {
  const Sorted sorted(node_);
  if (HasHead(sorted, spot) || (spot.known && spot.tagged != 0)) return;
  FetchLine(heads::FrontOf(node_));
  if (sorted.is_uniform()) FetchLine(node_->bytes() + sorted.offset(sorted.count()));
}

inline void HeadLayout::Leaf::PrefetchFences() const {
  FetchLine(node_->bytes() + node_->shortcut_end);
}

inline void HeadLayout::Leaf::PrefetchScan(uint32_t from, uint32_t items) const {
  const Sorted sorted(node_);
  const uint32_t scanned = std::min(items, sorted.count() - from);
  const std::byte* begin = node_->bytes() + heads::AfterHeads(true, sorted.count());
  if (sorted.is_uniform()) {
    begin += from * sorted.stride();
    FetchLines(begin, begin + scanned * sorted.stride());
  } else if (scanned > 0) {
    // The line of an offset further on has not come, so the items are taken to be of one size.
    const std::byte* const items_begin = begin + 2 * sorted.count();
    const std::byte* const items_end = node_->bytes() + node_->shortcut_end;
    const auto mean = static_cast<uint32_t>((items_end - items_begin) / sorted.count());
    begin = from == 0 ? items_begin : node_->bytes() + sorted.offset(from);
    FetchLines(begin, std::min(begin + scanned * mean, items_end));
  }
  if (visible_ == 0) return;
  FetchLines(node_->bytes() + node_->log_begin, node_->bytes() + heads::Fill::Of(used_).bytes);
}

[[gnu::always_inline]] inline uint32_t HeadLayout::Inner::Seek(std::string_view key,
                                                               bool* equal) const {
  const uint16_t* const all = heads::HeadsOf(node_, false);
  const uint16_t head = heads::HeadIn(node_, key, [&] { return heads::OwnBytes(separator(0)); });
  const uint32_t at = heads::LowerBound(all, count(), heads::InnerSegment(node_, head), head);
  return heads::SettleAmongEqual(
      all, count(), at, head, [&](uint32_t i) { return codec_->Compare(key, separator(i)); },
      equal);
}

inline uint64_t HeadLayout::Inner::Locate(std::string_view key) const {
  bool equal;
  const uint32_t at = Seek(key, &equal);
  const uint32_t child = at + (equal ? 1 : 0);
  FetchLine(node_->bytes() + links() + 8 * child - 8);
  return child;
}

inline uint64_t HeadLayout::Inner::LocateFrom(std::string_view key, uint64_t located) const {
  // Keys that ascend mostly lie in the child that was located or a few further on.
  constexpr uint32_t kSteps = 4;
  auto child = static_cast<uint32_t>(located);
  for (uint32_t steps = 0; steps < kSteps; ++steps, ++child) {
    if (child == count() || codec_->Compare(key, separator(child)) < 0) {
      FetchLine(node_->bytes() + links() + 8 * child - 8);
      return child;
    }
  }
  return Locate(key);
}

inline Link HeadLayout::Inner::ChildOf(std::string_view key, uint32_t* index) const {
  bool equal;
  const uint32_t at = Seek(key, &equal);
  const uint32_t child = at + (equal ? 1 : 0);
  if (index != nullptr) *index = child;
  return Child(child);
}

inline void HeadLayout::PrefetchHead(const Codec&, const NodeHeader* node) {
  FetchLine(node->bytes() + heads::kSearchLineAt);
}

inline void HeadLayout::PrefetchSearch(const Codec& codec, const NodeHeader* leaf) {
  PrefetchHead(codec, leaf);
  constexpr uint32_t kUsualSegments = 5;
  const std::byte* const heads = leaf->bytes() + heads::kLeafHeadsAt;
  FetchLines(heads, heads + kUsualSegments * 2 * heads::kSegmentHeads);
}

inline LeafShape HeadLayout::ShapeOf(const NodeHeader* leaf) {
  const Sorted sorted(leaf);
  return sorted.is_uniform() ? LeafShape::Of(sorted.count(), sorted.stride()) : LeafShape();
}

namespace heads {

// The items [begin, end) that a guess is of.
struct GuessedItems {
  uint32_t begin, end;
  GuessedItems(LeafShape shape, uint32_t share) {
    const uint32_t at =
        static_cast<uint32_t>(uint64_t{shape.items()} * share >> LeafShape::kShareBits);
    const uint32_t around =
        std::min(HeadLayout::kGuessItems, HeadLayout::kGuessBytesMax / 2 / shape.item_bytes());
    begin = at - std::min(at, around);
    end = std::min(at + around + 1, shape.items());
  }
};

}  // namespace heads

inline void HeadLayout::PrefetchGuess(const NodeHeader* leaf, LeafShape shape, uint32_t share) {
  FetchLine(leaf->bytes() + heads::kSearchLineAt);
  const heads::GuessedItems guessed(shape, share);
  const uint16_t* const all = heads::HeadsOf(leaf, true);
  FetchLines(all + guessed.begin, all + guessed.end);
  const std::byte* const items = leaf->bytes() + heads::AfterHeads(true, shape.items());
  FetchLines(items + guessed.begin * shape.item_bytes(), items + guessed.end * shape.item_bytes());
}

inline bool HeadLayout::IsGuess(LeafShape shape, uint32_t share, uint32_t item) {
  const heads::GuessedItems guessed(shape, share);
  return item >= guessed.begin && item < guessed.end;
}

inline void HeadLayout::PrefetchLeaf(const Codec& codec, const NodeHeader* leaf, bool gets_only) {
  PrefetchHead(codec, leaf);
  if (gets_only) return;
  FetchLine(heads::FrontOf(leaf));
  FetchLine(leaf->bytes() + heads::kLogRanksAt);
}

inline uint64_t HeadLayout::NodeDeadline(const Codec&, const NodeHeader* node) {
  // Relaxed: a thread that has seen an item, by an acquire load of the node's word, sees its
  // deadline here.
  return heads::AtomicAt(node, heads::kDeadlineAt).load(std::memory_order_relaxed);
}

}  // namespace skep::btree
