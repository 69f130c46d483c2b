#include "btree/structure_change.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/reserve_more.h"
#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/pieces.h"

namespace skep::btree {
namespace {

// Bytes of the buffer of such a node: all that the arena gives for it, in units of
// NodeHeader::units.
template <class Layout>
uint32_t BufferBytes(uint32_t node_bytes) {
  const uint32_t bytes = Layout::kFrontBytes + node_bytes;
  return static_cast<uint32_t>(Arena::RoundUp((bytes + 255) / 256 * 256));
}

}  // namespace

template <class Layout>
StructureChange<Layout>::~StructureChange() {
  Undo();
  if (lists_.locked.capacity() <= ChangeLists::kLockedKept) {
    thread_.workspace->change = std::move(lists_);
  }
}

template <class Layout>
bool StructureChange<Layout>::Lock(NodeHeader* node, uint64_t word) {
  ReserveMore(lists_.locked, 1);
  if (!TryLock(node, word)) return false;
  lists_.locked.push_back({.node = node, .word = word});
  return true;
}

template <class Layout>
bool StructureChange<Layout>::Holds(const NodeHeader* node) const {
  return std::ranges::find(lists_.locked, node, &Locked::node) != lists_.locked.end();
}

template <class Layout>
NodeHeader* StructureChange<Layout>::Copy(Link link, const NodeHeader* built, uint32_t used,
                                          uint32_t bytes, NodeHeader* replaces) {
  SKEP_CHECK(bytes <= Geometry::kBufferBytesMax);  // the most that `units` can express
  ReserveMore(lists_.made, 1);
  const ArenaAddress at = core_.arena.Allocate(thread_.cache, bytes, limit_);
  if (!at) return nullptr;
  NodeHeader* const made = core_.Node(at);
  new (made) NodeHeader;
  made->left.store(built->left.load(std::memory_order_relaxed), std::memory_order_relaxed);
  made->right.store(0, std::memory_order_relaxed);
  made->older.store(0, std::memory_order_relaxed);
  made->log_begin = built->log_begin;
  made->shortcut_end = built->shortcut_end;
  made->level = built->level;
  made->units = static_cast<uint8_t>(bytes / 256);
  made->sorted_count = built->sorted_count;
  std::memcpy(made->bytes() - Layout::kFrontBytes, built->bytes() - Layout::kFrontBytes,
              Layout::kFrontBytes);
  std::memcpy(made->bytes() + sizeof(NodeHeader), built->bytes() + sizeof(NodeHeader),
              used - sizeof(NodeHeader));
  uint32_t sequence = 0;
  if (replaces != nullptr) {
    sequence = NodeWord{WordOf(replaces)}.sequence() + 1;
    const Older older = Older::Of(core_.table.Load(link.lid()).buffer());
    made->older.store(core_.multi_version.OlderBits(older), std::memory_order_relaxed);
  }
  // A new node is locked until the tree leads to it: a forged hint might find it before.
  const uint64_t lock = replaces == nullptr ? NodeWord::kLocked : 0;
  made->word.store(NodeWord::Of(used, sequence).bits | lock, std::memory_order_relaxed);
  lists_.made.push_back(
      {.link = link, .node = made, .at = at, .replaces = replaces, .left = 0, .right = 0});
  return made;
}

template <class Layout>
bool StructureChange<Layout>::MakeLeaf(Link link, NodeHeader* old, std::span<const LeafItem> items,
                                       const Fences& fences) {
  const uint32_t used = Layout::BuildLeaf(core_.codec, items, fences, Bench());
  return PlaceLeaf(link, old, Bench(), used);
}

// Gives the leaf that was built a buffer.
template <class Layout>
bool StructureChange<Layout>::PlaceLeaf(Link link, NodeHeader* old, const NodeHeader* built,
                                        uint32_t used) {
  SKEP_CHECK(used <= core_.codec.geometry.node_bytes);
  const uint32_t room = Layout::LeafBufferBytes(core_.codec, built, used);
  uint32_t bytes = BufferBytes<Layout>(room);
  // A leaf that is rebuilt as it is (P6) is expected to be written no more: it gets no longer
  // buffer than it had, if it fits.
  if (old != nullptr && thread_.rebuilds.load(std::memory_order_relaxed)) {
    const auto old_bytes = static_cast<uint32_t>(old->buffer_bytes());
    const uint32_t kept = std::max(BufferBytes<Layout>(used), old_bytes);
    bytes = std::min(bytes, kept);
  }
  NodeHeader* const made = Copy(link, built, used, bytes, old);
  if (made == nullptr) return false;
  if (old != nullptr && old->is_leaf()) {
    lists_.made.back().left = old->left.load(std::memory_order_seq_cst);
    lists_.made.back().right = old->right.load(std::memory_order_seq_cst);
  }
  made->left.store(lists_.made.back().left, std::memory_order_relaxed);
  made->right.store(lists_.made.back().right, std::memory_order_relaxed);
  const uint32_t items_max = made->sorted_count + Layout::kLogItemsMax;
  uint32_t seen = core_.leaf_items_max.load(std::memory_order_relaxed);
  while (seen < items_max &&
         !core_.leaf_items_max.compare_exchange_weak(seen, items_max, std::memory_order_relaxed)) {
  }
  return true;
}

template <class Layout>
bool StructureChange<Layout>::MakeInner(Link link, NodeHeader* old, uint8_t level, Link leftmost,
                                        std::span<const InnerItem> items, const Fences& fences) {
  return PlaceInner(link, old,
                    Layout::BuildInner(core_.codec, level, leftmost, items, fences, Bench()));
}

// Gives the inner node on the bench a buffer.
template <class Layout>
bool StructureChange<Layout>::PlaceInner(Link link, NodeHeader* old, uint32_t used) {
  SKEP_CHECK(used <= core_.codec.geometry.inner_bytes_max());
  return Copy(link, Bench(), used, BufferBytes<Layout>(used), old) != nullptr;
}

template <class Layout>
bool StructureChange<Layout>::InsertChild(Link link, NodeHeader* old, uint32_t child, Link left,
                                          const StoredKey& separator, Link right) {
  const uint32_t used =
      Layout::InsertChild(core_.codec, old, child, left, separator, right, Bench());
  if (used != 0) return PlaceInner(link, old, used);
  const typename Layout::Inner inner(core_.codec, old);
  std::vector<InnerItem> items;
  inner.CopyTo(&items);
  Link leftmost = inner.leftmost();
  (child == 0 ? leftmost : items[child - 1].child) = left;
  items.insert(items.begin() + child, {.separator = separator, .child = right});
  return MakeInner(link, old, old->level, leftmost, items, Layout::FencesOf(core_.codec, old));
}

template <class Layout>
Link StructureChange<Layout>::FreshLink() {
  unused_ = core_.table.Allocate();
  return unused_;
}

template <class Layout>
Link StructureChange<Layout>::NewLeaf(std::span<const LeafItem> items, const Fences& fences) {
  return PlaceNewLeaf(Layout::BuildLeaf(core_.codec, items, fences, Bench()));
}

template <class Layout>
Link StructureChange<Layout>::NewLeaf(const ItemSpan& items, const Fences& fences) {
  return PlaceNewLeaf(Layout::BuildLeaf(core_.codec, items, fences, Bench()));
}

template <class Layout>
Link StructureChange<Layout>::PlaceNewLeaf(uint32_t used) {
  const Link link = FreshLink();
  if (!link || !PlaceLeaf(link, nullptr, Bench(), used)) return {};
  unused_ = {};
  return link;
}

template <class Layout>
Link StructureChange<Layout>::NewInner(uint8_t level, Link leftmost,
                                       std::span<const InnerItem> items, const Fences& fences) {
  const Link link = FreshLink();
  if (!link || !MakeInner(link, nullptr, level, leftmost, items, fences)) return {};
  unused_ = {};
  return link;
}

template <class Layout>
bool StructureChange<Layout>::ReplaceByLeaf(Link link, NodeHeader* old,
                                            std::span<const LeafItem> items, const Fences& fences) {
  return MakeLeaf(link, old, items, fences);
}

template <class Layout>
bool StructureChange<Layout>::ReplaceByMerged(Link link, NodeHeader* old, const NodeHeader* merged,
                                              uint32_t used) {
  return PlaceLeaf(link, old, merged, used);
}

template <class Layout>
bool StructureChange<Layout>::ReplaceByInner(Link link, NodeHeader* old, uint8_t level,
                                             Link leftmost, std::span<const InnerItem> items,
                                             const Fences& fences) {
  return MakeInner(link, old, level, leftmost, items, fences);
}

template <class Layout>
typename StructureChange<Layout>::Made& StructureChange<Layout>::Find(Link link) {
  return *std::ranges::find(lists_.made, link, &Made::link);
}

template <class Layout>
void StructureChange<Layout>::SetSiblings(Link leaf, Link left, Link right) {
  NodeHeader* const node = Find(leaf).node;
  node->left.store(left.bits, std::memory_order_relaxed);
  node->right.store(right.bits, std::memory_order_relaxed);
}

template <class Layout>
void StructureChange<Layout>::SetOrigin(Link made, Link origin) {
  Find(made).node->older.store(core_.multi_version.OlderBits(Older::Of(origin)),
                               std::memory_order_relaxed);
}

template <class Layout>
void StructureChange<Layout>::Leave(Link link, NodeHeader* node) {
  lists_.leaving.push_back({.link = link, .node = node});
}

template <class Layout>
void StructureChange<Layout>::Appended(NodeHeader* node, uint64_t word, uint32_t used) {
  lists_.appends.push_back({.node = node, .word = word, .used = used});
}

template <class Layout>
bool StructureChange<Layout>::Draw(size_t more_retired) {
  PreparePublish(more_retired);
  core_.Sync(SyncPoint::kStructureBuilt);
  drawn_ = core_.versions.Draw();
  if (!core_.versions.MayWrite(thread_, drawn_)) return false;
  version_ = core_.Stamp(drawn_);
  storing_.SetBorn(version_);
  return true;
}

template <class Layout>
void StructureChange<Layout>::ShowFrom(Version version) {
  PreparePublish(0);
  version_ = version;
}

// The word of a node that is locked here, without the lock bit. No other thread changes the word,
// so it is as it was locked but for marks.
template <class Layout>
uint64_t StructureChange<Layout>::WordOf(const NodeHeader* node) {
  return node->word.load(std::memory_order_relaxed) & ~NodeWord::kLocked;
}

template <class Layout>
void StructureChange<Layout>::MarkDead(NodeHeader* node, uint64_t mark) {
  node->word.fetch_or(NodeWord::kLocked | mark, std::memory_order_seq_cst);
}

template <class Layout>
void StructureChange<Layout>::Count(const NodeHeader* node, uint64_t by) {
  (node->is_leaf() ? core_.leaves : core_.inner_nodes).fetch_add(by, std::memory_order_relaxed);
}

template <class Layout>
void StructureChange<Layout>::Map(const Made& made) {
  core_.table.Map(made.link, made.at);
  core_.Sync(SyncPoint::kMergeMapped);
  NodeHeader* const old = made.replaces;
  if (old == nullptr) return;
  MarkDead(old, NodeWord::kReplaced);
  if (!made.node->is_leaf() || !old->is_leaf()) return;
  FollowSiblings(made);
}

// Tells the expiry queue of a new leaf, or of one whose deadline fell. Called once the tree leads
// to the leaf: an entry whose leaf is not in the tree is dropped by the thread that takes it.
template <class Layout>
void StructureChange<Layout>::QueueDeadline(const Made& made) {
  if (!made.node->is_leaf()) return;
  const uint64_t deadline_ms = Layout::NodeDeadline(core_.codec, made.node);
  const NodeHeader* const old = made.replaces;
  const bool fell =
      old == nullptr || !old->is_leaf() || deadline_ms < Layout::NodeDeadline(core_.codec, old);
  if (!fell || deadline_ms == Layout::kNoDeadline) return;
  core_.expiry.Add(made.link.lid(), deadline_ms);
}

// Takes over sibling links that changed in the old buffer while the new one was built, unless the
// new one has got later ones already (split_join.h, Relink).
template <class Layout>
void StructureChange<Layout>::FollowSiblings(const Made& made) {
  uint64_t left = made.left;
  uint64_t right = made.right;
  made.node->left.compare_exchange_strong(left, made.replaces->left.load(std::memory_order_seq_cst),
                                          std::memory_order_seq_cst);
  made.node->right.compare_exchange_strong(
      right, made.replaces->right.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
}

template <class Layout>
void StructureChange<Layout>::PreparePublish(size_t more_retired) {
  lists_.gone.clear();
  if (core_.has_blocks.load(std::memory_order_relaxed)) ListGone();
  ReserveMore(thread_.retired,
              lists_.made.size() + lists_.leaving.size() + lists_.gone.size() + more_retired);
  is_prepared_ = true;
}

template <class Layout>
void StructureChange<Layout>::Publish() {
  if (!is_prepared_) PreparePublish(0);  // a tree that no other thread has yet
  for (const Made& made : lists_.made) {
    made.node->version.store(version_, std::memory_order_relaxed);
    Count(made.node, 1);
  }
  for (const Made& made : lists_.made) {
    if (made.replaces == nullptr) Map(made);
  }
  for (const Leaving& leaving : lists_.leaving) {
    MarkDead(leaving.node, NodeWord::kRetired);
    Count(leaving.node, -uint64_t{1});
    thread_.retired.push_back(
        {.kind = Retired::Kind::kNode, .link = leaving.link, .end = version_});
  }
  for (const OutsideBlock& block : lists_.gone) {
    thread_.retired.push_back(RetiredOf(block, version_));
  }
  for (const Made& made : lists_.made) {
    if (made.replaces == nullptr) continue;
    const ArenaAddress old = core_.table.Load(made.link.lid()).buffer();
    Count(made.replaces, -uint64_t{1});
    Map(made);
    thread_.retired.push_back(
        core_.multi_version.Replaced(made.link, old, made.replaces->buffer_bytes(), version_));
  }
  for (const Made& made : lists_.made) QueueDeadline(made);
  for (const Made& made : lists_.made) {
    if (made.replaces != nullptr) continue;
    const uint64_t word = made.node->word.load(std::memory_order_relaxed);
    made.node->word.store(word & ~NodeWord::kLocked, std::memory_order_release);
  }
  for (const Append& append : lists_.appends) {
    const NodeWord before{append.word};
    // seq_cst if the store may unlink a block: (E1) of versions.h.
    append.node->word.store(NodeWord::Of(append.used, before.sequence() + 1).bits,
                            core_.has_blocks.load(std::memory_order_relaxed)
                                ? std::memory_order_seq_cst
                                : std::memory_order_release);
  }
  // Unlocks the nodes that were locked and stay as they are.
  for (const Locked& locked : lists_.locked) {
    // The word as it was locked here; if others have locked the node since, it has another
    // sequence.
    const uint64_t held = locked.word | NodeWord::kLocked;
    if (locked.node->word.load(std::memory_order_relaxed) == held) {
      UnlockUnchanged(locked.node, locked.word);
    }
  }
  storing_.Keep();
  lists_.Clear();
  is_prepared_ = false;
  core_.Sync(SyncPoint::kStructureMapped);
}

// Lists the outside blocks that the old nodes name and the new ones do not.
template <class Layout>
void StructureChange<Layout>::ListGone() {
  std::vector<OutsideBlock> before;
  std::vector<OutsideBlock> after;
  for (const Made& made : lists_.made) {
    if (!made.lists_gone) continue;
    const uint32_t used = NodeWord{made.node->word.load(std::memory_order_relaxed)}.used();
    Layout::BlocksOf(core_.codec, made.node, used, &after);
    if (made.replaces == nullptr) continue;
    Layout::BlocksOf(core_.codec, made.replaces, NodeWord{WordOf(made.replaces)}.used(), &before);
  }
  for (const Leaving& leaving : lists_.leaving) {
    Layout::BlocksOf(core_.codec, leaving.node, NodeWord{WordOf(leaving.node)}.used(), &before);
  }
  const auto place = [](const OutsideBlock& block) { return block.at.bits; };
  KeepEachOnce(&before);
  KeepEachOnce(&after);
  std::ranges::set_difference(before, after, std::back_inserter(lists_.gone), {}, place, place);
  std::vector<OutsideBlock> made;
  std::ranges::set_difference(after, before, std::back_inserter(made), {}, place, place);
  AddPiecesGone(core_.arena, made, &lists_.gone);
}

template <class Layout>
void StructureChange<Layout>::Undo() {
  for (const Made& made : lists_.made) {
    core_.arena.Free(thread_.cache, made.at, made.node->buffer_bytes());
    if (made.replaces == nullptr) core_.table.Free(made.link);
  }
  if (unused_) core_.table.Free(unused_);
  unused_ = {};
  for (const Locked& locked : lists_.locked) UnlockUnchanged(locked.node, locked.word);
  storing_.Drop();
  lists_.Clear();
  is_prepared_ = false;
}

template class StructureChange<PaperLayout>;
template class StructureChange<HeadLayout>;

}  // namespace skep::btree
