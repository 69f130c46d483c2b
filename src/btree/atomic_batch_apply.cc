// How a batch whose leaves are locked, and whose requests are performed, takes effect.
#include <algorithm>

#include "base/check.h"
#include "base/reserve_more.h"
#include "btree/atomic_batch.h"
#include "btree/head_layout_search.h"
#include "btree/paper_layout.h"

namespace skep::btree {

template <class Layout, bool kHasRanges>
Attempt AtomicBatch<Layout, kHasRanges>::Apply(Change<Layout>& change) {
  lists_.log_items.clear();
  lists_.replaced.clear();
  lists_.separators.clear();
  const bool stores = std::ranges::any_of(lists_.states, [](const auto& entry) {
    return entry.second.changed && entry.second.present;
  });
  limit_ = stores ? Arena::Limit::kObey : Arena::Limit::kExceed;
  Storing storing(core_, slot_, limit_);
  change.set_limit(limit_);
  bool has_memory = !stores || core_.budget.HasRoomFor(0);
  for (size_t i = 0; has_memory && i < lists_.leaves.size(); ++i) {
    has_memory = Prepare(change, lists_.leaves[i], storing);
  }
  if (!has_memory || !lists_.separators.empty()) {
    change.Undo();
    return has_memory ? SplitAll() : Attempt::kNoMemory;
  }
  if (!change.Draw(lists_.replaced.size())) {
    change.Undo();
    return Attempt::kAgain;
  }
  for (const auto& [node, item] : lists_.log_items) {
    const uint64_t delta = change.version() - node->version.load(std::memory_order_relaxed);
    if (delta > Layout::kDeltaMax) {
      const std::string lower(
          core_.codec.Whole(Layout::FencesOf(core_.codec, node).lower, out_.scratch()));
      change.Undo();
      return structure_.Refresh(slot_, lower, limit_);
    }
    Layout::SetLogVersion(node, item, delta);
  }
  for (const auto& [key, state] : lists_.states) {
    if (state.changed) core_.watches.Touch(key, change.version());
  }
  storing.SetBorn(change.version());
  storing.Keep();
  change.Publish();
  for (const auto& found : lists_.replaced) RetireReplaced(slot_, found, change.version());
  Finish(change.version());
  return Attempt::kDone;
}

// Lists what is to be written of the leaf's keys. False: no memory.
template <class Layout, bool kHasRanges>
bool AtomicBatch<Layout, kHasRanges>::ListEdits(const LockedLeaf& leaf, Storing& storing) {
  lists_.edits.clear();
  for (uint32_t i = leaf.begin; i < leaf.end; ++i) {
    const auto& [key, state] = *KeyAt(i);
    if (!state.changed || (!state.present && !state.found.present)) continue;
    if (lists_.edits.empty()) first_found_ = &state.found;
    LeafEdit& edit = lists_.edits.emplace_back();
    edit.key = key;
    edit.stored_key = state.found.key;
    edit.erase = !state.present;
    if ((!state.found.known && !storing.Key(key, &edit.stored_key)) ||
        (state.present && !storing.Value(state.value, state.deadline_ms, &edit.value))) {
      return false;
    }
  }
  return true;
}

// Writes the leaf's changes where nobody sees them yet: behind its log, or into a new buffer. If
// neither has room, notes where it must be split. False: no memory.
template <class Layout, bool kHasRanges>
bool AtomicBatch<Layout, kHasRanges>::Prepare(Change<Layout>& change, const LockedLeaf& leaf,
                                              Storing& storing) {
  if (!ListEdits(leaf, storing)) return false;
  if (lists_.edits.empty()) return true;
  NodeHeader* const node = leaf.place.node;
  const auto erased =
      static_cast<uint32_t>(std::ranges::count(lists_.edits, true, &LeafEdit::erase));
  // As in Writer: a merge lets go of a sorted block that is mostly gone.
  const bool is_sparse =
      erased > 0 &&
      IsSparse(
          node,
          typename Layout::Leaf(core_.codec, node, leaf.place.word.used()).CountPresent() - erased);
  if (!is_sparse && AppendAll(change, leaf)) return true;
  return Merge(change, leaf);
}

// False: no memory.
template <class Layout, bool kHasRanges>
bool AtomicBatch<Layout, kHasRanges>::Merge(Change<Layout>& change, const LockedLeaf& leaf) {
  NodeHeader* const node = leaf.place.node;
  const uint32_t used = leaf.place.word.used();
  if (lists_.edits.size() == 1) {
    const LeafEdit& edit = lists_.edits[0];
    const uint32_t bytes_max = Layout::LeafBytesMax(core_.codec.geometry);
    const uint32_t bytes =
        Layout::MergeLeaf(core_.codec, node, used, edit.stored_key,
                          edit.erase ? nullptr : &edit.value, bytes_max, change.Workbench());
    if (bytes != 0 && bytes <= bytes_max) {
      return !lists_.separators.empty() || change.ReplaceByMerged(leaf.place.link, node, bytes);
    }
  }
  std::vector<typename Layout::LeafItem> items;
  structure_.Gather(node, used, &items);
  ApplyEdits(core_.codec, lists_.edits, &items);
  const auto fences = Layout::FencesOf(core_.codec, node);
  if (!Layout::FitsLeaf(core_.codec, items, fences)) {
    NoteSeparators(items);
    return true;
  }
  return !lists_.separators.empty() || change.ReplaceByLeaf(leaf.place.link, node, items, fences);
}

// Cuts what a leaf is to hold into pieces that fit, with room to grow.
template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::NoteSeparators(
    std::span<const typename Layout::LeafItem> items) {
  const Geometry& g = core_.codec.geometry;
  const uint32_t piece_max =
      (Layout::LeafBytesMax(g) - Layout::FixedBytes(g) - 2 * Layout::SeparatorBytesMax(g)) * 2 / 3;
  uint32_t bytes = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const uint32_t item_bytes = Layout::LeafItemBytes(items[i]);
    if (i > 0 && bytes + item_bytes > piece_max) {
      Scratch scratch;
      lists_.separators.emplace_back(ShortestSeparator(core_.codec.Whole(items[i - 1].key, scratch),
                                                       core_.codec.Whole(items[i].key, scratch)));
      bytes = 0;
    }
    bytes += item_bytes;
  }
}

// Splits the leaves where they will be full. Nothing is locked now, so others may have split them,
// too; then the batch finds out when it begins again.
template <class Layout, bool kHasRanges>
Attempt AtomicBatch<Layout, kHasRanges>::SplitAll() {
  for (const std::string& separator : lists_.separators) {
    Path path;
    structure_.Descend(separator, &path);
    const std::string_view at = separator;
    const Attempt a = structure_.Split(slot_, path, path.size() - 1, limit_, &at);
    if (a == Attempt::kNoMemory) return a;
  }
  return Attempt::kAgain;
}

// False: there is no room for all of them.
template <class Layout, bool kHasRanges>
bool AtomicBatch<Layout, kHasRanges>::AppendAll(Change<Layout>& change, const LockedLeaf& leaf) {
  NodeHeader* const node = leaf.place.node;
  uint32_t used = leaf.place.word.used();
  uint32_t bytes = 0;
  for (const LeafEdit& edit : lists_.edits) {
    bytes += Layout::LogItemBytes(edit.stored_key, edit.erase ? nullptr : &edit.value);
  }
  const auto items = static_cast<uint32_t>(lists_.edits.size());
  if (!Layout::HasLogRoom(core_.codec, node, used, bytes, items)) return false;
  Found later;
  const Found* found = first_found_;
  for (const LeafEdit& edit : lists_.edits) {
    if (found == nullptr) {
      // Among those written just now, too.
      later = typename Layout::Leaf(core_.codec, node, used).Find(edit.key);
      found = &later;
    }
    lists_.log_items.emplace_back(node, used);
    if (found->present && found->value.outside) lists_.replaced.push_back(*found);
    used = Layout::AppendToLog(core_.codec, node, used, *found, edit.stored_key,
                               edit.erase ? nullptr : &edit.value);
    if (!edit.erase) LowerDeadline<Layout>(core_, leaf.place.link.lid(), node, edit.value);
    found = nullptr;
  }
  change.Appended(node, leaf.place.word.bits, used);
  return true;
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::Finish(Version version) {
  for (const uint32_t index : lists_.wrote) out_.outcome(index).version = version;
  for (const uint32_t index : lists_.changed_by_batch) out_.outcome(index).version = version;
  // A value the batch itself wrote has the batch's version.
  for (uint32_t i = 0; i < batch_.size(); ++i) {
    const Request& r = batch_.requests()[i];
    Outcome& outcome = out_.outcome(i);
    if (r.op == Op::kGet && outcome.present && outcome.version == 0) outcome.version = version;
  }
  seen_ = std::max(seen_, version);
  int64_t items = 0;
  int64_t deadlines = 0;
  for (const auto& [key, state] : lists_.states) {
    if (!state.changed) continue;
    items += (state.present ? 1 : 0) - (state.found.present ? 1 : 0);
    deadlines += state.present && state.deadline_ms != 0 ? 1 : 0;
    deadlines -= state.found.present && DeadlineOf(state.found.value) != 0 ? 1 : 0;
  }
  slot_.AddItems(items, deadlines);
}

// And what it calls.
template Attempt AtomicBatch<PaperLayout, false>::Apply(Change<PaperLayout>& change);
template Attempt AtomicBatch<PaperLayout, true>::Apply(Change<PaperLayout>& change);
template Attempt AtomicBatch<HeadLayout, false>::Apply(Change<HeadLayout>& change);
template Attempt AtomicBatch<HeadLayout, true>::Apply(Change<HeadLayout>& change);

}  // namespace skep::btree
