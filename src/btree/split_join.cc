#include "btree/split_join.h"

#include <algorithm>

#include "base/check.h"
#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"

namespace skep::btree {
namespace {

template <class Layout>
uint32_t BytesOf(std::span<const typename Layout::LeafItem> items) {
  uint32_t bytes = 0;
  for (const auto& item : items) bytes += Layout::LeafItemBytes(item);
  return bytes;
}

template <class Layout>
uint32_t BytesOf(std::span<const typename Layout::InnerItem> items) {
  uint32_t bytes = 0;
  for (const auto& item : items) bytes += Layout::InnerItemBytes(item);
  return bytes;
}

// The index at which both sides have about the same bytes; within [first, last].
template <typename Items, typename Bytes>
size_t Middle(const Items& items, size_t first, size_t last, uint32_t total, Bytes bytes_of) {
  uint32_t before = 0;
  size_t cut = 0;
  while (cut < last && (cut < first || before + bytes_of(items[cut]) / 2 < total / 2)) {
    before += bytes_of(items[cut++]);
  }
  return cut;
}

}  // namespace

std::string_view ShortestSeparator(std::string_view left, std::string_view right) {
  const auto [l, r] = std::ranges::mismatch(left, right);
  return right.substr(0, static_cast<size_t>(r - right.begin()) + 1);
}

template <class Layout>
void SplitJoin<Layout>::Descend(std::string_view key, Path* path) const {
  path->clear();
  core_.Sync(SyncPoint::kReaderAtRoot);
  for (Link link = core_.root;;) {
    NodeHeader* const node = core_.Head(link);
    const uint64_t word = node->word.load(std::memory_order_seq_cst);
    path->push({.link = link, .node = node, .word = word});
    if (node->is_leaf()) return;
    link = typename Layout::Inner(core_.codec, node).ChildOf(key, &(*path)[path->size() - 1].child);
    core_.Sync(SyncPoint::kReaderAtChild);
  }
}

template <class Layout>
void SplitJoin<Layout>::Gather(const NodeHeader* leaf, uint32_t used,
                               std::vector<LeafItem>* items) const {
  const typename Layout::Leaf view(core_.codec, leaf, used);
  // Room also for the item that the writer may add.
  items->reserve(items->size() + view.CountPresent() + 1);
  typename Layout::LeafCursor cursor(view);
  for (cursor.SeekFirst(); cursor.valid(); cursor.Next()) {
    items->push_back({.key = cursor.key(), .value = cursor.value()});
  }
}

// Whether both parts fit into a leaf: a part with nearly all items and a longer fence might not.
template <class Layout>
bool SplitJoin<Layout>::CanCut(std::span<const LeafItem> items, size_t cut, const Fences& fences,
                               std::string_view separator) const {
  const Geometry& g = core_.codec.geometry;
  const StoredKey fence = {.bytes = separator.substr(0, g.key_inline_max())};
  const Fences left = {.lower = fences.lower, .upper = fence, .unbounded = false};
  const Fences right = {.lower = fence, .upper = fences.upper, .unbounded = fences.unbounded};
  return Layout::FitsLeaf(core_.codec, items.first(cut), left) &&
         Layout::FitsLeaf(core_.codec, items.subspan(cut), right);
}

template <class Layout>
bool SplitJoin<Layout>::MakeLeafHalves(StructureChange<Layout>& change,
                                       std::span<const LeafItem> items, const Fences& fences,
                                       const std::string_view* separator, Halves* halves) const {
  size_t cut = 0;
  if (separator != nullptr) {
    halves->text = *separator;
    const auto is_below = [&](const LeafItem& item) {
      return core_.codec.Compare(*separator, item.key) > 0;
    };
    cut = static_cast<size_t>(std::ranges::partition_point(items, is_below) - items.begin());
  }
  if (separator == nullptr || !CanCut(items, cut, fences, *separator)) {
    cut = EvenCut(items, &halves->text);
  }
  return BuildLeafHalves(change, items.first(cut), items.subspan(cut), fences, halves);
}

// All items are of one size, so the middle one is where the bytes are even.
template <class Layout>
bool SplitJoin<Layout>::MakePlainHalves(StructureChange<Layout>& change, const ItemSpan& items,
                                        const Fences& fences, Halves* halves) const {
  SKEP_CHECK(items.count >= 2);
  const uint32_t cut = items.count / 2;
  halves->text = ShortestSeparator(items[cut - 1].key, items[cut].key);
  return BuildLeafHalves(change, items.First(cut), items.From(cut), fences, halves);
}

// Returns where to cut the leaf into even halves, and sets `separator` between them.
template <class Layout>
size_t SplitJoin<Layout>::EvenCut(std::span<const LeafItem> items, std::string* separator) const {
  SKEP_CHECK(items.size() >= 2);
  const size_t cut =
      Middle(items, 1, items.size() - 1, BytesOf<Layout>(items), Layout::LeafItemBytes);
  Scratch scratch;
  *separator = ShortestSeparator(core_.codec.Whole(items[cut - 1].key, scratch),
                                 core_.codec.Whole(items[cut].key, scratch));
  return cut;
}

// `halves->text` is the separator, set by the caller.
template <class Layout>
template <class Items>
bool SplitJoin<Layout>::BuildLeafHalves(StructureChange<Layout>& change, const Items& left_items,
                                        const Items& right_items, const Fences& fences,
                                        Halves* halves) const {
  Fences left = fences;
  Fences right = fences;
  left.unbounded = false;
  if (!change.storing().Key(halves->text, &halves->separator) ||
      !change.storing().Key(halves->text, &left.upper) ||
      !change.storing().Key(halves->text, &right.lower)) {
    return false;
  }
  halves->left = change.NewLeaf(left_items, left);
  if (!halves->left) return false;
  halves->right = change.NewLeaf(right_items, right);
  return static_cast<bool>(halves->right);
}

template <class Layout>
bool SplitJoin<Layout>::MakeInnerHalves(StructureChange<Layout>& change, uint8_t level,
                                        Link leftmost, std::span<const InnerItem> items,
                                        const Fences& fences, Halves* halves) const {
  SKEP_CHECK(items.size() >= 3);
  const size_t cut =
      Middle(items, 1, items.size() - 2, BytesOf<Layout>(items), Layout::InnerItemBytes);
  Scratch scratch;
  halves->text = core_.codec.Whole(items[cut].separator, scratch);
  halves->separator = items[cut].separator;  // moves up
  Fences left = fences;
  Fences right = fences;
  left.unbounded = false;
  if (!change.storing().Key(halves->text, &left.upper) ||
      !change.storing().Key(halves->text, &right.lower)) {
    return false;
  }
  halves->left = change.NewInner(level, leftmost, items.first(cut), left);
  if (!halves->left) return false;
  halves->right = change.NewInner(level, items[cut].child, items.subspan(cut + 1), right);
  return static_cast<bool>(halves->right);
}

template <class Layout>
bool SplitJoin<Layout>::MakeHalves(StructureChange<Layout>& change, const Step& node,
                                   const std::string_view* separator, Halves* halves) const {
  const Fences fences = Layout::FencesOf(core_.codec, node.node);
  if (node.node->is_leaf()) {
    const uint32_t used = NodeWord{node.word}.used();
    Scratch scratch;
    if (separator == nullptr) {
      const ItemSpan run = Layout::GatherPlain(core_.codec, node.node, used, scratch);
      if (run.count > 0) return MakePlainHalves(change, run, fences, halves);
    }
    std::vector<LeafItem> items;
    Gather(node.node, used, &items);
    return MakeLeafHalves(change, items, fences, separator, halves);
  }
  const typename Layout::Inner inner(core_.codec, node.node);
  std::vector<InnerItem> items;
  inner.CopyTo(&items);
  return MakeInnerHalves(change, node.node->level, inner.leftmost(), items, fences, halves);
}

template <class Layout>
Attempt SplitJoin<Layout>::Split(ThreadState& thread, const Path& path, size_t depth,
                                 Arena::Limit limit, const std::string_view* separator) {
  const Step& node = path[depth];
  if (depth == 0) return GrowRoot(thread, node, limit, separator);
  const Step& parent = path[depth - 1];
  const Geometry& g = core_.codec.geometry;
  // Room for the longest possible separator: its length depends on where the cut will be.
  if (Layout::InnerBytesOf(core_.codec, parent.node) + Layout::SeparatorBytesMax(g) >
      g.inner_bytes_max()) {
    return Split(thread, path, depth - 1, limit);
  }

  StructureChange<Layout> change(core_, thread, limit);
  if (!change.Lock(node.node, node.word) || !change.Lock(parent.node, parent.word)) {
    return Attempt::kAgain;
  }
  core_.Sync(SyncPoint::kStructureLocked);
  if (separator != nullptr && !IsInside(node.node, *separator)) return Attempt::kAgain;
  Halves halves;
  if (!MakeHalves(change, node, separator, &halves)) return Attempt::kNoMemory;
  const bool is_leaf = node.node->is_leaf();
  if (is_leaf) {
    change.SetSiblings(halves.left, Link{node.node->left.load(std::memory_order_seq_cst)},
                       halves.right);
    change.SetSiblings(halves.right, halves.left,
                       Link{node.node->right.load(std::memory_order_seq_cst)});
  }
  change.SetOrigin(halves.left, node.link);
  change.SetOrigin(halves.right, node.link);

  if (!change.InsertChild(parent.link, parent.node, parent.child, halves.left, halves.separator,
                          halves.right)) {
    return Attempt::kNoMemory;
  }
  change.Leave(node.link, node.node);
  if (!change.Draw()) return Attempt::kAgain;
  change.Publish();
  if (is_leaf) {
    const Fences fences = Layout::FencesOf(core_.codec, node.node);
    Scratch scratch;
    const std::string_view lower = core_.codec.Whole(fences.lower, scratch);
    if (!lower.empty()) Relink(lower);
    if (!fences.unbounded) Relink(core_.codec.Whole(fences.upper, scratch));
  }
  return Attempt::kDone;
}

// Whether the key is above the node's lower fence and below its upper one.
template <class Layout>
bool SplitJoin<Layout>::IsInside(const NodeHeader* node, std::string_view key) const {
  const Fences fences = Layout::FencesOf(core_.codec, node);
  return core_.codec.Compare(key, fences.lower) > 0 &&
         (fences.unbounded || core_.codec.Compare(key, fences.upper) < 0);
}

template <class Layout>
Attempt SplitJoin<Layout>::GrowRoot(ThreadState& thread, const Step& root, Arena::Limit limit,
                                    const std::string_view* separator) {
  StructureChange<Layout> change(core_, thread, limit);
  if (!change.Lock(root.node, root.word)) return Attempt::kAgain;
  core_.Sync(SyncPoint::kStructureLocked);
  Halves halves;
  if (!MakeHalves(change, root, separator, &halves)) return Attempt::kNoMemory;
  if (root.node->is_leaf()) {
    change.SetSiblings(halves.left, Link{}, halves.right);
    change.SetSiblings(halves.right, halves.left, Link{});
  }
  const InnerItem item = {.separator = halves.separator, .child = halves.right};
  const auto level = static_cast<uint8_t>(root.node->level + 1);
  SKEP_CHECK(level < Path::kDepthMax);
  if (!change.ReplaceByInner(root.link, root.node, level, halves.left, std::span(&item, 1),
                             Layout::FencesOf(core_.codec, root.node))) {
    return Attempt::kNoMemory;
  }
  if (!change.Draw()) return Attempt::kAgain;
  change.Publish();
  return Attempt::kDone;
}

template <class Layout>
Attempt SplitJoin<Layout>::Refresh(ThreadState& thread, std::string_view key, Arena::Limit limit) {
  Path path;
  Descend(key, &path);
  const Step& leaf = path.leaf();
  std::vector<LeafItem> items;
  Gather(leaf.node, NodeWord{leaf.word}.used(), &items);
  const Fences fences = Layout::FencesOf(core_.codec, leaf.node);
  Attempt attempt = Attempt::kAgain;
  if (!Layout::FitsLeaf(core_.codec, items, fences)) {
    attempt = Split(thread, path, path.size() - 1, limit);
  } else {
    StructureChange<Layout> change(core_, thread, limit);
    if (!change.Lock(leaf.node, leaf.word)) return Attempt::kAgain;
    if (!change.ReplaceByLeaf(leaf.link, leaf.node, items, fences)) return Attempt::kNoMemory;
    if (change.Draw()) change.Publish();
  }
  return attempt == Attempt::kDone ? Attempt::kAgain : attempt;
}

template <class Layout>
bool SplitJoin<Layout>::IsTooSmall(const NodeHeader* node) const {
  const Geometry& g = core_.codec.geometry;
  return node->log_begin < Layout::FixedBytes(g) + g.underflow_bytes();
}

template <class Layout>
const NodeHeader* SplitJoin<Layout>::Balance(ThreadState& thread, std::string_view key) {
  constexpr int kChangesMax = 16;
  Path path;
  for (int changes = 0;; ++changes) {
    core_.versions.BeginOperation(thread);
    Descend(key, &path);
    if (changes == kChangesMax || BalanceStep(thread, path) != Attempt::kDone) {
      return path.leaf().node;
    }
  }
}

// Does one join on the path, the lowest that is called for. kAgain: none is, or another writer is
// in the way.
template <class Layout>
Attempt SplitJoin<Layout>::BalanceStep(ThreadState& thread, const Path& path) {
  if (path.size() == 1) return Attempt::kAgain;
  const auto separators = [&](size_t depth) {
    return typename Layout::Inner(core_.codec, path[depth].node).count();
  };
  if (separators(0) == 0) return CollapseRoot(thread, path[0]);
  size_t depth = path.size() - 1;
  while (depth > 0 && !(IsTooSmall(path[depth].node) && separators(depth - 1) > 0)) --depth;
  return depth > 0 ? Join(thread, path, depth) : Attempt::kAgain;
}

template <class Layout>
Attempt SplitJoin<Layout>::CollapseRoot(ThreadState& thread, const Step& root) {
  StructureChange<Layout> change(core_, thread, Arena::Limit::kExceed);
  const Link link = typename Layout::Inner(core_.codec, root.node).leftmost();
  NodeHeader* const child = core_.Head(link);
  const uint64_t word = child->word.load(std::memory_order_seq_cst);
  if (!change.Lock(root.node, root.word) || !change.Lock(child, word)) return Attempt::kAgain;
  core_.Sync(SyncPoint::kStructureLocked);
  const Fences fences = Layout::FencesOf(core_.codec, child);
  bool made;
  if (child->is_leaf()) {
    std::vector<LeafItem> items;
    Gather(child, NodeWord{word}.used(), &items);
    if (!Layout::CanBeLeaf(core_.codec, items, fences)) {
      // The child and its log are too much for one leaf; in the paper's layout, because the log
      // fills room that its shortcuts made, of which there might be fewer. Its next merge will
      // split it.
      return Attempt::kAgain;
    }
    made = change.ReplaceByLeaf(root.link, root.node, items, fences);
  } else {
    const typename Layout::Inner inner(core_.codec, child);
    std::vector<InnerItem> items;
    inner.CopyTo(&items);
    made =
        change.ReplaceByInner(root.link, root.node, child->level, inner.leftmost(), items, fences);
  }
  if (!made) return Attempt::kNoMemory;
  change.Leave(link, child);
  if (!change.Draw()) return Attempt::kAgain;
  change.Publish();
  return Attempt::kDone;
}

template <class Layout>
bool SplitJoin<Layout>::JoinLeaves(StructureChange<Layout>& change, const Step& left,
                                   const Step& right, Halves* halves) const {
  std::vector<LeafItem> items;
  Gather(left.node, NodeWord{left.word}.used(), &items);
  Gather(right.node, NodeWord{right.word}.used(), &items);
  Fences fences = Layout::FencesOf(core_.codec, right.node);
  fences.lower = Layout::FencesOf(core_.codec, left.node).lower;
  const uint32_t bytes = Layout::LeafBytes(core_.codec, items, fences);
  if (bytes > core_.codec.geometry.join_bytes_max() ||
      !Layout::FitsLeaf(core_.codec, items, fences)) {
    const size_t cut = EvenCut(items, &halves->text);
    // The items of two leaves and their logs may be too much for two leaves.
    return CanCut(items, cut, fences, halves->text) &&
           BuildLeafHalves(change, std::span<const LeafItem>(items).first(cut),
                           std::span<const LeafItem>(items).subspan(cut), fences, halves);
  }
  halves->left = change.NewLeaf(items, fences);
  return static_cast<bool>(halves->left);
}

template <class Layout>
bool SplitJoin<Layout>::JoinInner(StructureChange<Layout>& change, const Step& left,
                                  const Step& right, const StoredKey& between,
                                  Halves* halves) const {
  const typename Layout::Inner left_inner(core_.codec, left.node);
  const typename Layout::Inner right_inner(core_.codec, right.node);
  std::vector<InnerItem> items;
  left_inner.CopyTo(&items);
  items.push_back({.separator = between, .child = right_inner.leftmost()});
  std::vector<InnerItem> right_items;
  right_inner.CopyTo(&right_items);
  items.insert(items.end(), right_items.begin(), right_items.end());
  Fences fences = Layout::FencesOf(core_.codec, right.node);
  fences.lower = Layout::FencesOf(core_.codec, left.node).lower;
  const uint8_t level = left.node->level;
  if (Layout::InnerBytes(core_.codec, items, fences) > core_.codec.geometry.join_bytes_max()) {
    return MakeInnerHalves(change, level, left_inner.leftmost(), items, fences, halves);
  }
  halves->left = change.NewInner(level, left_inner.leftmost(), items, fences);
  return static_cast<bool>(halves->left);
}

template <class Layout>
Attempt SplitJoin<Layout>::Join(ThreadState& thread, const Path& path, size_t depth) {
  const Step& parent = path[depth - 1];
  const typename Layout::Inner inner(core_.codec, parent.node);
  std::vector<InnerItem> items;
  inner.CopyTo(&items);
  Link leftmost = inner.leftmost();
  const auto child = [&](size_t i) -> Link& { return i == 0 ? leftmost : items[i - 1].child; };

  // Joins with the right sibling; the last child with its left one.
  const size_t first = parent.child < items.size() ? parent.child : parent.child - 1;
  Step left = path[depth];
  Step right = path[depth];
  Step& sibling = first == parent.child ? right : left;
  sibling.link = child(first == parent.child ? first + 1 : first);
  sibling.node = core_.Head(sibling.link);
  sibling.word = sibling.node->word.load(std::memory_order_seq_cst);

  StructureChange<Layout> change(core_, thread, Arena::Limit::kExceed);
  if (!change.Lock(left.node, left.word) || !change.Lock(right.node, right.word) ||
      !change.Lock(parent.node, parent.word)) {
    return Attempt::kAgain;
  }
  core_.Sync(SyncPoint::kStructureLocked);
  Halves halves;
  const bool is_leaf = left.node->is_leaf();
  const bool made = is_leaf ? JoinLeaves(change, left, right, &halves)
                            : JoinInner(change, left, right, items[first].separator, &halves);
  if (!made) return Attempt::kNoMemory;
  const Link before{left.node->left.load(std::memory_order_seq_cst)};
  const Link after{right.node->right.load(std::memory_order_seq_cst)};
  child(first) = halves.left;
  change.SetOrigin(halves.left, left.link);
  if (halves.right) {
    items[first] = {.separator = halves.separator, .child = halves.right};
    change.SetOrigin(halves.right, right.link);
    if (is_leaf) change.SetSiblings(halves.right, halves.left, after);
  } else {
    items.erase(items.begin() + static_cast<ptrdiff_t>(first));
  }
  if (is_leaf) change.SetSiblings(halves.left, before, halves.right ? halves.right : after);
  const Fences parent_fences = Layout::FencesOf(core_.codec, parent.node);
  if (Layout::InnerBytes(core_.codec, items, parent_fences) >
      core_.codec.geometry.inner_bytes_max()) {
    // The new separator is longer than the old one.
    change.Undo();
    return Split(thread, path, depth - 1, Arena::Limit::kExceed);
  }
  if (!change.ReplaceByInner(parent.link, parent.node, parent.node->level, leftmost, items,
                             parent_fences)) {
    return Attempt::kNoMemory;
  }
  change.Leave(left.link, left.node);
  change.Leave(right.link, right.node);
  if (!change.Draw()) return Attempt::kAgain;
  change.Publish();
  if (is_leaf) {
    const Fences right_fences = Layout::FencesOf(core_.codec, right.node);
    Scratch scratch;
    const std::string_view lower =
        core_.codec.Whole(Layout::FencesOf(core_.codec, left.node).lower, scratch);
    if (!lower.empty()) Relink(lower);
    if (!right_fences.unbounded) Relink(core_.codec.Whole(right_fences.upper, scratch));
  }
  return Attempt::kDone;
}

template <class Layout>
void SplitJoin<Layout>::Relink(std::string_view fence) const {
  constexpr int kTries = 4;
  const auto is_newest = [&](const LeafPlace& place) {
    return core_.Head(place.link) == place.node &&
           !NodeWord{place.node->word.load(std::memory_order_seq_cst)}.dead();
  };
  for (int tries = 0; tries < kTries; ++tries) {
    const LeafPlace left = reader_.FindBelow(fence, Reader<Layout>::kNewest);
    const LeafPlace right = reader_.Find(fence, Reader<Layout>::kNewest);
    left.node->right.store(right.link.bits, std::memory_order_seq_cst);
    right.node->left.store(left.link.bits, std::memory_order_seq_cst);
    if (is_newest(left) && is_newest(right)) return;
  }
}

template class SplitJoin<PaperLayout>;
template class SplitJoin<HeadLayout>;

}  // namespace skep::btree
