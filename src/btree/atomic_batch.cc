#include "btree/atomic_batch.h"

#include <algorithm>
#include <thread>

#include "btree/paper_layout.h"
#include "btree/sampler.h"
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
  for (uint32_t i = 0; i < batch_.size(); ++i) {
    const Status status = CheckRequest(batch_.requests()[i], batch_, traits_);
    if (status.ok()) continue;
    out_.Refuse(i, status);
    out_.AbortAllBut(i);
    return 0;
  }
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
      RefuseForMemory();
      return 0;
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
void AtomicBatch<Layout>::RefuseForMemory() {
  const auto stores = [](const Request& r) { return IsWrite(r.op) && r.op != Op::kDelete; };
  const auto requests = batch_.requests();
  const auto culprit =
      static_cast<uint32_t>(std::ranges::find_if(requests, stores) - requests.begin());
  const uint32_t index = culprit == batch_.size() ? 0 : culprit;
  out_.Refuse(index, {Code::kOutOfMemory, "the memory limit is reached", core_.budget.limit()});
  out_.AbortAllBut(index);
}

template <class Layout>
Attempt AtomicBatch<Layout>::Try(bool stopped) {
  states_.clear();
  wrote_.clear();
  seen_ = 0;
  Change<Layout> change(core_, slot_, Arena::Limit::kObey);
  std::vector<LockedLeaf> leaves;
  if (!stopped) {
    for (const Request& r : batch_.requests()) {
      states_.try_emplace(r.key);
    }
    if (const Attempt a = LockKeys(change, &leaves, false); a != Attempt::kDone) return a;
  }
  if (!Judge() || !Perform()) return Attempt::kDone;  // not applied; `change` lets go
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
  if (state.present) state.value = core_.codec.Whole(state.found.value);
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
    if (!changed_only) state->second = Read(leaves->back().place, key);
  }
  return Attempt::kDone;
}

// What the batch sees of the key now.
template <class Layout>
typename AtomicBatch<Layout>::State& AtomicBatch<Layout>::StateOf(std::string_view key) {
  const auto [state, is_new] = states_.try_emplace(key);
  if (is_new) state->second = Read(reader_.Find(key, Reader<Layout>::kNewest), key);
  return state->second;
}

// The conditions, on the state before.
template <class Layout>
bool AtomicBatch<Layout>::Judge() {
  for (uint32_t i = 0; i < batch_.size(); ++i) {
    const Request& r = batch_.requests()[i];
    if (!IsCondition(r.op)) continue;
    PerformPoint(i);
    if (out_.outcome(i).verdict == Verdict::kDone) continue;
    out_.AbortAllBut(i);
    return false;
  }
  return true;
}

// The operations, in order. False: one was refused.
template <class Layout>
bool AtomicBatch<Layout>::Perform() {
  for (uint32_t i = 0; i < batch_.size(); ++i) {
    if (IsCondition(batch_.requests()[i].op)) continue;
    if (PerformSlot(i)) continue;
    out_.AbortAllBut(i);
    return false;
  }
  return true;
}

template <class Layout>
bool AtomicBatch<Layout>::PerformSlot(uint32_t index) {
  const Request& r = batch_.requests()[index];
  if (r.op == Op::kSample) {
    PerformSample(index);
  } else if (IsRange(r.op) || r.op == Op::kDeleteAll) {
    PerformRange(index);
  } else {
    PerformPoint(index);
  }
  return out_.outcome(index).verdict != Verdict::kRefused;
}

template <class Layout>
void AtomicBatch<Layout>::PerformPoint(uint32_t index) {
  const Request& r = batch_.requests()[index];
  State& state = StateOf(r.key);
  std::optional<std::string_view> now;
  if (state.present) now = state.value;
  const PointEffect effect = ApplyPoint(r, now, traits_.value_bytes_max, out_, index);
  Outcome& outcome = out_.outcome(index);
  if (r.op == Op::kGet && state.present && !state.changed) outcome.version = state.found.version;
  if (effect.action == PointEffect::Action::kKeep) return;
  state.changed = true;
  state.present = effect.action == PointEffect::Action::kStore;
  state.value = effect.value;
  wrote_.push_back(index);
}

// Calls visit(item) for the keys of the range as the batch sees them, in order or backwards, until
// it answers false. The views live as long as the batch.
template <class Layout>
template <typename Visit>
void AtomicBatch<Layout>::ForEach(const Request& r, Visit visit) {
  const bool all = r.op == Op::kDeleteAll;
  std::string_view lo = all ? std::string_view() : r.key;
  if (r.has(Request::kSeekFloor)) lo = Floor(lo);
  const bool unbounded = all || r.has(Request::kNoUpperBound);
  if (!unbounded && lo >= r.other) return;
  if (r.has(Request::kReverse)) {
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
    return !here->second.present || visit(CopyOf(*here));
  };
  Cursor<Layout> cursor(core_, Reader<Layout>::kNewest);
  for (cursor.SeekAtLeast(lo); cursor.Settle(); cursor.Next()) {
    const std::string_view key = cursor.key();
    if (!is_inside(key)) break;
    while (state != states_.end() && state->first < key) {
      if (!visit_state()) return;
    }
    const bool touched = state != states_.end() && state->first == key;
    if (!(touched ? visit_state() : visit(CopyOf(cursor)))) return;
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
    return !state->second.present || visit(CopyOf(*state));
  };
  Cursor<Layout> cursor(core_, Reader<Layout>::kNewest);
  if (unbounded) {
    cursor.SeekLast();
  } else {
    cursor.SeekBelow(hi);
  }
  for (; cursor.SettleBack(); cursor.Prev()) {
    const std::string_view key = cursor.key();
    if (key < lo) break;
    while (has_state() && std::prev(state)->first > key) {
      if (!visit_state()) return;
    }
    const bool touched = has_state() && std::prev(state)->first == key;
    if (!(touched ? visit_state() : visit(CopyOf(cursor)))) return;
  }
  while (has_state()) {
    if (!visit_state()) return;
  }
}

template <class Layout>
Item AtomicBatch<Layout>::CopyOf(const typename States::value_type& state) {
  return {out_.scratch().Copy(state.first), out_.scratch().Copy(state.second.value)};
}

template <class Layout>
Item AtomicBatch<Layout>::CopyOf(Cursor<Layout>& cursor) {
  return {out_.scratch().Copy(cursor.key()), out_.scratch().Copy(cursor.value())};
}

// The largest key <= `key` as the batch sees it; `key` if there is none.
template <class Layout>
std::string_view AtomicBatch<Layout>::Floor(std::string_view key) {
  std::string_view floor = key;
  ForEachReverse({}, KeyAfter(key, out_.scratch()), false, [&](const Item& item) {
    floor = item.key;
    return false;
  });
  return floor;
}

template <class Layout>
void AtomicBatch<Layout>::PerformRange(uint32_t index) {
  const Request& r = batch_.requests()[index];
  Outcome& outcome = out_.outcome(index);
  outcome = {.verdict = Verdict::kDone};
  seen_ = std::max(seen_, core_.Stamp(core_.versions.last_drawn()));
  const uint64_t most = r.limit == kNoLimit ? UINT64_MAX : r.limit;
  const uint64_t visits_max = r.op == Op::kScan && batch_.scan_visits_max() != kNoLimit
                                  ? std::max<uint64_t>(1, batch_.scan_visits_max())
                                  : UINT64_MAX;
  if (r.op == Op::kScan) out_.BeginItems(index);
  size_t bytes = 0;
  uint64_t visits = 0;
  std::string_view last;
  std::vector<std::string_view> deleted;
  ForEach(r, [&](const Item& item) {
    const bool is_full = r.op == Op::kScan ? visits == most || bytes > batch_.scan_bytes_max() ||
                                                 visits == visits_max
                                           : visits == most;
    if (is_full) {
      outcome.more = true;
      const bool reverse = r.has(Request::kReverse);
      if (visits == 0) {
        outcome.value = reverse ? KeyAfter(item.key, out_.scratch()) : item.key;
      } else {
        outcome.value = reverse || r.op != Op::kScan ? item.key : KeyAfter(last, out_.scratch());
        if (reverse) outcome.value = last;
      }
      return false;
    }
    ++visits;
    last = item.key;
    if (r.op == Op::kScan) {
      Item given = item;
      if (r.has(Request::kKeysOnly)) given.value = {};
      bytes += given.key.size() + given.value.size();
      out_.AddItem(index, given);
    } else if (r.op != Op::kCount) {
      deleted.push_back(item.key);
    }
    return true;
  });
  if (r.op == Op::kScan) return;
  outcome.integer = static_cast<int64_t>(visits);
  for (const std::string_view key : deleted) {
    State& state = StateOf(key);
    state.changed = true;
    state.present = false;
    state.value = {};
  }
  if (!deleted.empty()) wrote_.push_back(index);
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
    if (state.present && !state.found.present) added.push_back({key, state.value});
    if (!state.present && state.found.present) ++erased;
  }
  Sampler<Layout> sampler(core_, batch_.requests()[index].random);
  const uint64_t before = core_.ItemCount();
  const uint64_t now = before - erased + added.size();
  if (now == 0) {
    outcome.verdict = Verdict::kAbsent;
    return;
  }
  const uint64_t lot = sampler.Below(now);
  const auto copy = [&](std::string_view bytes) { return out_.scratch().Copy(bytes); };
  if (lot < added.size()) {
    return out_.AddItem(index, {copy(added[lot].key), copy(added[lot].value)});
  }
  while (const auto item = sampler.Draw(out_.scratch())) {
    const auto state = states_.find(item->key);
    if (state == states_.end()) return out_.AddItem(index, *item);
    if (state->second.present) return out_.AddItem(index, CopyOf(*state));
  }
  outcome.verdict = Verdict::kAbsent;
}

template <class Layout>
Attempt AtomicBatch<Layout>::Apply(Change<Layout>& change, std::vector<LockedLeaf>& leaves) {
  log_items_.clear();
  const bool stores = std::ranges::any_of(
      states_, [](const auto& entry) { return entry.second.changed && entry.second.present; });
  if (stores && !core_.budget.HasRoomFor(0)) {
    change.Undo();
    return Attempt::kNoMemory;
  }
  Storing storing(core_, slot_, stores ? Arena::Limit::kObey : Arena::Limit::kExceed);
  change.set_limit(stores ? Arena::Limit::kObey : Arena::Limit::kExceed);
  for (LockedLeaf& leaf : leaves) {
    const Attempt a = Prepare(change, leaf, storing);
    if (a != Attempt::kDone) {
      change.Undo();
      return a;
    }
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
      const Attempt a = structure_.Refresh(slot_, lower, Arena::Limit::kObey);
      return a == Attempt::kNoMemory ? a : Attempt::kAgain;
    }
    Layout::SetLogVersion(node, item, delta);
  }
  storing.SetBorn(change.version());
  storing.Keep();
  change.Publish();
  Finish(change.version());
  return Attempt::kDone;
}

// Writes the leaf's changes where nobody sees them yet: behind its log, or into a new buffer.
template <class Layout>
Attempt AtomicBatch<Layout>::Prepare(Change<Layout>& change, LockedLeaf& leaf, Storing& storing) {
  std::vector<LeafEdit<Layout>> edits;
  for (const auto& key : leaf.keys) {
    const State& state = key->second;
    if (!state.changed || (!state.present && !state.found.present)) continue;
    LeafEdit<Layout> edit = {
        .key = key->first, .stored_key = state.found.key, .erase = !state.present};
    if ((!state.found.known && !storing.Key(key->first, &edit.stored_key)) ||
        (state.present && !storing.Value(state.value, &edit.value))) {
      return Attempt::kNoMemory;
    }
    edits.push_back(edit);
  }
  // As in Writer: a merge lets go of old values outside.
  const bool frees_block = std::ranges::any_of(leaf.keys, [](const auto& key) {
    return key->second.changed && key->second.found.present && key->second.found.value.outside;
  });
  if (edits.empty()) return Attempt::kDone;
  const auto erased =
      static_cast<uint32_t>(std::ranges::count(edits, true, &LeafEdit<Layout>::erase));
  const uint32_t present =
      typename Layout::Leaf(core_.codec, leaf.place.node, leaf.place.word.used()).CountPresent();
  const bool is_sparse = erased > 0 && IsSparse(leaf.place.node, present - erased);
  if (!frees_block && !is_sparse && AppendAll(change, leaf, edits)) return Attempt::kDone;

  std::vector<typename Layout::LeafItem> items;
  structure_.Gather(leaf.place.node, leaf.place.word.used(), &items);
  ApplyEdits<Layout>(core_.codec, edits, &items);
  const auto fences = Layout::FencesOf(core_.codec, leaf.place.node);
  if (LeafBytes<Layout>(core_.codec, items, fences) > core_.codec.geometry.leaf_bytes_max()) {
    return SplitFor(change, fences, items);
  }
  return change.ReplaceByLeaf(leaf.place.link, leaf.place.node, items, fences) ? Attempt::kDone
                                                                               : Attempt::kNoMemory;
}

// False: there is no room for all of them.
template <class Layout>
bool AtomicBatch<Layout>::AppendAll(Change<Layout>& change, const LockedLeaf& leaf,
                                    std::span<const LeafEdit<Layout>> edits) {
  NodeHeader* const node = leaf.place.node;
  uint32_t used = leaf.place.word.used();
  const uint32_t log_items = typename Layout::Leaf(core_.codec, node, used).log_items() +
                             static_cast<uint32_t>(edits.size());
  uint32_t end = used;
  for (const LeafEdit<Layout>& edit : edits) {
    end += Layout::LogItemBytes(edit.stored_key, edit.erase ? nullptr : &edit.value);
  }
  if (end - node->log_begin > core_.codec.geometry.log_bytes_max || end > node->buffer_bytes() ||
      log_items > Layout::kLogItemsMax) {
    return false;
  }
  for (const LeafEdit<Layout>& edit : edits) {
    // Among those written just now, too.
    const typename Layout::Leaf view(core_.codec, node, used);
    log_items_.emplace_back(node, used);
    used = Layout::AppendToLog(node, used, view.Find(edit.key), edit.stored_key,
                               edit.erase ? nullptr : &edit.value);
  }
  change.Appended(node, leaf.place.word.bits, used);
  return true;
}

// Splits a leaf in the middle of what it is to hold, lets go of everything, and begins again.
template <class Layout>
Attempt AtomicBatch<Layout>::SplitFor(Change<Layout>& change, const typename Layout::Fences& fences,
                                      std::span<const typename Layout::LeafItem> items) {
  const uint32_t half = LeafBytes<Layout>(core_.codec, items, fences) / 2;
  size_t cut = 1;
  uint32_t bytes = Layout::LeafItemBytes(items[0]);
  while (cut + 1 < items.size() && bytes < half) bytes += Layout::LeafItemBytes(items[cut++]);
  Scratch scratch;
  const std::string separator(ShortestSeparator(core_.codec.Whole(items[cut - 1].key, scratch),
                                                core_.codec.Whole(items[cut].key, scratch)));
  change.Undo();
  Path path;
  structure_.Descend(separator, &path);
  const std::string_view at = separator;
  const Attempt a = structure_.Split(slot_, path, path.size() - 1, Arena::Limit::kObey, &at);
  return a == Attempt::kNoMemory ? a : Attempt::kAgain;
}

template <class Layout>
void AtomicBatch<Layout>::Finish(Version version) {
  for (const uint32_t index : wrote_) out_.outcome(index).version = version;
  // A value the batch itself wrote has the batch's version.
  for (uint32_t i = 0; i < batch_.size(); ++i) {
    const Request& r = batch_.requests()[i];
    Outcome& outcome = out_.outcome(i);
    if (r.op == Op::kGet && outcome.present && outcome.version == 0) outcome.version = version;
  }
  seen_ = std::max(seen_, version);
  int64_t items = 0;
  for (const auto& [key, state] : states_) {
    if (!state.changed) continue;
    items += (state.present ? 1 : 0) - (state.found.present ? 1 : 0);
  }
  slot_.AddItems(items);
}

template class AtomicBatch<PaperLayout>;

}  // namespace skep::btree
