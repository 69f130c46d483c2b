#include "btree/writer.h"

#include <algorithm>
#include <optional>

#include "base/reserve_more.h"
#include "btree/heads/head_layout_search.h"
#include "btree/merge_edits.h"
#include "btree/paper/paper_layout.h"
#include "btree/point_read.h"
#include "engine/point.h"

namespace skep::btree {

// Drops what an earlier try has stored, since the effect is another one now.
inline void DropStored(Storing& storing, std::optional<StoredValue>* kept) {
  storing.Drop();
  kept->reset();
}

// 1 if there is a value and it has a deadline.
inline int64_t HasDeadline(bool absent, const StoredValue& value) {
  return !absent && DeadlineOf(value) != 0 ? 1 : 0;
}

template <class Layout>
Version Writer<Layout>::Execute(ThreadState& thread, const Request& request, uint64_t* now_ms,
                                LookAhead<Layout>* look_ahead, const EngineTraits& traits,
                                BatchWriter& out, uint32_t index) {
  Tries tries(core_.turnstiles, core_.versions, thread);
  Storing storing(core_, thread, Arena::Limit::kObey);
  // The request's own value in its stored form; its block is kept across tries.
  std::optional<StoredValue> kept;
  std::optional<OutsideEffect> outside;
  uint32_t rooms = 0;
  while (true) {
    tries.Begin();
    if (!tries.is_first()) *now_ms = std::max(*now_ms, core_.now.Latest());
    const LeafPlace place = tries.is_first() && look_ahead != nullptr
                                ? look_ahead->Newest(index, request)
                                : reader_.Find(request.key, Reader<Layout>::kNewest);
    if (!tries.MayLock(place.link.lid())) continue;
    if (!tries.is_first() && place.word.locked()) {
      tries.AwaitLock();
      continue;
    }
    const typename Layout::Leaf leaf(core_.codec, place.node, place.word.used());
    const typename Layout::Found found = leaf.Find(request.key, place.spot);
    core_.Sync(SyncPoint::kWriterFoundLeaf);
    PointEffect effect;
    if (found.present && found.value.outside) {
      effect = ApplyOutside(request, found.value, *now_ms, traits, out, index, &outside.emplace());
    } else {
      std::optional<PointState> state;
      if (found.present) state = core_.codec.StateOf(found.value);
      effect = ApplyPoint(request, state, *now_ms, traits, out, index);
    }
    Outcome& outcome = out.outcome(index);
    TellHint(request, place, &outcome);
    if (effect.action == PointEffect::Action::kKeep) {
      return found.known ? found.version : place.node->version.load(std::memory_order_relaxed);
    }

    const bool erase = effect.action == PointEffect::Action::kErase;
    // A write that makes a value shorter frees memory, so it may exceed the limit.
    const bool stays_outside =
        found.present && found.value.outside && outside->kind != OutsideEffect::Kind::kNone;
    const bool shrinks = request.op == Op::kApply && found.present && !stays_outside &&
                         effect.value.size() < core_.codec.SizeOf(found.value);
    storing.set_limit(erase || shrinks ? Arena::Limit::kExceed : Arena::Limit::kObey);
    // An outside key that the leaf has already keeps its block.
    const bool has_block = found.known && found.key.outside;
    Edit edit = {.found = &found,
                 .edit = {.key = request.key, .erase = erase},
                 .limit = storing.limit(),
                 .now_ms = *now_ms};
    if (has_block) edit.edit.stored_key = found.key;
    if (erase && !has_block) edit.edit.stored_key.bytes = request.key;
    if (erase) DropStored(storing, &kept);
    bool stored = erase;
    if (stays_outside) {
      DropStored(storing, &kept);
      if (!has_block) edit.edit.stored_key.bytes = request.key;
      stored = StoreOutside(found.value, effect.deadline_ms, *outside, storing, &edit.edit.value);
    } else if (!erase) {
      stored = Store(request, effect, has_block, storing, &edit.edit, &kept);
    }
    Attempt attempt = Attempt::kNoMemory;
    bool is_small = false;
    if (stored) {
      const uint32_t bytes =
          Layout::LogItemBytes(edit.edit.stored_key, erase ? nullptr : &edit.edit.value);
      const bool is_sparse = erase && IsSparse(place.node, leaf.CountPresent() - 1);
      const bool has_room =
          !is_sparse && Layout::HasLogRoom(core_.codec, place.node, leaf.used(), bytes, 1);
      attempt = has_room ? Append(thread, leaf, place, edit, storing, &outcome.version)
                         : Merge(thread, place, edit, storing, &outcome.version, &is_small);
    }
    if (attempt == Attempt::kDone) {
      tries.GiveTurn();
      thread.AddItems(
          erase ? -1 : (found.present ? 0 : 1),
          HasDeadline(erase, edit.edit.value) - HasDeadline(!found.present, found.value));
      if (found.present && !outcome.present) [[unlikely]]
        TellExpired(core_, request.key);
      if (is_small) split_join_.Balance(thread, request.key);
      return outcome.version;
    }
    if (attempt == Attempt::kNoMemory) {
      tries.GiveTurn();
      DropStored(storing, &kept);
      const size_t value_bytes = stays_outside ? kContiguousMax : effect.value.size();
      const uint64_t wanted = erase ? 0 : request.key.size() + value_bytes;
      if (++rooms > Upkeep::kRoomsMax || !upkeep_.MakeRoom(thread, wanted)) {
        out.RefuseMemory(index, core_.budget);
        return 0;
      }
    }
  }
}

// ApplyPoint, of a request that finds a value outside the nodes.
template <class Layout>
PointEffect Writer<Layout>::ApplyOutside(const Request& request, const StoredValue& value,
                                         uint64_t now_ms, const EngineTraits& traits,
                                         BatchWriter& out, uint32_t index,
                                         OutsideEffect* outside) const {
  const PointState held = core_.codec.StateOf(value);
  const bool has_parts = request.op == Op::kApply && request.function->parts_body != nullptr &&
                         IsInPieces(value) && !HasExpired(held.deadline_ms, now_ms);
  if (has_parts) {
    outside->parts = ApplyParts(request, Pieces(core_.arena, value), held, traits, out, index);
    if (!outside->parts.changes) return {};
    out.CountWork(BytesToEdit(outside->parts));
    outside->kind = OutsideEffect::Kind::kEdit;
    return {
        .action = PointEffect::Action::kStore, .type = held.type, .deadline_ms = held.deadline_ms};
  }
  std::optional<BatchWriter::Whole> whole;
  const PointState state = StateFor(core_, request, value, out, &whole);
  const PointEffect effect = ApplyPoint(request, state, now_ms, traits, out, index);
  if (IsInPieces(value) && MayPinPrevious(request)) TellPrevious(core_, value, out, index);
  const size_t size = MetadataBytes(effect.deadline_ms, effect.type) + core_.codec.SizeOf(value);
  if (request.op == Op::kExpire && effect.action == PointEffect::Action::kStore &&
      size > core_.codec.geometry.value_inline_max()) {
    outside->kind = OutsideEffect::Kind::kCarry;
  }
  return effect;
}

// Stores what becomes of an outside value whose bytes, or most of them, stay. False: no memory.
template <class Layout>
bool Writer<Layout>::StoreOutside(const StoredValue& before, uint64_t deadline_ms,
                                  const OutsideEffect& effect, Storing& storing,
                                  StoredValue* stored) {
  if (!storing.has_room()) return false;
  if (effect.kind == OutsideEffect::Kind::kEdit) {
    return storing.Edited(before, effect.parts, deadline_ms, stored);
  }
  storing.Carry(before, deadline_ms, stored);
  return true;
}

// Stores what the effect needs, in the form that a node holds. The request's own value, if an
// earlier try has stored it, is used again. False: no memory.
template <class Layout>
bool Writer<Layout>::Store(const Request& request, const PointEffect& effect, bool has_block,
                           Storing& storing, LeafEdit* edit, std::optional<StoredValue>* kept) {
  const bool is_inline = request.key.size() <= core_.codec.geometry.key_inline_max();
  const bool is_own = effect.value.data() == request.value.data() &&
                      effect.value.size() == request.value.size() &&
                      effect.deadline_ms == request.deadline_ms && effect.type == request.type;
  const bool may_keep = is_inline && is_own;
  if (may_keep && *kept) {
    edit->stored_key.bytes = request.key;
    edit->value = **kept;
    return true;
  }
  storing.Drop();
  if (!storing.has_room() || (!has_block && !storing.Key(request.key, &edit->stored_key)) ||
      !storing.Value(effect.value, effect.deadline_ms, effect.type, &edit->value)) {
    return false;
  }
  *kept = may_keep ? std::optional(edit->value) : std::nullopt;
  return true;
}

// Whether the key, which was there when the edit was decided on, has expired for others since.
template <class Layout>
bool Writer<Layout>::HasExpiredSince(const Edit& edit) const {
  const uint64_t deadline_ms = edit.found->present ? DeadlineOf(edit.found->value) : 0;
  return deadline_ms > edit.now_ms && HasExpired(deadline_ms, core_.now.Latest());
}

template <class Layout>
Attempt Writer<Layout>::Append(ThreadState& thread, const typename Layout::Leaf& leaf,
                               const LeafPlace& place, const Edit& edit, Storing& storing,
                               Version* version) {
  NodeHeader* const node = place.node;
  const uint64_t word = place.word.bits;
  const bool unlinks = edit.found->present && edit.found->value.outside;
  std::vector<OutsideBlock>& replaced = thread.workspace->replaced;
  if (unlinks) {
    replaced.clear();
    AddReplaced(core_.arena, edit.found->value, edit.edit.erase ? nullptr : &edit.edit.value,
                &replaced);
    // Reserved here, since nothing is allocated while the node is locked.
    ReserveMore(thread.retired, replaced.size());
  }
  if (!TryLock(node, word)) return Attempt::kAgain;
  if (HasExpiredSince(edit)) {
    UnlockUnchanged(node, word);
    return Attempt::kAgain;
  }
  const uint32_t used = leaf.used();
  const uint32_t end =
      Layout::AppendToLog(core_.codec, node, used, *edit.found, edit.edit.stored_key,
                          edit.edit.erase ? nullptr : &edit.edit.value);
  core_.Sync(SyncPoint::kWriterAppended);
  const Version drawn = core_.versions.Draw();
  core_.Sync(SyncPoint::kWriterDrew);
  const Version made = core_.Stamp(drawn);
  const uint64_t delta = made - node->version.load(std::memory_order_relaxed);
  if (!core_.versions.MayWrite(thread, drawn)) {
    UnlockUnchanged(node, word);
    return Attempt::kAgain;
  }
  if (delta > Layout::kDeltaMax) {
    // The difference from the node version is too large for a log item: a merge makes a new one.
    UnlockUnchanged(node, word);
    return split_join_.Refresh(thread, edit.edit.key, edit.limit);
  }
  Layout::SetLogVersion(node, used, delta);
  if (!edit.edit.erase) LowerDeadline<Layout>(core_, place.link.lid(), node, edit.edit.value);
  core_.watches.Touch(edit.edit.key, made);
  storing.SetBorn(made);
  storing.Keep();
  // seq_cst if the store unlinks a block: (E1) of versions.h.
  node->word.store(NodeWord::Of(end, NodeWord{word}.sequence() + 1).bits,
                   unlinks ? std::memory_order_seq_cst : std::memory_order_release);
  core_.Sync(SyncPoint::kWriterPublished);
  if (unlinks) RetireReplaced(thread, replaced, made);
  *version = made;
  return Attempt::kDone;
}

// Works the edit into the items of the leaf.
template <class Layout>
void Writer<Layout>::MergeItems(ThreadState& thread, const LeafPlace& place, const Edit& edit,
                                Merged* merged) {
  const uint32_t bytes_max = Layout::LeafBytesMax(core_.codec.geometry);
  merged->bytes =
      MergeEdits<Layout>(core_.codec, place.node, place.word.used(), std::span(&edit.edit, 1),
                         bytes_max, thread.workspace->Bench(Layout::kFrontBytes));
  merged->fits = merged->bytes <= bytes_max;
  merged->on_bench = merged->bytes != 0;
  // A leaf that can be merged without gathering has no items with deadlines, so none that have
  // expired.
  if (merged->on_bench) return;
  split_join_.Gather(place.node, place.word.used(), &merged->items);
  ApplyEdits(core_.codec, std::span(&edit.edit, 1), &merged->items);
  if (core_.expiry.was_used()) {
    merged->expired_keys = ExpiredKeysOf(core_, merged->items, edit.now_ms);
    merged->expired = EraseExpired(edit.now_ms, &merged->items);
  }
  const auto fences = Layout::FencesOf(core_.codec, place.node);
  merged->bytes = Layout::LeafBytes(core_.codec, merged->items, fences);
  merged->fits = Layout::FitsLeaf(core_.codec, merged->items, fences);
}

template <class Layout>
Attempt Writer<Layout>::Merge(ThreadState& thread, const LeafPlace& place, const Edit& edit,
                              Storing& storing, Version* version, bool* is_small) {
  Merged merged;
  MergeItems(thread, place, edit, &merged);
  const uint32_t bytes = merged.bytes;
  const Geometry& g = core_.codec.geometry;
  if (!merged.fits) {
    Path path;
    split_join_.Descend(edit.edit.key, &path);
    if (path.leaf().node != place.node) return Attempt::kAgain;
    const Attempt split = split_join_.Split(thread, path, path.size() - 1, edit.limit);
    return split == Attempt::kDone ? Attempt::kAgain : split;
  }
  StructureChange<Layout> change(core_, thread, edit.limit);
  if (!change.Lock(place.node, place.word.bits) || HasExpiredSince(edit)) return Attempt::kAgain;
  const bool made =
      merged.on_bench ? change.ReplaceByMerged(place.link, place.node,
                                               thread.workspace->Bench(Layout::kFrontBytes), bytes)
                      : change.ReplaceByLeaf(place.link, place.node, merged.items,
                                             Layout::FencesOf(core_.codec, place.node));
  if (!made) return Attempt::kNoMemory;
  core_.Sync(SyncPoint::kMergeBuilt);
  if (!change.Draw()) return Attempt::kAgain;
  storing.SetBorn(change.version());
  storing.Keep();
  core_.watches.Touch(edit.edit.key, change.version());
  change.Publish();
  core_.Sync(SyncPoint::kWriterPublished);
  CountExpired(core_, thread, merged.expired);
  TellExpired(core_, merged.expired_keys);
  *version = change.version();
  *is_small = (edit.edit.erase || merged.expired > 0) &&
              bytes < Layout::FixedBytes(g) + g.underflow_bytes();
  return Attempt::kDone;
}

template class Writer<PaperLayout>;
template class Writer<HeadLayout>;

}  // namespace skep::btree
