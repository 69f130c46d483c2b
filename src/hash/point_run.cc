#include "hash/point_run.h"

#include <algorithm>
#include <atomic>
#include <bitset>

namespace skep::hash {

void PointRun::Flush() {
  if (count_ == 0) return;
  if (count_ == 1) {
    order_[0] = 0;
    groups_[0] = {.begin = 0, .end = 1};
    Partition& partition = PartitionOf(operations_[0].group);
    partition.lock.Lock();
    Finish(partition.table, groups_[0]);
    partition.lock.Unlock();
  } else {
    Sort();
    RunGroups(&PointRun::Look);
    RunGroups(&PointRun::Finish);
  }
  count_ = 0;
  fetched_ = 0;
  writes_ = false;
}

// Stable.
void PointRun::Sort() {
  const auto groups = std::span(groups_).first(mask_ + 1);
  std::ranges::fill(groups, Group{});
  for (uint32_t i = 0; i < count_; ++i) {
    ++groups_[operations_[i].group].end;
  }
  uint16_t begin = 0;
  for (Group& group : groups) {
    const uint16_t size = group.end;
    group = {.begin = begin, .end = begin};
    begin = static_cast<uint16_t>(begin + size);
  }
  for (uint32_t i = 0; i < count_; ++i) {
    order_[groups_[operations_[i].group].end++] = static_cast<uint16_t>(i);
  }
}

// Threads begin at different partitions, so that they meet less.
uint32_t PointRun::FirstOfThread() {
  static std::atomic<uint32_t> next_thread{0};
  static thread_local const uint32_t thread = next_thread.fetch_add(1, std::memory_order_relaxed);
  constexpr uint32_t kStride = 7;  // odd: neighbours begin far from each other
  return thread * kStride;
}

// The buckets of the operations before this place in order_.
void PointRun::FetchTo(uint32_t end) {
  for (end = std::min(end, count_); fetched_ < end; ++fetched_) {
    const Operation& operation = operations_[order_[fetched_]];
    PartitionOf(operation.group).table.Prefetch(operation.key.hash);
  }
}

// Does one step with each group that is not empty, and its table locked. Those that are taken come
// last.
void PointRun::RunGroups(void (PointRun::*step)(Table&, Group&)) {
  std::bitset<kPartitionsMax> left;
  for (uint32_t i = 0; i <= mask_; ++i) {
    if (groups_[i].begin == groups_[i].end) continue;
    FetchTo(groups_[i].end + kAhead);
    Partition& partition = PartitionOf(i);
    if (!partition.lock.TryLock()) {
      left.set(i);
      continue;
    }
    (this->*step)(partition.table, groups_[i]);
    partition.lock.Unlock();
  }
  for (uint32_t i = 0; left.any() && i <= mask_; ++i) {
    if (!left[i]) continue;
    Partition& partition = PartitionOf(i);
    partition.lock.Lock();
    (this->*step)(partition.table, groups_[i]);
    partition.lock.Unlock();
  }
}

// Reads what is at hand, if the window only reads, and leaves the rest in the group. Starts
// fetching the records of that.
void PointRun::Look(Table& table, Group& group) {
  if (writes_) {
    uint64_t last = 0;
    for (const uint16_t i : OperationsOf(group)) {
      const Key& key = operations_[i].key;
      if (key.hash != last) table.PrefetchRecord(key);
      last = key.hash;
    }
    return;
  }
  now_ms_ = core_.now.Latest();
  uint16_t end = group.begin;
  for (const uint16_t i : OperationsOf(group)) {
    const Operation& operation = operations_[i];
    std::string_view value;
    if (table.FindInline(operation.key, &value)) {
      ApplyGet(request(i), PointState{.value = value}, now_ms_, out_, operation.slot);
    } else {
      table.PrefetchRecord(operation.key);
      order_[end++] = i;
    }
  }
  group.end = end;
}

void PointRun::Finish(Table& table, Group& group) {
  now_ms_ = core_.now.Latest();
  if (writes_) return Combine(table, OperationsOf(group));
  for (const uint16_t i : OperationsOf(group)) {
    const Operation& operation = operations_[i];
    std::optional<PointState> state;
    if (const Table::Place place = table.Find(operation.key)) {
      const Pair pair = table.Read(place);
      state = {.value = pair.value, .deadline_ms = pair.deadline_ms};
    }
    ApplyGet(request(i), state, now_ms_, out_, operation.slot);
  }
}

void PointRun::Combine(Table& table, std::span<const uint16_t> operations) {
  station_.Reset(operations.size(), kWindow);
  for (const uint16_t i : operations) {
    const auto [entry, is_new] = station_.Add(operations_[i].key);
    if (is_new) Station::Load(entry, table, now_ms_);
    station_.Chain(entry, i);
    Do(entry, i);
  }
  for (Station::Entry& entry : station_.entries()) {
    if (entry.is_written && !Write(table, entry)) DoAgain(table, entry);
  }
}

// On the entry alone.
void PointRun::Do(Station::Entry& entry, uint32_t i) {
  const Request& r = request(i);
  const uint32_t slot = operations_[i].slot;
  const PointEffect effect =
      ApplyPoint(r, entry.state(), now_ms_, traits_.value_bytes_max, out_, slot);
  const bool stores = effect.action == PointEffect::Action::kStore && r.op != Op::kExpire;
  if (stores && !core_.budget.HasRoomFor(0)) return out_.Refuse(slot, core_.OutOfMemory());
  Station::Apply(entry, effect, r, slot, out_.scratch());
}

// What the entry has become. False: no memory, nothing is changed. A new deadline alone is given
// even at the limit.
bool PointRun::Write(Table& table, const Station::Entry& entry) {
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

// Each operation of the chain by itself, in order.
void PointRun::DoAgain(Table& table, const Station::Entry& entry) {
  for (uint32_t i = entry.first; i != Station::kNone; i = station_.Next(i)) {
    Station::Entry alone{.key = entry.key};
    Station::Load(alone, table, now_ms_);
    Do(alone, i);
    if (alone.is_written && !Write(table, alone)) {
      out_.Refuse(operations_[i].slot, core_.OutOfMemory());
    }
  }
}

}  // namespace skep::hash
