#include "btree/range_delete.h"

#include <thread>

#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/ranges.h"
#include "btree/writer.h"

namespace skep::btree {

template <class Layout>
bool RangeDelete<Layout>::HasKey(const Core& core, Version at, std::string_view lo,
                                 std::string_view hi, bool unbounded, uint64_t now_ms) {
  if (!unbounded && lo >= hi) return false;
  Cursor<Layout> cursor(core, at, now_ms);
  cursor.SeekAtLeast(lo);
  return cursor.Settle(hi, unbounded);
}

template <class Layout>
typename RangeDelete<Layout>::Result RangeDelete<Layout>::Run(ThreadState& thread,
                                                              std::string_view lo,
                                                              std::string_view hi, bool unbounded,
                                                              uint64_t limit, uint64_t now_ms) {
  if (!unbounded && lo >= hi) return {};
  asked_ = {.lo = lo, .hi = hi, .unbounded = unbounded};
  limit_ = limit;
  now_ms_ = now_ms;
  Tries tries(core_.turnstiles, core_.versions, thread);
  uint32_t rooms = 0;
  while (true) {
    tries.Begin();
    result_ = {};
    deleted_ = {};
    is_counted_ = false;
    ends_ = asked_;
    const Attempt attempt = Try(thread, tries);
    if (attempt == Attempt::kDone) break;
    if (attempt != Attempt::kNoMemory) continue;
    tries.GiveTurn();
    if (++rooms > Upkeep::kRoomsMax || !upkeep_.MakeRoom(thread, 0)) return {.no_memory = true};
  }
  tries.GiveTurn();
  // Ends the writes first, so that no thread has to wait for this one's versions while it counts.
  core_.versions.EndWrites(thread);
  upkeep_.Release();
  if (!is_counted_) {
    deleted_ = Ranges<Layout>(core_, result_.version - 1, now_ms_)
                   .TallyKeys(ends_.lo, ends_.hi, ends_.unbounded);
  }
  thread.AddItems(-static_cast<int64_t>(deleted_.held),
                  -static_cast<int64_t>(deleted_.with_deadline));
  result_.keys = deleted_.live;
  core_.versions.BeginWrites(thread);
  if (deleted_.held > 0) {
    split_join_.Balance(thread, ends_.lo);
    if (!ends_.unbounded) split_join_.Balance(thread, ends_.hi);
  }
  return std::move(result_);
}

template <class Layout>
Attempt RangeDelete<Layout>::Try(ThreadState& thread, Tries& tries) {
  if (const auto attempt = TryOneLeaf(thread, tries)) return *attempt;
  tries.GiveTurn();
  // Leaves the epoch, so that nothing waits for it while this thread waits for its turn.
  core_.versions.LeaveEpoch(thread);
  Versions::Turn turn(core_.versions, thread);
  core_.versions.EnterEpoch(thread);
  core_.versions.BeginOperation(thread);
  std::optional<StructureChange<Layout>> held;
  if (limit_ != UINT64_MAX) {
    LockAndCount(held.emplace(core_, thread, Arena::Limit::kExceed));
    if (deleted_.live == 0) return DeleteNothing();
  }
  const Versions::Stopped stopped(turn);
  core_.Sync(SyncPoint::kDetachStopped);
  now_ms_ = core_.now.Advance(now_ms_);
  if (!core_.multi_version.reads_at_versions() && !is_counted_) {
    // Without versions no state before the delete can be read later, so the keys are counted now.
    deleted_ = Ranges<Layout>(core_, Reader<Layout>::kNewest, now_ms_)
                   .TallyKeys(ends_.lo, ends_.hi, ends_.unbounded);
    is_counted_ = true;
    if (deleted_.live == 0) return DeleteNothing();
  }
  const Attempt attempt = Detach(thread, held ? &*held : nullptr);
  core_.Sync(SyncPoint::kDetachMapped);
  return attempt;
}

// A range within one leaf, or a limit that is reached there, is a write of that leaf. Nothing if
// the range goes on.
template <class Layout>
std::optional<Attempt> RangeDelete<Layout>::TryOneLeaf(ThreadState& thread, Tries& tries) {
  Path path;
  split_join_.Descend(ends_.lo, &path);
  const Step& leaf = path.leaf();
  if (limit_ == UINT64_MAX && !EndsIn(leaf.node)) return std::nullopt;
  if (!tries.MayLock(leaf.link.lid())) return Attempt::kAgain;
  StructureChange<Layout> change(core_, thread, Arena::Limit::kExceed);
  if (!change.Lock(leaf.node, leaf.word)) return Attempt::kAgain;
  now_ms_ = core_.now.Advance(now_ms_);
  if (!CountLeaf(leaf.node, leaf.word) && !EndsIn(leaf.node)) {
    deleted_ = {};
    return std::nullopt;
  }
  is_counted_ = true;
  return deleted_.live == 0 ? DeleteNothing() : RewriteLeaf(thread, change, leaf);
}

// Deletes nothing: keys that have expired stay where they are, counted, for the expirer.
template <class Layout>
Attempt RangeDelete<Layout>::DeleteNothing() {
  deleted_ = {};
  return Attempt::kDone;
}

// Locks the leaves of the range from left to right, and counts keys, until the limit is reached.
template <class Layout>
void RangeDelete<Layout>::LockAndCount(StructureChange<Layout>& change) {
  now_ms_ = core_.now.Advance(now_ms_);
  is_counted_ = true;
  std::string from(ends_.lo);
  while (true) {
    const LeafPlace leaf = LockLeaf(change, from);
    if (CountLeaf(leaf.node, leaf.word.bits) || EndsIn(leaf.node)) return;
    Scratch scratch;
    from = core_.codec.Whole(Layout::FencesOf(core_.codec, leaf.node).upper, scratch);
  }
}

// Locks the leaf of the key, waiting for it. A thread that holds it waits for no lock to the left,
// nor for the thread that has the turn.
template <class Layout>
LeafPlace RangeDelete<Layout>::LockLeaf(StructureChange<Layout>& change,
                                        std::string_view key) const {
  const Reader<Layout> reader(core_);
  for (uint32_t tries = 0;; ++tries) {
    const LeafPlace place = reader.Find(key, Reader<Layout>::kNewest);
    if (change.Lock(place.node, place.word.bits)) return place;
    if (tries > 64) std::this_thread::yield();
  }
}

// Counts the keys of the range in a locked leaf. True: the limit is reached there, so the range
// ends there.
template <class Layout>
bool RangeDelete<Layout>::CountLeaf(const NodeHeader* leaf, uint64_t word) {
  const typename Layout::Leaf view(core_.codec, leaf, NodeWord{word}.used());
  typename Layout::LeafCursor cursor(view);
  for (cursor.SeekAtLeast(ends_.lo); cursor.valid(); cursor.Next()) {
    if (!ends_.unbounded && core_.codec.Compare(ends_.hi, cursor.key()) <= 0) return false;
    const uint64_t deadline_ms = DeadlineOf(cursor.value());
    const bool is_live = !HasExpired(deadline_ms, now_ms_);
    if (is_live && deleted_.live == limit_) {
      Scratch scratch;
      result_.more = true;
      result_.bound = core_.codec.Whole(cursor.key(), scratch);
      ends_.hi = result_.bound;
      ends_.unbounded = false;
      return true;
    }
    ++deleted_.held;
    deleted_.live += is_live ? 1 : 0;
    deleted_.with_deadline += deadline_ms != 0 ? 1 : 0;
  }
  return false;
}

template <class Layout>
bool RangeDelete<Layout>::EndsIn(const NodeHeader* leaf) const {
  const auto fences = Layout::FencesOf(core_.codec, leaf);
  return fences.unbounded || (!ends_.unbounded && core_.codec.Compare(ends_.hi, fences.upper) <= 0);
}

template <class Layout>
bool RangeDelete<Layout>::Hold(StructureChange<Layout>& change, const Step& step) const {
  return change.Holds(step.node) || change.Lock(step.node, step.word);
}

// Runs with the writers stopped. `held` has locked the leaves of the range; null: nothing is
// locked.
template <class Layout>
Attempt RangeDelete<Layout>::Detach(ThreadState& thread, StructureChange<Layout>* held) {
  Path left;
  Path right;
  const auto descend = [&](std::string_view key, Path* path) {
    split_join_.Descend(key, path);
    Step& leaf = (*path)[path->size() - 1];
    if (held != nullptr && held->Holds(leaf.node)) leaf.word &= ~NodeWord::kLocked;
  };
  // An attempt fails where writers are about to let go of their locks, and where nodes must be
  // split first.
  while (true) {
    std::optional<StructureChange<Layout>> own;
    StructureChange<Layout>& change =
        held != nullptr ? *held : own.emplace(core_, thread, Arena::Limit::kExceed);
    descend(ends_.lo, &left);
    Attempt attempt;
    if (EndsIn(left.leaf().node)) {
      attempt =
          Hold(change, left.leaf()) ? RewriteLeaf(thread, change, left.leaf()) : Attempt::kAgain;
    } else if (ends_.unbounded) {
      attempt = DetachBetween(thread, change, left, left, 0);
    } else {
      descend(ends_.hi, &right);
      size_t common = 0;
      while (left[common + 1].node == right[common + 1].node) ++common;
      attempt = DetachBetween(thread, change, left, right, common);
    }
    if (attempt != Attempt::kAgain || held != nullptr) return attempt;
    std::this_thread::yield();
  }
}

// Requires the leaf to be locked in `change`.
template <class Layout>
Attempt RangeDelete<Layout>::RewriteLeaf(ThreadState& thread, StructureChange<Layout>& change,
                                         const Step& leaf) {
  std::vector<LeafItem> items;
  split_join_.Gather(leaf.node, NodeWord{leaf.word}.used(), &items);
  std::erase_if(items, [&](const LeafItem& item) {
    return core_.codec.Compare(ends_.lo, item.key) <= 0 &&
           (ends_.unbounded || core_.codec.Compare(ends_.hi, item.key) > 0);
  });
  const auto fences = Layout::FencesOf(core_.codec, leaf.node);
  if (!Layout::CanBeLeaf(core_.codec, items, fences)) {
    change.Undo();
    return split_join_.Refresh(thread, ends_.lo, Arena::Limit::kExceed);
  }
  if (!change.ReplaceByLeaf(leaf.link, leaf.node, items, fences)) return Attempt::kNoMemory;
  if (!change.Draw()) return Attempt::kAgain;
  core_.watches.TouchRange(ends_.lo, ends_.hi, ends_.unbounded, change.version());
  change.Publish();
  result_.version = change.version();
  return Attempt::kDone;
}

// Builds the nodes of the path below `common` anew: of the left path the keys below lo, up to the
// new fence `sep`; of the right path the keys from hi up, from `sep`.
template <class Layout>
Attempt RangeDelete<Layout>::BuildSide(ThreadState& thread, StructureChange<Layout>& change,
                                       const Path& path, size_t common, bool is_left,
                                       std::string_view sep, bool sep_unbounded, Side* side) {
  const uint32_t inner_bytes_max = core_.codec.geometry.inner_bytes_max();
  const auto new_fences = [&](const NodeHeader* node, typename Layout::Fences* fences) {
    *fences = Layout::FencesOf(core_.codec, node);
    if (!is_left) return change.storing().Key(sep, &fences->lower);
    fences->unbounded = sep_unbounded;
    return sep_unbounded || change.storing().Key(sep, &fences->upper);
  };
  typename Layout::Fences fences;
  const Step& leaf = path.leaf();
  std::vector<LeafItem> items;
  split_join_.Gather(leaf.node, NodeWord{leaf.word}.used(), &items);
  std::erase_if(items, [&](const LeafItem& item) {
    return is_left ? core_.codec.Compare(ends_.lo, item.key) <= 0
                   : core_.codec.Compare(ends_.hi, item.key) > 0;
  });
  if (!new_fences(leaf.node, &fences)) return Attempt::kNoMemory;
  if (!Layout::CanBeLeaf(core_.codec, items, fences)) {
    change.Undo();
    return split_join_.Split(thread, path, path.size() - 1, Arena::Limit::kExceed) ==
                   Attempt::kNoMemory
               ? Attempt::kNoMemory
               : Attempt::kAgain;
  }
  side->leaf = change.NewLeaf(items, fences);
  if (!side->leaf) return Attempt::kNoMemory;
  change.SetOrigin(side->leaf, leaf.link);
  side->link = side->leaf;

  for (size_t depth = path.size() - 2; depth > common; --depth) {
    const Step& step = path[depth];
    const typename Layout::Inner inner(core_.codec, step.node);
    std::vector<InnerItem> children;
    inner.CopyTo(&children);
    Link leftmost = inner.leftmost();
    if (is_left) {
      children.resize(step.child);
      (step.child == 0 ? leftmost : children[step.child - 1].child) = side->link;
    } else {
      leftmost = side->link;
      children.erase(children.begin(), children.begin() + step.child);
    }
    if (!new_fences(step.node, &fences)) return Attempt::kNoMemory;
    if (Layout::InnerBytes(core_.codec, children, fences) > inner_bytes_max) {
      change.Undo();
      return split_join_.Split(thread, path, depth, Arena::Limit::kExceed) == Attempt::kNoMemory
                 ? Attempt::kNoMemory
                 : Attempt::kAgain;
    }
    side->link = change.NewInner(step.node->level, leftmost, children, fences);
    if (!side->link) return Attempt::kNoMemory;
    change.SetOrigin(side->link, step.link);
  }
  return Attempt::kDone;
}

// Collects the subtrees that hang on the path below `common` and lie between the two ends.
template <class Layout>
void RangeDelete<Layout>::CollectDetached(const Path& path, size_t common, bool is_left,
                                          std::vector<Link>* links) {
  for (size_t depth = common + 1; depth + 1 < path.size(); ++depth) {
    const Step& step = path[depth];
    const typename Layout::Inner inner(core_.codec, step.node);
    std::vector<InnerItem> children;
    inner.CopyTo(&children);
    const auto child = [&](size_t i) { return i == 0 ? inner.leftmost() : children[i - 1].child; };
    const size_t begin = is_left ? step.child + 1 : 0;
    const size_t end = is_left ? children.size() + 1 : step.child;
    for (size_t i = begin; i < end; ++i) links->push_back(child(i));
  }
}

template <class Layout>
Attempt RangeDelete<Layout>::DetachBetween(ThreadState& thread, StructureChange<Layout>& change,
                                           const Path& left, const Path& right, size_t common) {
  const bool has_right = !ends_.unbounded;
  for (size_t i = common; i < left.size(); ++i) {
    if (!Hold(change, left[i])) return Attempt::kAgain;
  }
  for (size_t i = common + 1; has_right && i < right.size(); ++i) {
    if (!Hold(change, right[i])) return Attempt::kAgain;
  }
  const Step& top = left[common];
  const typename Layout::Inner inner(core_.codec, top.node);
  std::vector<InnerItem> items;
  inner.CopyTo(&items);
  Link leftmost = inner.leftmost();
  const size_t left_child = top.child;
  const size_t right_child = has_right ? right[common].child : items.size() + 1;

  Scratch scratch;
  std::string_view sep;
  if (has_right) sep = core_.codec.Whole(items[right_child - 1].separator, scratch);
  Side left_side;
  Side right_side;
  Attempt built = BuildSide(thread, change, left, common, true, sep, !has_right, &left_side);
  if (built == Attempt::kDone && has_right) {
    built = BuildSide(thread, change, right, common, false, sep, false, &right_side);
  }
  if (built != Attempt::kDone) return built;
  const Step& first = left.leaf();
  change.SetSiblings(left_side.leaf, Link{first.node->left.load(std::memory_order_seq_cst)},
                     right_side.leaf);
  if (has_right) {
    change.SetSiblings(right_side.leaf, left_side.leaf,
                       Link{right.leaf().node->right.load(std::memory_order_seq_cst)});
  }

  std::vector<Link> detached;
  for (size_t i = left_child + 1; i < right_child; ++i) detached.push_back(items[i - 1].child);
  CollectDetached(left, common, true, &detached);
  if (has_right) CollectDetached(right, common, false, &detached);

  (left_child == 0 ? leftmost : items[left_child - 1].child) = left_side.link;
  if (has_right) items[right_child - 1].child = right_side.link;
  items.erase(items.begin() + static_cast<ptrdiff_t>(left_child),
              items.begin() + static_cast<ptrdiff_t>(right_child - 1));
  if (!change.ReplaceByInner(top.link, top.node, top.node->level, leftmost, items,
                             Layout::FencesOf(core_.codec, top.node))) {
    return Attempt::kNoMemory;
  }
  for (size_t i = common + 1; i < left.size(); ++i) change.Leave(left[i].link, left[i].node);
  for (size_t i = common + 1; has_right && i < right.size(); ++i) {
    change.Leave(right[i].link, right[i].node);
  }
  change.Draw(detached.size());  // cannot be refused: this thread has stopped the writers
  core_.reclaimer.AnnounceDetached(detached.size());
  core_.watches.TouchRange(ends_.lo, ends_.hi, ends_.unbounded, change.version());
  change.Publish();
  result_.version = change.version();
  for (const Link link : detached) {
    thread.retired.push_back(
        {.kind = Retired::Kind::kSubtree, .link = link, .end = change.version()});
  }
  const std::string_view lower =
      core_.codec.Whole(Layout::FencesOf(core_.codec, first.node).lower, scratch);
  if (!lower.empty()) split_join_.Relink(lower);
  if (has_right) {
    const auto last = Layout::FencesOf(core_.codec, right.leaf().node);
    if (!last.unbounded) split_join_.Relink(core_.codec.Whole(last.upper, scratch));
  }
  return Attempt::kDone;
}

template class RangeDelete<PaperLayout>;
template class RangeDelete<HeadLayout>;

}  // namespace skep::btree
