#include "hashleaf/lane.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <optional>

#include "engine/point.h"

namespace skep::hashleaf {

// The locked leaves of a chunk; the destructor unlocks those that still are.
template <typename K>
class Lane<K>::ChunkLocks {
 public:
  explicit ChunkLocks(std::span<const Group<K>> groups) : groups_(groups) {}
  ~ChunkLocks() { Unlock(); }
  ChunkLocks(const ChunkLocks&) = delete;
  ChunkLocks& operator=(const ChunkLocks&) = delete;

  void Has(uint32_t group) { locked_ |= uint64_t{1} << group; }
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (uint64_t left = locked_; left != 0; left &= left - 1) {
      visit(groups_[static_cast<size_t>(std::countr_zero(left))]);
    }
  }
  void Unlock() {
    ForEach([](const Group<K>& group) { group.leaf->lock.unlock(); });
    locked_ = 0;
  }

 private:
  static_assert(kChunk <= 64);

  const std::span<const Group<K>> groups_;
  uint64_t locked_ = 0;  // one bit a group: a chunk has at most kChunk
};

template <typename K>
Lane<K>::Memory& Lane<K>::MemoryOfThread() {
  static thread_local Memory memory;
  return memory;
}

template <typename K>
Lane<K>::Lane(const SortedWindow<K>& window, LeafMutator<K>& mutator)
    : window_(window),
      core_(window.core),
      mutator_(mutator),
      memory_(MemoryOfThread()),
      value_bytes_(window.core.format.value_bytes) {
  memory_.busy.clear();
}

template <typename K>
void Lane<K>::Do(size_t begin, size_t end) {
  const std::span<const Group<K>> groups = window_.groups;
  end_ = groups[end - 1].end;
  fetched_ = groups[begin].begin;
  fetched_group_ = static_cast<uint32_t>(begin);
  // The leaves of this many units behind the chunk are fetched ahead.
  constexpr uint32_t kUnitsAhead = 64;
  size_t leaves = begin;
  while (begin < end) {
    size_t chunk_end = begin;
    for (uint32_t units = 0; chunk_end < end && units < kChunk; ++chunk_end) {
      units += groups[chunk_end].end - groups[chunk_end].begin;
    }
    const uint32_t ahead = groups[chunk_end - 1].end + kUnitsAhead;
    for (; leaves < end && groups[leaves].begin < ahead; ++leaves) groups[leaves].leaf->Prefetch();
    DoChunk(groups.subspan(begin, chunk_end - begin));
    begin = chunk_end;
  }
}

template <typename K>
void Lane<K>::DoBusy() {
  for (const Group<K>& group : memory_.busy) {
    std::vector<Unit<K>> units(window_.sorted.begin() + group.begin,
                               window_.sorted.begin() + group.end);
    DoGroup(group.leaf, units);
  }
  memory_.busy.clear();
}

template <typename K>
void Lane<K>::Read(const Group<K>& group, uint32_t begin, uint32_t end) {
  constexpr uint32_t kUnitsAhead = 32;
  const Leaf<K>& leaf = *group.leaf;
  const std::span<const Unit<K>> sorted = window_.sorted;
  for (uint32_t place = begin; place < end; ++place) {
    if (place + kUnitsAhead < end) {
      leaf.table.Prefetch(HashOf(sorted[place + kUnitsAhead].key, core_.format.secret));
    }
    const Unit<K>& unit = sorted[place];
    const std::byte* const found = leaf.table.Find(unit.key, HashOf(unit.key, core_.format.secret));
    if (found != nullptr) CopyValue(window_.ValueOf(unit.index()), found, value_bytes_);
    window_.results[unit.index()] = found != nullptr ? kPointPresent | kPointDone : 0;
  }
  ticket_ = std::max(ticket_, leaf.number);
}

// Fetches the first buckets of the sorted units up to this one.
template <typename K>
inline void Lane<K>::Fetch(uint32_t place) {
  const std::span<const Unit<K>> sorted = window_.sorted;
  const std::span<const Group<K>> groups = window_.groups;
  for (place = std::min(place, end_); fetched_ < place; ++fetched_) {
    if (fetched_ == groups[fetched_group_].end) ++fetched_group_;
    if (fetched_ > 0 && sorted[fetched_].key == sorted[fetched_ - 1].key) continue;
    const uint64_t hash = HashOf(sorted[fetched_].key, core_.format.secret);
    groups[fetched_group_].leaf->table.Prefetch(hash);
  }
}

template <typename K>
void Lane<K>::DoChunk(std::span<const Group<K>> groups) {
  const std::span<const Unit<K>> sorted = window_.sorted;
  memory_.left.clear();
  memory_.strays.clear();
  constexpr uint32_t kUnitsAhead = 32;
  ChunkLocks locks(groups);
  for (uint32_t g = 0; g < groups.size(); ++g) {
    Leaf<K>& leaf = *groups[g].leaf;
    if (!leaf.lock.try_lock()) {
      memory_.busy.push_back(groups[g]);
      Fetch(groups[g].end);
      continue;
    }
    locks.Has(g);
    bool waits = false;  // a unit of the group is left for later
    bool writes_wait = false;
    bool writes = false;
    const Unit<K>* read = nullptr;  // the last unit, if it has read its key
    for (uint32_t place = groups[g].begin; place < groups[g].end; ++place) {
      Fetch(place + kUnitsAhead);
      const Unit<K>& unit = sorted[place];
      const bool reads = KindOf(unit) == PointKind::kGet;
      if (reads && read != nullptr && read->key == unit.key) {
        CopyValue(window_.ValueOf(unit.index()), window_.ValueOf(read->index()), value_bytes_);
        window_.results[unit.index()] = kPointPresent | kPointDone;
        ++repeats_;
        continue;
      }
      read = nullptr;
      if (!leaf.Has(unit.key)) [[unlikely]] {
        memory_.strays.push_back({.group = g, .unit = unit});
        continue;
      }
      if (!reads && !writes) Draw(leaf);
      writes = writes || !reads;
      if (Look(leaf, unit, reads ? writes_wait : waits)) {
        if (reads) read = &unit;
        continue;
      }
      waits = true;
      writes_wait = writes_wait || !reads;
      memory_.left.push_back({.group = g, .unit = unit});
    }
  }
  for (const auto& left : memory_.left) {
    Leaf<K>& leaf = *groups[left.group].leaf;
    if (!leaf.Has(left.unit.key) || !DoUnit(leaf, left.unit)) memory_.strays.push_back(left);
  }
  if (window_.numbers != nullptr) {
    locks.ForEach([&](const Group<K>& group) {
      Number(*group.leaf, sorted.subspan(group.begin, group.end - group.begin));
    });
  }
  locks.Unlock();
  if (!memory_.strays.empty()) DoStrays(groups);
}

// Does each group's strays, from its own leaf on, in the order of arrival.
template <typename K>
void Lane<K>::DoStrays(std::span<const Group<K>> groups) {
  auto& strays = memory_.strays;
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

// Does these units, all of which were once in the leaf `from`.
template <typename K>
void Lane<K>::DoGroup(Leaf<K>* from, std::span<Unit<K>> units) {
  std::vector<Unit<K>> done;
  while (!units.empty()) {
    Leaf<K>& leaf = LockLeafOf(from, units.front().key);
    const std::lock_guard lock(leaf.lock, std::adopt_lock);
    done.clear();
    size_t left = 0;
    bool writes = false;
    for (const Unit<K>& unit : units) {
      const bool covers = leaf.Covers(unit.key);
      if (covers && !writes && KindOf(unit) != PointKind::kGet) {
        Draw(leaf);
        writes = true;
      }
      if (covers && DoUnit(leaf, unit)) {
        done.push_back(unit);
      } else {
        units[left++] = unit;
      }
    }
    if (window_.numbers != nullptr) Number(leaf, done);
    units = units.first(left);
  }
}

// Does a unit whose key's first bucket suffices. Returns false if the unit is to be done later, as
// it is if it `waits`.
template <typename K>
inline bool Lane<K>::Look(Leaf<K>& leaf, const Unit<K>& unit, bool waits) {
  if (waits) return false;
  const PointKind kind = KindOf(unit);
  const uint64_t hash = HashOf(unit.key, core_.format.secret);
  std::byte* const value = leaf.table.FindFirst(unit.key, hash);
  if (value != nullptr && kind == PointKind::kGet) [[likely]] {
    CopyValue(window_.ValueOf(unit.index()), value, value_bytes_);
    window_.results[unit.index()] = kPointPresent | kPointDone;
    return true;
  }
  if (value != nullptr && kind != PointKind::kOther) return DoUnit(leaf, unit);
  if (value == nullptr) leaf.table.PrefetchSecond(hash);
  return false;
}

// Returns false if the key is of another leaf by now.
template <typename K>
bool Lane<K>::DoUnit(Leaf<K>& leaf, const Unit<K>& unit) {
  const PointKind kind = KindOf(unit);
  if (kind == PointKind::kOther) return DoOther(leaf, unit);
  const K key = unit.key;
  const uint64_t hash = HashOf(key, core_.format.secret);
  uint8_t& result = window_.results[unit.index()];
  char* const value = window_.ValueOf(unit.index());
  std::byte* const found = leaf.table.Find(key, hash);
  const uint8_t present = found != nullptr ? kPointPresent : 0;
  switch (kind) {
    case PointKind::kGet:
      if (found != nullptr) CopyValue(value, found, value_bytes_);
      result = found != nullptr ? kPointPresent | kPointDone : 0;
      return true;
    case PointKind::kDelete:
      result = found != nullptr ? kPointPresent | kPointDone : 0;
      if (found == nullptr) return true;
      mutator_.Erase(leaf, key, hash);
      break;
    default: {
      if ((kind == PointKind::kInsert && found != nullptr) ||
          (kind == PointKind::kUpdate && found == nullptr)) {
        result = present;
        return true;
      }
      using Stored = LeafMutator<K>::Stored;
      const Stored stored = mutator_.Store(leaf, key, hash, value, found, Arena::Limit::kObey);
      if (stored == Stored::kElsewhere) return false;
      result = stored == Stored::kDone ? present | kPointDone : kPointRefused;
      if (stored != Stored::kDone) return true;
    }
  }
  core_.watches.Touch(window_.requests[window_.slots[unit.index()]].key, 0);
  return true;
}

template <typename K>
bool Lane<K>::DoOther(Leaf<K>& leaf, const Unit<K>& unit) {
  const K key = unit.key;
  const uint64_t hash = HashOf(key, core_.format.secret);
  const uint32_t slot = window_.slots[unit.index()];
  const Request& r = window_.requests[slot];
  std::byte* const found = leaf.table.Find(key, hash);
  std::optional<PointState> state;
  if (found != nullptr) {
    state = PointState{.value = {reinterpret_cast<const char*>(found), value_bytes_}};
  }
  const PointEffect effect = ApplyPoint(r, state, 0, window_.traits, window_.out, slot);
  switch (effect.action) {
    case PointEffect::Action::kKeep:
      return true;
    case PointEffect::Action::kErase:
      mutator_.Erase(leaf, key, hash);
      break;
    case PointEffect::Action::kStore: {
      using Stored = LeafMutator<K>::Stored;
      // The new value may be a view of the old one, so it is copied.
      std::array<char, kValueBytesMax> value;
      CopyValue(value.data(), effect.value.data(), value_bytes_);
      const Stored stored =
          mutator_.Store(leaf, key, hash, value.data(), found, Arena::Limit::kObey);
      if (stored == Stored::kElsewhere) return false;
      if (stored == Stored::kNoMemory) {
        window_.out.outcome(slot) = {};
        window_.out.RefuseMemory(slot, core_.budget);
        return true;
      }
    }
  }
  core_.watches.Touch(r.key, 0);
  return true;
}

// Draws a number before the first write under the leaf's lock, so that a leaf split off meanwhile
// has the number too.
template <typename K>
void Lane<K>::Draw(Leaf<K>& leaf) {
  if (window_.numbers != nullptr) leaf.number = core_.numbers.Draw();
}

// Numbers the writes of these units before the leaf is unlocked (sequence_numbers.h).
template <typename K>
void Lane<K>::Number(const Leaf<K>& leaf, std::span<const Unit<K>> units) {
  for (const Unit<K>& unit : units) {
    if (KindOf(unit) != PointKind::kGet) window_.numbers[unit.index()] = leaf.number;
  }
  ticket_ = std::max(ticket_, leaf.number);
}

template class Lane<uint32_t>;
template class Lane<uint64_t>;
template class Lane<Key128>;

}  // namespace skep::hashleaf
