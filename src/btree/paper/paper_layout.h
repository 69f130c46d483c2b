// paper_layout.h: the paper's layout of a node (Honeycomb, section 3.1).
//
// layout.h has the contracts of a layout's members; the comments here say what is special to this
// one.
//
//   body, from geometry.body_begin():
//   +----------+-------------+-------------+--------------------+-------------------------------+
//   | deadline | lower fence | upper fence | sorted block       | log block, leaves only        |
//   +----------+-------------+-------------+--------------------+-------------------------------+
//                                                               ^ header.log_begin   word.used() ^
//
//   deadline:       8 bytes, an aligned atomic: no item of the node, old or new, has an earlier one
//                   (kNoDeadline: none has any). It only falls, before the item that lowers it can
//                   be seen. So most readers need not look for items that have expired.
//   fence:          u16 length and flags | key. The lower one is inclusive (empty: all keys), the
//                   upper one exclusive; kNoFence as its length: no upper bound.
//   sorted item:    u16 key length and flags | key | payload
//                   payload of a leaf:  u16 value length and flags | value
//                   of an inner node:   Link, 8 bytes. Keys below the first are under header.left.
//   segments:       the sorted block is cut into segments. The first key of each but the first lies
//                   in the shortcut block instead, so that such a segment begins with a payload.
//   shortcut block: entries u16 key length and flags | key | u16 offset of the segment, ascending.
//   log item:       u16 back pointer | u8 order hint | u40 version delta | u16 key length and flags
//                   | key | u16 value length and flags | value. A delete marker has no value.
//
//   back pointer    a key that is new to the leaf: the first sorted item with a larger key, or
//                   log_begin. Else (flag kReplaces): the item it replaces, sorted or log.
//   order hint      the item's rank among the log items present when it came; after equal keys.
//   version delta   item version - node version. Deltas rise along the log, so the items that a
//                   reader may not see are a suffix of it, and a rank never depends on a later
//                   item: the order can be rebuilt of any prefix, without comparing keys.
//
// Offsets are from the beginning of the node. Lengths are below 2^12; the bits above are flags
// (paper_layout_bytes.h).
//
// Invariants. True of the nodes that Build and Append write; Check() looks at each.
//   P1  48 <= shortcut_end <= body_begin and body_begin < log_begin <= used <= node_bytes; an inner
//       node has no log.
//   P2  Keys, values and fences lie in their block, have no flags but their own, and are as long as
//       stored.h says.
//   P3  Shortcut entries fill the shortcut block up to shortcut_end; each offset is where an item
//       begins, and is above the one before.
//   P4  The sorted block has sorted_count items and ends at log_begin; its keys rise strictly.
//   P5  The lower fence is below the upper one and every key is between them. The first separator
//       of an inner node is not the lower fence: its leftmost child has a key range, too.
//   P6  At most kLogItemsMax log items fill the log block; version deltas do not fall.
//   P7  A back pointer with kReplaces names an older log item or a sorted item, one without it a
//       sorted item or log_begin; an order hint is at most the number of log items before.
//   P8  Back pointer, kReplaces and order hint of a log item are those that Find gave before it
//   came.
//   P9  The node's deadline is not above any of its items', and metadata is as stored.h says.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/prefetch.h"
#include "btree/layout.h"
#include "btree/node.h"
#include "btree/node_items.h"
#include "btree/paper/paper_layout_sorted.h"
#include "btree/stored.h"

namespace skep::btree {

// It has 32 methods, all static but for its views': what layout.h asks of a layout.
class PaperLayout {
 public:
  class LeafCursor;

  using LeafItem = btree::LeafItem;
  using InnerItem = btree::InnerItem;
  using Fences = btree::Fences;
  using Found = btree::Found;

  static constexpr uint32_t kLogItemsMax = 255;
  static constexpr uint32_t kFrontBytes = 0;
  static constexpr uint32_t kLogBytesMax = UINT32_MAX;
  static constexpr uint64_t kDeltaMax = (uint64_t{1} << 40) - 1;
  static constexpr uint64_t kNoDeadline = UINT64_MAX;

  // Cost of making one: a few instructions.
  class Leaf {
   public:
    static constexpr Version kNewest = UINT64_MAX;
    static constexpr uint64_t kNoTime = 0;

    Leaf(const Codec& codec, const NodeHeader* node, uint32_t used, Version read_version = kNewest,
         uint64_t now_ms = kNoTime);

    // Cost: the shortcut block, one segment and the log; no allocation.
    Found Find(std::string_view key, const LeafSpot& = {}) const;
    // Fetches the lines that Find will read beyond the shortcut block, which Prefetch itself reads.
    LeafSpot Prefetch(std::string_view key) const;
    // Prefetch() has fetched everything already.
    bool PrefetchItems(uint32_t, LeafSpot*) const { return false; }
    void PrefetchByOffsets(uint32_t, const LeafSpot&) const {}
    void PrefetchWrite() const {}
    bool GoesBeyond(const LeafSpot&, uint32_t) const { return false; }
    void PrefetchCovers(const LeafSpot&) const {}
    void PrefetchFences() const {}
    void PrefetchScan(uint32_t, uint32_t) const {}
    uint32_t log_items() const;  // all log items up to `used`. Cost: the log
    // The number of keys that have a value. Cost: the log; the sorted block only if some may have
    // expired.
    uint32_t CountPresent() const;
    // The version of the newest visible item; the node version if no log item is visible. Cost: the
    // log.
    Version newest_version() const;

    const Codec& codec() const { return *codec_; }
    const NodeHeader* node() const { return node_; }
    uint32_t used() const { return used_; }

   private:
    friend class LeafCursor;
    friend class PaperLayout;  // for its checker

    template <class Key>
    Found FindKey(const Key& key) const;
    void FindSorted(const paper::SortedPosition& at, bool equal, Found* found) const;
    // Calls visit(offset, item) for each visible log item, in the order they came.
    template <class Visit>
    void ForEachVisible(Visit visit) const;

    uint32_t CountLive() const;
    bool HasExpired(const StoredValue& value) const {
      const uint64_t deadline_ms = DeadlineOf(value);
      return deadline_ms != 0 && deadline_ms <= now_ms_;
    }

    const Codec* codec_;
    const NodeHeader* node_;
    uint32_t used_;
    Version node_version_;
    uint64_t delta_max_;  // the largest delta of a visible item
    uint64_t now_ms_;     // kNoTime also if nothing in the node has expired by then
  };

  // The constructor rebuilds the order of the log from the hints and compares no keys.
  class LeafCursor {
   public:
    explicit LeafCursor(const Leaf& leaf);

    bool valid() const { return source_ != Source::kNone; }
    void SeekFirst(uint32_t items = UINT32_MAX);
    void SeekLast();
    void SeekAtLeast(std::string_view key, KeyIs where = KeyIs::kAny);
    void SeekAtLeast(std::string_view key, const LeafSpot&, uint32_t) { SeekAtLeast(key); }
    void SeekBelow(std::string_view key, KeyIs where = KeyIs::kAny);
    // Goes to the last item with a key <= `key`.
    void SeekAtMost(std::string_view key, const LeafSpot&);
    void Next();
    void Prev();
    StoredKey key() const;
    StoredValue value() const;
    Version version() const;

    uint32_t log_items() const { return entry_count_; }

    // There is no plain form: in this layout lengths lie between the items.
    std::optional<PlainForm> plain_form() const { return std::nullopt; }
    uint32_t CopyPlain(uint32_t, bool, char*) { return 0; }
    uint32_t TakeWhole(std::span<Item>, bool, size_t) { return 0; }

   private:
    enum class Source : uint8_t { kNone, kSorted, kLog };  // where the current item is

    // For a key that the log has: its newest visible item.
    struct LogEntry {
      uint16_t item;
      uint16_t place;  // the sorted item that this one comes before, or hides
      bool hides;
      bool deleted;
    };

    uint32_t RebuildOrder(uint16_t* order) const;
    void KeepNewest(const uint16_t* order, uint32_t count);
    void GoToGapBefore(std::string_view key);
    void StepForward();  // to the first live item after the gap
    void StepBack();     // to the last live item before the gap
    void TakeNext();     // the first item after the gap
    void TakePrevious();
    void PassCurrent();  // puts the gap behind the current item
    bool HasExpired() const {
      return leaf_->now_ms_ != Leaf::kNoTime && valid() && leaf_->HasExpired(value());
    }
    bool HidesSorted(uint32_t entry) const {
      return entries_[entry].hides && entries_[entry].place == sorted_.offset();
    }

    const Leaf* leaf_;
    // A gap in the merged order: sorted_ and entries_[entry_] are the first items after it. The
    // current item, if there is one, comes next after the gap.
    paper::SortedPosition sorted_;
    uint32_t entry_ = 0;
    uint32_t entry_count_ = 0;
    Source source_ = Source::kNone;
    std::array<LogEntry, kLogItemsMax> entries_;  // in the order of keys
  };

  class Inner {
   public:
    Inner(const Codec& codec, const NodeHeader* node);

    uint32_t count() const { return node_->sorted_count; }
    // With `index`, decodes all items before the child.
    Link ChildOf(std::string_view key, uint32_t* index = nullptr) const;
    Link ChildBelow(std::string_view key, uint32_t* index = nullptr) const;
    uint64_t Locate(std::string_view key) const { return ChildOf(key).bits; }
    // A link does not say which child it is, so this begins again.
    uint64_t LocateFrom(std::string_view key, uint64_t) const { return Locate(key); }
    Link Located(uint64_t located) const { return {located}; }
    void CopyTo(std::vector<InnerItem>* items) const;
    Link leftmost() const { return {node_->left.load(std::memory_order_relaxed)}; }
    Link rightmost() const;

   private:
    Link ChildAt(const paper::SortedPosition& at, bool found, uint32_t* index) const;

    const Codec* codec_;
    const NodeHeader* node_;
  };

  // This layout has no cheap answer.
  static bool FindPlain(const NodeHeader*, uint32_t, std::string_view, const LeafSpot&,
                        std::string_view*) {
    return false;
  }

  static void BlocksOf(const Codec& codec, const NodeHeader* node, uint32_t used,
                       std::vector<OutsideBlock>* blocks);
  static bool HasOutsideKeys(const Codec& codec, const NodeHeader* leaf, uint32_t used);

  static Fences FencesOf(const Codec& codec, const NodeHeader* node);
  static uint64_t NodeDeadline(const Codec& codec, const NodeHeader* node);
  static bool LowerDeadline(const Codec& codec, NodeHeader* node, uint64_t deadline_ms);
  static bool Covers(const Codec& codec, const NodeHeader* node, std::string_view key);
  static bool CoversAt(const Codec& codec, const NodeHeader* leaf, std::string_view key,
                       const LeafSpot&) {
    return Covers(codec, leaf, key);
  }

  // The first lines that a search reads, and the lines of the log, which is searched whatever the
  // sorted block has: all of them come together.
  static void PrefetchHead(const Codec& codec, const NodeHeader* node);
  static void PrefetchSearch(const Codec& codec, const NodeHeader* leaf) {
    PrefetchHead(codec, leaf);
  }
  // Where an item lies is not guessed in this layout.
  static LeafShape ShapeOf(const NodeHeader*) { return {}; }
  static void PrefetchGuess(const NodeHeader*, LeafShape, uint32_t) {}
  static bool IsGuess(LeafShape, uint32_t, uint32_t) { return false; }
  static void PrefetchLeaf(const Codec& codec, const NodeHeader* leaf, bool) {
    PrefetchHead(codec, leaf);
  }
  static bool IsLeaf(const NodeHeader* node) { return node->is_leaf(); }
  static void PrefetchLog(const NodeHeader* leaf, NodeWord word);

  static uint32_t FixedBytes(const Geometry& geometry) { return geometry.fences_begin(); }
  static uint32_t LeafItemBytes(const LeafItem& item);
  static uint32_t InnerItemBytes(const InnerItem& item);
  static uint32_t FenceBytes(const Fences& fences);
  // LeafBytes and InnerBytes are exact if no key becomes a shortcut.
  static uint32_t LeafBytes(const Codec& codec, std::span<const LeafItem> items,
                            const Fences& fences);
  static uint32_t InnerBytes(const Codec& codec, std::span<const InnerItem> items,
                             const Fences& fences);
  static uint32_t InnerBytesOf(const Codec& codec, const NodeHeader* inner);
  static uint32_t SeparatorBytesMax(const Geometry& geometry);
  static uint32_t LeafBytesMax(const Geometry& geometry) {
    return geometry.node_bytes - geometry.log_bytes_max;
  }
  static bool FitsLeaf(const Codec& codec, std::span<const LeafItem> items, const Fences& fences) {
    return LeafBytes(codec, items, fences) <= LeafBytesMax(codec.geometry);
  }
  static bool CanBeLeaf(const Codec& codec, std::span<const LeafItem> items, const Fences& fences) {
    return LeafBytes(codec, items, fences) <= codec.geometry.node_bytes;
  }
  static uint32_t LeafBufferBytes(const Codec& codec, const NodeHeader* built, uint32_t used);

  // BuildLeaf and BuildInner write shortcut_end, log_begin, level, sorted_count, shortcuts, fences
  // and items, and the deadline, and in an inner node `left` (relaxed). `buffer` has room for
  // LeafBytes or InnerBytes.
  static uint32_t BuildLeaf(const Codec& codec, std::span<const LeafItem> items,
                            const Fences& fences, NodeHeader* buffer);
  // There are no faster ways to merge and to split than gathering and building.
  static uint32_t MergeLeaf(const Codec&, const NodeHeader*, uint32_t, const StoredKey&,
                            const StoredValue*, uint32_t, NodeHeader*) {
    return 0;
  }
  static uint32_t MergeLog(const Codec&, const NodeHeader*, uint32_t, uint32_t, NodeHeader*) {
    return 0;
  }
  static ItemSpan GatherPlain(const Codec&, const NodeHeader*, uint32_t, Scratch&) { return {}; }
  static uint32_t BuildLeaf(const Codec&, const ItemSpan&, const Fences&, NodeHeader*) {
    SKEP_CHECK(false);  // GatherPlain returns no items to build of
    return 0;
  }
  static uint32_t InsertChild(const Codec&, const NodeHeader*, uint32_t, Link, const StoredKey&,
                              Link, NodeHeader*) {
    return 0;
  }
  static uint32_t BuildInner(const Codec& codec, uint8_t level, Link leftmost,
                             std::span<const InnerItem> items, const Fences& fences,
                             NodeHeader* buffer);

  static uint32_t LogItemBytes(const StoredKey& key, const StoredValue* value);
  static bool HasLogRoom(const Codec& codec, const NodeHeader* node, uint32_t used, uint32_t bytes,
                         uint32_t items);
  static uint32_t AppendToLog(const Codec& codec, NodeHeader* node, uint32_t used, const Found& at,
                              const StoredKey& key, const StoredValue* value);
  static void SetLogVersion(NodeHeader* node, uint32_t item, uint64_t delta);

  // Checks P1 to P9.
  static const char* Check(const Codec& codec, const NodeHeader* node, uint32_t used);

 private:
  class Checker;
};

static_assert(TreeLayout<PaperLayout>);

template <class Visit>
void PaperLayout::Leaf::ForEachVisible(Visit visit) const {
  for (uint32_t at = node_->log_begin; at < used_;) {
    const paper::LogItem item(node_, at);
    if (item.delta() > delta_max_) return;  // nor are the items that follow
    visit(at, item);
    at = item.end();
  }
}

// A search reads header and shortcut block from front to back.
inline void PaperLayout::PrefetchHead(const Codec& codec, const NodeHeader* node) {
  const std::byte* const bytes = node->bytes();
  // The last line is that of the fences.
  for (uint32_t at = 0; at <= codec.geometry.body_begin(); at += 64) FetchLine(bytes + at);
}

inline void PaperLayout::PrefetchLog(const NodeHeader* leaf, NodeWord word) {
  const std::byte* const bytes = leaf->bytes();
  for (uint32_t at = leaf->log_begin; at < word.used(); at += 64) FetchLine(bytes + at);
}

// Inline, since a walk calls these for each item.
inline void PaperLayout::LeafCursor::StepForward() {
  for (TakeNext(); HasExpired(); TakeNext()) PassCurrent();
}

inline void PaperLayout::LeafCursor::TakeNext() {
  while (entry_ < entry_count_ && entries_[entry_].place <= sorted_.offset()) {
    if (!entries_[entry_].deleted) {
      source_ = Source::kLog;
      return;
    }
    if (HidesSorted(entry_)) sorted_.Next();
    ++entry_;
  }
  source_ = sorted_.at_end() ? Source::kNone : Source::kSorted;
}

inline void PaperLayout::LeafCursor::PassCurrent() {
  if (source_ == Source::kSorted) {
    sorted_.Next();
  } else {
    if (HidesSorted(entry_)) sorted_.Next();
    ++entry_;
  }
}

inline void PaperLayout::LeafCursor::Next() {
  PassCurrent();
  StepForward();
}

inline StoredKey PaperLayout::LeafCursor::key() const {
  if (source_ == Source::kSorted) return sorted_.key();
  return paper::LogItem(leaf_->node_, entries_[entry_].item).key();
}

inline StoredValue PaperLayout::LeafCursor::value() const {
  if (source_ == Source::kSorted) return paper::ValueAt(leaf_->node_, sorted_.payload());
  return paper::LogItem(leaf_->node_, entries_[entry_].item).value();
}

}  // namespace skep::btree
