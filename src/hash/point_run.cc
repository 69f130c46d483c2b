#include "hash/point_run.h"

#include <algorithm>
#include <atomic>
#include <bitset>

namespace skep::hash {

inline std::span<const uint16_t> PointRun::UnitsOf(const Group& group) const {
  return std::span(window_.order).subspan(group.begin, group.end - group.begin);
}

namespace {

// Whether b is what a is, but for the bytes of its key and value; so it is as well-formed if its
// key is as long.
inline bool IsAlike(const Request& a, const Request& b) {
  return a.op == b.op && a.flags == b.flags && a.when == b.when && a.deadline_ms == b.deadline_ms &&
         a.value.size() == b.value.size() && (a.op != Op::kApply || a.function == b.function);
}

}  // namespace

uint32_t PointRun::Add(uint32_t slot) {
  // Of this function's own, so that they need not be written with each request.
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
    const uint32_t partition = hash::PartitionOf(unit.key.hash, mask_ + 1);
    unit.table = &partitions_[partition]->table;
    unit.group = (partition - first_) & mask_;
  } while (++slot < size && IsSoundPoint(requests[slot], traits_));
  count_ = count;
  writes_ = writes;
  return slot;
}

void PointRun::Flush() {
  if (count_ == 0) return;
  if (writes_) {
    station_.Reset(0, kWindow);
    window_.seen.fill(0);
  }
  Sort();
  if (count_ > 1) RunGroups(&PointRun::Look);
  RunGroups(&PointRun::Finish);
  if (writes_ && core_.numbers.wanted()) TellNumbers();
  count_ = 0;
  fetched_ = 0;
  writes_ = false;
}

// Stable.
void PointRun::Sort() {
  const auto groups = std::span(window_.groups).first(mask_ + 1);
  std::ranges::fill(groups, Group{});
  for (uint32_t i = 0; i < count_; ++i) {
    ++window_.groups[window_.units[i].group].end;
    if (!writes_) continue;
    uint8_t& seen = window_.seen[SeenSlotOf(window_.units[i].key)];
    seen = static_cast<uint8_t>((seen << 1 | 1) & 3);
  }
  uint16_t begin = 0;
  for (Group& group : groups) {
    const uint16_t size = group.end;
    group = {.begin = begin, .end = begin, .number = 0};
    begin = static_cast<uint16_t>(begin + size);
  }
  for (uint32_t i = 0; i < count_; ++i) {
    window_.order[window_.groups[window_.units[i].group].end++] = static_cast<uint16_t>(i);
  }
}

// Threads begin at different partitions, so that they meet less.
uint32_t PointRun::FirstOfThread() {
  static std::atomic<uint32_t> next_thread{0};
  static thread_local const uint32_t thread = next_thread.fetch_add(1, std::memory_order_relaxed);
  constexpr uint32_t kStride = 7;  // odd: neighbours begin far from each other
  return thread * kStride;
}

// The buckets of the units before this place in window_.order.
void PointRun::FetchTo(uint32_t end) {
  for (end = std::min(end, count_); fetched_ < end; ++fetched_) {
    const Unit& unit = window_.units[window_.order[fetched_]];
    unit.table->Prefetch(unit.key.hash);
  }
}

// Does one step with each group that is not empty, and its table locked. Those that are taken come
// last.
void PointRun::RunGroups(void (PointRun::*step)(Table&, Group&)) {
  std::bitset<kPartitionsMax> left;
  for (uint32_t i = 0; i <= mask_; ++i) {
    if (window_.groups[i].begin == window_.groups[i].end) continue;
    FetchTo(window_.groups[i].end + kAhead);
    Partition& partition = PartitionOf(i);
    if (!partition.lock.try_lock()) {
      left.set(i);
      continue;
    }
    (this->*step)(partition.table, window_.groups[i]);
    Number(partition, window_.groups[i]);
    partition.lock.unlock();
  }
  for (uint32_t i = 0; left.any() && i <= mask_; ++i) {
    if (!left[i]) continue;
    Partition& partition = PartitionOf(i);
    partition.lock.lock();
    (this->*step)(partition.table, window_.groups[i]);
    Number(partition, window_.groups[i]);
    partition.lock.unlock();
  }
}

// Before its partition is unlocked: numbers.h.
inline void PointRun::Number(Partition& partition, Group& group) {
  if (!core_.numbers.wanted()) return;
  if (writes_) group.number = partition.number = core_.numbers.Draw();
  ticket_ = std::max(ticket_, partition.number);
}

void PointRun::TellNumbers() {
  for (const Unit& unit : std::span(window_.units).first(count_)) {
    for (uint32_t slot = unit.begin; slot < unit.end; ++slot) {
      Outcome& outcome = out_.outcome(slot);
      if (IsWrite(requests_[slot].op) && outcome.verdict == Verdict::kDone) {
        outcome.version = window_.groups[unit.group].number;
      }
    }
  }
}

// Reads what is at hand, if the window only reads, and leaves the rest in the group. Starts
// fetching the records of that.
void PointRun::Look(Table& table, Group& group) {
  if (writes_) {
    for (const uint16_t i : UnitsOf(group)) table.PrefetchRecord(window_.units[i].key);
    return;
  }
  now_ms_ = core_.now.Latest();
  uint16_t end = group.begin;
  for (const uint16_t i : UnitsOf(group)) {
    const Unit& unit = window_.units[i];
    std::string_view value;
    if (table.FindInline(unit.key, &value)) {
      Answer(unit, PointState{.value = value});
    } else {
      table.PrefetchRecord(unit.key);
      window_.order[end++] = i;
    }
  }
  group.end = end;
}

// `number` is the place in the window's order of the unit that is worked on now.
inline void PointRun::PrefetchNext(Table& table, const Group& group, const uint16_t& number) {
  const uint16_t* const next = &number + 1;
  if (next < &window_.order[0] + group.end) table.PrefetchBody(window_.units[*next].key);
}

void PointRun::Finish(Table& table, Group& group) {
  now_ms_ = core_.now.Latest();
  if (writes_) return Change(table, group);
  for (const uint16_t& i : UnitsOf(group)) {
    PrefetchNext(table, group, i);
    Read(table, window_.units[i]);
  }
}

inline void PointRun::Answer(const Unit& unit, const std::optional<PointState>& state) {
  for (uint32_t slot = unit.begin; slot < unit.end; ++slot) {
    ApplyGet(requests_[slot], state, now_ms_, out_, slot);
  }
}

void PointRun::Read(Table& table, const Unit& unit) {
  std::optional<PointState> state;
  if (const Table::Place place = table.Find(unit.key)) {
    const Pair pair = table.Read(place);
    state = {.value = pair.value, .deadline_ms = pair.deadline_ms};
  }
  Answer(unit, state);
}

// First the keys that occur once: what the station has of the others are views of the table.
void PointRun::Change(Table& table, Group& group) {
  uint16_t end = group.begin;
  for (const uint16_t& i : UnitsOf(group)) {
    PrefetchNext(table, group, i);
    if (window_.seen[SeenSlotOf(window_.units[i].key)] == 1) {
      ChangeOne(table, i);
    } else {
      window_.order[end++] = i;
    }
  }
  group.end = end;
  if (group.begin < end) Combine(table, UnitsOf(group));
}

void PointRun::ChangeOne(Table& table, uint32_t i) {
  const Unit& unit = window_.units[i];
  if (unit.end - unit.begin == 1) {
    if (requests_[unit.begin].op == Op::kGet) return Read(table, unit);
    if (Put(table, unit)) return;
  }
  Station::Entry entry{.key = unit.key};
  Station::Load(entry, table, now_ms_);
  Do(table, entry, i);
  Write(table, entry);
}

// False: it is more than a put, or has to be refused.
bool PointRun::Put(Table& table, const Unit& unit) {
  const Request& r = requests_[unit.begin];
  if (r.op != Op::kPut || r.flags != 0 || r.when != 0 || r.deadline_ms != 0) return false;
  if (!core_.budget.HasRoomFor(0) || out_.scratch().used() > kAnswerBytesMax) return false;
  Outcome& outcome = out_.outcome(unit.begin);
  if (table.OverwriteInline(unit.key, r.value)) {
    outcome.present = true;
  } else {
    const Table::Place place = table.Find(unit.key);
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
    if (is_new) Station::Load(entry, table, now_ms_);
    Do(table, entry, i);
  }
  for (const Station::Entry& entry : station_.entries()) Write(table, entry);
}

// The requests of a unit, on the entry; updates of elements in the table's bytes, while these are
// the value.
void PointRun::Do(Table& table, Station::Entry& entry, uint32_t i) {
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
      Station::Do(entry, requests_[slot], slot, now_ms_, traits_, core_.budget, out_);
      ++slot;
    }
  }
}

// What the entry has become. Without memory for that, each operation of the chain by itself, in
// order.
void PointRun::Write(Table& table, const Station::Entry& entry) {
  if (!entry.is_written || TryWrite(table, entry)) return;
  uint32_t done = entry.done;
  for (uint32_t i = entry.first; i != Station::kNone; i = station_.Next(i), done = 0) {
    const Unit& unit = window_.units[i];
    for (uint32_t slot = unit.begin + done; slot < unit.end; ++slot) {
      Station::Entry alone{.key = entry.key};
      Station::Load(alone, table, now_ms_);
      Station::Do(alone, requests_[slot], slot, now_ms_, traits_, core_.budget, out_);
      if (alone.is_written && !TryWrite(table, alone)) out_.RefuseMemory(slot, core_.budget);
    }
  }
}

// False: no memory, nothing is changed. A new deadline alone is given even at the limit.
bool PointRun::TryWrite(Table& table, const Station::Entry& entry) {
  const Arena::Limit limit =
      entry.last_store == Station::kNone ? Arena::Limit::kExceed : Arena::Limit::kObey;
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
