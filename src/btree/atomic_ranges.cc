#include "btree/atomic_ranges.h"

#include <algorithm>
#include <iterator>
#include <thread>

#include "base/check.h"
#include "base/reserve_more.h"
#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/sampler.h"
#include "btree/scan_meter.h"

namespace skep::btree {

namespace {

bool IsEverything(const Request& r) { return r.op == Op::kDeleteAll; }
// Whether the keys that such a request reads may be anywhere.
bool MayBeAnywhere(const Request& r) {
  return r.op == Op::kSample || (r.op == Op::kScan && r.has(Request::kSeekFloor));
}

// Whether the request visits keys because of their values.
bool WantsValues(const Request& r) { return r.op == Op::kScan || r.op == Op::kSample; }

}  // namespace

bool NamesRanges(const Batch& batch) {
  return std::ranges::any_of(batch.requests(), [](const Request& r) {
    return IsRange(r.op) || r.op == Op::kDeleteAll || r.op == Op::kSample;
  });
}

template <class Layout>
AtomicRanges<Layout>::AtomicRanges(const AtomicContext<Layout>& context)
    : AtomicBatch<Layout>(context),
      stops_(std::ranges::any_of(context.batch.requests(), MayBeAnywhere)) {}

template <class Layout>
Attempt AtomicRanges<Layout>::Try() {
  return stops_ ? TryAlone() : TryOnce();
}

// Tries with all other writers stopped.
template <class Layout>
Attempt AtomicRanges<Layout>::TryAlone() {
  // Leaves the epoch, so that nothing waits for it while this thread waits for its turn.
  core_.versions.LeaveEpoch(thread_);
  Versions::Turn turn(core_.versions, thread_);
  core_.versions.EnterEpoch(thread_);
  const Versions::Stopped stopped(turn);
  return TryOnce();
}

template <class Layout>
Attempt AtomicRanges<Layout>::TryOnce() {
  this->BeginTry();
  states_.clear();
  is_alone_ = stops_;
  StructureChange<Layout> change(core_, thread_, Arena::Limit::kObey);
  if (!is_alone_) {
    if (const Attempt a = LockSpans(change); a != Attempt::kDone) return a;
  }
  now_ms_ = core_.now.Advance(batch_.now_ms());
  const bool applied = this->PerformAll();
  if (stops_ != is_alone_) return Attempt::kAgain;
  // If nothing is written the destructor of `change` unlocks.
  if (!applied || lists_.wrote.empty()) return Attempt::kDone;
  while (true) {
    ListChanged();
    if (!is_alone_) {
      TakeHeldLeaves();
    } else if (const Attempt a = this->LockKeys(change); a != Attempt::kDone) {
      return a;
    }
    const Attempt a = this->Commit(change);
    // If the other writers are still stopped, the state that was performed still holds.
    if (a != Attempt::kAgain || !is_alone_) return a;
  }
}

template <class Layout>
void AtomicRanges<Layout>::ListSpans() {
  spans_.clear();
  for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
    const Request& r = request(slot);
    if (this->Check(r).ok()) AddSpan(r, slot);
  }
  std::ranges::sort(spans_, {}, &Span::lo);
}

template <class Layout>
void AtomicRanges<Layout>::AddSpan(const Request& r, uint32_t slot) {
  if (!IsRange(r.op) && !IsEverything(r)) {
    spans_.push_back({.lo = r.key});
    if (r.op == Op::kMove) spans_.push_back({.lo = r.other});
    return;
  }
  Span span = {.lo = r.key, .hi = r.other, .is_point = false, .slot = slot};
  span.unbounded = r.has(Request::kNoUpperBound);
  if (IsEverything(r)) span = {.is_point = false, .unbounded = true, .slot = slot};
  if (!span.unbounded && span.lo >= span.hi) return;
  // One key more than the limit, since the request looks for it to tell that there is more.
  if (r.op == Op::kRequireEmpty) {
    span.keys_max = 1;
  } else if (!IsEverything(r) && r.op != Op::kExpireRange && !r.has(Request::kReverse) &&
             r.limit != kNoLimit) {
    span.keys_max = uint64_t{r.limit} + 1;
  }
  spans_.push_back(span);
}

// Locks from left to right: a span begins at the last leaf that is held, or within the run of
// leaves that ends with it, or to the right of it.
template <class Layout>
Attempt AtomicRanges<Layout>::LockSpans(StructureChange<Layout>& change) {
  ListSpans();
  held_.clear();
  cuts_.clear();
  now_ms_ = core_.now.Advance(batch_.now_ms());
  for (const Span& span : spans_) {
    if (const Attempt a = LockSpan(change, span); a != Attempt::kDone) return a;
  }
  return Attempt::kDone;
}

template <class Layout>
Attempt AtomicRanges<Layout>::LockSpan(StructureChange<Layout>& change, const Span& span) {
  size_t at = SeekHeld(span.lo);
  if (at == held_.size() && !HoldLeaf(change, span.lo)) return Attempt::kAgain;
  if (span.is_point) return Attempt::kDone;
  uint64_t keys = 0;
  while (true) {
    const auto fences = Layout::FencesOf(core_.codec, held_[at].node);
    const bool is_last =
        fences.unbounded || (!span.unbounded && core_.codec.Compare(span.hi, fences.upper) <= 0);
    if (is_last) return Attempt::kDone;
    if (span.keys_max != UINT64_MAX) keys += CountKeys(held_[at], span);
    if (keys >= span.keys_max) {
      cuts_.push_back({.slot = span.slot, .end = UpperOf(held_[at])});
      return Attempt::kDone;
    }
    if (++at == held_.size() && !HoldLeaf(change, UpperOf(held_.back()))) return Attempt::kAgain;
  }
}

// Locks the leaf of the key, waiting for it. False: the writers are being stopped, or there would
// be too many leaves.
template <class Layout>
bool AtomicRanges<Layout>::HoldLeaf(StructureChange<Layout>& change, std::string_view key) {
  if (held_.size() == kLeavesHeldMax) {
    stops_ = true;
    return false;
  }
  ReserveMore(held_, 1);
  for (uint32_t tries = 0; !core_.versions.PhaseChanged(thread_); ++tries) {
    const LeafPlace place = reader_.Find(key, Reader<Layout>::kNewest);
    if (held_.empty()) this->AwaitTickets(place);
    if (change.Lock(place.node, place.word.bits)) {
      held_.push_back(place);
      return true;
    }
    if (tries > 64) std::this_thread::yield();
  }
  return false;
}

// Counts the keys of the span in the leaf that have not expired.
template <class Layout>
uint64_t AtomicRanges<Layout>::CountKeys(const LeafPlace& leaf, const Span& span) const {
  const typename Layout::Leaf view(core_.codec, leaf.node, leaf.word.used(),
                                   Reader<Layout>::kNewest, now_ms_);
  typename Layout::LeafCursor cursor(view);
  uint64_t keys = 0;
  for (cursor.SeekAtLeast(span.lo); cursor.valid() && keys < span.keys_max; cursor.Next()) ++keys;
  return keys;
}

template <class Layout>
std::string AtomicRanges<Layout>::UpperOf(const LeafPlace& leaf) const {
  Scratch scratch;
  return std::string(core_.codec.Whole(Layout::FencesOf(core_.codec, leaf.node).upper, scratch));
}

// The index of the first held leaf whose keys do not all lie below `key`.
template <class Layout>
size_t AtomicRanges<Layout>::SeekHeld(std::string_view key) const {
  const auto ends_below = [&](const LeafPlace& leaf) {
    const auto fences = Layout::FencesOf(core_.codec, leaf.node);
    return !fences.unbounded && core_.codec.Compare(key, fences.upper) >= 0;
  };
  return static_cast<size_t>(std::ranges::partition_point(held_, ends_below) - held_.begin());
}

// The held leaf of a key that lies in a span.
template <class Layout>
LeafPlace AtomicRanges<Layout>::HeldLeafOf(std::string_view key) const {
  const size_t at = SeekHeld(key);
  SKEP_CHECK(at < held_.size());
  return held_[at];
}

// Lists the keys that the batch has changed, whose leaves are to be locked.
template <class Layout>
void AtomicRanges<Layout>::ListChanged() {
  lists_.keys.clear();
  lists_.probes.clear();
  for (auto& [key, state] : states_) {
    if (state.changed) this->AddKey(&state, true);
  }
}

// Like LockKeys, for keys whose leaves are held already.
template <class Layout>
void AtomicRanges<Layout>::TakeHeldLeaves() {
  auto& leaves = lists_.leaves;
  leaves.clear();
  for (uint32_t i = 0; i < lists_.keys.size(); ++i) {
    const LeafPlace place = HeldLeafOf(lists_.keys[i]->key);
    if (leaves.empty() || leaves.back().place.node != place.node) {
      leaves.push_back({.place = place, .begin = i, .end = i});
    }
    leaves.back().end = i + 1;
    this->Look(place, lists_.keys[i]);
  }
}

// The state of the key as the batch sees it now.
template <class Layout>
KeyState& AtomicRanges<Layout>::StateOf(std::string_view key) {
  const auto [at, is_new] = states_.try_emplace(key);
  KeyState& state = at->second;
  if (!is_new) return state;
  state.key = key;
  const bool is_held = !stops_;
  this->Look(is_held ? HeldLeafOf(key) : reader_.Find(key, Reader<Layout>::kNewest), &state);
  this->Reflect(&state);
  return state;
}

// The item of a key that a request visits, with the value if the request wants it: one in pieces
// has to be copied.
template <class Layout>
Item AtomicRanges<Layout>::ItemOf(const Request& r, std::string_view key, KeyState& state) {
  if (WantsValues(r) && HasValueOfItem(r, state.type)) this->ReadPieces(&state);
  return {key, state.value};
}
template <class Layout>
Item AtomicRanges<Layout>::ItemOf(const Request& r, std::string_view key, Cursor<Layout>& cursor) {
  const bool has_value = WantsValues(r) && HasValueOfItem(r, cursor.type());
  return {key, has_value ? cursor.value() : std::string_view()};
}

template <class Layout>
const KeyState* AtomicRanges<Layout>::Find(std::string_view key) {
  const auto at = states_.find(key);
  return at == states_.end() ? nullptr : &at->second;
}

template <class Layout>
void AtomicRanges<Layout>::PerformSlot(uint32_t index) {
  const Op op = request(index).op;
  if (op == Op::kSample) return PerformSample(index);
  if (op == Op::kRequireEmpty) return RequireEmpty(index);
  if (IsRange(op) || op == Op::kDeleteAll) return PerformRange(index);
  Base::PerformSlot(index);
}

template <class Layout>
void AtomicRanges<Layout>::RequireEmpty(uint32_t index) {
  Outcome& outcome = out_.outcome(index);
  outcome = {.verdict = Verdict::kDone};
  seen_ = std::max(seen_, core_.Stamp(core_.versions.last_drawn()));
  ForEach(index, [&](const Item& item, uint8_t) {
    outcome.verdict = Verdict::kMismatch;
    outcome.value = out_.scratch().Copy(item.key);
    return false;
  });
}

// Calls visit(item, type) for the keys of the range as the batch sees them, in order or backwards,
// until it answers false. The views are valid during the call.
template <class Layout>
template <typename Visit>
void AtomicRanges<Layout>::ForEach(uint32_t index, Visit visit) {
  const Request& r = request(index);
  const bool all = IsEverything(r);
  std::string_view lo = all ? std::string_view() : r.key;
  const bool is_scan = r.op == Op::kScan;
  if (is_scan && r.has(Request::kSeekFloor)) lo = Floor(lo);
  const bool unbounded = all || r.has(Request::kNoUpperBound);
  if (!unbounded && lo >= r.other) return;
  if (is_scan && r.has(Request::kReverse)) {
    return ForEachReverse(r, lo, r.other, unbounded, visit);
  }
  const auto cut = std::ranges::find(cuts_, index, &Cut::slot);
  if (stops_ || cut == cuts_.end()) return ForEachForward(r, lo, r.other, unbounded, visit);
  bool goes_on = true;
  ForEachForward(r, lo, cut->end, false, [&](const Item& item, uint8_t type) {
    goes_on = visit(item, type);
    return goes_on;
  });
  // The request reads keys that are not locked.
  if (goes_on) stops_ = true;
}

template <class Layout>
template <typename Visit>
void AtomicRanges<Layout>::ForEachForward(const Request& r, std::string_view lo,
                                          std::string_view hi, bool unbounded, Visit visit) {
  const auto is_inside = [&](std::string_view key) { return unbounded || key < hi; };
  auto state = states_.lower_bound(lo);
  const auto visit_state = [&] {
    const auto here = state++;
    return !here->second.present || visit(ItemOf(r, here->first, here->second), here->second.type);
  };
  Cursor<Layout> cursor(core_, Reader<Layout>::kNewest, now_ms_);
  for (cursor.SeekAtLeast(lo); cursor.Settle(hi, unbounded); cursor.Next()) {
    const std::string_view key = cursor.key();
    while (state != states_.end() && state->first < key) {
      if (!visit_state()) return;
    }
    const bool touched = state != states_.end() && state->first == key;
    if (!(touched ? visit_state() : visit(ItemOf(r, key, cursor), cursor.type()))) return;
  }
  while (state != states_.end() && is_inside(state->first)) {
    if (!visit_state()) return;
  }
}

template <class Layout>
template <typename Visit>
void AtomicRanges<Layout>::ForEachReverse(const Request& r, std::string_view lo,
                                          std::string_view hi, bool unbounded, Visit visit) {
  auto state = unbounded ? states_.end() : states_.lower_bound(hi);
  const auto has_state = [&] { return state != states_.begin() && std::prev(state)->first >= lo; };
  const auto visit_state = [&] {
    --state;
    return !state->second.present ||
           visit(ItemOf(r, state->first, state->second), state->second.type);
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
    if (!(touched ? visit_state() : visit(ItemOf(r, key, cursor), cursor.type()))) return;
  }
  while (has_state()) {
    if (!visit_state()) return;
  }
}

// The largest key <= `key` as the batch sees it; `key` if there is none.
template <class Layout>
std::string_view AtomicRanges<Layout>::Floor(std::string_view key) {
  std::string_view floor = key;
  ForEachReverse({.op = Op::kScan, .flags = Request::kKeysOnly}, {}, KeyAfter(key, out_.scratch()),
                 false, [&](const Item& item, uint8_t) {
                   floor = out_.scratch().Copy(item.key);
                   return false;
                 });
  return floor;
}

template <class Layout>
void AtomicRanges<Layout>::PerformRange(uint32_t index) {
  const Request& r = request(index);
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
  std::vector<std::string_view> keys;  // the keys to change: the limit of kExpireRange counts these
  ForEach(index, [&](const Item& item, uint8_t) {
    if (count == most) {
      stop_before(item.key);
      return false;
    }
    if (r.op != Op::kExpireRange) ++count;
    if (r.op != Op::kCount) keys.push_back(out_.scratch().Copy(item.key));
    return true;
  });
  for (const std::string_view key : keys) {
    KeyState& state = StateOf(key);
    PointEffect effect = {.action = PointEffect::Action::kErase};
    std::optional<StoredValue> pieces;
    EditedPieces* edit = nullptr;
    if (r.op == Op::kExpireRange) {
      if (count == most) {
        stop_before(key);
        break;
      }
      effect = ApplyExpiry(r, {state.value, state.deadline_ms, state.type}, now_ms_);
      pieces = state.pieces;
      edit = state.edit;
      if (effect.action == PointEffect::Action::kKeep) continue;
      ++count;
      out_.NoteDeadline(index, key, r.deadline_ms);
    }
    this->SetState(state, effect, pieces, edit);
  }
  outcome.integer = static_cast<int64_t>(count);
  if (!keys.empty() && count > 0) lists_.wrote.push_back(index);
}

template <class Layout>
void AtomicRanges<Layout>::PerformScan(uint32_t index) {
  if (out_.LeavesOutScan(index)) return;
  const Request& r = request(index);
  ScanMeter meter(r, batch_.scan_bytes_max(), batch_.scan_visits_max(), out_, index);
  ForEach(index, [&](const Item& item, uint8_t type) {
    if (meter.MayAdd()) {
      meter.Add(item, 0, type);
      return true;
    }
    meter.StopBefore(item.key);
    return false;
  });
}

// The item that a sample gives: without the value, if that is not of kPlainType.
Item Sampled(const Item& item, uint8_t type) {
  return {item.key, type == kPlainType ? item.value : std::string_view()};
}

// Draws one of the keys that the batch has put, in proportion to their number; else one of the
// tree's keys that it has not deleted.
template <class Layout>
void AtomicRanges<Layout>::PerformSample(uint32_t index) {
  Outcome& outcome = out_.outcome(index);
  outcome = {.verdict = Verdict::kDone};
  out_.BeginItems(index);
  seen_ = std::max(seen_, core_.Stamp(core_.versions.last_drawn()));
  // Keys from here on are not drawn (CollectionEngine hides them); empty: all are.
  const std::string_view end = request(index).key;
  const auto is_hidden = [&](std::string_view key) { return !end.empty() && key >= end; };
  std::vector<Item> added;
  uint64_t erased = 0;
  for (auto& [key, state] : states_) {
    if (is_hidden(key)) continue;
    const bool was_present =
        state.found.present && !HasExpired(DeadlineOf(state.found.value), now_ms_);
    if (state.present && !was_present) {
      added.push_back(Sampled(ItemOf(request(index), key, state), state.type));
    }
    if (!state.present && was_present) ++erased;
  }
  Sampler<Layout> sampler(core_, request(index).random, now_ms_);
  // The counters may lag a little behind the tree.
  const uint64_t before = std::max(core_.ItemCount(), erased);
  constexpr int kRounds = 64;
  bool draws_lot = true;
  for (int round = 0; round < kRounds; ++round) {
    if (draws_lot) {
      const uint64_t lot = sampler.Below(std::max<uint64_t>(1, before - erased + added.size()));
      if (lot < added.size()) {
        out_.AddItem(index, added[lot]);
        return;
      }
    }
    const auto item = sampler.Draw();
    if (!item) break;
    // The number of hidden keys is in `before`, that of erased ones is not.
    draws_lot = is_hidden(item->key);
    if (draws_lot) continue;
    const auto state = states_.find(item->key);
    if (state != states_.end() && !state->second.present) continue;
    const auto now = [&] {
      return Sampled(ItemOf(request(index), state->first, state->second), state->second.type);
    };
    out_.AddItem(index, state == states_.end() ? *item : now());
    return;
  }
  SampleFirst(index, sampler);
}

// Draws one of the first keys: the batch has deleted most of them, or most are hidden.
template <class Layout>
void AtomicRanges<Layout>::SampleFirst(uint32_t index, Sampler<Layout>& sampler) {
  constexpr uint64_t kKeysMax = 1024;
  const std::string_view end = request(index).key;
  uint64_t keys = 0;
  ForEachForward(request(index), {}, end, end.empty(),
                 [&](const Item&, uint8_t) { return ++keys < kKeysMax; });
  if (keys == 0) {
    out_.outcome(index).verdict = Verdict::kAbsent;
    return;
  }
  uint64_t left = sampler.Below(keys);
  ForEachForward(request(index), {}, end, end.empty(), [&](const Item& item, uint8_t type) {
    if (left-- > 0) return true;
    out_.AddItem(index, Sampled(item, type));
    return false;
  });
}

template class AtomicRanges<PaperLayout>;
template class AtomicRanges<HeadLayout>;

}  // namespace skep::btree
