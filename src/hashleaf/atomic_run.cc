#include "hashleaf/atomic_run.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "base/reserve_more.h"

namespace skep::hashleaf {

template <typename K>
Version AtomicRun<K>::Do() {
  // Unlocks the leaves before the map is told of splits, also when an allocation fails.
  struct Unlocking {
    LeafLocks<K>& locks;
    ~Unlocking() { locks.Unlock(); }
  } const unlocking{locks_};
  Lock();
  now_ms_ = core_.now.Advance(batch_.now_ms());
  ExecuteParts(batch_, out_, *this);
  const Version number = NumberWrites(batch_, core_.numbers, out_);
  if (number != 0) {
    for (Leaf<K>* const leaf : locks_.held()) leaf->number = number;
  }
  const Version ticket = ranges_.Finish();
  mutator_.Publish();
  return ticket;
}

template <typename K>
bool AtomicRun<K>::IsWellFormed(const Request& r) const {
  return CheckRequest(r, batch_, traits_).ok();
}

template <typename K>
void AtomicRun<K>::Lock() {
  std::vector<K> keys;
  std::optional<Interval<K>> hull;
  for (const Request& r : batch_.requests()) {
    if (!IsWellFormed(r)) continue;
    if (Ranges<K>::IsFor(r.op)) {
      const auto needs = Ranges<K>::Needs(r);
      if (!needs) continue;
      if (!hull) hull = needs;
      hull->first = std::min(hull->first, needs->first);
      hull->last = std::max(hull->last, needs->last);
    } else {
      keys.push_back(LoadKey<K>(r.key.data()));
      if (r.op == Op::kMove) keys.push_back(LoadKey<K>(r.other.data()));
    }
  }
  std::ranges::sort(keys);
  if (hull) {
    // The interval is widened to the single keys on both sides.
    for (const K key : keys) {
      hull->first = std::min(hull->first, key);
      hull->last = std::max(hull->last, key);
    }
    locks_.Lock(*hull);
    return;
  }
  const LeafMap<K>& map = core_.Map();
  for (const K key : keys) {
    map.leaf(map.IndexOf(key))->table.Prefetch(HashOf(key, core_.format.secret));
  }
  for (const K key : keys) locks_.Of(key);
}

template <typename K>
void AtomicRun<K>::Perform(uint32_t slot) {
  const Request& r = request(slot);
  if (const Status s = CheckRequest(r, batch_, traits_); !s.ok()) return out_.Refuse(slot, s);
  if (Ranges<K>::IsFor(r.op)) return ranges_.Do(slot);
  switch (r.op) {
    case Op::kMove:
      return Move(slot);
    case Op::kRequireUnchanged:
      JudgeUnchanged(r, core_.watches, now_ms_, out_, slot);
      return;
    default:
      return Point(slot);
  }
}

template <typename K>
std::optional<PointState> AtomicRun<K>::StateOf(K key) {
  const std::byte* const found =
      locks_.HeldOf(key).table.Find(key, HashOf(key, core_.format.secret));
  if (found == nullptr) return std::nullopt;
  return PointState{.value = {reinterpret_cast<const char*>(found), core_.format.value_bytes}};
}

template <typename K>
void AtomicRun<K>::Point(uint32_t slot) {
  const Request& r = request(slot);
  const K key = LoadKey<K>(r.key.data());
  const PointEffect effect = ApplyPoint(r, StateOf(key), now_ms_, traits_, out_, slot);
  if (effect.action == PointEffect::Action::kErase) return Erase(key);
  if (effect.action != PointEffect::Action::kStore) return;
  // The new value may be a view of the old one, so it is copied.
  std::array<char, kValueBytesMax> value;
  CopyValue(value.data(), effect.value.data(), core_.format.value_bytes);
  if (Store(key, value.data(), Arena::Limit::kObey)) return;
  out_.outcome(slot) = {};
  out_.RefuseMemory(slot, core_.budget);
}

template <typename K>
void AtomicRun<K>::Move(uint32_t slot) {
  const Request& r = request(slot);
  const K from = LoadKey<K>(r.key.data());
  const K to = LoadKey<K>(r.other.data());
  const auto state = StateOf(from);
  if (!JudgeMove(r, state, StateOf(to).has_value(), out_, slot)) return;
  std::array<char, kValueBytesMax> value;
  CopyValue(value.data(), state->value.data(), core_.format.value_bytes);
  if (!Store(to, value.data(), Arena::Limit::kObey)) {
    out_.outcome(slot) = {};
    return out_.RefuseMemory(slot, core_.budget);
  }
  Erase(from);
}

// Returns false if there is no memory.
template <typename K>
bool AtomicRun<K>::Store(K key, const char* value, Arena::Limit limit) {
  const uint64_t hash = HashOf(key, core_.format.secret);
  ReserveMore(undo_, 1);  // before anything is stored
  for (;;) {
    Leaf<K>& leaf = locks_.HeldOf(key);
    std::byte* const found = leaf.table.Find(key, hash);
    Undo<K> undo{.key = key, .present = found != nullptr, .value = {}};
    if (found != nullptr) CopyValue(undo.value.data(), found, core_.format.value_bytes);
    using Stored = LeafMutator<K>::Stored;
    const Stored stored = mutator_.Store(leaf, key, hash, value, found, limit);
    if (stored == Stored::kNoMemory) return false;
    if (stored == Stored::kElsewhere) continue;
    undo_.push_back(undo);
    return true;
  }
}

template <typename K>
void AtomicRun<K>::Erase(K key) {
  const uint64_t hash = HashOf(key, core_.format.secret);
  Leaf<K>& leaf = locks_.HeldOf(key);
  Undo<K>& undo = undo_.emplace_back(Undo<K>{.key = key, .present = true, .value = {}});
  CopyValue(undo.value.data(), leaf.table.Find(key, hash), core_.format.value_bytes);
  mutator_.Erase(leaf, key, hash);
}

// Takes the last change back first. The old pairs have room: tables have not become smaller
// (LeafMutator::Split).
template <typename K>
void AtomicRun<K>::TakeBack(const Part&) {
  while (!undo_.empty()) {
    const Undo<K> one = undo_.back();
    undo_.pop_back();
    // These calls note an undo of their own, for which the one taken back leaves room.
    if (one.present) {
      SKEP_CHECK(Store(one.key, one.value.data(), Arena::Limit::kExceed));
    } else {
      Erase(one.key);
    }
    undo_.pop_back();
  }
}

template <typename K>
void AtomicRun<K>::TouchWatches() {
  char key[sizeof(K)];
  for (const Undo<K>& undo : undo_) {
    StoreKey(key, undo.key);
    core_.watches.Touch({key, sizeof(K)}, 0);
  }
}

template class AtomicRun<uint32_t>;
template class AtomicRun<uint64_t>;
template class AtomicRun<Key128>;

}  // namespace skep::hashleaf
