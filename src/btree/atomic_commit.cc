#include "btree/atomic_commit.h"

#include <algorithm>

#include "base/check.h"
#include "btree/heads/head_layout_search.h"
#include "btree/merge_edits.h"
#include "btree/paper/paper_layout.h"
#include "btree/writer.h"

namespace skep::btree {
namespace {

// Stores the value of a key that is present. False: no memory.
bool StoreValue(const KeyState& state, Storing& storing, StoredValue* stored) {
  if (!state.pieces) return storing.Value(state.value, state.deadline_ms, state.type, stored);
  if (!IsOwn(state)) return storing.CopyPieces(*state.pieces, state.deadline_ms, stored);
  if (state.edit != nullptr) {
    return storing.Edited(*state.pieces, *state.edit, state.deadline_ms, stored);
  }
  storing.Carry(*state.pieces, state.deadline_ms, stored);
  return true;
}

}  // namespace

template <class Layout>
Attempt AtomicCommit<Layout>::Apply(StructureChange<Layout>& change) {
  lists_.log_items.clear();
  lists_.replaced.clear();
  lists_.separators.clear();
  const bool grows = !Shrinks();
  limit_ = grows ? Arena::Limit::kObey : Arena::Limit::kExceed;
  Storing storing(core_, thread_, limit_);
  change.set_limit(limit_);
  const bool has_memory = (!grows || core_.budget.HasRoomFor(0)) && PrepareAll(change, storing);
  if (!has_memory || !lists_.separators.empty()) {
    change.Undo();
    return has_memory ? SplitAll() : Attempt::kNoMemory;
  }
  if (!change.Draw(lists_.replaced.size())) {
    change.Undo();
    return Attempt::kAgain;
  }
  if (const NodeHeader* const late = SetVersions(change.version())) {
    Scratch scratch;
    const std::string lower(core_.codec.Whole(Layout::FencesOf(core_.codec, late).lower, scratch));
    change.Undo();
    return split_join_.Refresh(thread_, lower, limit_);
  }
  for (const KeyState* state : lists_.keys) {
    if (state->changed) core_.watches.Touch(state->key, change.version());
  }
  storing.SetBorn(change.version());
  storing.Keep();
  change.Publish();
  RetireReplaced(thread_, lists_.replaced, change.version());
  CountItems();
  return Attempt::kDone;
}

// Whether the batch stores nothing, or only what functions have made of values, which leaves fewer
// bytes than there were. Such a batch is not refused for memory: it is how memory is freed.
template <class Layout>
bool AtomicCommit<Layout>::Shrinks() const {
  bool stores = false;
  int64_t more = 0;
  for (const KeyState* state : lists_.keys) {
    if (!state->changed) continue;
    if (state->present) {
      if (state->is_put) return false;
      stores = true;
      more += static_cast<int64_t>(state->key.size() + ValueBytes(core_.codec, *state));
    }
    if (state->found.present) {
      more -= static_cast<int64_t>(state->key.size() + core_.codec.SizeOf(state->found.value));
    }
  }
  return !stores || more < 0;
}

// Writes the version into the log items. Returns the first leaf whose node version is too far back
// for that, or null.
template <class Layout>
const NodeHeader* AtomicCommit<Layout>::SetVersions(Version version) {
  for (const auto& [node, item] : lists_.log_items) {
    const uint64_t delta = version - node->version.load(std::memory_order_relaxed);
    if (delta > Layout::kDeltaMax) return node;
    Layout::SetLogVersion(node, item, delta);
  }
  return nullptr;
}

// Prepares all leaves. False: no memory.
template <class Layout>
bool AtomicCommit<Layout>::PrepareAll(StructureChange<Layout>& change, Storing& storing) {
  return std::ranges::all_of(
      lists_.leaves, [&](const LockedLeaf& leaf) { return Prepare(change, leaf, storing); });
}

// Lists the changes of the leaf's keys. False: no memory.
template <class Layout>
bool AtomicCommit<Layout>::ListEdits(const LockedLeaf& leaf, Storing& storing) {
  lists_.edits.clear();
  lists_.found.clear();
  for (uint32_t i = leaf.begin; i < leaf.end; ++i) {
    const KeyState& state = *lists_.keys[i];
    if (!state.changed || (!state.present && !state.found.present)) continue;
    lists_.found.push_back(&state.found);
    LeafEdit& edit = lists_.edits.emplace_back();
    edit.key = state.key;
    edit.stored_key = state.found.key;
    edit.erase = !state.present;
    if ((!state.found.known && !storing.Key(state.key, &edit.stored_key)) ||
        (state.present && !StoreValue(state, storing, &edit.value))) {
      return false;
    }
  }
  return true;
}

// Writes the leaf's changes where nobody sees them yet: behind its log, or into a new buffer. If
// neither has room, notes where the leaf must be split. False: no memory.
template <class Layout>
bool AtomicCommit<Layout>::Prepare(StructureChange<Layout>& change, const LockedLeaf& leaf,
                                   Storing& storing) {
  if (!ListEdits(leaf, storing)) return false;
  if (lists_.edits.empty()) return true;
  NodeHeader* const node = leaf.place.node;
  const auto erased =
      static_cast<uint32_t>(std::ranges::count(lists_.edits, true, &LeafEdit::erase));
  // As in Writer: a merge drops a sorted block that is mostly deleted.
  const bool is_sparse =
      erased > 0 &&
      IsSparse(
          node,
          typename Layout::Leaf(core_.codec, node, leaf.place.word.used()).CountPresent() - erased);
  if (!is_sparse && AppendAll(change, leaf)) return true;
  return Merge(change, leaf);
}

// Merges the changes and the leaf into a new buffer. False: no memory.
template <class Layout>
bool AtomicCommit<Layout>::Merge(StructureChange<Layout>& change, const LockedLeaf& leaf) {
  NodeHeader* const node = leaf.place.node;
  const uint32_t used = leaf.place.word.used();
  NodeHeader* const bench = thread_.workspace->Bench(Layout::kFrontBytes);
  const uint32_t bytes_max = Layout::LeafBytesMax(core_.codec.geometry);
  const uint32_t bytes =
      MergeEdits<Layout>(core_.codec, node, used, lists_.edits, bytes_max, bench);
  if (bytes != 0 && bytes <= bytes_max) {
    if (!lists_.separators.empty()) return true;
    if (!change.ReplaceByMerged(leaf.place.link, node, bench, bytes)) return false;
    ListReplaced(change, leaf);
    return true;
  }
  std::vector<LeafItem> items;
  split_join_.Gather(node, used, &items);
  ApplyEdits(core_.codec, lists_.edits, &items);
  const auto fences = Layout::FencesOf(core_.codec, node);
  if (!Layout::FitsLeaf(core_.codec, items, fences)) {
    NoteSeparators(items);
    return true;
  }
  if (!lists_.separators.empty()) return true;
  if (!change.ReplaceByLeaf(leaf.place.link, node, items, fences)) return false;
  ListReplaced(change, leaf);
  return true;
}

// Lists the blocks that the leaf, which is merged, no longer names: of the values that the edits
// replace, as its other items stay. A key's block may also be named by an older item in the log, so
// a leaf that has such keys is gone through.
template <class Layout>
void AtomicCommit<Layout>::ListReplaced(StructureChange<Layout>& change, const LockedLeaf& leaf) {
  if (Layout::HasOutsideKeys(core_.codec, leaf.place.node, leaf.place.word.used())) return;
  change.TellsGone();
  for (size_t i = 0; i < lists_.edits.size(); ++i) {
    const Found& found = *lists_.found[i];
    if (!found.present || !found.value.outside) continue;
    const LeafEdit& edit = lists_.edits[i];
    AddReplaced(core_.arena, found.value, edit.erase ? nullptr : &edit.value, &lists_.replaced);
  }
}

// Cuts the items of a leaf into pieces that fit into leaves with room to grow, and notes where.
template <class Layout>
void AtomicCommit<Layout>::NoteSeparators(std::span<const LeafItem> items) {
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
// too; then the batch finds that out when it begins again.
template <class Layout>
Attempt AtomicCommit<Layout>::SplitAll() {
  for (const std::string& separator : lists_.separators) {
    Path path;
    split_join_.Descend(separator, &path);
    const std::string_view at = separator;
    const Attempt a = split_join_.Split(thread_, path, path.size() - 1, limit_, &at);
    if (a == Attempt::kNoMemory) return a;
  }
  return Attempt::kAgain;
}

// Appends the changes to the leaf's log. False: there is no room for all of them.
template <class Layout>
bool AtomicCommit<Layout>::AppendAll(StructureChange<Layout>& change, const LockedLeaf& leaf) {
  NodeHeader* const node = leaf.place.node;
  uint32_t used = leaf.place.word.used();
  uint32_t bytes = 0;
  for (const LeafEdit& edit : lists_.edits) {
    bytes += Layout::LogItemBytes(edit.stored_key, edit.erase ? nullptr : &edit.value);
  }
  const auto items = static_cast<uint32_t>(lists_.edits.size());
  if (!Layout::HasLogRoom(core_.codec, node, used, bytes, items)) return false;
  Found later;
  const Found* found = lists_.found.front();
  for (const LeafEdit& edit : lists_.edits) {
    if (found == nullptr) {
      // Looks among the items written just now, too.
      later = typename Layout::Leaf(core_.codec, node, used).Find(edit.key);
      found = &later;
    }
    lists_.log_items.emplace_back(node, used);
    if (found->present && found->value.outside) {
      AddReplaced(core_.arena, found->value, edit.erase ? nullptr : &edit.value, &lists_.replaced);
    }
    used = Layout::AppendToLog(core_.codec, node, used, *found, edit.stored_key,
                               edit.erase ? nullptr : &edit.value);
    if (!edit.erase) LowerDeadline<Layout>(core_, leaf.place.link.lid(), node, edit.value);
    found = nullptr;
  }
  change.Appended(node, leaf.place.word.bits, used);
  return true;
}

// Adds the batch's changes to the numbers of keys, and of keys with a deadline.
template <class Layout>
void AtomicCommit<Layout>::CountItems() {
  int64_t items = 0;
  int64_t deadlines = 0;
  for (const KeyState* state : lists_.keys) {
    if (!state->changed) continue;
    items += (state->present ? 1 : 0) - (state->found.present ? 1 : 0);
    deadlines += state->present && state->deadline_ms != 0 ? 1 : 0;
    deadlines -= state->found.present && DeadlineOf(state->found.value) != 0 ? 1 : 0;
  }
  thread_.AddItems(items, deadlines);
}

template class AtomicCommit<PaperLayout>;
template class AtomicCommit<HeadLayout>;

}  // namespace skep::btree
