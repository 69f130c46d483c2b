// head_layout.h: a node layout made for a CPU: a search reads few cache lines, and compares many
// keys at once.
//
// Beside its items, a node has the head of each key: 16 bits that rise with the keys. They are made
// of the key's word, the 8 bytes behind a prefix that all keys of the node share. Text has few bits
// in a byte that ever differ, four of digits, so of a word only some bits count, the mask: all in
// which the words of the node's keys differ, and few others (heads::Form). These, side by side, are
// a number; the head is that number less the first key's, shifted so that the last key's just fits
// (heads::HeadOf). So
//
//   head(a) < head(b)  =>  a < b          if heads are equal nothing follows: the keys decide.
//
// This also holds for a key b that is not in the node, whatever its bits are. If the word of b has
// a bit outside the mask that is not the node's, let t be the highest such bit. Keys a that differ
// from b above t do so in bits of the mask, which order them. Of the others, b is above all if it
// has a 1 at t, and below all if it has a 0; so the bits of the mask from t on are taken to be
// ones, or zeros.
//
// If the words of all keys are hexadecimal text, letters are first moved next to digits
// (squeeze_letters.h), which saves two bits a byte.
//
// A leaf of which many keys have equal heads, as the fields of one user have, takes other bits
// (discriminative_bits.h) if these give most keys a head of their own. They order the keys of the
// leaf alone: the place of another key is found by comparing it with one of them.
//
// A cache line holds 32 heads, which some twenty instructions compare. The search line holds
// samples: the upper byte of every 32nd head, or if there are many items of every 64th and so on.
// With 150 items of random keys a search ends at the right item but for one in a thousand. It reads
//
//   the search line  ->  one segment of heads  ->  the item
//
// and the front and a log item, if a tag says that the log may have the key. Scans and writes read
// the front and the log's ranks as well.
//
// A leaf; each line of the picture is one cache line.
//   offset size
//    -32     8   newest: no log item is of a later version                     the front
//    -24    24   places of the log items: offset from log_begin, in units of 8
//      0    32   header up to sorted_count (node.h); shortcut_end: where the fences are
//
//     32    16   word, version                                                 the search line
//     48    24   Form; with 7 samples: upper bytes of the first heads of segments 1 .. 7, 0xff if
//                there is none
//     72    24   tags of the log items: 8 bits of a hash of their heads
//
//     96    48   ranks of the log items, in the order they came                the ranks
//    144     8   deadline, as PaperLayout's
//    152     8   zeros
//
//    160    2N   heads of the sorted items; N is their number rounded up to whole segments, and
//                the heads behind the last item are 0xffff
//           2n   only if the items have not all one form: their offsets
//                sorted items. If all have keys of one length and flags and values of one length
//                and flags, just key | value, else  u16 key form | key | u16 value form | value
//                fences: u16 form | lower key, u16 form | upper key (kNoFence: none)
//                log items, from header.log_begin, each at a multiple of 8 from there: u32 version
//                delta | u16 key form | u16 value form | key | value. A delete marker (a flag of
//                the key) has no value.
//
// An inner node.
//    -32    64   32 unused bytes; header up to sorted_count
//     32    64   word, version, Form (its item forms say that this is an inner node; no samples),
//                and 24 samples
//     96    2N   heads of the separators
//           8n   Links: child i + 1 has the keys from separator i up; header.left those below all
//           2n   offsets of the separators, then these: u16 form | key; then the fences
//
// Forms and lengths are node_field.h's. A leaf is as long as its content and its log may become;
// the sorted block may fill node_bytes, and the log comes on top of that.
//
// Log. Up to 24 items in up to 2048 bytes, in the order of their versions, so the items that a
// reader may not see are a suffix. There are no back pointers or order hints as in the paper. Each
// item has its rank instead: its place among the sorted items, which do not change, as the search
// before the write has found it. A reader that needs the order of the keys sorts the ranks of the
// items that it passes, and compares keys only of items in one gap.
//
// Who writes what. All but the log is written before the buffer is mapped. An append writes the
// item, its place, rank and tag, `newest`, then word, with release. Readers look at items and
// places only as far as `word` says; they load ranks and tags in whole words, which may hold later
// ones, and mask those; and `newest` may be ahead of `word`: then they look at the versions of the
// items.
//
// Invariants. True of the nodes that Build and Append write; Check() looks at each.
//   H1  The blocks lie one behind the other inside the used bytes, the log's places are where its
//       items begin, and the form's count is the header's. The form says whether it is a leaf.
//   H2  Keys, values and fences have no flags but their own, and are as long as stored.h says.
//   H3  Sorted keys rise strictly and lie between the fences, and so do the log's; the first
//       separator of an inner node is not its lower fence.
//   H4  Heads, samples, ranks and tags are those of their keys; heads and samples behind the
//       last one are 0xffff and 0xff. The mask is that of the bits in which the words of the
//       sorted keys differ (heads::ChooseMask); all bits if there are fewer than two keys. Or the
//       form has the discriminative bits of the sorted keys of a leaf.
//   H5  `prefix` bytes are common to all sorted keys. They are not to both fences exactly if
//       `is_surmised`, which a form of discriminative bits never is.
//   H6  Version deltas do not fall, and `newest` is not below the last one.
//   H7  A log item replaces (flag kReplaces) exactly if its key had a value before it.
//   H8  The deadline is not above any item's, and metadata is as stored.h says.
// layout.h has the contracts of a layout's members; the comments here say what is special to this
// one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "btree/heads/head_layout_bytes.h"
#include "btree/layout.h"
#include "btree/node.h"
#include "btree/node_items.h"
#include "btree/stored.h"

namespace skep::btree {

// It has 33 methods, all static but for its views': what layout.h asks of a layout.
class HeadLayout {
  class Checker;
  class Merger;

 public:
  class LeafCursor;
  using LeafItem = btree::LeafItem;
  using InnerItem = btree::InnerItem;
  using Fences = btree::Fences;
  using Found = btree::Found;

  static constexpr uint32_t kFrontBytes = heads::kFrontBytes;
  static constexpr uint32_t kLogItemsMax = heads::kLogItemsMax;
  static constexpr uint32_t kLogBytesMax = heads::kLogBytesMax;
  static constexpr uint64_t kDeltaMax = UINT32_MAX;
  static constexpr uint64_t kNoDeadline = UINT64_MAX;

  // A view of the items of the sorted block.
  class Sorted {
   public:
    explicit Sorted(const NodeHeader* node);
    uint32_t count() const { return count_; }
    bool is_uniform() const { return stride_ != 0; }
    uint32_t stride() const { return stride_; }                                // if uniform
    uint32_t key_bytes() const { return key_form_ & field::kLengthMask; }      // if uniform
    uint32_t value_bytes() const { return value_form_ & field::kLengthMask; }  // if uniform
    // Whether the stored values are the values: uniform, not outside, and without metadata.
    bool is_plain() const {
      return is_uniform() && ((key_form_ | value_form_) & ~field::kLengthMask) == 0;
    }
    uint16_t head(uint32_t i) const { return heads_[i]; }
    uint32_t offset(uint32_t i) const {
      return is_uniform() ? items_ + i * stride_ : field::Load<uint16_t>(node_, items_ + 2 * i);
    }
    StoredKey key(uint32_t i) const;
    StoredValue value(uint32_t i) const;
    // The first item with a head >= `head`.
    uint32_t LowerBound(uint16_t head) const;
    // The first item with a key >= `key`, whose head is `head`; *equal: it has that key.
    template <class Key>
    uint32_t Seek(const Codec& codec, const Key& key, uint16_t head, bool* equal) const {
      return SeekFrom(codec, key, head, LowerBound(head), equal);
    }
    // Like Seek, if LowerBound(head) is known.
    template <class Key>
    uint32_t SeekFrom(const Codec& codec, const Key& key, uint16_t head, uint32_t lower_bound,
                      bool* equal) const;

   private:
    uint32_t SeekAbsent(std::string_view searched, uint16_t head, uint32_t lower_bound,
                        uint32_t among_equal) const;

    const NodeHeader* node_;
    const uint16_t* heads_;
    uint32_t count_;
    uint32_t items_;   // offset of the items, or of their offsets
    uint32_t stride_;  // 0: not uniform
    uint16_t key_form_;
    uint16_t value_form_;
  };

  class Leaf {
   public:
    static constexpr Version kNewest = UINT64_MAX;
    static constexpr uint64_t kNoTime = 0;

    Leaf(const Codec& codec, const NodeHeader* node, uint32_t used, Version read_version = kNewest,
         uint64_t now_ms = kNoTime);

    // Cost: three cache lines, usually; the item's line if `spot` is known.
    Found Find(std::string_view key, const LeafSpot& spot = {}) const;
    // Prefetch fetches the segment of heads that a search for the key will read; the search line
    // has come. PrefetchItems, once the segment has come, fetches the first `items` items from the
    // key on, and completes the spot. True: only their offsets, as they have not all one form;
    // PrefetchByOffsets fetches the items once the offsets have come.
    LeafSpot Prefetch(std::string_view key) const;
    bool PrefetchItems(uint32_t items, LeafSpot* spot) const;
    void PrefetchByOffsets(uint32_t items, const LeafSpot& spot) const;
    // Fetches the lines that a write of the key will write: the end of the log, or the whole leaf,
    // if its log has no room and it will be merged.
    void PrefetchWrite() const;
    // Whether `items` items from a known spot on may go beyond the leaf; if so, fetches the fences.
    bool GoesBeyond(const LeafSpot& spot, uint32_t items) const;
    // Fetches the fences, unless the sorted block may have the key.
    void PrefetchCovers(const LeafSpot& spot) const;
    // Fetches the fences of a leaf that a scan goes on to; the header has come.
    void PrefetchFences() const;
    // Fetches all that a scan of `items` items from sorted item `from` on reads in this leaf; the
    // header has come.
    void PrefetchScan(uint32_t from, uint32_t items) const;
    uint32_t log_items() const { return heads::Fill::Of(used_).log_items; }
    uint32_t CountPresent() const;
    Version newest_version() const;

    const Codec& codec() const { return *codec_; }
    const NodeHeader* node() const { return node_; }
    uint32_t used() const { return used_; }

   private:
    friend class LeafCursor;
    friend class HeadLayout;

    heads::LogItem Log(uint32_t i) const { return {node_, heads::LogOffset(node_, i)}; }
    bool HasExpired(const StoredValue& value) const {
      const uint64_t deadline_ms = DeadlineOf(value);
      return deadline_ms != 0 && deadline_ms <= now_ms_;
    }
    uint32_t CountLive() const;
    uint32_t Tagged(uint16_t head, const LeafSpot& spot) const;
    uint32_t LogItemsRanked(uint32_t begin, uint32_t end) const;
    static uint32_t EndOfItems(const Sorted& sorted, uint32_t items, const LeafSpot& spot);

    const Codec* codec_;
    const NodeHeader* node_;
    uint32_t used_;
    uint32_t visible_;  // log items that the reader sees
    Version node_version_;
    uint64_t now_ms_;
  };

  // It has 29 methods: the log and the sorted block are gone through as one, so a step in either
  // direction moves in both.
  class LeafCursor {
   public:
    explicit LeafCursor(const Leaf& leaf);

    bool valid() const { return source_ != Source::kNone; }
    // The cursor goes on for at most `items` items; UINT32_MAX: it may go back as well.
    void SeekFirst(uint32_t items = UINT32_MAX);
    void SeekLast();
    void SeekAtLeast(std::string_view key, KeyIs where = KeyIs::kAny);
    // Like SeekAtLeast, for a key of the leaf whose spot may be known; `items` as of SeekFirst.
    void SeekAtLeast(std::string_view key, const LeafSpot& spot, uint32_t items);
    void SeekBelow(std::string_view key, KeyIs where = KeyIs::kAny);
    // Goes to the last item with a key <= `key`, for a key of the leaf whose spot may be known. The
    // cursor stays there: it goes neither on nor back.
    void SeekAtMost(std::string_view key, const LeafSpot& spot);
    void Next();
    void Prev();
    StoredKey key() const;
    StoredValue value() const;
    Version version() const;

    // The form of the sorted block; none if its items have several forms, have metadata or lie
    // outside. Log items may have another form.
    std::optional<PlainForm> plain_form() const {
      if (!sorted_.is_plain()) return std::nullopt;
      return PlainForm{.key_bytes = sorted_.key_bytes(), .value_bytes = sorted_.value_bytes()};
    }
    uint32_t log_items() const { return entry_count_; }
    // Requires a plain_form(). Cost: copying; a few instructions for each item of the log.
    uint32_t CopyPlain(uint32_t most, bool keys_only, char* to);
    // Cost: some thirty instructions for each item.
    uint32_t TakeWhole(std::span<Item> items, bool keys_only, size_t bytes_max);

   private:
    friend class Merger;
    enum class Source : uint8_t { kNone, kSorted, kLog };

    uint32_t WholeLog() const { return (uint32_t{1} << leaf_->visible_) - 1; }
    uint32_t LogItemsAmong(uint32_t rank, uint32_t items) const;
    void SortLog() { SortLog(WholeLog()); }
    void SortLog(uint32_t items);
    void SettleEqualRanks();
    void GoToGapBefore(std::string_view key, KeyIs where);
    uint32_t LogItemsNearFloor(uint16_t rank) const;
    bool HasDeletion(uint32_t log_items) const;
    uint16_t GoToSorted(std::string_view key, const LeafSpot& spot);
    void GoToEntry(std::string_view key, uint16_t rank);
    bool GoToEndIfOutside(std::string_view key);
    void StepForward();
    void StepBack();
    void TakeNext();
    void TakePrevious();
    void PassCurrent();
    heads::LogItem Entry(uint32_t entry) const { return leaf_->Log(order_[entry]); }
    // Returns <0, 0 or >0 as the log item is below, equal to or above the sorted item.
    int CompareWithSorted(uint32_t entry, uint32_t item) const {
      return int{entry_ranks_[entry]} - int{heads::RankOf(item, true)};
    }
    bool HasExpired() const {
      return leaf_->now_ms_ != Leaf::kNoTime && valid() && leaf_->HasExpired(value());
    }

    const Leaf* leaf_;
    Sorted sorted_;
    // A gap in the merged order: sorted item at_ and entry_ are the first behind it, and the
    // current item is the first of the two, or both: if hides_.
    uint32_t at_ = 0;
    uint32_t entry_ = 0;
    uint32_t entry_count_ = 0;
    bool has_sorted_log_ = false;
    Source source_ = Source::kNone;
    bool hides_ = false;
    // The newest of the sorted log items of each key, by the order of keys, and their ranks.
    std::array<uint8_t, kLogItemsMax> order_;
    std::array<uint16_t, kLogItemsMax> entry_ranks_;
  };

  class Inner {
   public:
    Inner(const Codec& codec, const NodeHeader* node) : codec_(&codec), node_(node) {}

    uint32_t count() const { return heads::FormOf(node_).count; }
    Link ChildOf(std::string_view key, uint32_t* index = nullptr) const;
    Link ChildBelow(std::string_view key, uint32_t* index = nullptr) const;
    // ChildOf in two steps: the first fetches the link, the second reads it.
    uint64_t Locate(std::string_view key) const;
    uint64_t LocateFrom(std::string_view key, uint64_t located) const;
    Link Located(uint64_t located) const { return Child(static_cast<uint32_t>(located)); }
    void CopyTo(std::vector<InnerItem>* items) const;
    Link leftmost() const { return {node_->left.load(std::memory_order_relaxed)}; }
    Link rightmost() const { return Child(count()); }

   private:
    friend class HeadLayout;
    uint32_t links() const { return heads::AfterHeads(false, count()); }
    Link Child(uint32_t i) const {
      return i == 0 ? leftmost() : field::Load<Link>(node_, links() + 8 * (i - 1));
    }
    StoredKey separator(uint32_t i) const {
      return field::KeyAt(node_, field::Load<uint16_t>(node_, links() + 8 * count() + 2 * i));
    }
    // The first separator >= the key; *equal: it is the key.
    uint32_t Seek(std::string_view key, bool* equal) const;

    const Codec* codec_;
    const NodeHeader* node_;
  };

  // The cheap answer for most reads of the newest state. True if the log has no item of the key and
  // its item in the sorted block is plain; `value` is then its value. False: nothing is known.
  // Requires a completed `spot`.
  static bool FindPlain(const NodeHeader* leaf, uint32_t used, std::string_view key,
                        const LeafSpot& spot, std::string_view* value);

  static void BlocksOf(const Codec& codec, const NodeHeader* node, uint32_t used,
                       std::vector<OutsideBlock>* blocks);
  static bool HasOutsideKeys(const Codec& codec, const NodeHeader* leaf, uint32_t used);

  static Fences FencesOf(const Codec& codec, const NodeHeader* node);
  static uint64_t NodeDeadline(const Codec& codec, const NodeHeader* node);
  static bool LowerDeadline(const Codec& codec, NodeHeader* node, uint64_t deadline_ms);
  static bool Covers(const Codec& codec, const NodeHeader* node, std::string_view key);
  // A key of the sorted block or of the log lies between the fences, so those need not be read.
  static bool CoversAt(const Codec& codec, const NodeHeader* leaf, std::string_view key,
                       const LeafSpot& spot) {
    return HasSorted(codec, leaf, key, spot) || HasLogged(codec, leaf, key, spot) ||
           Covers(codec, leaf, key);
  }

  static uint32_t FixedBytes(const Geometry& geometry);
  static uint32_t LeafItemBytes(const LeafItem& item);
  static uint32_t InnerItemBytes(const InnerItem& item);
  static uint32_t FenceBytes(const Fences& fences);
  static uint32_t LeafBytes(const Codec& codec, std::span<const LeafItem> items,
                            const Fences& fences);
  static uint32_t InnerBytes(const Codec& codec, std::span<const InnerItem> items,
                             const Fences& fences);
  static uint32_t InnerBytesOf(const Codec&, const NodeHeader* inner) { return inner->log_begin; }
  static uint32_t SeparatorBytesMax(const Geometry& geometry);
  static uint32_t LeafBytesMax(const Geometry& geometry);
  // The most bytes of a log, with this geometry.
  static uint32_t LogBytesMax(const Geometry& geometry) {
    return std::min(geometry.log_bytes_max, kLogBytesMax);
  }
  // False also if the items are too many for a split in two, should each need a form of its own.
  static bool FitsLeaf(const Codec& codec, std::span<const LeafItem> items, const Fences& fences);
  // The log comes on top of every leaf.
  static bool CanBeLeaf(const Codec& codec, std::span<const LeafItem> items, const Fences& fences) {
    return FitsLeaf(codec, items, fences);
  }
  static uint32_t LeafBufferBytes(const Codec& codec, const NodeHeader* built, uint32_t used);
  static bool HasLogRoom(const Codec& codec, const NodeHeader* node, uint32_t used, uint32_t bytes,
                         uint32_t items);

  static uint32_t BuildLeaf(const Codec& codec, std::span<const LeafItem> items,
                            const Fences& fences, NodeHeader* buffer);
  static uint32_t BuildLeaf(const Codec& codec, const ItemSpan& items, const Fences& fences,
                            NodeHeader* buffer);
  // Builds what BuildLeaf would build of the leaf's items as of `used` and one edit: the key gets
  // the value, or is deleted if `value` is null. Returns log_begin; 0 if it cannot, since the items
  // are not all plain and of one form, or are fewer than two. If log_begin would be above
  // `bytes_max`, or FitsLeaf would say no, writes nothing and returns more than `bytes_max`. Cost:
  // the log, and copying.
  static uint32_t MergeLeaf(const Codec& codec, const NodeHeader* leaf, uint32_t used,
                            const StoredKey& key, const StoredValue* value, uint32_t bytes_max,
                            NodeHeader* buffer);
  // Like MergeLeaf, of the leaf's items alone.
  static uint32_t MergeLog(const Codec& codec, const NodeHeader* leaf, uint32_t used,
                           uint32_t bytes_max, NodeHeader* buffer);
  // Copies the leaf's items as of `used`, if all are plain and of one form; else returns none.
  // Cost: as MergeLeaf.
  static ItemSpan GatherPlain(const Codec& codec, const NodeHeader* leaf, uint32_t used,
                              Scratch& scratch);
  static uint32_t BuildInner(const Codec& codec, uint8_t level, Link leftmost,
                             std::span<const InnerItem> items, const Fences& fences,
                             NodeHeader* buffer);

  // Builds a copy of `old` in which child number `child` is replaced by `left`, `separator` and
  // `right`. Returns 0 if it cannot, else log_begin.
  static uint32_t InsertChild(const Codec& codec, const NodeHeader* old, uint32_t child, Link left,
                              const StoredKey& separator, Link right, NodeHeader* buffer);

  static uint32_t LogItemBytes(const StoredKey& key, const StoredValue* value);
  static uint32_t AppendToLog(const Codec& codec, NodeHeader* node, uint32_t used, const Found& at,
                              const StoredKey& key, const StoredValue* value);
  static void SetLogVersion(NodeHeader* node, uint32_t used, uint64_t delta);

  // PrefetchHead fetches the search line; PrefetchLeaf also the lines that scans and writes need.
  // PrefetchSearch fetches the heads of a usual leaf at once with the search line, which would say
  // which of them are wanted.
  static void PrefetchHead(const Codec& codec, const NodeHeader* node);
  static void PrefetchSearch(const Codec& codec, const NodeHeader* leaf);
  static void PrefetchLeaf(const Codec& codec, const NodeHeader* leaf, bool gets_only);
  static bool IsLeaf(const NodeHeader* node) { return heads::IsLeaf(heads::FormOf(node)); }
  // A guess is of some items before and behind the one that lies at the key's share of the items.
  // In a leaf of 160 random keys, four in five keys are among the 15 items that are guessed.
  static constexpr uint32_t kGuessItems = 7;
  static constexpr uint32_t kGuessBytesMax = 512;
  static LeafShape ShapeOf(const NodeHeader* leaf);
  static void PrefetchGuess(const NodeHeader* leaf, LeafShape shape, uint32_t share);
  static bool IsGuess(LeafShape shape, uint32_t share, uint32_t item);
  // Nothing more to fetch in this layout.
  static void PrefetchLog(const NodeHeader*, NodeWord) {}

  // Checks H1 to H8.
  static const char* Check(const Codec& codec, const NodeHeader* node, uint32_t used);

 private:
  // Text has keys whose heads are equal, as the fields of one user. So many of them are compared
  // one after the other before a search is left to others.
  static constexpr uint32_t kAlikeMax = 8;
  // The bytes of a scan's items that are fetched for a whole window of requests.
  static constexpr uint32_t kScanBytesMax = 1024;
  // Whether the sorted item at a completed spot has the spot's head.
  static bool HasHead(const Sorted& sorted, const LeafSpot& spot) {
    return spot.known && spot.at < sorted.count() && sorted.head(spot.at) == spot.head;
  }
  // The first of the sorted items from a completed spot on, of those with its head and of kAlikeMax
  // at most, for which order(i), which says how the key compares to the item, is 0; kNone: none.
  static constexpr uint32_t kNone = UINT32_MAX;
  template <class Order>
  static uint32_t FindAlike(const Sorted& sorted, const LeafSpot& spot, Order order);
  static bool HasSorted(const Codec& codec, const NodeHeader* leaf, std::string_view key,
                        const LeafSpot& spot);
  // Whether a log item that the spot names has the key.
  static bool HasLogged(const Codec& codec, const NodeHeader* leaf, std::string_view key,
                        const LeafSpot& spot);
};
static_assert(TreeLayout<HeadLayout>);

}  // namespace skep::btree
