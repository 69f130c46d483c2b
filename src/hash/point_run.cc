#include "hash/point_run.h"

#include <algorithm>

#include "hash/read_run.h"

namespace skep::hash {

namespace {

// Returns whether b is like a in all but the bytes of its key and value; b is then well-formed if a
// is and its key is as long.
inline bool IsAlike(const Request& a, const Request& b) {
  return a.op == b.op && a.flags == b.flags && a.when == b.when && a.type == b.type &&
         a.deadline_ms == b.deadline_ms && a.value.size() == b.value.size() &&
         (a.op != Op::kApply || a.function == b.function);
}

inline bool IsPlainPut(const Request& r) {
  return r.op == Op::kPut && r.flags == 0 && r.when == 0 && r.deadline_ms == 0;
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
    groups_.Run(
        [this](Partition& partition, Groups::Group& group) { Look(partition.table, group); });
    window_.lines.Fetch();
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
  for (const Unit& unit : std::span(run_.window_.units).first(run_.count_)) {
    run_.window_.seen.Forget(unit.key);
  }
  run_.count_ = 0;
  run_.writes_ = false;
}

// Sorts the units by partition, stably.
void PointRun::Sort() {
  groups_.Begin(core_);
  const auto units = std::span(window_.units).first(count_);
  for (const Unit& unit : units) {
    groups_.Count(groups_.Of(unit.key.hash));
    window_.seen.Add(unit.key);
  }
  groups_.Divide();
  for (uint32_t i = 0; i < count_; ++i) groups_.Put(groups_.Of(units[i].key.hash), i);
}

// Numbers a group's writes before its partition is unlocked (sequence_numbers.h).
inline void PointRun::Number(Partition& partition, Groups::Group& group) {
  if (!core_.numbers.wanted()) return;
  if (writes_) group.number = partition.number = core_.numbers.Draw();
  ticket_ = std::max(ticket_, partition.number);
}

void PointRun::TellNumbers() {
  for (const Unit& unit : std::span(window_.units).first(count_)) {
    for (uint32_t slot = unit.begin; slot < unit.end; ++slot) {
      Outcome& outcome = out_.outcome(slot);
      if (IsWrite(requests_[slot].op) && outcome.verdict == Verdict::kDone) {
        outcome.version = groups_[groups_.Of(unit.key.hash)].number;
      }
    }
  }
}

// Does the units that need only their first bucket, and leaves the others in the group. Writes that
// are to be numbered are all done together.
void PointRun::Look(Table& table, Groups::Group& group) {
  const bool has_room = !out_.IsFull() && core_.budget.HasRoomFor(0);
  const bool may_do = has_room && !core_.numbers.wanted();
  const std::span<uint16_t> units = groups_.PlacesOf(group);
  uint16_t left = 0;
  for (const uint16_t i : units) {
    const Unit& unit = window_.units[i];
    if (may_do && DoInline(table, unit)) continue;
    table.AddLine(table.LeadOf(table.FirstBucket(unit.key), unit.key), &window_.lines);
    units[left++] = i;
  }
  group.end = static_cast<uint16_t>(group.begin + left);
}

// Does a unit on an inline pair, which has no deadline. Returns false, and does nothing, if it
// takes more than that.
inline bool PointRun::DoInline(Table& table, const Unit& unit) {
  const Request& r = requests_[unit.begin];
  if (unit.end - unit.begin > 1 || !window_.seen.IsOnce(unit.key)) return false;
  if (r.op == Op::kGet) {
    std::string_view value;
    if (!table.FirstBucket(unit.key).FindValue(unit.key, &value)) return false;
    ApplyGet(r, PointState{.value = value}, 0, out_, unit.begin);
    return true;
  }
  if (!IsPlainPut(r) || !table.OverwriteInline(unit.key, r.value)) return false;
  Outcome& outcome = out_.outcome(unit.begin);
  outcome.verdict = Verdict::kDone;
  outcome.present = true;
  core_.watches.Touch(unit.key.bytes, 0);
  return true;
}

// Keys that occur once come first: the station's values of the other keys are views of the table.
void PointRun::Change(Table& table, const Groups::Group& group) {
  const std::span<uint16_t> units = groups_.PlacesOf(group);
  size_t left = 0;
  for (size_t n = 0; n < units.size(); ++n) {
    const uint16_t i = units[n];
    if (n + 1 < units.size()) table.PrefetchBody(window_.units[units[n + 1]].key);
    if (window_.seen.IsOnce(window_.units[i].key)) {
      ChangeOne(table, i);
    } else {
      units[left++] = i;
    }
  }
  if (left > 0) Combine(table, units.first(left));
}

void PointRun::ChangeOne(Table& table, uint32_t i) {
  const Unit& unit = window_.units[i];
  if (unit.end - unit.begin == 1) {
    const Request& r = requests_[unit.begin];
    if (r.op == Op::kGet) {
      return Get(table, unit.key, now_ms_, r, out_, unit.begin);
    }
    if (Put(table, unit)) return;
  }
  ReservationStation::Entry entry{.key = unit.key};
  ReservationStation::Load(entry, table, now_ms_);
  Do(table, entry, i);
  Write(table, entry);
}

// Does a unit that is one put. Returns false if it is anything else, or has to be refused.
bool PointRun::Put(Table& table, const Unit& unit) {
  const Request& r = requests_[unit.begin];
  if (!IsPlainPut(r)) return false;
  if (!core_.budget.HasRoomFor(0) || out_.IsFull()) return false;
  out_.CountWork(r.value.size());
  Outcome& outcome = out_.outcome(unit.begin);
  const Table::Place place = table.Find(unit.key);
  if (place && table.OverwriteAt(place, unit.key, r.value)) {
    outcome.present = true;
  } else {
    const uint64_t deadline_ms = place ? table.Read(place).deadline_ms : 0;
    outcome.present = place && !HasExpired(deadline_ms, now_ms_);
    if (outcome.present) outcome.deadline_ms = deadline_ms;
    if (!table.StoreAt(place, unit.key, r.value, 0, Arena::Limit::kObey)) {
      out_.RefuseMemory(unit.begin, core_.budget);
      return true;
    }
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
