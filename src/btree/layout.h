// layout.h: the contract of a layout of a node's bytes.
//
// The tree is a template over a layout: HeadLayout (heads/head_layout.h), made for a CPU, or
// PaperLayout (paper/paper_layout.h), the paper's. The tree knows headers (node.h), items, fences
// and results of searches (node_items.h), and how keys and values are stored (stored.h). Only the
// layout knows where in a node they lie, and has more bytes there to find them. A layout is a class
// without objects; its views Leaf, LeafCursor and Inner are made for a node and are cheap.
//
// Thread safety. The views read only bytes that are complete and will not change (node.h). The
// functions that build or append write buffers and bytes that no reader looks at yet.
//
// Parameters: `node`, `leaf` and `inner` are nodes with this layout; `used` is NodeWord::used(),
// loaded with acquire before any of the bytes it covers are read; `buffer` has room for the node
// that is built, and kFrontBytes before it.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "btree/leaf_shape.h"
#include "btree/node.h"
#include "btree/node_items.h"
#include "btree/stored.h"
#include "skep/items.h"
#include "skep/scratch.h"

namespace skep::btree {

// The constants of a layout.
template <class L>
concept HasLayoutBounds = requires {
  { L::kFrontBytes } -> std::convertible_to<uint32_t>;   // bytes of a buffer before the node in it
  { L::kLogItemsMax } -> std::convertible_to<uint32_t>;  // most items in the log of one leaf
  // The largest difference between the version of a log item and that of its node.
  { L::kDeltaMax } -> std::convertible_to<uint64_t>;
  { L::kNoDeadline } -> std::convertible_to<uint64_t>;  // NodeDeadline() of a node without any
};

// L::Leaf: a leaf as a reader sees it at a version, which is at least the node version; at kNewest
// the reader sees everything. Cursors and counts leave out items that have expired at the given
// time (kNoTime: none has), Find() does not. Codec and node must outlive the view.
template <class L>
concept HasLeafView =
    requires(const typename L::Leaf leaf, std::string_view key, LeafSpot spot, uint32_t items) {
      // A view of the leaf's first `used` bytes; with a version and a time, as of those.
      requires std::constructible_from<typename L::Leaf, const Codec&, const NodeHeader*, uint32_t>;
      requires std::constructible_from<typename L::Leaf, const Codec&, const NodeHeader*, uint32_t,
                                       Version, uint64_t>;
      { L::Leaf::kNewest } -> std::convertible_to<Version>;
      { L::Leaf::kNoTime } -> std::convertible_to<uint64_t>;

      // Finds the item of the key. `spot` is the result of Prefetch() for that key. Does not
      // allocate.
      { leaf.Find(key) } -> std::same_as<Found>;
      { leaf.Find(key, spot) } -> std::same_as<Found>;
      // The number of keys that have a value.
      { leaf.CountPresent() } -> std::same_as<uint32_t>;
      // The version of the newest visible item; the node version if no log item is visible.
      { leaf.newest_version() } -> std::same_as<Version>;
      { leaf.node() } -> std::same_as<const NodeHeader*>;
      { leaf.used() } -> std::same_as<uint32_t>;

      // The steps of a look ahead (look_ahead.h). Each fetches cache lines, and is called after the
      // lines of the step before have come. A layout may leave any of them empty.
      //
      // Fetches the lines that a search for the key reads next.
      { leaf.Prefetch(key) } -> std::same_as<LeafSpot>;
      // Fetches the first `items` items from the key on, and completes the spot. True: only where
      // these lie, so PrefetchByOffsets has to fetch them.
      { leaf.PrefetchItems(items, &spot) } -> std::same_as<bool>;
      // Fetches what PrefetchItems has left out.
      leaf.PrefetchByOffsets(items, spot);
      // Fetches the lines that a write of the key will write.
      leaf.PrefetchWrite();
      // Whether `items` items from the spot on may reach beyond the leaf; if so, fetches its
      // fences.
      { leaf.GoesBeyond(spot, items) } -> std::same_as<bool>;
      // Fetches what CoversAt() reads for a key whose completed spot this is.
      leaf.PrefetchCovers(spot);
      // Fetches the lines that a scan reads first when it comes to this leaf from its neighbour.
      leaf.PrefetchFences();
      // Fetches all that a scan reads in this leaf: `items` items from the given sorted item on.
      leaf.PrefetchScan(uint32_t{}, items);
    };

// L::LeafCursor: walks the keys of a Leaf that have a value, in order, both ways. A new cursor
// stands at no item; the leaf must outlive the cursor. Nothing allocates.
template <class L>
concept HasLeafCursor = requires(typename L::LeafCursor cursor, const typename L::LeafCursor view,
                                 const typename L::Leaf& leaf, std::string_view key, KeyIs where,
                                 const LeafSpot& spot, uint32_t items, bool keys_only, char* to,
                                 std::span<Item> taken, size_t bytes_max) {
  requires std::constructible_from<typename L::LeafCursor, const typename L::Leaf&>;
  { view.valid() } -> std::same_as<bool>;
  cursor.SeekFirst();
  // The caller will then go on for at most `items` items; UINT32_MAX: it may go back as well.
  cursor.SeekFirst(items);
  cursor.SeekLast();
  // Move to the first key >= `key`, or to the last key < `key`. `where` says whether the leaf
  // covers it.
  cursor.SeekAtLeast(key);
  cursor.SeekAtLeast(key, where);
  cursor.SeekBelow(key, where);
  // Like SeekAtLeast, for a key of the leaf whose spot may be known; `items` as of SeekFirst.
  cursor.SeekAtLeast(key, spot, items);

  // Next() and Prev() require valid().
  cursor.Next();
  cursor.Prev();
  { view.key() } -> std::same_as<StoredKey>;
  { view.value() } -> std::same_as<StoredValue>;
  { view.version() } -> std::same_as<Version>;  // as Found::version
  // How many items of the log the cursor has put into the order of keys.
  { view.log_items() } -> std::same_as<uint32_t>;
  // The common form of all items of the leaf, if they have one and are plain.
  { view.plain_form() } -> std::same_as<std::optional<PlainForm>>;
  // Copies up to `items` items from the current one on, as long as they have the plain form, and
  // moves behind them; with `keys_only`, without values. Returns how many it has copied.
  { cursor.CopyPlain(items, keys_only, to) } -> std::same_as<uint32_t>;
  // Takes views of the items from the current one on, as long as they are stored whole and without
  // metadata, and moves behind them; with `keys_only`, without values. It stops behind the item
  // with which their bytes are more than `bytes_max`. Returns how many it has taken; a layout may
  // take none at any item. The views are valid as long as the leaf.
  { cursor.TakeWhole(taken, keys_only, bytes_max) } -> std::same_as<uint32_t>;
};

// L::Inner: an inner node. Children are numbered from 0; child i > 0 has the keys from separator
// i - 1 up.
template <class L>
concept HasInnerView = requires(const typename L::Inner inner, std::string_view key,
                                uint32_t* index, uint64_t located, std::vector<InnerItem>* items) {
  requires std::constructible_from<typename L::Inner, const Codec&, const NodeHeader*>;
  { inner.count() } -> std::same_as<uint32_t>;  // the number of separators
  // The child that has the key, or that has the keys just below it. `index`, unless it is null,
  // gets the child's number, which may cost a look at all items before it.
  { inner.ChildOf(key) } -> std::same_as<Link>;
  { inner.ChildOf(key, index) } -> std::same_as<Link>;
  { inner.ChildBelow(key, index) } -> std::same_as<Link>;
  // ChildOf in two steps: the first fetches the link, the second reads it.
  { inner.Locate(key) } -> std::same_as<uint64_t>;
  { inner.Located(located) } -> std::same_as<Link>;
  // Locate for a key that is not below another one, which has this result. Cheaper if their
  // children are the same or near, and the layout can tell that.
  { inner.LocateFrom(key, located) } -> std::same_as<uint64_t>;
  { inner.leftmost() } -> std::same_as<Link>;
  { inner.rightmost() } -> std::same_as<Link>;
  // Copies the separators and children 1 .. count(), in order. Cost: the whole node.
  inner.CopyTo(items);
};

// The functions that read a node as a whole.
template <class L>
concept ReadsNodes = requires(const Codec& codec, const NodeHeader* node, NodeHeader* locked,
                              uint32_t used, std::string_view key, const LeafSpot& spot,
                              std::string_view* value, std::vector<OutsideBlock>* blocks,
                              uint64_t deadline_ms, bool gets_only, NodeWord word, LeafShape shape,
                              uint32_t share) {
  { L::FencesOf(codec, node) } -> std::same_as<Fences>;
  // Whether the node covers the key: it lies between the fences.
  { L::Covers(codec, node, key) } -> std::same_as<bool>;
  // The same of a leaf, for a key that may be looked for there: `spot` is what Prefetch() and
  // PrefetchItems() have said of it. Cheap if the leaf has the key.
  { L::CoversAt(codec, node, key, spot) } -> std::same_as<bool>;
  // The cheap answer for most reads of the newest state. True: the key has this value and no
  // deadline. False: the caller has to ask Leaf::Find.
  { L::FindPlain(node, used, key, spot, value) } -> std::same_as<bool>;
  // Appends every outside block that belongs to the node: those of fences and separators, of all
  // keys, and of the values that no later log item replaces. Cost: the whole node.
  L::BlocksOf(codec, node, used, blocks);
  // Whether the key of an item of the leaf, old or new, lies in an outside block. Cost: a look at
  // each item, or at the form of all.
  { L::HasOutsideKeys(codec, node, used) } -> std::same_as<bool>;
  // NodeDeadline: no item of the leaf, old or new, has an earlier deadline than this. LowerDeadline
  // makes it earlier, before the item with that deadline can be seen, and returns whether it did;
  // the caller has locked the leaf or builds it.
  { L::NodeDeadline(codec, node) } -> std::same_as<uint64_t>;
  { L::LowerDeadline(codec, locked, deadline_ms) } -> std::same_as<bool>;
  // Fetches the lines of a node, inner or leaf, that a search reads first.
  L::PrefetchHead(codec, node);
  // Fetches the lines of a leaf that a search of it reads, as far as they are known without a look
  // at it, for a reader that has nothing else to do meanwhile.
  L::PrefetchSearch(codec, node);
  // The shape of a leaf, and what PrefetchSearch fetches of a leaf that is not looked at yet, if it
  // has this shape and the key is as far behind its lower fence as `share` says
  // (LeafDirectory::Guess): fewer of its heads, and the items that are likely to have the key.
  // IsGuess: whether the sorted item of that number is among these.
  { L::ShapeOf(node) } -> std::same_as<LeafShape>;
  L::PrefetchGuess(node, shape, share);
  { L::IsGuess(shape, share, share) } -> std::same_as<bool>;
  // Fetches what else a search of a leaf's log reads; the leaf's header has come.
  L::PrefetchLog(node, word);
  // Fetches the lines of a leaf that a search reads first; with `gets_only`, no more than a kGet
  // needs.
  L::PrefetchLeaf(codec, node, gets_only);
  // Whether the node is a leaf. Reads no other lines than PrefetchLeaf fetches with `gets_only`.
  { L::IsLeaf(node) } -> std::same_as<bool>;
  // Returns null, or a literal that names the invariant of the layout that is broken. Reads nothing
  // outside [node, node + used), whatever the bytes say; if it returns null the views do not
  // either. If codec.arena is null, outside keys are compared by their heads only. Cost: a search
  // of the node for each log item.
  { L::Check(codec, node, used) } -> std::same_as<const char*>;
};

// The sizes by which the tree decides whether items fit into a node and where to cut it. For a key
// that is not stored yet its first key_inline_max() bytes give a right upper bound.
template <class L>
concept MeasuresNodes =
    requires(const Codec& codec, const Geometry& geometry, const NodeHeader* node, uint32_t used,
             const LeafItem& leaf_item, const InnerItem& inner_item, const Fences& fences,
             std::span<const LeafItem> leaf_items, std::span<const InnerItem> inner_items) {
      // The bytes of a node without fences and items; the most bytes that one item adds.
      { L::FixedBytes(geometry) } -> std::same_as<uint32_t>;
      { L::LeafItemBytes(leaf_item) } -> std::same_as<uint32_t>;
      { L::InnerItemBytes(inner_item) } -> std::same_as<uint32_t>;
      // Upper bounds of log_begin of a node built of these items. Cost: a step for each item.
      { L::LeafBytes(codec, leaf_items, fences) } -> std::same_as<uint32_t>;
      { L::InnerBytes(codec, inner_items, fences) } -> std::same_as<uint32_t>;
      // InnerBytes of the items that an inner node has; the most bytes that one more separator
      // adds.
      { L::InnerBytesOf(codec, node) } -> std::same_as<uint32_t>;
      { L::SeparatorBytesMax(geometry) } -> std::same_as<uint32_t>;
      // The largest LeafBytes of a leaf that is built anew, so that its log has room.
      { L::LeafBytesMax(geometry) } -> std::same_as<uint32_t>;
      // Whether a leaf can be built of the items: with room for its log (FitsLeaf), or at all.
      { L::FitsLeaf(codec, leaf_items, fences) } -> std::same_as<bool>;
      { L::CanBeLeaf(codec, leaf_items, fences) } -> std::same_as<bool>;
      // The length of the buffer of a built leaf that is `used` long, with room for its log.
      { L::LeafBufferBytes(codec, node, used) } -> std::same_as<uint32_t>;
    };

// The functions that build nodes. They write all of a node but word, version, older and the
// siblings, which the caller writes. Items are ascending and inside the fences.
template <class L>
concept BuildsNodes =
    requires(const Codec& codec, const NodeHeader* node, uint32_t used, const StoredKey& key,
             const StoredValue* value, uint32_t bytes_max, NodeHeader* buffer, uint8_t level,
             Link link, uint32_t child, const Fences& fences, std::span<const LeafItem> leaf_items,
             std::span<const InnerItem> inner_items, const ItemSpan& run, Scratch& scratch) {
      // BuildLeaf and BuildInner return log_begin.
      { L::BuildLeaf(codec, leaf_items, fences, buffer) } -> std::same_as<uint32_t>;
      { L::BuildInner(codec, level, link, inner_items, fences, buffer) } -> std::same_as<uint32_t>;

      // Faster ways to merge and to split; a layout that has none returns 0, or no items.
      //
      // MergeLeaf builds what BuildLeaf would build of the leaf's items as of `used` and one edit:
      // the key gets the value, or is deleted if `value` is null. If the result is more than
      // `bytes_max`, nothing was built, as it would not fit.
      { L::MergeLeaf(codec, node, used, key, value, bytes_max, buffer) } -> std::same_as<uint32_t>;
      // MergeLog builds the same of the items alone, without an edit.
      { L::MergeLog(codec, node, used, bytes_max, buffer) } -> std::same_as<uint32_t>;
      // GatherPlain copies the leaf's items as of `used`, if all are plain and of one form;
      // BuildLeaf builds a leaf of such a run.
      { L::GatherPlain(codec, node, used, scratch) } -> std::same_as<ItemSpan>;
      { L::BuildLeaf(codec, run, fences, buffer) } -> std::same_as<uint32_t>;
      // Builds a copy of an inner node in which child number `child` is replaced by the first link,
      // the separator and the second link.
      { L::InsertChild(codec, node, child, link, key, link, buffer) } -> std::same_as<uint32_t>;
    };

// The functions that append to the log of a leaf, which the caller has locked. A null `value`
// stands for a delete marker.
template <class L>
concept AppendsToLogs = requires(const Codec& codec, const NodeHeader* node, NodeHeader* locked,
                                 uint32_t used, uint32_t bytes, uint32_t items, const Found& found,
                                 const StoredKey& key, const StoredValue* value, uint64_t delta) {
  // The bytes of a log item, with its header.
  { L::LogItemBytes(key, value) } -> std::same_as<uint32_t>;
  // Whether a leaf that is `used` long has room for `items` more log items of `bytes` bytes in all.
  { L::HasLogRoom(codec, node, used, bytes, items) } -> std::same_as<bool>;
  // Writes an item at `used`, where there is room, and returns the new end. `found` is the result
  // of Find for the key on a Leaf of this node up to `used`.
  { L::AppendToLog(codec, locked, used, found, key, value) } -> std::same_as<uint32_t>;
  // Sets the version of the item that was appended at `used`; called after the version is drawn and
  // before the item is published.
  L::SetLogVersion(locked, used, delta);
};

template <class L>
concept TreeLayout = HasLayoutBounds<L> && HasLeafView<L> && HasLeafCursor<L> && HasInnerView<L> &&
                     ReadsNodes<L> && MeasuresNodes<L> && BuildsNodes<L> && AppendsToLogs<L>;

}  // namespace skep::btree
