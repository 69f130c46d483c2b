#include "btree/atomic_batch.h"

#include <algorithm>
#include <thread>

#include "btree/head_layout_search.h"
#include "btree/paper_layout.h"
#include "btree/sampler.h"
#include "btree/scan_meter.h"
#include "engine/point.h"

namespace skep::btree {

template <class Layout>
bool AtomicBatch<Layout>::HasRanges() const {
  return std::ranges::any_of(batch_.requests(), [](const Request& r) {
    return IsRange(r.op) || r.op == Op::kDeleteAll || r.op == Op::kSample;
  });
}

template <class Layout>
Version AtomicBatch<Layout>::Execute() {
  const bool has_ranges = HasRanges();
  for (uint32_t tries = 0;; ++tries) {
    if (tries > 3) std::this_thread::yield();
    core_.versions.BeginOperation(slot_);
    if (has_ranges) core_.versions.StopWriters(slot_);
    const Attempt attempt = Try(has_ranges);
    if (has_ranges) core_.versions.ResumeWriters(slot_);
    if (attempt == Attempt::kDone) {
      if (batch_.applied()) BalanceErased();
      return seen_;
    }
    if (attempt == Attempt::kNoMemory && !upkeep_.MakeRoom(slot_)) {
      if (no_room_) {
        RefuseForMemory(0);
        out_.AbortAllBut(0);
        return 0;
      }
      no_room_ = true;
    }
  }
}

// Deletes may have left little in a leaf.
template <class Layout>
void AtomicBatch<Layout>::BalanceErased() {
  const NodeHeader* seen = nullptr;
  for (const auto& [key, state] : states_) {
    if (!state.changed || state.present) continue;
    if (seen != nullptr && Layout::Covers(core_.codec, seen, key)) continue;
    seen = structure_.Balance(slot_, key);
  }
}

template <class Layout>
void AtomicBatch<Layout>::RefuseForMemory(uint32_t index) {
  out_.outcome(index) = {};
  out_.RefuseMemory(index, core_.budget);
}

template <class Layout>
Attempt AtomicBatch<Layout>::Try(bool stopped) {
  states_.clear();
  wrote_.clear();
  changed_by_batch_.clear();
  seen_ = 0;
  Change<Layout> change(core_, slot_, Arena::Limit::kObey);
  std::vector<LockedLeaf> leaves;
  if (!stopped) {
    for (const Request& r : batch_.requests()) {
      if (!CheckRequest(r, batch_, traits_).ok()) continue;
      states_.try_emplace(r.key);
      if (r.op == Op::kMove) states_.try_emplace(r.other);
    }
    if (const Attempt a = LockKeys(change, &leaves, false); a != Attempt::kDone) return a;
  }
  now_ms_ = core_.now.Advance(batch_.now_ms());
  for (auto& [key, state] : states_) {
    if (HasExpired(state.deadline_ms, now_ms_)) state.present = false;
  }
  if (!PerformAll()) return Attempt::kDone;  // not applied; `change` lets go
  if (wrote_.empty()) return Attempt::kDone;
  while (true) {
    if (stopped) {
      leaves.clear();
      if (const Attempt a = LockKeys(change, &leaves, true); a != Attempt::kDone) return a;
    }
    const Attempt a = Apply(change, leaves);
    // The others are still stopped, so what was performed still holds.
    if (a != Attempt::kAgain || !stopped) return a;
  }
}

template <class Layout>
typename AtomicBatch<Layout>::State AtomicBatch<Layout>::Read(const LeafPlace& place,
                                                              std::string_view key) {
  const typename Layout::Leaf leaf(core_.codec, place.node, place.word.used());
  State state;
  state.found = leaf.Find(key);
  state.present = state.found.present;
  if (state.present) {
    state.value = core_.codec.Whole(state.found.value);
    state.deadline_ms = DeadlineOf(state.found.value);
  }
  seen_ = std::max(seen_, state.found.known ? state.found.version
                                            : place.node->version.load(std::memory_order_relaxed));
  return state;
}

// Locks the leaf of the key, waiting for it. False: the writers are being stopped.
template <class Layout>
bool AtomicBatch<Layout>::LockLeaf(Change<Layout>& change, std::string_view key, LeafPlace* place) {
  for (uint32_t tries = 0; !core_.versions.PhaseChanged(slot_); ++tries) {
    *place = reader_.Find(key, Reader<Layout>::kNewest);
    if (change.Lock(place->node, place->word.bits)) return true;
    if (tries > 64) std::this_thread::yield();
  }
  return false;
}

template <class Layout>
Attempt AtomicBatch<Layout>::LockKeys(Change<Layout>& change, std::vector<LockedLeaf>* leaves,
                                      bool changed_only) {
  for (auto state = states_.begin(); state != states_.end(); ++state) {
    if (changed_only && !state->second.changed) continue;
    const std::string_view key = state->first;
    if (leaves->empty() || !Layout::Covers(core_.codec, leaves->back().place.node, key)) {
      LeafPlace place;
      if (!LockLeaf(change, key, &place)) return Attempt::kAgain;
      leaves->push_back({.place = place, .keys = {}});
    }
    leaves->back().keys.push_back(state);
    if (changed_only) {
      // It was read before the leaf was locked, and the leaf may have been merged or split since.
      const LeafPlace& place = leaves->back().place;
      state->second.found =
          typename Layout::Leaf(core_.codec, place.node, place.word.used()).Find(key);
    } else {
      state->second = Read(leaves->back().place, key);
    }
  }
  return Attempt::kDone;
}

// What the batch sees of the key now.
template <class Layout>
typename AtomicBatch<Layout>::States::iterator AtomicBatch<Layout>::StateOf(std::string_view key) {
  const auto [state, is_new] = states_.try_emplace(key);
  if (!is_new) return state;
  state->second = Read(reader_.Find(key, Reader<Layout>::kNewest), key);
  if (HasExpired(state->second.deadline_ms, now_ms_)) state->second.present = false;
  return state;
}

// All parts, in order. False: the first one is not applied, so nothing is.
template <class Layout>
bool AtomicBatch<Layout>::PerformAll() {
  out_.ForgetEffects();
  bool applied = true;
  ForEachPart(batch_, [&](const Part& part) {
    const auto culprit = PerformPart(part);
    if (!culprit) return true;
    TakeBack(part);
    out_.Abort(part, *culprit);
    applied = !part.is_first;
    return applied;
  });
  return applied;
}

// The conditions, on the state before; then the operations, in order. The slot that stops it, if
// one does.
template <class Layout>
std::optional<uint32_t> AtomicBatch<Layout>::PerformPart(const Part& part) {
  undo_.clear();
  for (uint32_t i = part.begin; i < part.end; ++i) {
    const Status status = CheckRequest(batch_.requests()[i], batch_, traits_);
    if (status.ok()) continue;
    out_.Refuse(i, status);
    return i;
  }
  for (const bool conditions : {true, false}) {
    for (uint32_t i = part.begin; i < part.end; ++i) {
      if (IsCondition(batch_.requests()[i].op) != conditions) continue;
      stored_ = false;
      PerformSlot(i);
      if (stored_ && no_room_) RefuseForMemory(i);
      const Verdict verdict = out_.outcome(i).verdict;
      if (conditions ? verdict != Verdict::kDone : verdict == Verdict::kRefused) return i;
    }
  }
  return std::nullopt;
}

template <class Layout>
void AtomicBatch<Layout>::TakeBack(const Part& part) {
  for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) undo->first->second = undo->second;
  undo_.clear();
  while (!wrote_.empty() && wrote_.back() >= part.begin) wrote_.pop_back();
}

template <class Layout>
void AtomicBatch<Layout>::PerformSlot(uint32_t index) {
  switch (batch_.requests()[index].op) {
    case Op::kSample:
      return PerformSample(index);
    case Op::kScan:
    case Op::kCount:
    case Op::kDeleteRange:
    case Op::kDeleteAll:
    case Op::kExpireRange:
      return PerformRange(index);
    case Op::kRequireEmpty:
      return RequireEmpty(index);
    case Op::kRequireUnchanged:
      return RequireUnchanged(index);
    case Op::kMove:
      return PerformMove(index);
    default:
      return PerformPoint(index);
  }
}

// Stores or erases, in the copy.
template <class Layout>
void AtomicBatch<Layout>::SetState(typename States::iterator at, const PointEffect& effect) {
  State& state = at->second;
  undo_.emplace_back(at, state);
  state.changed = true;
  state.present = effect.action == PointEffect::Action::kStore;
  stored_ |= state.present;
  state.value = effect.value;
  state.deadline_ms = effect.deadline_ms;
}

template <class Layout>
void AtomicBatch<Layout>::PerformPoint(uint32_t index) {
  const Request& r = batch_.requests()[index];
  const auto at = StateOf(r.key);
  const State& state = at->second;
  std::optional<PointState> now;
  if (state.present) now = {state.value, state.deadline_ms};
  const PointEffect effect = ApplyPoint(r, now, now_ms_, traits_.value_bytes_max, out_, index);
  Outcome& outcome = out_.outcome(index);
  if (r.op == Op::kGet && state.present && !state.changed) outcome.version = state.found.version;
  if (effect.action == PointEffect::Action::kKeep) return;
  SetState(at, effect);
  wrote_.push_back(index);
}

template <class Layout>
void AtomicBatch<Layout>::PerformMove(uint32_t index) {
  const Request& r = batch_.requests()[index];
  const auto from = StateOf(r.key);
  const auto to = StateOf(r.other);
  Outcome& outcome = out_.outcome(index);
  outcome = {.verdict = Verdict::kDone, .present = from->second.present};
  if (!from->second.present) {
    outcome.verdict = Verdict::kAbsent;
  } else if (r.has(Request::kKeepExisting) && to->second.present) {
    outcome.verdict = Verdict::kExists;
  } else if (from != to) {
    outcome.deadline_ms = from->second.deadline_ms;
    SetState(to, {.action = PointEffect::Action::kStore,
                  .value = from->second.value,
                  .deadline_ms = from->second.deadline_ms});
    SetState(from, {.action = PointEffect::Action::kErase});
    wrote_.push_back(index);
  }
}

template <class Layout>
void AtomicBatch<Layout>::RequireUnchanged(uint32_t index) {
  const auto seen = core_.watches.Judge(batch_.requests()[index].watch, now_ms_);
  if (!seen) return out_.Refuse(index, {Code::kInvalidArgument, "no such watch"});
  Outcome& outcome = out_.outcome(index);
  outcome = {.verdict = seen->unchanged ? Verdict::kDone : Verdict::kMismatch,
             .version = seen->version};
  seen_ = std::max(seen_, seen->version);
  if (!seen->unchanged) return;
  // An earlier part may have changed it; what it wrote gets its version later.
  const auto state = states_.find(batch_.requests()[index].key);
  if (state == states_.end() || !state->second.changed) return;
  outcome.verdict = Verdict::kMismatch;
  changed_by_batch_.push_back(index);
}

template <class Layout>
void AtomicBatch<Layout>::RequireEmpty(uint32_t index) {
  const Request& r = batch_.requests()[index];
  Outcome& outcome = out_.outcome(index);
  outcome = {.verdict = Verdict::kDone};
  seen_ = std::max(seen_, core_.Stamp(core_.versions.last_drawn()));
  ForEach(r, [&](const Item& item) {
    outcome.verdict = Verdict::kMismatch;
    outcome.value = out_.scratch().Copy(item.key);
    return false;
  });
}

// Calls visit(item) for the keys of the range as the batch sees them, in order or backwards, until
// it answers false. The views are valid during the call.
template <class Layout>
template <typename Visit>
void AtomicBatch<Layout>::ForEach(const Request& r, Visit visit) {
  const bool all = r.op == Op::kDeleteAll;
  std::string_view lo = all ? std::string_view() : r.key;
  const bool is_scan = r.op == Op::kScan;
  if (is_scan && r.has(Request::kSeekFloor)) lo = Floor(lo);
  const bool unbounded = all || r.has(Request::kNoUpperBound);
  if (!unbounded && lo >= r.other) return;
  if (is_scan && r.has(Request::kReverse)) {
    ForEachReverse(lo, r.other, unbounded, visit);
  } else {
    ForEachForward(lo, r.other, unbounded, visit);
  }
}

template <class Layout>
template <typename Visit>
void AtomicBatch<Layout>::ForEachForward(std::string_view lo, std::string_view hi, bool unbounded,
                                         Visit visit) {
  const auto is_inside = [&](std::string_view key) { return unbounded || key < hi; };
  auto state = states_.lower_bound(lo);
  const auto visit_state = [&] {
    const auto here = state++;
    return !here->second.present || visit(Item{here->first, here->second.value});
  };
  Cursor<Layout> cursor(core_, Reader<Layout>::kNewest, now_ms_);
  for (cursor.SeekAtLeast(lo); cursor.Settle(hi, unbounded); cursor.Next()) {
    const std::string_view key = cursor.key();
    while (state != states_.end() && state->first < key) {
      if (!visit_state()) return;
    }
    const bool touched = state != states_.end() && state->first == key;
    if (!(touched ? visit_state() : visit(Item{key, cursor.value()}))) return;
  }
  while (state != states_.end() && is_inside(state->first)) {
    if (!visit_state()) return;
  }
}

template <class Layout>
template <typename Visit>
void AtomicBatch<Layout>::ForEachReverse(std::string_view lo, std::string_view hi, bool unbounded,
                                         Visit visit) {
  auto state = unbounded ? states_.end() : states_.lower_bound(hi);
  const auto has_state = [&] { return state != states_.begin() && std::prev(state)->first >= lo; };
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
template <class Layout>
std::string_view AtomicBatch<Layout>::Floor(std::string_view key) {
  std::string_view floor = key;
  ForEachReverse({}, KeyAfter(key, out_.scratch()), false, [&](const Item& item) {
    floor = out_.scratch().Copy(item.key);
    return false;
  });
  return floor;
}

template <class Layout>
void AtomicBatch<Layout>::PerformRange(uint32_t index) {
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
  ForEach(r, [&](const Item& item) {
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
  if (!keys.empty() && count > 0) wrote_.push_back(index);
}

template <class Layout>
void AtomicBatch<Layout>::PerformScan(uint32_t index) {
  const Request& r = batch_.requests()[index];
  ScanMeter meter(r, batch_.scan_bytes_max(), batch_.scan_visits_max(), out_, index);
  ForEach(r, [&](const Item& item) {
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
template <class Layout>
void AtomicBatch<Layout>::PerformSample(uint32_t index) {
  Outcome& outcome = out_.outcome(index);
  outcome = {.verdict = Verdict::kDone};
  out_.BeginItems(index);
  seen_ = std::max(seen_, core_.Stamp(core_.versions.last_drawn()));
  std::vector<Item> added;
  uint64_t erased = 0;
  for (const auto& [key, state] : states_) {
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
    const auto state = states_.find(item->key);
    if (state != states_.end() && !state->second.present) continue;
    out_.AddItem(index, state == states_.end() ? *item : Item{state->first, state->second.value});
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

template <class Layout>
Attempt AtomicBatch<Layout>::Apply(Change<Layout>& change, std::vector<LockedLeaf>& leaves) {
  log_items_.clear();
  replaced_.clear();
  separators_.clear();
  const bool stores = std::ranges::any_of(
      states_, [](const auto& entry) { return entry.second.changed && entry.second.present; });
  limit_ = stores ? Arena::Limit::kObey : Arena::Limit::kExceed;
  Storing storing(core_, slot_, limit_);
  change.set_limit(limit_);
  bool has_memory = !stores || core_.budget.HasRoomFor(0);
  for (auto leaf = leaves.begin(); has_memory && leaf != leaves.end(); ++leaf) {
    has_memory = Prepare(change, *leaf, storing);
  }
  if (!has_memory || !separators_.empty()) {
    change.Undo();
    return has_memory ? SplitAll() : Attempt::kNoMemory;
  }
  if (!change.Draw()) {
    change.Undo();
    return Attempt::kAgain;
  }
  for (const auto& [node, item] : log_items_) {
    const uint64_t delta = change.version() - node->version.load(std::memory_order_relaxed);
    if (delta > Layout::kDeltaMax) {
      const std::string lower(
          core_.codec.Whole(Layout::FencesOf(core_.codec, node).lower, out_.scratch()));
      change.Undo();
      return structure_.Refresh(slot_, lower, limit_);
    }
    Layout::SetLogVersion(node, item, delta);
  }
  for (const auto& [key, state] : states_) {
    if (state.changed) core_.watches.Touch(key, change.version());
  }
  storing.SetBorn(change.version());
  storing.Keep();
  change.Publish();
  for (const auto& found : replaced_) RetireReplaced(slot_, found, change.version());
  Finish(change.version());
  return Attempt::kDone;
}

// Writes the leaf's changes where nobody sees them yet: behind its log, or into a new buffer. If
// neither has room, notes where it must be split. False: no memory.
template <class Layout>
bool AtomicBatch<Layout>::Prepare(Change<Layout>& change, const LockedLeaf& leaf,
                                  Storing& storing) {
  std::vector<LeafEdit<Layout>> edits;
  uint32_t erased = 0;
  for (const auto& key : leaf.keys) {
    const State& state = key->second;
    if (!state.changed || (!state.present && !state.found.present)) continue;
    LeafEdit<Layout> edit = {
        .key = key->first, .stored_key = state.found.key, .erase = !state.present};
    if ((!state.found.known && !storing.Key(key->first, &edit.stored_key)) ||
        (state.present && !storing.Value(state.value, state.deadline_ms, &edit.value))) {
      return false;
    }
    edits.push_back(edit);
    erased += edit.erase ? 1 : 0;
  }
  if (edits.empty()) return true;
  NodeHeader* const node = leaf.place.node;
  const uint32_t used = leaf.place.word.used();
  // As in Writer: a merge lets go of a sorted block that is mostly gone.
  const bool is_sparse =
      erased > 0 &&
      IsSparse(node, typename Layout::Leaf(core_.codec, node, used).CountPresent() - erased);
  if (!is_sparse && AppendAll(change, leaf, edits)) return true;

  std::vector<typename Layout::LeafItem> items;
  structure_.Gather(node, used, &items);
  ApplyEdits<Layout>(core_.codec, edits, &items);
  const auto fences = Layout::FencesOf(core_.codec, node);
  if (!Layout::FitsLeaf(core_.codec, items, fences)) {
    NoteSeparators(items);
    return true;
  }
  return !separators_.empty() || change.ReplaceByLeaf(leaf.place.link, node, items, fences);
}

// Cuts what a leaf is to hold into pieces that fit, with room to grow.
template <class Layout>
void AtomicBatch<Layout>::NoteSeparators(std::span<const typename Layout::LeafItem> items) {
  const Geometry& g = core_.codec.geometry;
  const uint32_t piece_max =
      (Layout::LeafBytesMax(g) - Layout::FixedBytes(g) - 2 * Layout::SeparatorBytesMax(g)) * 2 / 3;
  uint32_t bytes = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const uint32_t item_bytes = Layout::LeafItemBytes(items[i]);
    if (i > 0 && bytes + item_bytes > piece_max) {
      Scratch scratch;
      separators_.emplace_back(ShortestSeparator(core_.codec.Whole(items[i - 1].key, scratch),
                                                 core_.codec.Whole(items[i].key, scratch)));
      bytes = 0;
    }
    bytes += item_bytes;
  }
}

// Splits the leaves where they will be full. Nothing is locked now, so others may have split them,
// too; then the batch finds out when it begins again.
template <class Layout>
Attempt AtomicBatch<Layout>::SplitAll() {
  for (const std::string& separator : separators_) {
    Path path;
    structure_.Descend(separator, &path);
    const std::string_view at = separator;
    const Attempt a = structure_.Split(slot_, path, path.size() - 1, limit_, &at);
    if (a == Attempt::kNoMemory) return a;
  }
  return Attempt::kAgain;
}

// False: there is no room for all of them.
template <class Layout>
bool AtomicBatch<Layout>::AppendAll(Change<Layout>& change, const LockedLeaf& leaf,
                                    std::span<const LeafEdit<Layout>> edits) {
  NodeHeader* const node = leaf.place.node;
  uint32_t used = leaf.place.word.used();
  uint32_t bytes = 0;
  for (const LeafEdit<Layout>& edit : edits) {
    bytes += Layout::LogItemBytes(edit.stored_key, edit.erase ? nullptr : &edit.value);
  }
  const auto items = static_cast<uint32_t>(edits.size());
  if (!Layout::HasLogRoom(core_.codec, node, used, bytes, items)) return false;
  for (const LeafEdit<Layout>& edit : edits) {
    // Among those written just now, too.
    const typename Layout::Leaf view(core_.codec, node, used);
    log_items_.emplace_back(node, used);
    replaced_.push_back(view.Find(edit.key));
    used = Layout::AppendToLog(core_.codec, node, used, replaced_.back(), edit.stored_key,
                               edit.erase ? nullptr : &edit.value);
    if (!edit.erase) LowerDeadline<Layout>(core_, leaf.place.link.lid(), node, edit.value);
  }
  change.Appended(node, leaf.place.word.bits, used);
  return true;
}

template <class Layout>
void AtomicBatch<Layout>::Finish(Version version) {
  for (const uint32_t index : wrote_) out_.outcome(index).version = version;
  for (const uint32_t index : changed_by_batch_) out_.outcome(index).version = version;
  // A value the batch itself wrote has the batch's version.
  for (uint32_t i = 0; i < batch_.size(); ++i) {
    const Request& r = batch_.requests()[i];
    Outcome& outcome = out_.outcome(i);
    if (r.op == Op::kGet && outcome.present && outcome.version == 0) outcome.version = version;
  }
  seen_ = std::max(seen_, version);
  int64_t items = 0;
  int64_t deadlines = 0;
  for (const auto& [key, state] : states_) {
    if (!state.changed) continue;
    items += (state.present ? 1 : 0) - (state.found.present ? 1 : 0);
    deadlines += state.present && state.deadline_ms != 0 ? 1 : 0;
    deadlines -= state.found.present && DeadlineOf(state.found.value) != 0 ? 1 : 0;
  }
  slot_.AddItems(items, deadlines);
}

template class AtomicBatch<PaperLayout>;
template class AtomicBatch<HeadLayout>;

}  // namespace skep::btree
