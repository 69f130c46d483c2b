#include "btree/range_delete.h"

#include <thread>

#include "btree/head_layout_search.h"
#include "btree/paper_layout.h"
#include "btree/ranges.h"
#include "btree/writer.h"

namespace skep::btree {

template <class Layout>
typename RangeDelete<Layout>::Result RangeDelete<Layout>::Run(Slot& slot, std::string_view lo,
                                                              std::string_view hi, bool unbounded,
                                                              uint64_t limit, uint64_t now_ms) {
  Result result;
  Ends ends;
  if (!unbounded && lo >= hi) return result;
  constexpr Version kNewest = Reader<Layout>::kNewest;
  typename Ranges<Layout>::Tally deleted;
  const auto tally_at = [&](Version at) {
    return Ranges<Layout>(core_, at, now_ms).TallyKeys(ends.lo, ends.hi, ends.unbounded);
  };
  Attempt attempt = Attempt::kAgain;
  while (true) {
    core_.versions.BeginOperation(slot);
    {
      const Versions::Stopped stopped(core_.versions, slot);
      core_.Sync(SyncPoint::kDetachStopped);
      now_ms = core_.now.Advance(now_ms);
      result = {};
      deleted = {};
      ends = {.lo = lo, .hi = hi, .unbounded = unbounded};
      if (limit != UINT64_MAX) {
        const auto counted =
            Ranges<Layout>(core_, kNewest, now_ms).CountKeys(lo, hi, unbounded, limit, UINT64_MAX);
        result.more = counted.more;
        if (counted.more) {
          result.bound = counted.bound;
          ends = {.lo = lo, .hi = result.bound, .unbounded = false};
        }
      }
      const bool has_key = HasKey(ends, now_ms);
      // Without versions there is no state before to count in later.
      if (!core_.multi_version && has_key) deleted = tally_at(kNewest);
      attempt = has_key ? Detach(slot, ends, &result.version) : Attempt::kDone;
      core_.Sync(SyncPoint::kDetachMapped);
    }
    if (attempt == Attempt::kDone) break;
    if (attempt == Attempt::kNoMemory && !upkeep_.MakeRoom(slot)) {
      return {.no_memory = true};
    }
  }
  // Nobody has to wait for versions of ours while the keys are counted.
  core_.versions.EndWrites(slot);
  upkeep_.Release();
  if (core_.multi_version && result.version != 0) deleted = tally_at(result.version - 1);
  slot.AddItems(-static_cast<int64_t>(deleted.held), -static_cast<int64_t>(deleted.with_deadline));
  result.keys = deleted.live;
  core_.versions.BeginWrites(slot);
  if (result.keys > 0) {
    structure_.Balance(slot, ends.lo);
    if (!ends.unbounded) structure_.Balance(slot, ends.hi);
  }
  return result;
}

template <class Layout>
bool RangeDelete<Layout>::HasKey(const Ends& ends, uint64_t now_ms) const {
  Cursor<Layout> cursor(core_, Reader<Layout>::kNewest, now_ms);
  cursor.SeekAtLeast(ends.lo);
  return cursor.Settle(ends.hi, ends.unbounded);
}

template <class Layout>
Attempt RangeDelete<Layout>::Detach(Slot& slot, const Ends& ends, Version* version) {
  Path left;
  Path right;
  // What stands in the way are writers that are about to let go of their locks, and nodes that must
  // be split first.
  while (true) {
    structure_.Descend(ends.lo, &left);
    Attempt attempt;
    const Step& leaf = left.leaf();
    const auto fences = Layout::FencesOf(core_.codec, leaf.node);
    const bool in_one_leaf =
        fences.unbounded || (!ends.unbounded && core_.codec.Compare(ends.hi, fences.upper) <= 0);
    if (in_one_leaf) {
      attempt = RewriteLeaf(slot, leaf, ends, version);
    } else if (ends.unbounded) {
      attempt = DetachBetween(slot, left, left, 0, ends, version);
    } else {
      structure_.Descend(ends.hi, &right);
      size_t common = 0;
      while (left[common + 1].node == right[common + 1].node) ++common;
      attempt = DetachBetween(slot, left, right, common, ends, version);
    }
    if (attempt != Attempt::kAgain) return attempt;
    std::this_thread::yield();
  }
}

template <class Layout>
Attempt RangeDelete<Layout>::RewriteLeaf(Slot& slot, const Step& leaf, const Ends& ends,
                                         Version* version) {
  std::vector<LeafItem> items;
  structure_.Gather(leaf.node, NodeWord{leaf.word}.used(), &items);
  std::erase_if(items, [&](const LeafItem& item) {
    return core_.codec.Compare(ends.lo, item.key) <= 0 &&
           (ends.unbounded || core_.codec.Compare(ends.hi, item.key) > 0);
  });
  const auto fences = Layout::FencesOf(core_.codec, leaf.node);
  if (!Layout::CanBeLeaf(core_.codec, items, fences)) {
    return structure_.Refresh(slot, ends.lo, Arena::Limit::kExceed);
  }
  Change<Layout> change(core_, slot, Arena::Limit::kExceed);
  if (!change.Lock(leaf.node, leaf.word)) return Attempt::kAgain;
  if (!change.ReplaceByLeaf(leaf.link, leaf.node, items, fences)) return Attempt::kNoMemory;
  if (!change.Draw()) return Attempt::kAgain;
  core_.watches.TouchRange(ends.lo, ends.hi, ends.unbounded, change.version());
  change.Publish();
  *version = change.version();
  return Attempt::kDone;
}

// Builds the nodes of the path below `common` anew: of the left one what lies below lo, up to the
// new fence `sep`; of the right one what lies from hi up, from `sep`.
template <class Layout>
Attempt RangeDelete<Layout>::BuildSide(Slot& slot, Change<Layout>& change, const Path& path,
                                       size_t common, bool is_left, const Ends& ends,
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
  structure_.Gather(leaf.node, NodeWord{leaf.word}.used(), &items);
  std::erase_if(items, [&](const LeafItem& item) {
    return is_left ? core_.codec.Compare(ends.lo, item.key) <= 0
                   : core_.codec.Compare(ends.hi, item.key) > 0;
  });
  if (!new_fences(leaf.node, &fences)) return Attempt::kNoMemory;
  if (!Layout::CanBeLeaf(core_.codec, items, fences)) {
    change.Undo();
    return structure_.Split(slot, path, path.size() - 1, Arena::Limit::kExceed) ==
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
      return structure_.Split(slot, path, depth, Arena::Limit::kExceed) == Attempt::kNoMemory
                 ? Attempt::kNoMemory
                 : Attempt::kAgain;
    }
    side->link = change.NewInner(step.node->level, leftmost, children, fences);
    if (!side->link) return Attempt::kNoMemory;
    change.SetOrigin(side->link, step.link);
  }
  return Attempt::kDone;
}

// The subtrees of the path's nodes below `common` that lie between the two ends.
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
Attempt RangeDelete<Layout>::DetachBetween(Slot& slot, const Path& left, const Path& right,
                                           size_t common, const Ends& ends, Version* version) {
  Change<Layout> change(core_, slot, Arena::Limit::kExceed);
  const bool has_right = !ends.unbounded;
  for (size_t i = common; i < left.size(); ++i) {
    if (!change.Lock(left[i].node, left[i].word)) return Attempt::kAgain;
  }
  for (size_t i = common + 1; has_right && i < right.size(); ++i) {
    if (!change.Lock(right[i].node, right[i].word)) return Attempt::kAgain;
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
  Attempt built = BuildSide(slot, change, left, common, true, ends, sep, !has_right, &left_side);
  if (built == Attempt::kDone && has_right) {
    built = BuildSide(slot, change, right, common, false, ends, sep, false, &right_side);
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
  change.Draw(detached.size());  // the phase is ours
  core_.reclaimer.AnnounceDetached(detached.size());
  core_.watches.TouchRange(ends.lo, ends.hi, ends.unbounded, change.version());
  change.Publish();
  *version = change.version();
  for (const Link link : detached) {
    slot.retired.push_back(
        {.kind = Retired::Kind::kSubtree, .link = link, .end = change.version()});
  }
  const std::string_view lower =
      core_.codec.Whole(Layout::FencesOf(core_.codec, first.node).lower, scratch);
  if (!lower.empty()) structure_.Relink(lower);
  if (has_right) {
    const auto last = Layout::FencesOf(core_.codec, right.leaf().node);
    if (!last.unbounded) structure_.Relink(core_.codec.Whole(last.upper, scratch));
  }
  return Attempt::kDone;
}

template class RangeDelete<PaperLayout>;
template class RangeDelete<HeadLayout>;

}  // namespace skep::btree
