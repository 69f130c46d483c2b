#include "hashleaf/point_run.h"

#include <algorithm>

namespace skep::hashleaf {

template <typename K>
struct PointRun<K>::Window {
  // In the order of arrival.
  std::vector<Unit<K>> units;
  std::vector<uint32_t> slots;
  std::vector<uint8_t> results;
  std::vector<Version> numbers;
  Sorter<K> sorter;
  // Of a chunk.
  struct Left {
    uint32_t group;
    Unit<K> unit;
  };
  std::vector<Left> left;
  std::vector<Left> strays;    // of leaves that were split
  std::vector<Group<K>> busy;  // somebody else has their leaf
};

template <typename K>
PointRun<K>::Window& PointRun<K>::WindowOfThread() {
  static thread_local Window window;
  return window;
}

template <typename K>
PointRun<K>::PointRun(Core<K>& core, const EngineTraits& traits, Batch& batch, BatchWriter& out,
                      Changer<K>& changer)
    : core_(core),
      traits_(traits),
      batch_(batch),
      requests_(batch.requests()),
      out_(out),
      changer_(changer),
      map_(&core.Map()),
      window_(WindowOfThread()),
      value_bytes_(core.format.value_bytes),
      numbers_(core.numbers.wanted()) {}

template <typename K>
inline PointRun<K>::Kind PointRun<K>::KindOf(const Request& r) const {
  const bool is_plain = (r.flags & ~Request::kWantHint) == 0 && r.when == 0 &&
                        (r.deadline_ms == 0 || r.deadline_ms == kKeepDeadline) &&
                        r.key.size() == sizeof(K) && r.op <= Op::kDelete;
  if (!is_plain) return Kind::kOther;
  const bool stores = r.op >= Op::kPut && r.op <= Op::kUpdate;
  if (stores ? r.value.size() != value_bytes_ : r.value.size() > value_bytes_) return Kind::kOther;
  return static_cast<Kind>(r.op);
}

template <typename K>
uint32_t PointRun<K>::Add(uint32_t slot) {
  static_assert(static_cast<int>(Kind::kDelete) == static_cast<int>(Op::kDelete));
  const auto size = static_cast<uint32_t>(requests_.size());
  Window& w = window_;
  for (; slot < size; ++slot) {
    const Request& r = requests_[slot];
    const Kind kind = KindOf(r);
    if (kind == Kind::kOther) [[unlikely]] {
      if (const Status s = CheckRequest(r, batch_, traits_); !s.ok()) {
        out_.Refuse(slot, s);
        continue;
      }
      if (r.op > Op::kApply) return slot;
    }
    if (count_ == kWindow) Flush();
    if (count_ == 0) {
      const size_t units = std::min<size_t>(kWindow, size - slot);
      if (w.units.size() < units) {
        w.units.resize(units);
        w.slots.resize(units);
        w.results.resize(units);
      }
      values_ = out_.scratch().Allocate(units * value_bytes_);
    }
    const uint32_t index = count_++;
    w.units[index] = Unit<K>::Of(LoadKey<K>(r.key.data()), index, static_cast<uint32_t>(kind));
    w.slots[index] = slot;
    if (kind >= Kind::kPut && kind <= Kind::kUpdate) {
      CopyValue(ValueOf(index), r.value.data(), value_bytes_);
    }
  }
  return slot;
}

// The first buckets of the sorted units up to this one.
template <typename K>
inline void PointRun<K>::Fetch(uint32_t place) {
  const std::span<const Unit<K>> sorted = window_.sorter.sorted();
  const std::span<const Group<K>> groups = window_.sorter.groups();
  for (place = std::min(place, count_); fetched_ < place; ++fetched_) {
    if (fetched_ == groups[fetched_group_].end) ++fetched_group_;
    const uint64_t hash = HashOf(sorted[fetched_].key, core_.format.secret);
    groups[fetched_group_].leaf->table.Prefetch(hash);
  }
}

template <typename K>
void PointRun<K>::Flush() {
  if (count_ == 0) return;
  Window& w = window_;
  if (numbers_) w.numbers.assign(count_, 0);
  w.sorter.Sort(std::span(w.units).first(count_), *map_);
  const std::span<const Group<K>> groups = w.sorter.groups();
  fetched_ = 0;
  fetched_group_ = 0;
  w.busy.clear();
  // Leaves that are asked for, of so many units behind the chunk.
  constexpr uint32_t kUnitsAhead = 64;
  size_t leaves = 0;
  for (size_t begin = 0; begin < groups.size();) {
    size_t end = begin;
    for (uint32_t units = 0; end < groups.size() && units < kChunk; ++end) {
      units += groups[end].end - groups[end].begin;
    }
    const uint32_t ahead = groups[end - 1].end + kUnitsAhead;
    for (; leaves < groups.size() && groups[leaves].begin < ahead; ++leaves) {
      groups[leaves].leaf->Prefetch();
    }
    DoChunk(groups.subspan(begin, end - begin));
    begin = end;
  }
  for (const Group<K>& group : w.busy) {
    std::vector<Unit<K>> units(w.sorter.sorted().begin() + group.begin,
                               w.sorter.sorted().begin() + group.end);
    DoGroup(group.leaf, units);
  }
  Answer();
  count_ = 0;
  changer_.Publish();
  map_ = &core_.Map();
}

template <typename K>
void PointRun<K>::DoChunk(std::span<const Group<K>> groups) {
  Window& w = window_;
  const std::span<const Unit<K>> sorted = w.sorter.sorted();
  w.left.clear();
  w.strays.clear();
  constexpr uint32_t kUnitsAhead = 32;
  uint64_t locked = 0;  // a bit for each group: at most kChunk of them
  static_assert(kChunk <= 64);
  for (uint32_t g = 0; g < groups.size(); ++g) {
    Leaf<K>& leaf = *groups[g].leaf;
    if (!leaf.lock.try_lock()) {
      w.busy.push_back(groups[g]);
      Fetch(groups[g].end);
      continue;
    }
    locked |= uint64_t{1} << g;
    bool waits = false;  // one of the group's is left
    bool writes_wait = false;
    bool writes = false;
    for (uint32_t place = groups[g].begin; place < groups[g].end; ++place) {
      Fetch(place + kUnitsAhead);
      const Unit<K>& unit = sorted[place];
      const bool reads = KindOf(unit) == Kind::kGet;
      if (!leaf.Has(unit.key)) [[unlikely]] {
        w.strays.push_back({.group = g, .unit = unit});
        continue;
      }
      if (!reads && !writes) Draw(leaf);
      writes = writes || !reads;
      if (Look(leaf, unit, reads ? writes_wait : waits)) continue;
      waits = true;
      writes_wait = writes_wait || !reads;
      w.left.push_back({.group = g, .unit = unit});
    }
  }
  for (const auto& left : w.left) {
    Leaf<K>& leaf = *groups[left.group].leaf;
    if (!leaf.Has(left.unit.key) || !Do(leaf, left.unit)) w.strays.push_back(left);
  }
  for (uint32_t g = 0; g < groups.size(); ++g) {
    if ((locked >> g & 1) == 0) continue;
    const Group<K>& group = groups[g];
    if (numbers_) Number(*group.leaf, sorted.subspan(group.begin, group.end - group.begin));
    group.leaf->lock.unlock();
  }
  if (!w.strays.empty()) DoStrays(groups);
}

// Each group's from its own leaf on, in the order of arrival.
template <typename K>
void PointRun<K>::DoStrays(std::span<const Group<K>> groups) {
  auto& strays = window_.strays;
  std::ranges::sort(strays, {},
                    [](const auto& stray) { return std::pair(stray.group, stray.unit.word); });
  std::vector<Unit<K>> units;
  for (size_t i = 0; i < strays.size(); ++i) {
    units.push_back(strays[i].unit);
    if (i + 1 < strays.size() && strays[i + 1].group == strays[i].group) continue;
    DoGroup(groups[strays[i].group].leaf, units);
    units.clear();
  }
}

// All of these, which the leaf had once.
template <typename K>
void PointRun<K>::DoGroup(Leaf<K>* from, std::span<Unit<K>> units) {
  std::vector<Unit<K>> done;
  while (!units.empty()) {
    Leaf<K>& leaf = LockLeafOf(from, units.front().key);
    done.clear();
    size_t left = 0;
    bool writes = false;
    for (const Unit<K>& unit : units) {
      const bool covers = leaf.Covers(unit.key);
      if (covers && !writes && KindOf(unit) != Kind::kGet) {
        Draw(leaf);
        writes = true;
      }
      if (covers && Do(leaf, unit)) {
        done.push_back(unit);
      } else {
        units[left++] = unit;
      }
    }
    if (numbers_) Number(leaf, done);
    leaf.lock.unlock();
    units = units.first(left);
  }
}

// What the key's first bucket answers. False: it is to be done later; so it is if it `waits`.
template <typename K>
inline bool PointRun<K>::Look(Leaf<K>& leaf, const Unit<K>& unit, bool waits) {
  if (waits) return false;
  const Kind kind = KindOf(unit);
  const uint64_t hash = HashOf(unit.key, core_.format.secret);
  std::byte* const value = leaf.table.FindFirst(unit.key, hash);
  if (value != nullptr && kind == Kind::kGet) [[likely]] {
    CopyValue(ValueOf(unit.index()), value, value_bytes_);
    window_.results[unit.index()] = kPresent | kDone;
    return true;
  }
  if (value != nullptr && kind != Kind::kOther) return Do(leaf, unit);
  if (value == nullptr) leaf.table.PrefetchSecond(hash);
  return false;
}

// False: it is of another leaf by now.
template <typename K>
bool PointRun<K>::Do(Leaf<K>& leaf, const Unit<K>& unit) {
  const Kind kind = KindOf(unit);
  if (kind == Kind::kOther) return DoOther(leaf, unit);
  const K key = unit.key;
  const uint64_t hash = HashOf(key, core_.format.secret);
  uint8_t& result = window_.results[unit.index()];
  char* const value = ValueOf(unit.index());
  std::byte* const found = leaf.table.Find(key, hash);
  const uint8_t present = found != nullptr ? kPresent : 0;
  switch (kind) {
    case Kind::kGet:
      if (found != nullptr) CopyValue(value, found, value_bytes_);
      result = found != nullptr ? kPresent | kDone : 0;
      return true;
    case Kind::kDelete:
      result = found != nullptr ? kPresent | kDone : 0;
      if (found == nullptr) return true;
      changer_.Erase(leaf, key, hash);
      break;
    default: {
      if ((kind == Kind::kInsert && found != nullptr) ||
          (kind == Kind::kUpdate && found == nullptr)) {
        result = present;
        return true;
      }
      using Stored = Changer<K>::Stored;
      const Stored stored = core_.budget.HasRoomFor(0)
                                ? changer_.Store(leaf, key, hash, value, found, Arena::Limit::kObey)
                                : Stored::kNoMemory;
      if (stored == Stored::kElsewhere) return false;
      result = stored == Stored::kDone ? present | kDone : kRefused;
      if (stored != Stored::kDone) return true;
    }
  }
  core_.watches.Touch(requests_[window_.slots[unit.index()]].key, 0);
  return true;
}

template <typename K>
bool PointRun<K>::DoOther(Leaf<K>& leaf, const Unit<K>& unit) {
  const K key = unit.key;
  const uint64_t hash = HashOf(key, core_.format.secret);
  const uint32_t slot = window_.slots[unit.index()];
  const Request& r = requests_[slot];
  std::byte* const found = leaf.table.Find(key, hash);
  std::optional<PointState> state;
  if (found != nullptr) {
    state = PointState{.value = {reinterpret_cast<const char*>(found), value_bytes_}};
  }
  const PointEffect effect = ApplyPoint(r, state, 0, traits_, out_, slot);
  switch (effect.action) {
    case PointEffect::Action::kKeep:
      return true;
    case PointEffect::Action::kErase:
      changer_.Erase(leaf, key, hash);
      break;
    case PointEffect::Action::kStore: {
      using Stored = Changer<K>::Stored;
      // It may be a part of what is there.
      std::array<char, kValueBytesMax> value;
      CopyValue(value.data(), effect.value.data(), value_bytes_);
      const Stored stored =
          core_.budget.HasRoomFor(0)
              ? changer_.Store(leaf, key, hash, value.data(), found, Arena::Limit::kObey)
              : Stored::kNoMemory;
      if (stored == Stored::kElsewhere) return false;
      if (stored == Stored::kNoMemory) {
        out_.outcome(slot) = {};
        out_.RefuseMemory(slot, core_.budget);
        return true;
      }
    }
  }
  core_.watches.Touch(r.key, 0);
  return true;
}

// Before the first write under the leaf's lock, so that what a split takes away has the number too.
template <typename K>
void PointRun<K>::Draw(Leaf<K>& leaf) {
  if (numbers_) leaf.number = core_.numbers.Draw();
}

// Before the leaf is unlocked: numbers.h.
template <typename K>
void PointRun<K>::Number(const Leaf<K>& leaf, std::span<const Unit<K>> units) {
  for (const Unit<K>& unit : units) {
    if (KindOf(unit) != Kind::kGet) window_.numbers[unit.index()] = leaf.number;
  }
  ticket_ = std::max(ticket_, leaf.number);
}

template <typename K>
void PointRun<K>::Answer() {
  const Window& w = window_;
  for (uint32_t index = 0; index < count_; ++index) {
    const uint32_t slot = w.slots[index];
    Outcome& outcome = out_.outcome(slot);
    const Kind kind = KindOf(w.units[index]);
    if (kind == Kind::kOther) {
      const bool wrote = outcome.verdict == Verdict::kDone && IsWrite(requests_[slot].op);
      if (numbers_ && wrote) outcome.version = w.numbers[index];
      continue;
    }
    const uint8_t result = w.results[index];
    if (result == kRefused) {
      out_.RefuseMemory(slot, core_.budget);
      continue;
    }
    const bool is_done = (result & kDone) != 0;
    outcome.present = (result & kPresent) != 0;
    outcome.verdict = is_done                 ? Verdict::kDone
                      : kind == Kind::kInsert ? Verdict::kExists
                                              : Verdict::kAbsent;
    if (kind == Kind::kGet) {
      if (is_done) outcome.value = {ValueOf(index), value_bytes_};
    } else if (numbers_ && is_done) {
      outcome.version = w.numbers[index];
    }
  }
}

template class PointRun<uint32_t>;
template class PointRun<uint64_t>;
template class PointRun<Key128>;

}  // namespace skep::hashleaf
