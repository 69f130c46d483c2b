#include "hashleaf/hashleaf_engine.h"

#include <algorithm>
#include <bit>
#include <random>

#include "base/check.h"
#include "base/reserve_more.h"
#include "hashleaf/atomic_run.h"
#include "hashleaf/point_run.h"
#include "hashleaf/ranges.h"
#include "hashleaf/snapshot_iterator.h"

namespace skep {
namespace hashleaf {
namespace {

constexpr bool OnlyReads(Op op) { return op == Op::kScan || op == Op::kCount || op == Op::kSample; }

template <typename K>
class EngineOf final : public Engine {
 public:
  EngineOf(const EngineOptions& options, const Settings& settings, const Format& format)
      : traits_{.name = HashleafEngine::kInfo.name,
                .snapshots = false,
                .multi_version = false,
                .expiry = false,
                .key_bytes_max = format.key_bytes,
                .value_bytes_max = format.value_bytes,
                .key_bytes_min = format.key_bytes,
                .value_bytes_min = format.value_bytes},
        core_(settings, format, *options.budget, now_, watches_, options.numbers_writes) {
    watches_.set_budget(options.budget);
  }

  bool Start() { return core_.Start(); }

  const EngineTraits& traits() const override { return traits_; }
  std::string format() const override {
    return HashleafEngine::FormatOf(core_.format.key_bytes, core_.format.value_bytes);
  }
  Version Execute(Batch& batch) override;
  Result<SnapshotRef> OpenSnapshot(uint64_t) override {
    return Fail(Code::kNotSupported, "this engine keeps one version of a key");
  }
  void CloseSnapshot(SnapshotRef) override {}
  Version Latest() const override { return core_.numbers.last(); }
  void StartAfter(Version version, uint64_t now_ms) override {
    now_.Advance(now_ms);
    core_.numbers.StartAfter(version);
  }
  Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t now_ms) override {
    return SnapshotIterator<K>::Open(core_, now_ms);
  }
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override;
  bool Maintain(uint64_t now_ms) override;
  EngineStatistics Statistics() const override;
  void Describe(uint64_t now_ms, const StatsVisitor& visit) const override;
  // Nothing else runs meanwhile, which the analysis does not know.
  const char* Verify() const SKEP_NO_THREAD_SAFETY_ANALYSIS override;

 private:
  Version ExecuteUnordered(Batch& batch, BatchWriter& out);
  bool MergeSome();
  bool TryMerge(Leaf<K>& left, Leaf<K>& right);
  void Shrink(Leaf<K>& leaf);

  const EngineTraits traits_;
  mutable Core<K> core_;
  std::atomic<uint32_t> merge_at_{0};  // where in the map MergeSome() goes on
};

template <typename K>
Version EngineOf<K>::Execute(Batch& batch) {
  BatchWriter out(batch);
  if (const Status s = CheckBatch(batch, traits_); !s.ok()) {
    out.RefuseAll(s);
    return 0;
  }
  if (!core_.budget.HasRoomFor(core_.settings.leaf_bytes)) [[unlikely]]
    core_.GiveWay();
  const Epochs::Guard guard(core_.epochs);
  if (batch.kind() == Batch::Kind::kAtomic) {
    return AtomicRun<K>(core_, traits_, batch, out).Do();
  }
  return ExecuteUnordered(batch, out);
}

template <typename K>
Version EngineOf<K>::ExecuteUnordered(Batch& batch, BatchWriter& out) {
  now_.Advance(batch.now_ms());
  LeafMutator<K> mutator(core_);
  LeafLocks<K> locks(core_);
  Ranges<K> ranges(core_, batch, out, locks, mutator, nullptr);
  PointRun<K> points(core_, traits_, batch, out, mutator);
  std::vector<uint32_t> reads;
  Version ticket = 0;
  const auto do_range = [&](uint32_t slot) {
    if (out.IsPostponing()) return out.Postpone(slot);
    ranges.Do(slot);
    ticket = std::max(ticket, ranges.Finish());
  };
  const auto flush = [&] {
    points.Flush();
    // Ranges are ordered by leaf, so that a leaf is in the cache for the next range.
    std::ranges::stable_sort(reads, {}, [&](uint32_t slot) { return batch.requests()[slot].key; });
    for (const uint32_t slot : reads) do_range(slot);
    reads.clear();
  };
  for (uint32_t slot = 0; slot < batch.size();) {
    slot = points.Add(slot);
    if (slot == batch.size()) break;
    const Op op = batch.requests()[slot].op;
    if (OnlyReads(op)) {
      reads.push_back(slot++);
      continue;
    }
    flush();
    do_range(slot++);
  }
  flush();
  return std::max(ticket, points.ticket());
}

// Under the leaf's lock no write of the key takes effect, and a thread that locks it later sees the
// watch (watches.h).
template <typename K>
Result<uint64_t> EngineOf<K>::Watch(std::string_view key, uint64_t) {
  const Request request{.op = Op::kGet, .key = key};
  if (const Status s = CheckSizes(request, traits_); !s.ok()) return Fail(s);
  const Epochs::Guard guard(core_.epochs);
  LeafLocks<K> locks(core_);
  const K k = LoadKey<K>(key.data());
  const bool is_present = locks.Of(k).table.Find(k, HashOf(k, core_.format.secret)) != nullptr;
  const auto watch = watches_.Add(key);
  if (!watch) return NoRoomToWatch(core_.budget);
  watches_.Arm(*watch, is_present, 0);
  return *watch;
}

template <typename K>
bool EngineOf<K>::Maintain(uint64_t now_ms) {
  now_.Advance(now_ms);
  const bool merges = MergeSome();
  core_.epochs.Reclaim();
  return core_.memory.arena().Trim() || merges;
}

// Merges neighbouring leaves that have few pairs, and shrinks tables that are hardly used. Returns
// whether there may be more to do.
template <typename K>
bool EngineOf<K>::MergeSome() {
  constexpr uint32_t kLeavesMax = 256;  // leaves to look at in one call
  constexpr uint32_t kMergesMax = 64;
  if (!core_.structure.try_lock()) return false;
  const MutexLock lock(core_.structure, std::adopt_lock);
  const Epochs::Guard guard(core_.epochs);
  core_.Publish();  // changes for which there was no memory before
  const LeafMap<K>& map = core_.Map();
  std::vector<Leaf<K>*>& dead = core_.dead;
  uint32_t left = merge_at_.load(std::memory_order_relaxed);
  if (left >= map.size()) left = 0;
  uint32_t right = left + 1;
  const uint32_t end = std::min(map.size(), left + kLeavesMax);
  for (; right < end && dead.size() < kMergesMax; ++right) {
    ReserveMore(dead, 1);
    if (TryMerge(*map.leaf(left), *map.leaf(right))) {
      dead.push_back(map.leaf(right));
    } else {
      Shrink(*map.leaf(left));
      left = right;
    }
  }
  if (right == map.size()) Shrink(*map.leaf(left));
  // The last leaf is looked at again by the next call, with its right neighbour.
  merge_at_.store(right < map.size() ? left : 0, std::memory_order_relaxed);
  if (dead.empty()) return false;
  core_.Publish();
  return true;
}

template <typename K>
void EngineOf<K>::Shrink(Leaf<K>& leaf) {
  // The new size leaves room, so that the table does not grow again soon.
  constexpr uint32_t kLess = 2;
  const auto bytes_for = [&](uint32_t items) {
    return Table<K>::BytesFor(core_.format, items, core_.settings.leaf_bytes);
  };
  const uint32_t items = leaf.items.load(std::memory_order_relaxed);
  if (leaf.held_bytes.load(std::memory_order_relaxed) < bytes_for(items) * kLess) return;
  const std::lock_guard lock(leaf.lock);
  Table<K>& table = leaf.table;
  if (table.bytes() < bytes_for(table.items()) * kLess) return;
  table.Resize(bytes_for(table.items()), Arena::Limit::kExceed);
  leaf.ShowSize();
}

template <typename K>
bool EngineOf<K>::TryMerge(Leaf<K>& left, Leaf<K>& right) {
  const auto fit = [&] {
    const uint32_t items =
        left.items.load(std::memory_order_relaxed) + right.items.load(std::memory_order_relaxed);
    // The pairs are so few that the leaf is not split again soon.
    return items <= Table<K>::ItemsMax(core_.format, core_.settings.leaf_bytes) / 3 * 2;
  };
  if (!fit()) return false;
  const std::lock_guard left_lock(left.lock);
  const std::lock_guard right_lock(right.lock);
  // A leaf of a split that is not in the map yet may lie between them.
  if (!fit() || left.next != &right) return false;
  return LeafMutator<K>(core_).Merge(left, right);
}

template <typename K>
EngineStatistics EngineOf<K>::Statistics() const {
  const Epochs::Guard guard(core_.epochs);
  const LeafMap<K>& map = core_.Map();
  EngineStatistics statistics{.bytes = core_.memory.arena().Statistics().held_bytes + map.bytes() +
                                       map.size() * sizeof(Leaf<K>) + core_.snapshot.memory.used()};
  for (const Leaf<K>* const leaf : map.leaves()) {
    statistics.items += leaf->items.load(std::memory_order_relaxed);
  }
  return statistics;
}

template <typename K>
void EngineOf<K>::Describe(uint64_t, const StatsVisitor& visit) const {
  const Epochs::Guard guard(core_.epochs);
  const LeafMap<K>& map = core_.Map();
  uint64_t slots = 0;
  uint64_t runs = 0;
  uint64_t run_bytes = 0;
  uint64_t kicks = 0;
  for (Leaf<K>* const leaf : map.leaves()) {
    const std::lock_guard lock(leaf->lock);
    slots += uint64_t{leaf->table.buckets()} * core_.format.slots;
    kicks += leaf->table.kicks();
    if (leaf->run == nullptr) continue;
    ++runs;
    run_bytes += leaf->run->bytes();
  }
  const ArenaStatistics arena = core_.memory.arena().Statistics();
  visit("leaves", map.size());
  visit("map_levels", map.levels());
  visit("map_bytes", map.bytes());
  visit("slots", slots);
  visit("kicks", kicks);
  visit("splits", core_.splits.load(std::memory_order_relaxed));
  visit("merges", core_.merges.load(std::memory_order_relaxed));
  visit("sorted_runs", runs);
  visit("sorted_run_bytes", run_bytes);
  visit("shared_reads", core_.shared_reads.load(std::memory_order_relaxed));
  visit("sorted_runs_built", core_.runs_built.load(std::memory_order_relaxed));
  visit("arena_allocated_bytes", arena.allocated_bytes);
  visit("arena_held_bytes", arena.held_bytes);
}

template <typename K>
const char* EngineOf<K>::Verify() const {
  const LeafMap<K>& map = core_.Map();
  // Changes for which there was no memory yet come with the next map (core.h).
  const bool is_published = core_.unpublished == nullptr && core_.dead.empty();
  std::vector<Leaf<K>*> leaves(map.leaves().begin(), map.leaves().end());
  std::erase_if(leaves, [&](Leaf<K>* leaf) SKEP_NO_THREAD_SAFETY_ANALYSIS {
    return std::ranges::find(core_.dead, leaf) != core_.dead.end();
  });
  for (Leaf<K>* leaf = core_.unpublished; leaf != nullptr; leaf = leaf->unpublished) {
    leaves.push_back(leaf);
  }
  std::ranges::sort(leaves, {}, &Leaf<K>::first);
  PairSorter<K> sorter;
  for (uint32_t i = 0; i < leaves.size(); ++i) {
    Leaf<K>& leaf = *leaves[i];
    const Leaf<K>* const next = i + 1 < leaves.size() ? leaves[i + 1] : nullptr;
    if (leaf.absorber != nullptr) return "a leaf of the map is alive";
    if (leaf.next != next) return "the leaves of the map are linked";
    if (i == 0 && leaf.first != 0) return "the first leaf begins with the first key";
    if (next == nullptr ? leaf.last != kKeyMax<K> : next->first != leaf.last + 1) {
      return "leaves cover all keys, each once";
    }
    if (leaf.items.load() != leaf.table.items()) return "a leaf tells the number of its pairs";
    if (is_published && (map.IndexOf(leaf.first) != i || map.IndexOf(leaf.last) != i)) {
      return "the map finds the first and the last key of a leaf";
    }
    bool is_outside = false;
    leaf.table.ForEach(
        [&](K key, const std::byte*) { is_outside = is_outside || !leaf.Covers(key); });
    if (is_outside) return "a leaf covers its keys";
    if (const char* broken = leaf.table.Verify()) return broken;
    if (leaf.run == nullptr) continue;
    if (const char* broken = leaf.run->Verify(leaf.table, sorter)) return broken;
  }
  return core_.memory.arena().Verify();
}

template <typename K>
std::unique_ptr<Engine> MakeOf(const EngineOptions& options, const Settings& settings,
                               const Format& format) {
  auto engine = std::make_unique<EngineOf<K>>(options, settings, format);
  if (!engine->Start()) return nullptr;
  return engine;
}

}  // namespace
}  // namespace hashleaf

std::unique_ptr<Engine> HashleafEngine::Make(const EngineOptions& options) {
  return Make(options, {.leaf_bytes = options.index.hashleaf.leaf_bytes,
                        .threads = options.index.hashleaf.threads});
}

std::unique_ptr<Engine> HashleafEngine::Make(const EngineOptions& options,
                                             const hashleaf::Settings& settings) {
  static const uint64_t secret = std::random_device{}() | uint64_t{std::random_device{}()} << 32;
  const hashleaf::Format format{
      .key_bytes = options.index.hashleaf.key_bytes,
      .value_bytes = options.index.hashleaf.value_bytes,
      .secret = secret,
      .chunk_bytes = std::max(hashleaf::Table<uint32_t>::kBytesMin, settings.leaf_bytes / 4)};
  switch (format.key_bytes) {
    case 4:
      return hashleaf::MakeOf<uint32_t>(options, settings, format);
    case 8:
      return hashleaf::MakeOf<uint64_t>(options, settings, format);
    default:
      return hashleaf::MakeOf<hashleaf::Key128>(options, settings, format);
  }
}

}  // namespace skep
