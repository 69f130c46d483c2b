#include "btree/reader.h"

#include "base/check.h"
#include "btree/heads/head_layout_search.h"
#include "btree/leaf_directory.h"
#include "btree/paper/paper_layout.h"

namespace skep::btree {
namespace {

// Chooses the child that has the key.
template <class Layout>
auto To(std::string_view key) {
  return [key](const typename Layout::Inner& inner) { return inner.ChildOf(key); };
}

}  // namespace

template <class Layout>
NodeHeader* Reader<Layout>::Visible(NodeHeader* newest, Version at) const {
  NodeHeader* node = newest;
  while (node->version.load(std::memory_order_acquire) > at) {
    const Older older{node->older.load(std::memory_order_seq_cst)};
    const ArenaAddress next = older.is_link() ? core_.table.Find(older.link()) : older.buffer();
    if (!next) return nullptr;
    node = core_.Node(next);
  }
  return node;
}

template <class Layout>
template <typename Choose>
LeafPlace Reader<Layout>::Descend(Version at, Choose choose) const {
  core_.Sync(SyncPoint::kReaderAtRoot);
  return DescendFrom(core_.root, at, choose);
}

template <class Layout>
template <typename Choose>
LeafPlace Reader<Layout>::DescendFrom(Link link, Version at, Choose choose) const {
  // Counts down from the first node's level: the field `level` is not in the line that a search
  // reads.
  for (int level = -1;; --level) {
    NodeHeader* const newest = core_.Head(link);
    if (level == 0) {
      Layout::PrefetchSearch(core_.codec, newest);
    } else {
      Layout::PrefetchHead(core_.codec, newest);
    }
    NodeWord word{newest->word.load(std::memory_order_seq_cst)};
    NodeHeader* const node = Visible(newest, at);
    SKEP_DCHECK(node != nullptr);
    if (node != newest) word.bits = node->word.load(std::memory_order_seq_cst);
    if (level < 0) level = node->level;
    SKEP_DCHECK(level == node->level);
    if (level == 0) {
      Layout::PrefetchLog(node, word);
      core_.Sync(SyncPoint::kReaderInLeaf);
      return {.link = link, .node = node, .word = word};
    }
    link = choose(typename Layout::Inner(core_.codec, node));
    core_.Sync(SyncPoint::kReaderAtChild);
  }
}

template <class Layout>
LeafPlace Reader<Layout>::Find(std::string_view key, Version at) const {
  return Descend(at, To<Layout>(key));
}

template <class Layout>
LeafPlace Reader<Layout>::FindBelow(std::string_view key, Version at) const {
  return Descend(at, [key](const typename Layout::Inner& inner) { return inner.ChildBelow(key); });
}

template <class Layout>
LeafPlace Reader<Layout>::FindLast(Version at) const {
  return Descend(at, [](const typename Layout::Inner& inner) { return inner.rightmost(); });
}

template <class Layout>
std::optional<LeafPlace> Reader<Layout>::FromHint(Link hint, std::string_view key) const {
  // Asked before the word is read: a node that is detached later was in the tree at this moment.
  if (!hint || core_.reclaimer.detached()) return std::nullopt;
  const ArenaAddress at = core_.table.Find(hint);
  if (!at) return std::nullopt;
  core_.Sync(SyncPoint::kReaderAtHint);
  NodeHeader* const node = core_.Node(at);
  const NodeWord word{node->word.load(std::memory_order_seq_cst)};
  if (word.retired() || !Layout::Covers(core_.codec, node, key)) return std::nullopt;
  if (node->is_leaf()) return LeafPlace{.link = hint, .node = node, .word = word};
  // A hint of the root saves nothing, and is most likely from when the root was a leaf.
  if (hint == core_.root) return std::nullopt;
  return DescendFrom(hint, kNewest, To<Layout>(key));
}

template <class Layout>
LeafPlace Reader<Layout>::Surmise(ThreadState& thread, std::string_view key, uint32_t items,
                                  bool gets_only) const {
  const LeafDirectory* const directory = core_.directory.current();
  if (directory == nullptr) return {};
  const LeafDirectory::Guess guess = directory->Find(key);
  // Asked before the word is read, as in FromHint.
  if (!guess.link || core_.reclaimer.detached()) return {};
  LeafPlace place = {.link = guess.link};
  const ArenaAddress at = core_.table.Find(guess.link);
  if (!at) return place;
  core_.Sync(SyncPoint::kReaderAtHint);
  NodeHeader* const node = core_.Node(at);
  if (!gets_only) Layout::PrefetchLeaf(core_.codec, node, false);
  if (guess.shape && thread.guess_score > 0) {
    Layout::PrefetchGuess(node, guess.shape, guess.share);
  } else {
    Layout::PrefetchSearch(core_.codec, node);
  }
  place.word = {node->word.load(std::memory_order_seq_cst)};
  if (place.word.retired() || !Layout::IsLeaf(node)) return place;
  place.node = node;
  Layout::PrefetchLog(node, place.word);
  const typename Layout::Leaf leaf(core_.codec, node, place.word.used());
  place.spot = leaf.Prefetch(key);
  leaf.PrefetchItems(items, &place.spot);
  if (place.spot.known) {
    if (guess.shape) thread.NoteGuess(Layout::IsGuess(guess.shape, guess.share, place.spot.at));
    guess.Keep(Layout::ShapeOf(node));
  }
  core_.Sync(SyncPoint::kReaderInLeaf);
  return place;
}

template <class Layout>
std::optional<LeafPlace> Reader<Layout>::FromSibling(Link link, std::string_view fence,
                                                     bool is_upper, Version at) const {
  if (!link || core_.reclaimer.detached()) return std::nullopt;
  core_.Sync(SyncPoint::kReaderAtSibling);
  const ArenaAddress found = core_.table.Find(link);
  if (!found) return std::nullopt;
  core_.Sync(SyncPoint::kReaderAtHint);
  NodeHeader* const newest = core_.Node(found);
  Layout::PrefetchLeaf(core_.codec, newest, false);
  NodeWord word{newest->word.load(std::memory_order_seq_cst)};
  if (word.retired() || !newest->is_leaf()) return std::nullopt;
  Layout::PrefetchLog(newest, word);
  NodeHeader* const node = Visible(newest, at);
  if (node == nullptr || !node->is_leaf()) return std::nullopt;
  if (node != newest) word.bits = node->word.load(std::memory_order_seq_cst);
  const auto fences = Layout::FencesOf(core_.codec, node);
  if (is_upper && fences.unbounded) return std::nullopt;
  const StoredKey& stored = is_upper ? fences.upper : fences.lower;
  if (core_.codec.Compare(fence, stored) != 0) return std::nullopt;
  return LeafPlace{.link = link, .node = node, .word = word};
}

template <class Layout>
void LeafIterator<Layout>::Enter(const LeafPlace& place) {
  place_ = place;
  leaf_.emplace(core_.codec, place.node, place.word.used(), at_, now_ms_);
  has_fences_ = false;
  ++turn_;  // the scratch of the leaf before is still in use for its fences
}

template <class Layout>
void LeafIterator<Layout>::ReadFences() const {
  if (has_fences_) return;
  has_fences_ = true;
  const auto fences = Layout::FencesOf(core_.codec, place_.node);
  Scratch& scratch = scratch_[turn_ % 2];
  scratch.Clear();
  lower_ = core_.codec.Whole(fences.lower, scratch);
  unbounded_ = fences.unbounded;
  upper_ = unbounded_ ? std::string_view() : core_.codec.Whole(fences.upper, scratch);
}

template <class Layout>
void LeafIterator<Layout>::Next() {
  const Link right{place_.node->right.load(std::memory_order_acquire)};
  const std::string_view fence = upper();
  const auto sibling = reader_.FromSibling(right, fence, false, at_);
  Enter(sibling ? *sibling : reader_.Find(fence, at_));
}

template <class Layout>
void LeafIterator<Layout>::Prev() {
  const Link left{place_.node->left.load(std::memory_order_acquire)};
  const std::string_view fence = lower();
  const auto sibling = reader_.FromSibling(left, fence, true, at_);
  Enter(sibling ? *sibling : reader_.FindBelow(fence, at_));
}

template <class Layout>
void Cursor<Layout>::SeekAtLeast(std::string_view key, const std::optional<LeafPlace>& place,
                                 uint32_t items) {
  EnterLeafOf(key, place);
  in_leaf_->SeekAtLeast(key, place ? place->spot : LeafSpot(), items);
}

template <class Layout>
void Cursor<Layout>::EnterLeafOf(std::string_view key, const std::optional<LeafPlace>& place) {
  if (place) {
    leaves_.EnterAt(*place);
  } else {
    leaves_.Seek(key);
  }
  in_leaf_.emplace(leaves_.leaf());
}

template <class Layout>
void Cursor<Layout>::SeekFloor(std::string_view key, const std::optional<LeafPlace>& place) {
  EnterLeafOf(key, place);
  in_leaf_->SeekAtMost(key, place ? place->spot : LeafSpot());
}

template <class Layout>
void Cursor<Layout>::SeekAtMost(std::string_view key, const std::optional<LeafPlace>& place) {
  SeekAtLeast(key, place);
  if (!valid()) {
    in_leaf_->SeekLast();
  } else if (core_.codec.Compare(key, in_leaf_->key()) != 0) {
    in_leaf_->Prev();
  }
}

template <class Layout>
void Cursor<Layout>::SeekBelow(std::string_view key) {
  leaves_.SeekBelow(key);
  in_leaf_.emplace(leaves_.leaf());
  in_leaf_->SeekBelow(key, KeyIs::kOfLeaf);
}

template <class Layout>
void Cursor<Layout>::SeekLast() {
  leaves_.SeekLast();
  in_leaf_.emplace(leaves_.leaf());
  in_leaf_->SeekLast();
}

template <class Layout>
void Cursor<Layout>::NextLeaf(uint32_t items) {
  leaves_.Next();
  in_leaf_.emplace(leaves_.leaf());
  in_leaf_->SeekFirst(items);
}

template <class Layout>
void Cursor<Layout>::PrevLeaf() {
  leaves_.Prev();
  in_leaf_.emplace(leaves_.leaf());
  in_leaf_->SeekLast();
}

template <class Layout>
bool Cursor<Layout>::Settle(std::string_view hi, bool unbounded) {
  while (!valid()) {
    if (leaves_.unbounded() || (!unbounded && leaves_.upper() >= hi)) return false;
    NextLeaf();
  }
  return unbounded || key() < hi;
}

template <class Layout>
bool Cursor<Layout>::SettleBack(std::string_view lo) {
  while (!valid()) {
    if (leaves_.lower() <= lo) return false;
    PrevLeaf();
  }
  return key() >= lo;
}

template class Reader<PaperLayout>;
template class Reader<HeadLayout>;
template class LeafIterator<PaperLayout>;
template class LeafIterator<HeadLayout>;
template class Cursor<PaperLayout>;
template class Cursor<HeadLayout>;

}  // namespace skep::btree
