#include "hash/point_run.h"

#include <algorithm>

namespace skep::hash {

namespace {

// Returns whether b is like a in all but the bytes of its key and value; b is then well-formed if a
// is and its key is as long.
inline bool IsAlike(const Request& a, const Request& b) {
  return a.op == b.op && a.flags == b.flags && a.when == b.when && a.type == b.type &&
         a.deadline_ms == b.deadline_ms && a.value.size() == b.value.size() &&
         (a.op != Op::kApply || a.function == b.function);
}

// Returns whether the request stores its value, without a deadline, if the key is absent, and
// returns nothing.
inline bool IsPlainStore(const Request& r) {
  return (r.op == Op::kPut || r.op == Op::kInsert) && r.flags == 0 && r.when == 0 &&
         r.deadline_ms == 0;
}

}  // namespace

uint32_t PointRun::Add(uint32_t slot) {
  // Copies in local variables, so that they need not be reloaded after each write.
  const Request* const requests = requests_.data();
  const auto size = static_cast<uint32_t>(requests_.size());
  Unit* const units = window_.units.data();
  uint32_t count = count_;
  bool writes = writes_;
  do {
    const Request& r = requests[slot];
    const uint64_t head = HeadOf(r.key);
    if (count > 0) {
      Unit& last = units[count - 1];
      if (IsSame(last.key, r.key, head) && last.end == slot) {
        writes = writes || r.op != Op::kGet;
        while (slot + 1 < size && IsAlike(r, requests[slot + 1]) &&
               IsSame(last.key, requests[slot + 1].key, HeadOf(requests[slot + 1].key))) {
          ++slot;
        }
        last.end = slot + 1;
        continue;
      }
      if (count == kWindow) {
        count_ = count;
        writes_ = writes;
        Flush();
        count = 0;
        writes = false;
      }
    }
    writes = writes || r.op != Op::kGet;
    Unit& unit = units[count++];
    unit.key = KeyOf(r.key, head);
    unit.begin = slot;
    unit.end = slot + 1;
  } while (++slot < size && IsSoundPoint(requests[slot], traits_));
  count_ = count;
  writes_ = writes;
  return slot;
}

void PointRun::Flush() {
  if (count_ == 0) return;
  const Forgetting forgetting(*this);
  station_.Reset(0, kWindow);
  Sort();
  if (count_ > 1) {
    groups_.Fetch(
        count_, [this](uint32_t unit) { return window_.units[unit].key.hash; }, &window_.lines);
    groups_.Run([this](Partition& partition, Groups::Group& group) { Look(partition, group); });
    window_.lines.Fetch();
  } else {
    Defer(0);
  }
  groups_.Run([this](Partition& partition, Groups::Group& group) {
    now_ms_ = core_.now.Latest();
    Change(partition.table, group);
    Number(partition, group);
  });
  if (writes_ && core_.numbers.wanted()) TellNumbers();
}

// The window belongs to the thread, and must be empty for its next batch.
PointRun::Forgetting::~Forgetting() {
  Window& window = run_.window_;
  for (const uint16_t i : std::span(window.deferred).first(run_.deferred_)) {
    window.seen.Forget(window.units[i].key);
  }
  run_.count_ = 0;
  run_.deferred_ = 0;
  run_.writes_ = false;
}

// Sorts the units by partition, stably.
void PointRun::Sort() {
  groups_.Begin(core_);
  const auto units = std::span(window_.units).first(count_);
  for (const Unit& unit : units) groups_.Count(groups_.Of(unit.key.hash));
  groups_.Divide();
  for (uint32_t i = 0; i < count_; ++i) groups_.Put(groups_.Of(units[i].key.hash), i);
}

// Leaves a unit, and with it all later ones of its key, to the step that changes the table.
inline void PointRun::Defer(uint16_t i) {
  window_.deferred[deferred_++] = i;
  window_.seen.Add(window_.units[i].key);
}

// Numbers a group's writes before its partition is unlocked (sequence_numbers.h).
inline void PointRun::Number(Partition& partition, Groups::Group& group) {
  if (!core_.numbers.wanted()) return;
  if (writes_) group.number = partition.number = core_.numbers.Draw();
  ticket_ = std::max(ticket_, partition.number);
}

// Tells the writes of the second look their numbers; those of the first have theirs.
void PointRun::TellNumbers() {
  for (const Unit& unit : std::span(window_.units).first(count_)) {
    for (uint32_t slot = unit.begin; slot < unit.end; ++slot) {
      Outcome& outcome = out_.outcome(slot);
      if (outcome.version == 0 && IsWrite(requests_[slot].op) &&
          outcome.verdict == Verdict::kDone) {
        outcome.version = groups_[groups_.Of(unit.key.hash)].number;
      }
    }
  }
}

// Does the units that need only their first bucket, and leaves the others in the group.
void PointRun::Look(Partition& partition, Groups::Group& group) {
  Table& table = partition.table;
  const std::span<uint16_t> units = groups_.PlacesOf(group);
  uint16_t left = 0;
  Version number = 0;
  for (const uint16_t i : units) {
    if (LookAt(table, i)) {
      if (core_.numbers.wanted()) NumberDone(window_.units[i], partition, &number);
      continue;
    }
    Defer(i);
    units[left++] = i;
  }
  group.end = static_cast<uint16_t>(group.begin + left);
  group.moves = table.moves();
  if (left == 0) table.Grow();
  if (core_.numbers.wanted()) ticket_ = std::max(ticket_, partition.number);
}

// Gives the writes of a unit that the first look has done the number of all those of the group;
// draws it if this is the first one.
void PointRun::NumberDone(const Unit& unit, Partition& partition, Version* number) {
  for (uint32_t slot = unit.begin; slot < unit.end; ++slot) {
    Outcome& outcome = out_.outcome(slot);
    if (!IsWrite(requests_[slot].op) || outcome.verdict != Verdict::kDone) continue;
    if (*number == 0) *number = partition.number = core_.numbers.Draw();
    outcome.version = *number;
  }
}

// Does a unit in the first bucket of its chain, which has its pair inline or tells that its key is
// absent. Returns false, and does nothing, if it takes more than that, or if an earlier unit of the
// key waits.
inline bool PointRun::LookAt(Table& table, uint16_t i) {
  const Unit& unit = window_.units[i];
  const Bucket& bucket = table.FirstBucket(unit.key);
  Table::Lead& lead = window_.leads[i];
  std::string_view value;
  if (bucket.FindValue(unit.key, &value)) {
    lead = {};
    return !window_.seen.Has(unit.key) && DoInPlace(table, unit, PointState{.value = value});
  }
  lead = table.LeadOf(bucket, unit.key);
  table.AddLine(lead, &window_.lines);
  return lead.at() == 0 && !window_.seen.Has(unit.key) && DoAbsent(table, unit);
}

// Does a unit on the value that its key has, if it changes no more than the bytes of that value.
// Returns false, and does nothing, if it takes more.
inline bool PointRun::DoInPlace(Table& table, const Unit& unit, const PointState& state) {
  const Request& r = requests_[unit.begin];
  if (r.op == Op::kApply) return UpdateAll(table, unit, state);
  if (unit.end - unit.begin > 1) return false;
  if (r.op == Op::kGet) {
    ApplyGet(r, state, now_ms_, out_, unit.begin);
    return true;
  }
  if (!IsPlainStore(r) || out_.IsFull()) return false;
  Outcome& outcome = out_.outcome(unit.begin);
  if (r.op == Op::kInsert) {
    outcome.verdict = Verdict::kExists;
    outcome.deadline_ms = state.deadline_ms;
  } else {
    const bool fits = state.value.size() == r.value.size() && state.deadline_ms == 0;
    if (!fits || !core_.budget.HasRoomFor(0)) return false;
    CopyBytes(table.Writable(unit.key, state.value).data(), r.value.data(), r.value.size());
    outcome.verdict = Verdict::kDone;
    core_.watches.Touch(unit.key.bytes, 0);
  }
  outcome.present = true;
  out_.CountWork(r.value.size());
  return true;
}

// Does a unit of nothing but updates of elements in the bytes of their value. Returns false, and
// does nothing, if it has other requests, or if there is no memory left: updates are refused then,
// as all writes are.
bool PointRun::UpdateAll(Table& table, const Unit& unit, const PointState& state) {
  const auto requests = requests_.subspan(unit.begin, unit.end - unit.begin);
  if (!std::ranges::all_of(requests, IsUpdate) || !core_.budget.HasRoomFor(0)) return false;
  const std::span<char> value = table.Writable(unit.key, state.value);
  bool is_written = false;
  for (uint32_t slot = unit.begin; slot < unit.end;) {
    const uint32_t begin = slot;
    slot += UpdateInPlace(requests_.subspan(slot, unit.end - slot), value, state.deadline_ms, out_,
                          slot);
    is_written = is_written || out_.outcome(begin).verdict == Verdict::kDone;
  }
  if (is_written) core_.watches.Touch(unit.key.bytes, 0);
  return true;
}

// Does a unit of one request whose key is absent, as the first bucket of its chain tells. Returns
// false, and does nothing, if it is neither a get nor a plain store, or AddAbsent refuses.
inline bool PointRun::DoAbsent(Table& table, const Unit& unit) {
  const Request& r = requests_[unit.begin];
  if (unit.end - unit.begin > 1) return false;
  if (r.op == Op::kGet) {
    ApplyGet(r, std::nullopt, now_ms_, out_, unit.begin);
    return true;
  }
  if (!IsPlainStore(r) || out_.IsFull() || !core_.budget.HasRoomFor(0)) return false;
  if (!table.AddAbsent(unit.key, r.value)) return false;
  out_.outcome(unit.begin).verdict = Verdict::kDone;
  out_.CountWork(r.value.size());
  core_.watches.Touch(unit.key.bytes, 0);
  return true;
}

// Keys that occur once come first: the station's values of the other keys are views of the table.
void PointRun::Change(Table& table, const Groups::Group& group) {
  const std::span<uint16_t> units = groups_.PlacesOf(group);
  size_t left = 0;
  moves_ = group.moves;
  for (size_t n = 0; n < units.size(); ++n) {
    const uint16_t i = units[n];
    if (n + 1 < units.size()) table.PrefetchBody(window_.units[units[n + 1]].key);
    if (!window_.seen.IsOnce(window_.units[i].key)) {
      units[left++] = i;
    } else {
      ChangeOne(table, i);
    }
  }
  if (left > 0) Combine(table, units.first(left));
  table.Grow();
}

// DoInPlace for a pair of the table; `pointing` is the bucket that points to its record, or null.
inline bool PointRun::DoOnPair(Table& table, const Unit& unit, const Pair& pair,
                               const Bucket* pointing) {
  if (HasExpired(pair.deadline_ms, now_ms_)) return false;
  const bool may_move = pointing != nullptr && requests_[unit.begin].op == Op::kPut &&
                        table.FitsInstead(*pointing, pair);
  return !may_move &&
         DoInPlace(table, unit, {.value = pair.value, .deadline_ms = pair.deadline_ms});
}

void PointRun::ChangeOne(Table& table, uint32_t i) {
  const Unit& unit = window_.units[i];
  const Request& r = requests_[unit.begin];
  const Table::Lead lead = table.moves() == moves_ ? window_.leads[i] : Table::Lead{};
  if (lead.is_record()) {
    const Pair pair = table.ReadRecord(lead.at());
    const bool is_its = IsSame(unit.key, pair.key);
    if (is_its && DoOnPair(table, unit, pair, &table.FirstBucket(unit.key))) return;
  }
  const bool is_chained = lead.at() != 0 && !lead.is_record();
  const Table::Place place = is_chained ? table.FindOn(unit.key, lead) : table.Find(unit.key);
  std::optional<PointState> state;
  if (place) {
    const Pair pair = table.Read(place);
    const bool is_inline = place.bucket->IsPair(place.item);
    if (DoOnPair(table, unit, pair, is_inline ? nullptr : place.bucket)) return;
    state = {.value = pair.value, .deadline_ms = pair.deadline_ms};
  }
  if (unit.end - unit.begin == 1) {
    if (r.op == Op::kGet) return ApplyGet(r, state, now_ms_, out_, unit.begin);
    if (IsPlainStore(r) && Store(table, unit, place, state)) return;
  }
  ReservationStation::Entry entry{.key = unit.key};
  ReservationStation::Load(entry, table, now_ms_);
  Do(table, entry, i);
  Write(table, entry);
}

// Does a unit that is one plain store, and not done in place. Returns false, and does nothing, if
// it has to be refused or left out.
bool PointRun::Store(Table& table, const Unit& unit, const Table::Place& place,
                     const std::optional<PointState>& state) {
  const Request& r = requests_[unit.begin];
  if (!core_.budget.HasRoomFor(0) || out_.IsFull()) return false;
  out_.CountWork(r.value.size());
  Outcome& outcome = out_.outcome(unit.begin);
  outcome.present = state && !HasExpired(state->deadline_ms, now_ms_);
  if (outcome.present) outcome.deadline_ms = state->deadline_ms;
  const bool is_added = !place && table.AddAbsent(unit.key, r.value);
  if (is_added) ++moves_;
  if (!is_added && !table.StoreAt(place, unit.key, r.value, 0, Arena::Limit::kObey)) {
    out_.RefuseMemory(unit.begin, core_.budget);
    return true;
  }
  outcome.verdict = Verdict::kDone;
  core_.watches.Touch(unit.key.bytes, 0);
  return true;
}

void PointRun::Combine(Table& table, std::span<const uint16_t> units) {
  station_.Reset(units.size(), kWindow);
  for (const uint16_t i : units) {
    const auto [entry, is_new] = station_.Add(window_.units[i].key);
    if (is_new) ReservationStation::Load(entry, table, now_ms_);
    Do(table, entry, i);
  }
  for (const ReservationStation::Entry& entry : station_.entries()) Write(table, entry);
}

// Does the requests of a unit on the entry; updates of elements in the table's bytes, as long as
// these are the value.
void PointRun::Do(Table& table, ReservationStation::Entry& entry, uint32_t i) {
  const Unit& unit = window_.units[i];
  station_.Chain(entry, i);
  for (uint32_t slot = unit.begin; slot < unit.end;) {
    if (IsUpdate(requests_[slot]) && entry.is_present && !entry.is_written &&
        core_.budget.HasRoomFor(0)) {
      const std::span<char> value = table.Writable(unit.key, entry.value);
      const uint32_t begin = slot;
      slot += UpdateInPlace(requests_.subspan(slot, unit.end - slot), value, entry.deadline_ms,
                            out_, slot);
      if (out_.outcome(begin).verdict == Verdict::kDone) core_.watches.Touch(unit.key.bytes, 0);
      entry.first = i;
      entry.done = slot - unit.begin;
    } else {
      ReservationStation::Do(entry, requests_[slot], slot, now_ms_, traits_, core_.budget, out_);
      ++slot;
    }
  }
}

// Writes the entry's final value to the table. Without memory for it, each operation of the chain
// is written by itself, in order.
void PointRun::Write(Table& table, const ReservationStation::Entry& entry) {
  if (!entry.is_written || TryWrite(table, entry)) return;
  uint32_t done = entry.done;
  for (uint32_t i = entry.first; i != ReservationStation::kNone; i = station_.Next(i), done = 0) {
    const Unit& unit = window_.units[i];
    for (uint32_t slot = unit.begin + done; slot < unit.end; ++slot) {
      ReservationStation::Entry alone{.key = entry.key};
      ReservationStation::Load(alone, table, now_ms_);
      ReservationStation::Do(alone, requests_[slot], slot, now_ms_, traits_, core_.budget, out_);
      if (alone.is_written && !TryWrite(table, alone)) out_.RefuseMemory(slot, core_.budget);
    }
  }
}

// Writes an entry to the table. Returns false if there is no memory; nothing is changed then. An
// entry that has only a new deadline is written even at the limit.
bool PointRun::TryWrite(Table& table, const ReservationStation::Entry& entry) {
  const Arena::Limit limit =
      entry.last_store == ReservationStation::kNone ? Arena::Limit::kExceed : Arena::Limit::kObey;
  bool is_done = true;
  if (!entry.is_present) {
    table.Erase(entry.key);
  } else if (entry.has_new_value) {
    is_done = table.Store(entry.key, entry.value, entry.deadline_ms, limit);
  } else {
    is_done = table.SetDeadline(entry.key, entry.deadline_ms, limit);
  }
  if (is_done) core_.watches.Touch(entry.key.bytes, 0);
  return is_done;
}

}  // namespace skep::hash
