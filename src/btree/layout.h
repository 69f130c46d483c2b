// layout.h: what a layout of a node's bytes must offer.
//
// The tree is a template over a layout: HeadLayout (heads/head_layout.h), made for a CPU, or
// PaperLayout (paper/paper_layout.h), the paper's. The tree knows headers (node.h), items, fences
// and what a search has found (node_items.h), and how keys and values are stored (stored.h). Where
// in a node they lie, and what helps to find them, only the layout knows. It is a class without
// objects; its views Leaf, LeafCursor and Inner are made for a node and are cheap.
//
// Thread safety. The views read what is complete and will not change (node.h). What builds or
// appends writes buffers or bytes that no reader looks at yet.
//
// Parameters: `node`, `leaf` and `inner` are nodes with this layout; `used` is NodeWord::used() as
// it was loaded, with acquire, before the look at anything it covers; `buffer` has room for what is
// built, and kFrontBytes before it.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "btree/node.h"
#include "btree/node_items.h"
#include "btree/stored.h"
#include "skep/items.h"
#include "skep/scratch.h"

namespace skep::btree {

// Numbers.
template <class L>
concept HasLayoutBounds = requires {
  { L::kFrontBytes } -> std::convertible_to<uint32_t>;   // of a buffer, before the node in it
  { L::kLogItemsMax } -> std::convertible_to<uint32_t>;  // of one leaf
  { L::kDeltaMax } -> std::convertible_to<uint64_t>;  // between a log item's and its node's version
  { L::kNoDeadline } -> std::convertible_to<uint64_t>;  // NodeDeadline() of a node without one
};

// L::Leaf: a leaf as a reader at a version sees it, which is at least the node version. kNewest
// sees everything. Cursors and counts leave out what has expired at the time, Find() does not;
// kNoTime: nothing has expired. Codec and node must outlive it.
template <class L>
concept HasLeafView =
    requires(const typename L::Leaf leaf, std::string_view key, LeafSpot spot, uint32_t items) {
      // Of `used` bytes; and as of a version and a time.
      requires std::constructible_from<typename L::Leaf, const Codec&, const NodeHeader*, uint32_t>;
      requires std::constructible_from<typename L::Leaf, const Codec&, const NodeHeader*, uint32_t,
                                       Version, uint64_t>;
      { L::Leaf::kNewest } -> std::convertible_to<Version>;
      { L::Leaf::kNoTime } -> std::convertible_to<uint64_t>;

      // Where the key stands; `spot` is what Prefetch() has found out, or nothing. No allocation.
      { leaf.Find(key) } -> std::same_as<Found>;
      { leaf.Find(key, spot) } -> std::same_as<Found>;
      // Keys that have a value.
      { leaf.CountPresent() } -> std::same_as<uint32_t>;
      { leaf.node() } -> std::same_as<const NodeHeader*>;
      { leaf.used() } -> std::same_as<uint32_t>;

      // Steps of a look ahead (look_ahead.h), each after what the one before has asked for has
      // come. They may do nothing. The first asks for what a search for the key reads next.
      { leaf.Prefetch(key) } -> std::same_as<LeafSpot>;
      // For the first `items` from the key on; completes the spot.
      leaf.PrefetchItems(items, &spot);
      // For where a write of the key writes.
      leaf.PrefetchWrite();
      // Whether so many items from the spot on may go beyond the leaf; asks for its fences then.
      { leaf.GoesBeyond(spot, items) } -> std::same_as<bool>;
      // For what a scan enters the leaf by that it goes on to.
      leaf.PrefetchFences();
      // For all that a scan of so many items from that sorted item on reads here.
      leaf.PrefetchScan(uint32_t{}, items);
    };

// L::LeafCursor: walks the keys of a Leaf that have a value, in order, both ways. It begins at no
// item, and the leaf must outlive it. Nothing allocates.
template <class L>
concept HasLeafCursor = requires(typename L::LeafCursor cursor, const typename L::LeafCursor view,
                                 const typename L::Leaf& leaf, std::string_view key, KeyIs where,
                                 const LeafSpot& spot, uint32_t items, bool keys_only, char* to) {
  requires std::constructible_from<typename L::LeafCursor, const typename L::Leaf&>;
  { view.valid() } -> std::same_as<bool>;
  cursor.SeekFirst();
  cursor.SeekLast();
  // The first key >= `key`; the last key < `key`. `where` is what is known of it.
  cursor.SeekAtLeast(key);
  cursor.SeekAtLeast(key, where);
  cursor.SeekBelow(key, where);
  // The same of a key of the leaf, and of a spot that may be known. The cursor is then to go on
  // for at most so many items.
  cursor.SeekAtLeast(key, spot, items);

  // Only if it is valid().
  cursor.Next();
  cursor.Prev();
  { view.key() } -> std::same_as<StoredKey>;
  { view.value() } -> std::same_as<StoredValue>;
  { view.version() } -> std::same_as<Version>;  // as Found::version
  // The form of the items, if they have one and are plain.
  { view.plain_form() } -> std::same_as<std::optional<PlainForm>>;
  // Copies the current item and those behind it, so many at most, as long as they have the
  // plain form, and goes on behind them; with `keys_only`, without values. Returns how many.
  { cursor.CopyPlain(items, keys_only, to) } -> std::same_as<uint32_t>;
};

// L::Inner: an inner node. Children are numbered from 0; child i > 0 has the keys from separator
// i - 1 up.
template <class L>
concept HasInnerView = requires(const typename L::Inner inner, std::string_view key,
                                uint32_t* index, uint64_t located, std::vector<InnerItem>* items) {
  requires std::constructible_from<typename L::Inner, const Codec&, const NodeHeader*>;
  { inner.count() } -> std::same_as<uint32_t>;  // separators
  // The child that has the key; the child that has the keys just below it. `index`, unless it
  // is null, gets the child's number, which may cost a look at all items before it.
  { inner.ChildOf(key) } -> std::same_as<Link>;
  { inner.ChildOf(key, index) } -> std::same_as<Link>;
  { inner.ChildBelow(key, index) } -> std::same_as<Link>;
  // ChildOf in two steps: the first asks for the link, the second reads it.
  { inner.Locate(key) } -> std::same_as<uint64_t>;
  { inner.Located(located) } -> std::same_as<Link>;
  { inner.leftmost() } -> std::same_as<Link>;
  { inner.rightmost() } -> std::same_as<Link>;
  // Separators and children 1 .. count(), in order. Cost: the whole node.
  inner.CopyTo(items);
};

// The questions that are asked of a node as a whole.
template <class L>
concept ReadsNodes = requires(const Codec& codec, const NodeHeader* node, NodeHeader* locked,
                              uint32_t used, std::string_view key, const LeafSpot& spot,
                              std::string_view* value, std::vector<OutsideBlock>* blocks,
                              uint64_t deadline_ms, bool gets_only, NodeWord word) {
  { L::FencesOf(codec, node) } -> std::same_as<Fences>;
  // Whether the key lies between the fences.
  { L::Covers(codec, node, key) } -> std::same_as<bool>;
  // The cheap answer for most reads of the newest state. True: the key has this value, and no
  // deadline. False: nothing is said.
  { L::FindPlain(node, used, key, spot, value) } -> std::same_as<bool>;
  // Appends every outside block that belongs to the node: of fences and separators, of all
  // keys, and of the values that no later log item replaces. Cost: the whole node.
  L::BlocksOf(codec, node, used, blocks);
  // No item of the leaf, old or new, has an earlier deadline. It only falls, and before the
  // item that lowers it can be seen; for who has locked the leaf or builds it. Whether it fell.
  { L::NodeDeadline(codec, node) } -> std::same_as<uint64_t>;
  { L::LowerDeadline(codec, locked, deadline_ms) } -> std::same_as<bool>;
  // Asks for what a search looks at first: of an inner node, and of a leaf.
  L::PrefetchHead(codec, node);
  // Of a leaf whose header has come: for what else a search of its log reads.
  L::PrefetchLog(node, word);
  L::PrefetchLeaf(codec, node, gets_only);
  // Null, or a literal that names the invariant of the layout that is broken. Reads nothing
  // outside [node, node + used), whatever the bytes say; then all views stay inside as well. If
  // codec.arena is null, outside keys are compared by their heads only. Cost: a search of the
  // node for each log item.
  { L::Check(codec, node, used) } -> std::same_as<const char*>;
};

// Sizes, by which the tree decides what fits into a node and where it is cut. Bounds of keys that
// are still to be stored are right if their first key_inline_max() bytes are given.
template <class L>
concept MeasuresNodes =
    requires(const Codec& codec, const Geometry& geometry, const NodeHeader* node, uint32_t used,
             const LeafItem& leaf_item, const InnerItem& inner_item, const Fences& fences,
             std::span<const LeafItem> leaf_items, std::span<const InnerItem> inner_items) {
      // A node without fences and items; what an item adds to it at most.
      { L::FixedBytes(geometry) } -> std::same_as<uint32_t>;
      { L::LeafItemBytes(leaf_item) } -> std::same_as<uint32_t>;
      { L::InnerItemBytes(inner_item) } -> std::same_as<uint32_t>;
      // Upper bounds of log_begin of a node built of these. Cost: a step an item.
      { L::LeafBytes(codec, leaf_items, fences) } -> std::same_as<uint32_t>;
      { L::InnerBytes(codec, inner_items, fences) } -> std::same_as<uint32_t>;
      // The same of an inner node's own items; and what one more separator may add.
      { L::InnerBytesOf(codec, node) } -> std::same_as<uint32_t>;
      { L::SeparatorBytesMax(geometry) } -> std::same_as<uint32_t>;
      // LeafBytes of a leaf that is built anew may be this, so that its log has room.
      { L::LeafBytesMax(geometry) } -> std::same_as<uint32_t>;
      // Whether a leaf can be built of the items: so that its log has room; at all.
      { L::FitsLeaf(codec, leaf_items, fences) } -> std::same_as<bool>;
      { L::CanBeLeaf(codec, leaf_items, fences) } -> std::same_as<bool>;
      // How long a buffer a leaf gets that was built and is `used` long: with room for its log.
      { L::LeafBufferBytes(codec, node, used) } -> std::same_as<uint32_t>;
    };

// Writing. A built node has all but word, version, older and the siblings, which are the caller's.
// Items are ascending and inside the fences.
template <class L>
concept BuildsNodes =
    requires(const Codec& codec, const NodeHeader* node, uint32_t used, const StoredKey& key,
             const StoredValue* value, uint32_t bytes_max, NodeHeader* buffer, uint8_t level,
             Link link, uint32_t child, const Fences& fences, std::span<const LeafItem> leaf_items,
             std::span<const InnerItem> inner_items, const ItemSpan& run, Scratch& scratch) {
      // Return log_begin.
      { L::BuildLeaf(codec, leaf_items, fences, buffer) } -> std::same_as<uint32_t>;
      { L::BuildInner(codec, level, link, inner_items, fences, buffer) } -> std::same_as<uint32_t>;

      // Faster ways to merge and to split; a layout that has none returns 0, or no items.
      // What BuildLeaf would build of the leaf's items as of `used` and one edit: the key gets the
      // value, or null: goes. More than `bytes_max`: it was not built, as it would not fit.
      { L::MergeLeaf(codec, node, used, key, value, bytes_max, buffer) } -> std::same_as<uint32_t>;
      // A copy of the leaf's items as of `used`, if all are plain and of one form; and a leaf of
      // such items.
      { L::GatherPlain(codec, node, used, scratch) } -> std::same_as<ItemSpan>;
      { L::BuildLeaf(codec, run, fences, buffer) } -> std::same_as<uint32_t>;
      // An inner node as `node`, but that its child number `child` is the first link, and behind it
      // come the separator and the second link.
      { L::InsertChild(codec, node, child, link, key, link, buffer) } -> std::same_as<uint32_t>;
    };

// The log of a leaf, by who has locked it. A null `value` stands for a delete marker.
template <class L>
concept AppendsToLogs = requires(const Codec& codec, const NodeHeader* node, NodeHeader* locked,
                                 uint32_t used, uint32_t bytes, uint32_t items, const Found& found,
                                 const StoredKey& key, const StoredValue* value, uint64_t delta) {
  // Of an item, header included.
  { L::LogItemBytes(key, value) } -> std::same_as<uint32_t>;
  // Whether a leaf that is `used` long has room for so many more items, together so long.
  { L::HasLogRoom(codec, node, used, bytes, items) } -> std::same_as<bool>;
  // Writes an item at `used`, where there is room, and returns the new end. `found` is what
  // Find said of the key on a Leaf of this node up to `used`.
  { L::AppendToLog(codec, locked, used, found, key, value) } -> std::same_as<uint32_t>;
  // Of the item that was appended at `used`; after its version is drawn, before it is published.
  L::SetLogVersion(locked, used, delta);
};

template <class L>
concept TreeLayout = HasLayoutBounds<L> && HasLeafView<L> && HasLeafCursor<L> && HasInnerView<L> &&
                     ReadsNodes<L> && MeasuresNodes<L> && BuildsNodes<L> && AppendsToLogs<L>;

}  // namespace skep::btree
