#include "btree/atomic_batch.h"

#include <algorithm>
#include <thread>

#include "base/reserve_more.h"
#include "btree/expired_keys.h"
#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/point_read.h"

namespace skep::btree {

template <class Layout>
AtomicBatch<Layout>::AtomicBatch(const AtomicContext<Layout>& context)
    : core_(context.core),
      thread_(context.thread),
      look_ahead_(context.look_ahead),
      batch_(context.batch),
      out_(context.out),
      reader_(context.core),
      lists_(context.lists),
      upkeep_(context.upkeep),
      traits_(context.traits),
      split_join_(context.core),
      commit_(context.core, context.thread, split_join_, lists_) {}

template <class Layout>
Version AtomicBatch<Layout>::Execute() {
  const Version seen = Run();
  if (batch_.size() > kKeysKept) lists_ = {};
  return seen;
}

template <class Layout>
Version AtomicBatch<Layout>::Run() {
  uint32_t rooms = 0;
  for (uint32_t tries = 0;; ++tries) {
    if (tries > 3) std::this_thread::yield();
    tries == 0 ? core_.versions.BeginOperation(thread_) : core_.versions.BeginAgain(thread_);
    const Attempt attempt = Try();
    if (attempt == Attempt::kDone) {
      if (batch_.applied()) BalanceErased();
      return seen_;
    }
    if (attempt != Attempt::kNoMemory) continue;
    if (++rooms <= Upkeep::kRoomsMax && upkeep_.MakeRoom(thread_, BytesToStore())) continue;
    if (no_room_) {
      RefuseForMemory(0);
      out_.AbortAllBut(0);
      return 0;
    }
    no_room_ = true;
    rooms = 0;
  }
}

template <class Layout>
void AtomicBatch<Layout>::BeginTry() {
  lists_.keys.clear();
  lists_.probes.clear();
  lists_.wrote.clear();
  lists_.changed_by_batch.clear();
  lists_.edited.clear();
  seen_ = 0;
}

// The bytes of the keys and values that the last try was about to store.
template <class Layout>
uint64_t AtomicBatch<Layout>::BytesToStore() const {
  uint64_t bytes = 0;
  for (const KeyState* state : lists_.keys) {
    if (state->changed && state->present)
      bytes += state->key.size() + ValueBytes(core_.codec, *state);
  }
  return bytes;
}

// Joins leaves in which deletes may have left little.
template <class Layout>
void AtomicBatch<Layout>::BalanceErased() {
  const NodeHeader* seen = nullptr;
  for (const KeyState* state : lists_.keys) {
    if (!state->changed || state->present) continue;
    if (seen != nullptr && Layout::Covers(core_.codec, seen, state->key)) continue;
    seen = split_join_.Balance(thread_, state->key);
  }
}

template <class Layout>
void AtomicBatch<Layout>::RefuseForMemory(uint32_t index) {
  out_.outcome(index) = {};
  out_.RefuseMemory(index, core_.budget);
}

// Adds a key whose leaf is to be locked. Keys are added in ascending order.
template <class Layout>
void AtomicBatch<Layout>::AddKey(KeyState* state, bool writes) {
  lists_.keys.push_back(state);
  Request& probe = lists_.probes.emplace_back();
  probe.op = writes ? Op::kPut : Op::kGet;
  probe.key = state->key;
}

// Locks the leaves of the keys, from left to right, and looks at each key in its leaf.
template <class Layout>
Attempt AtomicBatch<Layout>::LockKeys(StructureChange<Layout>& change) {
  lists_.leaves.clear();
  for (uint32_t i = 0; i < lists_.probes.size(); ++i) {
    look_ahead_.Prepare(lists_.probes, i, true);
    LeafPlace place;
    if (!LockLeaf(change, i, &place)) return Attempt::kAgain;
    lists_.leaves.back().end = i + 1;
    Look(place, lists_.keys[i]);
  }
  return Attempt::kDone;
}

// Locks the leaf of key `i`, waiting for it, unless it is the last one that was locked: that is the
// newest of its LID as long as it is held. False: the writers are being stopped.
template <class Layout>
bool AtomicBatch<Layout>::LockLeaf(StructureChange<Layout>& change, uint32_t i, LeafPlace* place) {
  auto& leaves = lists_.leaves;
  ReserveMore(leaves, 1);
  const Request& probe = lists_.probes[i];
  for (uint32_t tries = 0; !core_.versions.PhaseChanged(thread_); ++tries) {
    *place = tries == 0 ? look_ahead_.Newest(i, probe)
                        : reader_.Find(probe.key, Reader<Layout>::kNewest);
    if (!leaves.empty() && leaves.back().place.node == place->node) return true;
    if (leaves.empty()) AwaitTickets(*place);
    if (change.Lock(place->node, place->word.bits)) {
      leaves.push_back({.place = *place, .begin = i, .end = i});
      return true;
    }
    if (tries > 64) std::this_thread::yield();
  }
  return false;
}

// Called before the first lock: lets the writes go first that have a turn at the leaf, unless this
// batch has stopped them.
template <class Layout>
void AtomicBatch<Layout>::AwaitTickets(const LeafPlace& leaf) {
  const Turnstile& turnstile = core_.turnstiles.Of(leaf.link.lid());
  if (is_alone_ || turnstile.IsFree()) return;
  const uint64_t last = turnstile.last_ticket();
  while (!turnstile.HasServed(last) && !core_.versions.PhaseChanged(thread_)) {
    core_.versions.Raise(thread_);
    std::this_thread::yield();
  }
}

// Notes in `state` the leaf's item of the key.
template <class Layout>
void AtomicBatch<Layout>::Look(const LeafPlace& place, KeyState* state) {
  const typename Layout::Leaf leaf(core_.codec, place.node, place.word.used());
  state->found = leaf.Find(state->key, place.spot);
  seen_ = std::max(seen_, state->found.known ? state->found.version
                                             : place.node->version.load(std::memory_order_relaxed));
}

// Notes the value that the batch sees before it has changed anything: a value whose deadline has
// passed is not there.
template <class Layout>
void AtomicBatch<Layout>::Reflect(KeyState* state) const {
  if (!state->found.present) return;
  state->value = core_.codec.Contiguous(state->found.value);
  if (IsInPieces(state->found.value)) state->pieces = state->found.value;
  state->deadline_ms = DeadlineOf(state->found.value);
  state->type = TypeOf(state->found.value);
  state->present = !HasExpired(state->deadline_ms, now_ms_);
}

// Reads the value whole, if it is in pieces and was not read since it has changed.
template <class Layout>
void AtomicBatch<Layout>::ReadPieces(KeyState* state) {
  if (!state->pieces || !state->value.empty()) return;
  const Pieces pieces(core_.arena, *state->pieces);
  const ValueParts& parts =
      state->edit != nullptr ? static_cast<const ValueParts&>(*state->edit) : pieces;
  const std::span<char> bytes(out_.scratch().Allocate(parts.size()), parts.size());
  parts.Read(0, bytes);
  state->value = {bytes.data(), bytes.size()};
}

// Performs all parts, in order. False: the first one is not applied, so nothing is.
template <class Layout>
bool AtomicBatch<Layout>::PerformAll() {
  out_.ForgetEffects();
  return ExecuteParts(batch_, out_, *this);
}

template <class Layout>
void AtomicBatch<Layout>::BeginPart(const Part& part) {
  lists_.undo.clear();
  undoes_ = !part.is_first;
  ++part_;
}

template <class Layout>
void AtomicBatch<Layout>::TakeBack(const Part& part) {
  for (auto undo = lists_.undo.rbegin(); undo != lists_.undo.rend(); ++undo)
    *undo->first = undo->second;
  lists_.undo.clear();
  while (!lists_.wrote.empty() && lists_.wrote.back() >= part.begin) lists_.wrote.pop_back();
}

template <class Layout>
void AtomicBatch<Layout>::Perform(uint32_t index) {
  const Status status = Check(request(index));
  if (!status.ok()) return out_.Refuse(index, status);
  stored_ = false;
  PerformSlot(index);
  if (stored_ && no_room_) RefuseForMemory(index);
}

template <class Layout>
void AtomicBatch<Layout>::PerformSlot(uint32_t index) {
  const Op op = request(index).op;
  applies_ = op == Op::kApply;
  if (op == Op::kRequireUnchanged) return RequireUnchanged(index);
  if (op == Op::kMove) return PerformMove(index);
  PerformPoint(index);
}

// Stores or erases a value in the copy.
template <class Layout>
void AtomicBatch<Layout>::SetState(KeyState& state, const PointEffect& effect,
                                   std::optional<StoredValue> pieces, EditedPieces* edit) {
  if (undoes_) lists_.undo.emplace_back(&state, state);
  state.changed = true;
  state.is_put |= !applies_;
  state.present = effect.action == PointEffect::Action::kStore;
  stored_ |= state.present;
  state.value = effect.value;
  state.pieces = pieces;
  state.edit = edit;
  state.deadline_ms = effect.deadline_ms;
  state.type = effect.type;
}

// Whether the request is a function that sees parts, of a value in pieces that is this key's in the
// tree, maybe changed by the batch.
template <class Layout>
bool AtomicBatch<Layout>::MayEdit(const Request& r, const KeyState& state) {
  return r.op == Op::kApply && r.function->parts_body != nullptr &&
         !r.has(Request::kOperandOfSlot) && state.present && IsOwn(state);
}

template <class Layout>
void AtomicBatch<Layout>::PerformEdit(uint32_t index, KeyState& state) {
  const PointState held = {.deadline_ms = state.deadline_ms, .type = state.type};
  const Pieces pieces(core_.arena, *state.pieces);
  const ValueParts& parts =
      state.edit != nullptr ? static_cast<const ValueParts&>(*state.edit) : pieces;
  const PartsEffect parts_effect = ApplyParts(request(index), parts, held, traits_, out_, index);
  if (!parts_effect.changes) return;
  out_.CountWork(BytesToEdit(parts_effect));
  EditedPieces* edit = state.edit;
  if (edit == nullptr || edit->part() != part_) {
    lists_.edited.push_back(edit == nullptr
                                ? std::make_unique<EditedPieces>(core_.arena, *state.pieces, part_)
                                : std::make_unique<EditedPieces>(*edit, part_));
    edit = lists_.edited.back().get();
  }
  edit->Apply(parts_effect, out_.scratch());
  const PointEffect effect = {
      .action = PointEffect::Action::kStore, .type = state.type, .deadline_ms = state.deadline_ms};
  SetState(state, effect, state.pieces, edit);
  lists_.wrote.push_back(index);
}

template <class Layout>
void AtomicBatch<Layout>::PerformPoint(uint32_t index) {
  const Request& r = request(index);
  KeyState& state = OwnState(index);
  if (MayEdit(r, state)) return PerformEdit(index, state);
  // The copy does not count against the request that it is for.
  std::optional<BatchWriter::Whole> whole;
  // A value in pieces that the batch has not changed, which may be pinned.
  const std::optional<StoredValue> to_pin =
      MayPinPrevious(r) && state.edit == nullptr ? state.pieces : std::nullopt;
  if (NeedsBytes(r) && !to_pin && !out_.IsFull()) {
    if (state.pieces) whole.emplace(out_);
    ReadPieces(&state);
  }
  std::optional<PointState> now;
  if (state.present) now = {state.value, state.deadline_ms, state.type};
  if (r.op == Op::kGet && state.pieces && now) now->value = {};  // TellPieces() gives the bytes
  const PointEffect effect = ApplyPoint(r, now, now_ms_, traits_, out_, index);
  if (to_pin) TellPrevious(core_, *to_pin, out_, index);
  Outcome& outcome = out_.outcome(index);
  if (r.op == Op::kGet) {
    if (state.edit != nullptr) {
      TellParts(r, *state.edit, out_, index);
    } else if (state.pieces) {
      TellPieces(core_, r, *state.pieces, out_, index);
    }
    if (state.present && !state.changed) outcome.version = state.found.version;
  }
  if (effect.action == PointEffect::Action::kKeep) return;
  r.op == Op::kExpire ? SetState(state, effect, state.pieces, state.edit) : SetState(state, effect);
  lists_.wrote.push_back(index);
}

template <class Layout>
void AtomicBatch<Layout>::PerformMove(uint32_t index) {
  const Request& r = request(index);
  KeyState& from = OwnState(index);
  KeyState& to = StateOf(r.other);
  if (from.edit != nullptr) {
    ReadPieces(&from);
    from.pieces.reset();
    from.edit = nullptr;
  }
  std::optional<PointState> state;
  if (from.present) state = {from.value, from.deadline_ms, from.type};
  if (!JudgeMove(r, state, to.present, out_, index)) return;
  SetState(to,
           {.action = PointEffect::Action::kStore,
            .type = state->type,
            .value = state->value,
            .deadline_ms = state->deadline_ms},
           from.pieces);
  SetState(from, {.action = PointEffect::Action::kErase});
  lists_.wrote.push_back(index);
}

template <class Layout>
void AtomicBatch<Layout>::RequireUnchanged(uint32_t index) {
  const Request& r = request(index);
  const auto seen = JudgeUnchanged(r, core_.watches, now_ms_, out_, index);
  if (!seen) return;
  seen_ = std::max(seen_, seen->version);
  if (!seen->unchanged) return;
  // An earlier part may have changed the key; its write gets the batch's version later.
  const KeyState* const state = Find(r.key);
  if (state == nullptr || !state->changed) return;
  out_.outcome(index).verdict = Verdict::kMismatch;
  lists_.changed_by_batch.push_back(index);
}

template <class Layout>
Attempt AtomicBatch<Layout>::Commit(StructureChange<Layout>& change) {
  const Attempt attempt = commit_.Apply(change);
  if (attempt != Attempt::kDone) return attempt;
  TellVersion(change.version());
  for (const KeyState* const state : lists_.keys) {
    const bool was_there = state->changed && state->found.present;
    if (was_there && HasExpired(DeadlineOf(state->found.value), now_ms_)) {
      TellExpired(core_, state->key);
    }
  }
  return attempt;
}

// Sets the version in the outcomes of requests that have written, or that saw what the batch wrote.
template <class Layout>
void AtomicBatch<Layout>::TellVersion(Version version) {
  for (const uint32_t index : lists_.wrote) out_.outcome(index).version = version;
  for (const uint32_t index : lists_.changed_by_batch) out_.outcome(index).version = version;
  // A value the batch itself wrote has the batch's version.
  for (uint32_t i = 0; i < batch_.size(); ++i) {
    Outcome& outcome = out_.outcome(i);
    if (request(i).op == Op::kGet && outcome.present && outcome.version == 0)
      outcome.version = version;
  }
  seen_ = std::max(seen_, version);
}

template class AtomicBatch<PaperLayout>;
template class AtomicBatch<HeadLayout>;

}  // namespace skep::btree
