#include "hashleaf/point_run.h"

#include <algorithm>
#include <atomic>

#include "hashleaf/pieces.h"

namespace skep::hashleaf {

template <typename K>
struct PointRun<K>::Window {
  // Both are in the order of arrival.
  std::vector<Unit<K>> units;
  std::vector<uint32_t> slots;
  std::vector<uint8_t> results;
  std::vector<Version> numbers;
  Dispatcher<K> dispatcher;
};

template <typename K>
PointRun<K>::Window& PointRun<K>::WindowOfThread() {
  static thread_local Window window;
  return window;
}

template <typename K>
PointRun<K>::PointRun(Core<K>& core, const EngineTraits& traits, Batch& batch, BatchWriter& out,
                      LeafMutator<K>& mutator)
    : core_(core),
      traits_(traits),
      batch_(batch),
      requests_(batch.requests()),
      out_(out),
      mutator_(mutator),
      map_(&core.Map()),
      window_(WindowOfThread()),
      value_bytes_(core.format.value_bytes),
      numbers_(core.numbers.wanted()) {}

template <typename K>
inline PointKind PointRun<K>::KindOf(const Request& r) const {
  const bool is_plain = (r.flags & ~(Request::kWantHint | Request::kMayPin)) == 0 && r.when == 0 &&
                        (r.deadline_ms == 0 || r.deadline_ms == kKeepDeadline) &&
                        r.key.size() == sizeof(K) && r.op <= Op::kDelete;
  if (!is_plain) return PointKind::kOther;
  const bool stores = r.op >= Op::kPut && r.op <= Op::kUpdate;
  if (stores ? r.value.size() != value_bytes_ : r.value.size() > value_bytes_)
    return PointKind::kOther;
  return static_cast<PointKind>(r.op);
}

template <typename K>
uint32_t PointRun<K>::Add(uint32_t slot) {
  static_assert(static_cast<int>(PointKind::kDelete) == static_cast<int>(Op::kDelete));
  const auto size = static_cast<uint32_t>(requests_.size());
  Window& w = window_;
  for (; slot < size; ++slot) {
    const Request& r = requests_[slot];
    const PointKind kind = KindOf(r);
    if (kind == PointKind::kOther) [[unlikely]] {
      if (const Status s = CheckRequest(r, batch_, traits_); !s.ok()) {
        out_.Refuse(slot, s);
        continue;
      }
      if (r.op > Op::kApply) return slot;
    }
    if (count_ == kWindow) Flush();
    if (count_ == 0) {
      postpones_ = out_.IsPostponing();
      const size_t units = std::min<size_t>(kWindow, size - slot);
      if (w.units.size() < units) {
        w.units.resize(units);
        w.slots.resize(units);
        w.results.resize(units);
      }
      values_ = out_.scratch().Allocate(units * value_bytes_);
    }
    has_other_ = has_other_ || kind == PointKind::kOther;
    const uint32_t index = count_++;
    w.units[index] = Unit<K>::Of(LoadKey<K>(r.key.data()), index, static_cast<uint32_t>(kind));
    w.slots[index] = slot;
    if (kind >= PointKind::kPut && kind <= PointKind::kUpdate) {
      CopyValue(ValueOf(index), r.value.data(), value_bytes_);
    }
  }
  return slot;
}

template <typename K>
void PointRun<K>::Flush() {
  if (count_ == 0) return;
  if (postpones_) return PostponeAll();
  const BatchWriter::Whole whole(out_);
  Window& w = window_;
  if (numbers_) w.numbers.assign(count_, 0);
  w.dispatcher.Dispatch(std::span(w.units).first(count_), *map_);
  const SortedWindow<K> sorted{.core = core_,
                               .traits = traits_,
                               .requests = requests_,
                               .out = out_,
                               .sorted = w.dispatcher.sorted(),
                               .groups = w.dispatcher.groups(),
                               .slots = w.slots.data(),
                               .results = w.results.data(),
                               .numbers = numbers_ ? w.numbers.data() : nullptr,
                               .values = values_};
  // Points of the kind kOther write to the batch's memory, which only one thread may use.
  if (core_.helper_pool.helpers() > 0 && count_ >= kSharedMin && !has_other_) {
    Share(sorted);
  } else {
    Lane<K> lane(sorted, mutator_);
    lane.Do(0, sorted.groups.size());
    lane.DoBusy();
    ticket_ = std::max(ticket_, lane.ticket());
  }
  Answer();
  count_ = 0;
  has_other_ = false;
  mutator_.Publish();
  map_ = &core_.Map();
}

// Postpones a whole window: its plain points do not check limits, and must not come before other
// points on the same key that do.
template <typename K>
void PointRun<K>::PostponeAll() {
  for (uint32_t index = 0; index < count_; ++index) out_.Postpone(window_.slots[index]);
  count_ = 0;
  has_other_ = false;
}

// Locks the leaf of a group if the group only reads and the leaf has all its keys. Returns whether
// it did.
template <typename K>
bool PointRun<K>::LockToRead(const SortedWindow<K>& sorted, const Group<K>& group) {
  Leaf<K>& leaf = *group.leaf;
  const auto units = sorted.sorted.subspan(group.begin, group.end - group.begin);
  const auto reads = [](const Unit<K>& unit) { return hashleaf::KindOf(unit) == PointKind::kGet; };
  if (!std::ranges::all_of(units, reads) || !leaf.lock.try_lock()) return false;
  if (std::ranges::all_of(units, [&](const Unit<K>& unit) { return leaf.Has(unit.key); })) {
    return true;
  }
  leaf.lock.unlock();
  return false;
}

// Does the window with helpers, each of which takes the next piece when it is free (pieces.h). The
// pieces of hot leaves come before all others, and none of them waits for anything: so when a
// thread waits for a leaf (a stray's, or one that was busy), the threads that will unlock hot
// leaves are at work on them.
template <typename K>
void PointRun<K>::Share(const SortedWindow<K>& sorted) {
  Pieces<K> all(sorted.groups, [&](const Group<K>& group) { return LockToRead(sorted, group); });
  // If an allocation fails in the middle of the work, the remaining locks of hot leaves are
  // dropped.
  struct HotLocks {
    ~HotLocks() {
      for (auto& hot : pieces.hot_groups()) {
        if (hot.left.load(std::memory_order_relaxed) != 0) hot.group->leaf->lock.unlock();
      }
    }
    Pieces<K>& pieces;
  } const locks{all};
  core_.shared_reads.fetch_add(all.hot_groups().size(), std::memory_order_relaxed);
  const std::span<const typename Pieces<K>::Piece> pieces = all.all();
  std::atomic<uint32_t> next{0};
  std::atomic<Version> ticket{0};
  std::atomic<bool> has_memory{true};
  const auto work = [&] {
    LeafMutator<K> mutator(core_);
    Lane<K> lane(sorted, mutator);
    for (uint32_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < pieces.size();) {
      const auto& piece = pieces[i];
      if (piece.hot == nullptr) {
        lane.Do(piece.begin, piece.end);
        continue;
      }
      lane.Read(*piece.hot->group, piece.begin, piece.end);
      if (piece.hot->left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        piece.hot->group->leaf->lock.unlock();
      }
    }
    lane.DoBusy();
    Version seen = ticket.load(std::memory_order_relaxed);
    while (seen < lane.ticket() &&
           !ticket.compare_exchange_weak(seen, lane.ticket(), std::memory_order_relaxed)) {
    }
  };
  core_.helper_pool.Help([&] {
    try {
      work();
    } catch (const std::bad_alloc&) {
      has_memory.store(false, std::memory_order_relaxed);
    }
  });
  if (!has_memory.load(std::memory_order_relaxed)) throw std::bad_alloc();
  ticket_ = std::max(ticket_, ticket.load(std::memory_order_relaxed));
}

template <typename K>
void PointRun<K>::Answer() {
  const Window& w = window_;
  for (uint32_t index = 0; index < count_; ++index) {
    const uint32_t slot = w.slots[index];
    Outcome& outcome = out_.outcome(slot);
    const PointKind kind = hashleaf::KindOf(w.units[index]);
    if (kind == PointKind::kOther) {
      const bool wrote = outcome.verdict == Verdict::kDone && IsWrite(requests_[slot].op);
      if (numbers_ && wrote) outcome.version = w.numbers[index];
      continue;
    }
    const uint8_t result = w.results[index];
    if (result == kPointRefused) {
      out_.RefuseMemory(slot, core_.budget);
      continue;
    }
    const bool is_done = (result & kPointDone) != 0;
    outcome.present = (result & kPointPresent) != 0;
    outcome.verdict = is_done                      ? Verdict::kDone
                      : kind == PointKind::kInsert ? Verdict::kExists
                                                   : Verdict::kAbsent;
    if (kind == PointKind::kGet) {
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
