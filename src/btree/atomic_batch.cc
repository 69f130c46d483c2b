#include "btree/atomic_batch.h"

#include <algorithm>
#include <thread>

#include "base/check.h"
#include "base/reserve_more.h"
#include "btree/compare_bytes.h"
#include "btree/head_layout_search.h"
#include "btree/paper_layout.h"
#include "btree/sampler.h"
#include "btree/scan_meter.h"
#include "engine/point.h"

namespace skep::btree {

namespace {

bool IsEverything(const Request& r) { return r.op == Op::kDeleteAll; }
// What such a request reads may be anywhere.
bool MayBeAnywhere(const Request& r) {
  return r.op == Op::kSample || (r.op == Op::kScan && r.has(Request::kSeekFloor));
}

}  // namespace

bool NamesRanges(const Batch& batch) {
  return std::ranges::any_of(batch.requests(), [](const Request& r) {
    return IsRange(r.op) || r.op == Op::kDeleteAll || r.op == Op::kSample;
  });
}

template <class Layout, bool kHasRanges>
Version AtomicBatch<Layout, kHasRanges>::Execute() {
  const Version seen = Run();
  if (kHasRanges || batch_.size() > kKeysKept) lists_ = {};
  return seen;
}

template <class Layout, bool kHasRanges>
Version AtomicBatch<Layout, kHasRanges>::Run() {
  if (kHasRanges) stops_ = std::ranges::any_of(batch_.requests(), MayBeAnywhere);
  uint32_t rooms = 0;
  for (uint32_t tries = 0;; ++tries) {
    if (tries > 3) std::this_thread::yield();
    tries == 0 ? core_.versions.BeginOperation(slot_) : core_.versions.BeginAgain(slot_);
    const Attempt attempt = stops_ ? TryAlone() : Try();
    if (attempt == Attempt::kDone) {
      if (batch_.applied()) BalanceErased();
      return seen_;
    }
    if (attempt != Attempt::kNoMemory) continue;
    if (++rooms <= Upkeep::kRoomsMax && upkeep_.MakeRoom(slot_, BytesToStore())) continue;
    if (no_room_) {
      RefuseForMemory(0);
      out_.AbortAllBut(0);
      return 0;
    }
    no_room_ = true;
    rooms = 0;
  }
}

// How many bytes the keys and values have that the last try was about to store.
template <class Layout, bool kHasRanges>
uint64_t AtomicBatch<Layout, kHasRanges>::BytesToStore() const {
  uint64_t bytes = 0;
  for (const auto& [key, state] : lists_.states) {
    if (state.changed && state.present) bytes += key.size() + state.value.size();
  }
  return bytes;
}

// Deletes may have left little in a leaf.
template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::BalanceErased() {
  const NodeHeader* seen = nullptr;
  for (const auto& [key, state] : lists_.states) {
    if (!state.changed || state.present) continue;
    if (seen != nullptr && Layout::Covers(core_.codec, seen, key)) continue;
    seen = structure_.Balance(slot_, key);
  }
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::RefuseForMemory(uint32_t index) {
  out_.outcome(index) = {};
  out_.RefuseMemory(index, core_.budget);
}

// With all other writers stopped.
template <class Layout, bool kHasRanges>
Attempt AtomicBatch<Layout, kHasRanges>::TryAlone() {
  // Nobody has to wait for our epoch while we wait for our turn.
  core_.versions.LeaveEpoch(slot_);
  Versions::Turn turn(core_.versions, slot_);
  core_.versions.EnterEpoch(slot_);
  const Versions::Stopped stopped(turn);
  return Try();
}

template <class Layout, bool kHasRanges>
Attempt AtomicBatch<Layout, kHasRanges>::Try() {
  lists_.states.clear();
  lists_.wrote.clear();
  lists_.changed_by_batch.clear();
  seen_ = 0;
  Change<Layout> change(core_, slot_, Arena::Limit::kObey);
  if constexpr (!kHasRanges) {
    ListNamed();
    if (const Attempt a = LockKeys(change); a != Attempt::kDone) return a;
  } else if (!stops_) {
    if (const Attempt a = LockSpans(change); a != Attempt::kDone) return a;
  }
  const bool is_alone = stops_;
  now_ms_ = core_.now.Advance(batch_.now_ms());
  for (auto& [key, state] : lists_.states) {
    if (HasExpired(state.deadline_ms, now_ms_)) state.present = false;
  }
  out_.ForgetEffects();
  const bool applied = ExecuteParts(batch_, out_, *this);
  if (stops_ != is_alone) return Attempt::kAgain;
  if (!applied) return Attempt::kDone;  // `change` lets go
  if (lists_.wrote.empty()) return Attempt::kDone;
  while (true) {
    if constexpr (kHasRanges) {
      ListChanged();
      if (const Attempt a = LockKeys(change); a != Attempt::kDone) return a;
    }
    const Attempt a = Apply(change);
    // If the others are still stopped, what was performed still holds.
    if (a != Attempt::kAgain || !is_alone) return a;
  }
}

template <class Layout, bool kHasRanges>
Status AtomicBatch<Layout, kHasRanges>::Check(const Request& request) const {
  return IsSoundPoint(request, traits_) ? Status() : CheckRequest(request, batch_, traits_);
}

// The keys that the requests name, each once; all are to be locked.
template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::ListNamed() {
  lists_.named.clear();
  for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
    const Request& r = batch_.requests()[slot];
    if (!Check(r).ok()) continue;
    lists_.named.push_back(
        {.key = r.key, .slot = slot, .is_other = false, .writes = IsWrite(r.op)});
    if (r.op != Op::kMove) continue;
    lists_.named.push_back({.key = r.other, .slot = slot, .is_other = true, .writes = true});
  }
  std::ranges::sort(lists_.named,
                    [](const Named& a, const Named& b) { return CompareBytes(a.key, b.key) < 0; });
  lists_.places.resize(batch_.size());
  lists_.probes.clear();
  for (const Named& named : lists_.named) {
    auto& states = lists_.states;
    if (states.empty() || CompareBytes(states.back().first, named.key) != 0) {
      states.emplace_back().first = named.key;
      AddProbe(named.key, named.writes);
    } else if (named.writes) {
      lists_.probes.back().op = Op::kPut;
    }
    if (!named.is_other) lists_.places[named.slot] = static_cast<uint32_t>(states.size() - 1);
  }
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::ListSpans() {
  lists_.spans.clear();
  for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
    const Request& r = batch_.requests()[slot];
    if (Check(r).ok()) AddSpan(r, slot);
  }
  std::ranges::sort(lists_.spans, {}, &Span::lo);
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::AddSpan(const Request& r, uint32_t slot) {
  if (!IsRange(r.op) && !IsEverything(r)) {
    lists_.spans.push_back({.lo = r.key});
    if (r.op == Op::kMove) lists_.spans.push_back({.lo = r.other});
    return;
  }
  Span span = {.lo = r.key, .hi = r.other, .is_point = false, .slot = slot};
  span.unbounded = r.has(Request::kNoUpperBound);
  if (IsEverything(r)) span = {.is_point = false, .unbounded = true, .slot = slot};
  if (!span.unbounded && span.lo >= span.hi) return;
  // One more, since it is looked for to tell that there is more.
  if (r.op == Op::kRequireEmpty) {
    span.keys_max = 1;
  } else if (!IsEverything(r) && r.op != Op::kExpireRange && !r.has(Request::kReverse) &&
             r.limit != kNoLimit) {
    span.keys_max = uint64_t{r.limit} + 1;
  }
  lists_.spans.push_back(span);
}

// From left to right: a span begins at the last leaf that is held, or within the run of leaves that
// ends with it, or to the right of it.
template <class Layout, bool kHasRanges>
Attempt AtomicBatch<Layout, kHasRanges>::LockSpans(Change<Layout>& change) {
  ListSpans();
  lists_.held.clear();
  lists_.cuts.clear();
  now_ms_ = core_.now.Advance(batch_.now_ms());
  for (const Span& span : lists_.spans) {
    if (const Attempt a = LockSpan(change, span); a != Attempt::kDone) return a;
  }
  return Attempt::kDone;
}

template <class Layout, bool kHasRanges>
Attempt AtomicBatch<Layout, kHasRanges>::LockSpan(Change<Layout>& change, const Span& span) {
  auto& held = lists_.held;
  size_t at = SeekHeld(span.lo);
  if (at == held.size() && !HoldLeaf(change, span.lo)) return Attempt::kAgain;
  if (span.is_point) return Attempt::kDone;
  uint64_t keys = 0;
  while (true) {
    const auto fences = Layout::FencesOf(core_.codec, held[at].node);
    const bool is_last =
        fences.unbounded || (!span.unbounded && core_.codec.Compare(span.hi, fences.upper) <= 0);
    if (is_last) return Attempt::kDone;
    if (span.keys_max != UINT64_MAX) keys += CountKeys(held[at], span);
    if (keys >= span.keys_max) {
      lists_.cuts.push_back({.slot = span.slot, .end = UpperOf(held[at])});
      return Attempt::kDone;
    }
    if (++at == held.size() && !HoldLeaf(change, UpperOf(held.back()))) return Attempt::kAgain;
  }
}

// Locks the leaf of the key, waiting for it. False: the writers are being stopped, or it would be
// too many.
template <class Layout, bool kHasRanges>
bool AtomicBatch<Layout, kHasRanges>::HoldLeaf(Change<Layout>& change, std::string_view key) {
  if (lists_.held.size() == kLeavesHeldMax) {
    stops_ = true;
    return false;
  }
  ReserveMore(lists_.held, 1);
  for (uint32_t tries = 0; !core_.versions.PhaseChanged(slot_); ++tries) {
    const LeafPlace place = reader_.Find(key, Reader<Layout>::kNewest);
    if (lists_.held.empty()) AwaitTickets(place);
    if (change.Lock(place.node, place.word.bits)) {
      lists_.held.push_back(place);
      return true;
    }
    if (tries > 64) std::this_thread::yield();
  }
  return false;
}

// Before the first lock: those that have a turn at the leaf go first, unless this batch has stopped
// them.
template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::AwaitTickets(const LeafPlace& leaf) {
  const Turnstile& turnstile = core_.turnstiles.Of(leaf.link.lid());
  if (stops_ || turnstile.IsFree()) return;
  const uint64_t last = turnstile.last_ticket();
  while (!turnstile.HasServed(last) && !core_.versions.PhaseChanged(slot_)) {
    core_.versions.Raise(slot_);
    std::this_thread::yield();
  }
}

// Those of the span that have not expired.
template <class Layout, bool kHasRanges>
uint64_t AtomicBatch<Layout, kHasRanges>::CountKeys(const LeafPlace& leaf, const Span& span) const {
  const typename Layout::Leaf view(core_.codec, leaf.node, leaf.word.used(),
                                   Reader<Layout>::kNewest, now_ms_);
  typename Layout::LeafCursor cursor(view);
  uint64_t keys = 0;
  for (cursor.SeekAtLeast(span.lo); cursor.valid() && keys < span.keys_max; cursor.Next()) ++keys;
  return keys;
}

template <class Layout, bool kHasRanges>
std::string AtomicBatch<Layout, kHasRanges>::UpperOf(const LeafPlace& leaf) const {
  Scratch scratch;
  return std::string(core_.codec.Whole(Layout::FencesOf(core_.codec, leaf.node).upper, scratch));
}

// The first of the held leaves whose keys do not all lie below `key`.
template <class Layout, bool kHasRanges>
size_t AtomicBatch<Layout, kHasRanges>::SeekHeld(std::string_view key) const {
  const auto ends_below = [&](const LeafPlace& leaf) {
    const auto fences = Layout::FencesOf(core_.codec, leaf.node);
    return !fences.unbounded && core_.codec.Compare(key, fences.upper) >= 0;
  };
  return static_cast<size_t>(std::ranges::partition_point(lists_.held, ends_below) -
                             lists_.held.begin());
}

// Of a key that lies in a span.
template <class Layout, bool kHasRanges>
LeafPlace AtomicBatch<Layout, kHasRanges>::HeldLeafOf(std::string_view key) const {
  const size_t at = SeekHeld(key);
  SKEP_CHECK(at < lists_.held.size());
  return lists_.held[at];
}

// The keys that the batch has changed are to be locked.
template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::ListChanged() {
  lists_.changed.clear();
  lists_.probes.clear();
  for (auto at = lists_.states.begin(); at != lists_.states.end(); ++at) {
    if (!at->second.changed) continue;
    lists_.changed.push_back(at);
    AddProbe(at->first, true);
  }
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::AddProbe(std::string_view key, bool writes) {
  Request& probe = lists_.probes.emplace_back();
  probe.op = writes ? Op::kPut : Op::kGet;
  probe.key = key;
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::Read(const LeafPlace& place, std::string_view key,
                                           State* state) {
  const typename Layout::Leaf leaf(core_.codec, place.node, place.word.used());
  state->found = leaf.Find(key, place.spot);
  state->present = state->found.present;
  if (state->present) {
    state->value = core_.codec.Whole(state->found.value);
    state->deadline_ms = DeadlineOf(state->found.value);
  }
  seen_ = std::max(seen_, state->found.known ? state->found.version
                                             : place.node->version.load(std::memory_order_relaxed));
}

// Locks the leaf of key `i`, waiting for it, if it is not the last one that was locked: that is the
// newest of its LID as long as it is held. False: the writers are being stopped.
template <class Layout, bool kHasRanges>
bool AtomicBatch<Layout, kHasRanges>::LockLeaf(Change<Layout>& change, uint32_t i,
                                               LeafPlace* place) {
  auto& leaves = lists_.leaves;
  ReserveMore(leaves, 1);
  if (kHasRanges && !stops_) {
    *place = HeldLeafOf(lists_.probes[i].key);
    if (leaves.empty() || leaves.back().place.node != place->node) {
      leaves.push_back({.place = *place, .begin = i, .end = i});
    }
    return true;
  }
  const Request& probe = lists_.probes[i];
  for (uint32_t tries = 0; !core_.versions.PhaseChanged(slot_); ++tries) {
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

// From left to right.
template <class Layout, bool kHasRanges>
Attempt AtomicBatch<Layout, kHasRanges>::LockKeys(Change<Layout>& change) {
  lists_.leaves.clear();
  for (uint32_t i = 0; i < lists_.probes.size(); ++i) {
    if (!kHasRanges || stops_) look_ahead_.Approach(lists_.probes, i);
    LeafPlace place;
    if (!LockLeaf(change, i, &place)) return Attempt::kAgain;
    lists_.leaves.back().end = i + 1;
    auto& [key, state] = *KeyAt(i);
    if constexpr (kHasRanges) {
      // It was read before the leaf was locked, and the leaf may have been merged or split since.
      const typename Layout::Leaf leaf(core_.codec, place.node, place.word.used());
      state.found = leaf.Find(key, place.spot);
    } else {
      Read(place, key, &state);
    }
  }
  return Attempt::kDone;
}

// Where the key is, or end().
template <class Layout, bool kHasRanges>
typename AtomicBatch<Layout, kHasRanges>::StateAt AtomicBatch<Layout, kHasRanges>::Find(
    std::string_view key) {
  if constexpr (kHasRanges) {
    return lists_.states.find(key);
  } else {
    const auto at = std::ranges::partition_point(
        lists_.states, [&](const auto& entry) { return CompareBytes(entry.first, key) < 0; });
    return at != lists_.states.end() && at->first == key ? at : lists_.states.end();
  }
}

// What the batch sees of the key now.
template <class Layout, bool kHasRanges>
typename AtomicBatch<Layout, kHasRanges>::StateAt AtomicBatch<Layout, kHasRanges>::StateOf(
    std::string_view key) {
  if constexpr (kHasRanges) {
    const auto [at, is_new] = lists_.states.try_emplace(key);
    if (!is_new) return at;
    const bool is_held = !stops_;
    Read(is_held ? HeldLeafOf(key) : reader_.Find(key, Reader<Layout>::kNewest), key, &at->second);
    if (HasExpired(at->second.deadline_ms, now_ms_)) at->second.present = false;
    return at;
  } else {
    return Find(key);
  }
}

// Of the request's own key.
template <class Layout, bool kHasRanges>
typename AtomicBatch<Layout, kHasRanges>::StateAt AtomicBatch<Layout, kHasRanges>::StateOfSlot(
    uint32_t index) {
  if constexpr (kHasRanges) {
    return StateOf(batch_.requests()[index].key);
  } else {
    return lists_.states.begin() + lists_.places[index];
  }
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::BeginPart(const Part& part) {
  lists_.undo.clear();
  undoes_ = !part.is_first;
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::TakeBack(const Part& part) {
  for (auto undo = lists_.undo.rbegin(); undo != lists_.undo.rend(); ++undo)
    undo->first->second = undo->second;
  lists_.undo.clear();
  while (!lists_.wrote.empty() && lists_.wrote.back() >= part.begin) lists_.wrote.pop_back();
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::Perform(uint32_t index) {
  const Status status = Check(batch_.requests()[index]);
  if (!status.ok()) return out_.Refuse(index, status);
  stored_ = false;
  PerformSlot(index);
  if (stored_ && no_room_) RefuseForMemory(index);
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::PerformSlot(uint32_t index) {
  const Op op = batch_.requests()[index].op;
  if constexpr (kHasRanges) {
    if (op == Op::kSample) return PerformSample(index);
    if (op == Op::kRequireEmpty) return RequireEmpty(index);
    if (IsRange(op) || op == Op::kDeleteAll) return PerformRange(index);
  }
  if (op == Op::kRequireUnchanged) return RequireUnchanged(index);
  if (op == Op::kMove) return PerformMove(index);
  PerformPoint(index);
}

// Stores or erases, in the copy.
template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::SetState(StateAt at, const PointEffect& effect) {
  State& state = at->second;
  if (undoes_) lists_.undo.emplace_back(at, state);
  state.changed = true;
  state.present = effect.action == PointEffect::Action::kStore;
  stored_ |= state.present;
  state.value = effect.value;
  state.deadline_ms = effect.deadline_ms;
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::PerformPoint(uint32_t index) {
  const Request& r = batch_.requests()[index];
  const auto at = StateOfSlot(index);
  const State& state = at->second;
  std::optional<PointState> now;
  if (state.present) now = {state.value, state.deadline_ms};
  const PointEffect effect = ApplyPoint(r, now, now_ms_, traits_, out_, index);
  Outcome& outcome = out_.outcome(index);
  if (r.op == Op::kGet && state.present && !state.changed) outcome.version = state.found.version;
  if (effect.action == PointEffect::Action::kKeep) return;
  SetState(at, effect);
  lists_.wrote.push_back(index);
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::PerformMove(uint32_t index) {
  const Request& r = batch_.requests()[index];
  const auto from = StateOfSlot(index);
  const auto to = StateOf(r.other);
  std::optional<PointState> state;
  if (from->second.present) state = {from->second.value, from->second.deadline_ms};
  if (!JudgeMove(r, state, to->second.present, out_, index)) return;
  SetState(to, {.action = PointEffect::Action::kStore,
                .value = state->value,
                .deadline_ms = state->deadline_ms});
  SetState(from, {.action = PointEffect::Action::kErase});
  lists_.wrote.push_back(index);
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::RequireUnchanged(uint32_t index) {
  const Request& request = batch_.requests()[index];
  const auto seen = JudgeUnchanged(request, core_.watches, now_ms_, out_, index);
  if (!seen) return;
  seen_ = std::max(seen_, seen->version);
  if (!seen->unchanged) return;
  // An earlier part may have changed it; what it wrote gets its version later.
  const auto state = Find(request.key);
  if (state == lists_.states.end() || !state->second.changed) return;
  out_.outcome(index).verdict = Verdict::kMismatch;
  lists_.changed_by_batch.push_back(index);
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::RequireEmpty(uint32_t index) {
  Outcome& outcome = out_.outcome(index);
  outcome = {.verdict = Verdict::kDone};
  seen_ = std::max(seen_, core_.Stamp(core_.versions.last_drawn()));
  ForEach(index, [&](const Item& item) {
    outcome.verdict = Verdict::kMismatch;
    outcome.value = out_.scratch().Copy(item.key);
    return false;
  });
}

// Calls visit(item) for the keys of the range as the batch sees them, in order or backwards, until
// it answers false. The views are valid during the call.
template <class Layout, bool kHasRanges>
template <typename Visit>
void AtomicBatch<Layout, kHasRanges>::ForEach(uint32_t index, Visit visit) {
  const Request& r = batch_.requests()[index];
  const bool all = IsEverything(r);
  std::string_view lo = all ? std::string_view() : r.key;
  const bool is_scan = r.op == Op::kScan;
  if (is_scan && r.has(Request::kSeekFloor)) lo = Floor(lo);
  const bool unbounded = all || r.has(Request::kNoUpperBound);
  if (!unbounded && lo >= r.other) return;
  if (is_scan && r.has(Request::kReverse)) {
    return ForEachReverse(lo, r.other, unbounded, visit);
  }
  const auto cut = std::ranges::find(lists_.cuts, index, &Cut::slot);
  if (stops_ || cut == lists_.cuts.end()) return ForEachForward(lo, r.other, unbounded, visit);
  bool goes_on = true;
  ForEachForward(lo, cut->end, false, [&](const Item& item) {
    goes_on = visit(item);
    return goes_on;
  });
  // It reads what is not locked.
  if (goes_on) stops_ = true;
}

template <class Layout, bool kHasRanges>
template <typename Visit>
void AtomicBatch<Layout, kHasRanges>::ForEachForward(std::string_view lo, std::string_view hi,
                                                     bool unbounded, Visit visit) {
  const auto is_inside = [&](std::string_view key) { return unbounded || key < hi; };
  auto state = lists_.states.lower_bound(lo);
  const auto visit_state = [&] {
    const auto here = state++;
    return !here->second.present || visit(Item{here->first, here->second.value});
  };
  Cursor<Layout> cursor(core_, Reader<Layout>::kNewest, now_ms_);
  for (cursor.SeekAtLeast(lo); cursor.Settle(hi, unbounded); cursor.Next()) {
    const std::string_view key = cursor.key();
    while (state != lists_.states.end() && state->first < key) {
      if (!visit_state()) return;
    }
    const bool touched = state != lists_.states.end() && state->first == key;
    if (!(touched ? visit_state() : visit(Item{key, cursor.value()}))) return;
  }
  while (state != lists_.states.end() && is_inside(state->first)) {
    if (!visit_state()) return;
  }
}

template <class Layout, bool kHasRanges>
template <typename Visit>
void AtomicBatch<Layout, kHasRanges>::ForEachReverse(std::string_view lo, std::string_view hi,
                                                     bool unbounded, Visit visit) {
  auto state = unbounded ? lists_.states.end() : lists_.states.lower_bound(hi);
  const auto has_state = [&] {
    return state != lists_.states.begin() && std::prev(state)->first >= lo;
  };
  const auto visit_state = [&] {
    --state;
    return !state->second.present || visit(Item{state->first, state->second.value});
  };
  Cursor<Layout> cursor(core_, Reader<Layout>::kNewest, now_ms_);
  if (unbounded) {
    cursor.SeekLast();
  } else {
    cursor.SeekBelow(hi);
  }
  for (; cursor.SettleBack(lo); cursor.Prev()) {
    const std::string_view key = cursor.key();
    while (has_state() && std::prev(state)->first > key) {
      if (!visit_state()) return;
    }
    const bool touched = has_state() && std::prev(state)->first == key;
    if (!(touched ? visit_state() : visit(Item{key, cursor.value()}))) return;
  }
  while (has_state()) {
    if (!visit_state()) return;
  }
}

// The largest key <= `key` as the batch sees it; `key` if there is none.
template <class Layout, bool kHasRanges>
std::string_view AtomicBatch<Layout, kHasRanges>::Floor(std::string_view key) {
  std::string_view floor = key;
  ForEachReverse({}, KeyAfter(key, out_.scratch()), false, [&](const Item& item) {
    floor = out_.scratch().Copy(item.key);
    return false;
  });
  return floor;
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::PerformRange(uint32_t index) {
  const Request& r = batch_.requests()[index];
  out_.outcome(index) = {.verdict = Verdict::kDone};
  seen_ = std::max(seen_, core_.Stamp(core_.versions.last_drawn()));
  if (r.op == Op::kScan) return PerformScan(index);
  const uint64_t most = r.limit == kNoLimit ? UINT64_MAX : r.limit;
  Outcome& outcome = out_.outcome(index);
  uint64_t count = 0;
  const auto stop_before = [&](std::string_view key) {
    outcome.more = true;
    outcome.value = out_.scratch().Copy(key);
  };
  std::vector<std::string_view> keys;  // to be changed: the limit of kExpireRange is of these
  ForEach(index, [&](const Item& item) {
    if (count == most) {
      stop_before(item.key);
      return false;
    }
    if (r.op != Op::kExpireRange) ++count;
    if (r.op != Op::kCount) keys.push_back(out_.scratch().Copy(item.key));
    return true;
  });
  for (const std::string_view key : keys) {
    const auto at = StateOf(key);
    PointEffect effect = {.action = PointEffect::Action::kErase};
    if (r.op == Op::kExpireRange) {
      if (count == most) {
        stop_before(key);
        break;
      }
      effect = ApplyExpiry(r, {at->second.value, at->second.deadline_ms}, now_ms_);
      if (effect.action == PointEffect::Action::kKeep) continue;
      ++count;
      out_.NoteDeadline(index, key, r.deadline_ms);
    }
    SetState(at, effect);
  }
  outcome.integer = static_cast<int64_t>(count);
  if (!keys.empty() && count > 0) lists_.wrote.push_back(index);
}

template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::PerformScan(uint32_t index) {
  if (out_.LeavesOutScan(index)) return;
  const Request& r = batch_.requests()[index];
  ScanMeter meter(r, batch_.scan_bytes_max(), batch_.scan_visits_max(), out_, index);
  ForEach(index, [&](const Item& item) {
    if (meter.MayAdd()) {
      meter.Add(item);
      return true;
    }
    meter.StopBefore(item.key);
    return false;
  });
}

// One of the keys that the batch has put, in proportion to their number; else one of the tree's
// that it has not deleted.
template <class Layout, bool kHasRanges>
void AtomicBatch<Layout, kHasRanges>::PerformSample(uint32_t index) {
  Outcome& outcome = out_.outcome(index);
  outcome = {.verdict = Verdict::kDone};
  out_.BeginItems(index);
  seen_ = std::max(seen_, core_.Stamp(core_.versions.last_drawn()));
  std::vector<Item> added;
  uint64_t erased = 0;
  for (const auto& [key, state] : lists_.states) {
    const bool was_present =
        state.found.present && !HasExpired(DeadlineOf(state.found.value), now_ms_);
    if (state.present && !was_present) added.push_back({key, state.value});
    if (!state.present && was_present) ++erased;
  }
  Sampler<Layout> sampler(core_, batch_.requests()[index].random, now_ms_);
  // The counters may be a little late.
  const uint64_t before = std::max(core_.ItemCount(), erased);
  const uint64_t lot = sampler.Below(std::max<uint64_t>(1, before - erased + added.size()));
  if (lot < added.size()) {
    out_.AddItem(index, added[lot]);
    return;
  }
  constexpr int kRounds = 64;
  for (int round = 0; round < kRounds; ++round) {
    const auto item = sampler.Draw();
    if (!item) break;
    const auto state = lists_.states.find(item->key);
    if (state != lists_.states.end() && !state->second.present) continue;
    out_.AddItem(index,
                 state == lists_.states.end() ? *item : Item{state->first, state->second.value});
    return;
  }
  // The batch has deleted most of what there was: any key that is left.
  outcome.verdict = Verdict::kAbsent;
  ForEachForward({}, {}, true, [&](const Item& item) {
    outcome.verdict = Verdict::kDone;
    out_.AddItem(index, item);
    return false;
  });
}

// And what it calls: some functions are for one of the two kinds of states.
template Version AtomicBatch<PaperLayout, false>::Execute();
template Version AtomicBatch<PaperLayout, true>::Execute();
template Version AtomicBatch<HeadLayout, false>::Execute();
template Version AtomicBatch<HeadLayout, true>::Execute();

}  // namespace skep::btree
