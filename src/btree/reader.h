// reader.h: ways down the tree, and along its leaves (Honeycomb, section 3.3; spec section 7).
//
// Wait-free from the root to the leaf: a reader never waits, takes no lock and never begins again.
// At each node it follows the chain of older buffers to the one of its version. Buffers that other
// threads add go before the one it began at, so the chain is as long as it was then: as many
// buffers as there are changes of that node that are not released, that snapshots keep, or that are
// not reclaimed yet. The batch of a reader may have waited before: for a thread state, if
// ThreadStates::kThreadsMax batches run, and for the mutex of the snapshots' list, if it reads at a
// snapshot.
//
// Reading the newest state. A link read in a node that was current leads to a node that was in the
// tree then. If that node has left the tree since, it holds the state at the moment it left, which
// lies after the reader began. So a point read is right without looking back.
//
// From a hint. A hint is a link that somebody kept or made up; the reader takes nothing for granted
// but the numbers in it. It asks detached(), then loads the row of the LID, then the node's word.
//   - The row has the hint's generation, so the node in it covers the one key range that this LID
//     has in this generation; the fences in the node say which.
//   - The node is not marked retired, and no subtree was detached before: so when the row was
//     loaded the node was in the tree, or was about to be (a node that is mapped before its parent
//     leads to it has what the nodes that it replaces have, and is locked). A node is marked before
//     a write goes to another one in its stead, so the buffer was the newest of its key range then,
//     after the reader began.
//   - The key lies between the fences. Then a leaf is the key's leaf, and an inner node is gone
//     down from as from the root: its links led to nodes of the tree when the row was loaded.
// In all other cases, and if the hint names the root, the reader goes down from the root. An old
// hint matches again once 65535 nodes have had its LID; then the fences are those of the node that
// has the LID now, and the reader still is where the key belongs.
//
// From the directory. Its links are hints like any other, and are checked in the same way: Surmise
// asks detached(), then loads the row, then the word, and the level, as a LID may name an inner
// node now. If the sorted items of the leaf have the key, its fences need not be looked at.
//
// Reading at version rv. Every node that was in the tree at rv still has its LID and the buffer of
// rv, as long as the reader announces it (protocol S) or a snapshot pins it. From the root down,
// each node is seen as of rv, so the links are those of rv.
//
// Along the leaves. A sibling link may be late (split_join.h), so it is a hint: the leaf it leads
// to is taken only if it is not retired and its fence, at rv, continues the last one exactly. The
// leaf was not retired after the reader had chosen rv, so it has all writes up to rv. Otherwise the
// reader goes down from the root to the fence. That also covers what the paper leaves open: a scan
// that leaves a new leaf for the old one it was split from goes on from the old one's fence.
#pragma once

#include <optional>
#include <string_view>

#include "btree/core.h"
#include "btree/node_items.h"
#include "skep/batch.h"
#include "skep/scratch.h"

namespace skep::btree {

// A leaf in the state in which a reader found it.
struct LeafPlace {
  Link link = {};
  NodeHeader* node = nullptr;  // the buffer that shows the reader's version
  NodeWord word = {};          // of `node`, read with acquire
  LeafSpot spot = {};          // where the key is
  bool is_stale_hint = false;  // the request's hint has not led here
};

// Sets the hint of an outcome, if it was asked for or the request's own was stale.
inline void TellHint(const Request& request, const LeafPlace& place, Outcome* outcome) {
  if (request.has(Request::kWantHint) || place.is_stale_hint) outcome->hint.bits = place.link.bits;
}

// Thread safety: stateless; the caller is inside an epoch, and has announced what it reads.
template <class Layout>
class Reader {
 public:
  static constexpr Version kNewest = Layout::Leaf::kNewest;
  static constexpr uint64_t kNoTime = Layout::Leaf::kNoTime;

  explicit Reader(const Core& core) : core_(core) {}

  // Finds the leaf of the key, at a version or kNewest.
  LeafPlace Find(std::string_view key, Version at) const;
  // Finds the leaf of the keys just below `key`, which is not empty.
  LeafPlace FindBelow(std::string_view key, Version at) const;
  LeafPlace FindLast(Version at) const;
  // The newest state of the key's leaf, if a hint names it or a node above it.
  std::optional<LeafPlace> FromHint(Link hint, std::string_view key) const;
  // The leaf in which the directory (leaf_directory.h) surmises the key, in its newest state, with
  // the spot of the key, if a search of the leaf knows it. The place is right if the leaf covers
  // the key (Layout::CoversAt), which the caller has to find out. Fetches all lines of the leaf
  // that a search for the key may read, as soon as its address is known, and `items` items from the
  // key on; with `gets_only` no more than a kGet needs. Also fetches, before the leaf's first
  // lines have come, the items that the key's are likely among, if such guesses have been right for
  // the thread.
  //   node is null, link is not    the directory named a node that is no leaf of the tree any more
  //   node and link are null       it cannot tell, or there is none
  LeafPlace Surmise(ThreadState& thread, std::string_view key, uint32_t items,
                    bool gets_only) const;
  // The leaf that `link` leads to at the version, if `fence` is its lower fence (or, with
  // `is_upper`, its upper one).
  std::optional<LeafPlace> FromSibling(Link link, std::string_view fence, bool is_upper,
                                       Version at) const;

  // The buffer of the chain from `newest` that shows the version; null if the chain has none.
  NodeHeader* Visible(NodeHeader* newest, Version at) const;

 private:
  // Goes down from the root, or from the node that `link` names. `choose(inner)` names the child to
  // go down to.
  template <typename Choose>
  LeafPlace Descend(Version at, Choose choose) const;
  template <typename Choose>
  LeafPlace DescendFrom(Link link, Version at, Choose choose) const;

  const Core& core_;
};

// Goes from leaf to leaf at one version; items that have expired at `now_ms` (kNoTime: none) are
// left out. Not thread-safe; requires what Reader requires.
template <class Layout>
class LeafIterator {
 public:
  LeafIterator(const Core& core, Version at, uint64_t now_ms)
      : core_(core), reader_(core), at_(at), now_ms_(now_ms) {}

  // Goes to the leaf of the key; to that of the keys just below `key`, which is not empty; to the
  // last.
  void Seek(std::string_view key) { Enter(reader_.Find(key, at_)); }
  void EnterAt(const LeafPlace& place) { Enter(place); }
  void SeekBelow(std::string_view key) { Enter(reader_.FindBelow(key, at_)); }
  void SeekLast() { Enter(reader_.FindLast(at_)); }
  // Go to the neighbours. Next() requires a bounded leaf, Prev() a lower() that is not empty.
  void Next();
  void Prev();

  const typename Layout::Leaf& leaf() const { return *leaf_; }
  const LeafPlace& place() const { return place_; }
  // The leaf's key range is [lower, upper). Valid until the walk has left the leaf.
  std::string_view lower() const {
    ReadFences();
    return lower_;
  }
  std::string_view upper() const {
    ReadFences();
    return upper_;
  }
  bool unbounded() const {
    ReadFences();
    return unbounded_;
  }

 private:
  void Enter(const LeafPlace& place);
  void ReadFences() const;

  const Core& core_;
  const Reader<Layout> reader_;
  const Version at_;
  const uint64_t now_ms_;
  LeafPlace place_;
  std::optional<typename Layout::Leaf> leaf_;
  // The leaf's fences, read only when asked for: they lie apart from what a short scan reads.
  mutable bool has_fences_ = false;
  mutable std::string_view lower_, upper_;
  mutable bool unbounded_ = true;
  mutable Scratch scratch_[2];  // for the fences of this leaf and of the one before
  uint32_t turn_ = 0;
};

// Walks the keys that have a value at one version and time. Not thread-safe; else as Reader.
template <class Layout>
class Cursor {
 public:
  Cursor(const Core& core, Version at, uint64_t now_ms) : core_(core), leaves_(core, at, now_ms) {}

  // Goes to the leaf where `key` belongs, and there to the first key >= `key`, or the last < `key`.
  // `place` is that leaf, if the caller knows it. The caller then reads at most `items` items in
  // it.
  void SeekAtLeast(std::string_view key, const std::optional<LeafPlace>& place = {},
                   uint32_t items = UINT32_MAX);
  // Goes to the leaf where `key` belongs, and there to the last key <= `key`. `place` as above.
  void SeekAtMost(std::string_view key, const std::optional<LeafPlace>& place);
  // Likewise, but the cursor then does not move within the leaf. Cost: less, as only what is near
  // the key is looked at.
  void SeekFloor(std::string_view key, const std::optional<LeafPlace>& place);
  void SeekBelow(std::string_view key);  // `key` is not empty
  void SeekLast();

  // Whether the cursor stands at an item of its leaf.
  bool valid() const { return in_leaf_->valid(); }
  void Next() { in_leaf_->Next(); }
  // Like LeafCursor, in the current leaf.
  std::optional<PlainForm> plain_form() const { return in_leaf_->plain_form(); }
  uint32_t CopyPlain(uint32_t most, bool keys_only, char* to) {
    return in_leaf_->CopyPlain(most, keys_only, to);
  }
  uint32_t TakeWhole(std::span<Item> items, bool keys_only, size_t bytes_max) {
    return in_leaf_->TakeWhole(items, keys_only, bytes_max);
  }
  void Prev() { in_leaf_->Prev(); }
  // The whole key. Valid until the cursor moves.
  std::string_view key() {
    const StoredKey key = in_leaf_->key();
    if (!key.outside) return key.bytes;
    scratch_.Clear();
    return core_.codec.Whole(key, scratch_);
  }
  // The whole value. Valid until it is asked for again, or the cursor moves. Cost: of a value in
  // pieces, a copy of it.
  std::string_view value() {
    const StoredValue value = in_leaf_->value();
    if (!value.outside) return core_.codec.Contiguous(value);
    value_scratch_.Clear();
    return core_.codec.Whole(value, value_scratch_);
  }
  uint64_t deadline_ms() const { return DeadlineOf(in_leaf_->value()); }
  uint8_t type() const { return TypeOf(in_leaf_->value()); }

  const LeafIterator<Layout>& leaves() const { return leaves_; }
  // Notes the log items of the current leaf that the cursor has put into order.
  void NoteLog(ScannedLeaves& scanned) const {
    const LeafPlace& place = leaves_.place();
    scanned.Pass(in_leaf_->log_items(), place.link, place.word.bits);
  }

  // Go to the first key of the next leaf, or to the last one of the leaf before; the leaf may have
  // none. NextLeaf() requires a bounded leaf, PrevLeaf() a lower fence that is not empty. The
  // caller of NextLeaf() then reads at most `items` items in that leaf.
  void NextLeaf(uint32_t items = UINT32_MAX);
  void PrevLeaf();

  // If the cursor stands at no item, goes on to the next leaf that has one. False: there is no item
  // below `hi`. Cost: the leaves on the way, which may all be empty, but none that begins at `hi`
  // or behind it.
  bool Settle(std::string_view hi, bool unbounded);
  // Like Settle, backwards. False: there is no item from `lo` up.
  bool SettleBack(std::string_view lo);

 private:
  void EnterLeafOf(std::string_view key, const std::optional<LeafPlace>& place);

  const Core& core_;
  LeafIterator<Layout> leaves_;
  std::optional<typename Layout::LeafCursor> in_leaf_;
  Scratch scratch_;        // the result of key()
  Scratch value_scratch_;  // the result of value()
};

}  // namespace skep::btree
