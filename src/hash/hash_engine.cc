#include "hash/hash_engine.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "engine/batch_writer.h"
#include "engine/point.h"
#include "hash/atomic_run.h"
#include "hash/cursor_scanner.h"
#include "hash/point_run.h"
#include "hash/read_run.h"
#include "hash/sampler.h"

namespace skep {

using hash::AllLocked;
using hash::Partition;
using hash::SnapshotIterator;
using hash::Table;

namespace {

constexpr uint32_t kPartitionsMin = 4;

// Enough arenas to address the machine's memory.
uint32_t DefaultArenas() {
  const auto pages = static_cast<uint64_t>(std::max(1L, sysconf(_SC_PHYS_PAGES)));
  const auto page_bytes = static_cast<uint64_t>(std::max(1L, sysconf(_SC_PAGESIZE)));
  const uint64_t regions = (pages * page_bytes - 1) / hash::Slabs::kAddressableBytes + 1;
  return static_cast<uint32_t>(std::bit_ceil(std::min<uint64_t>(regions, hash::kPartitionsMax)));
}

// A batch meets nearly all partitions, each with a lock that is likely in another core's cache. A
// thread that finds one locked does another one first, so few more partitions than threads suffice.
uint32_t DefaultPartitions() {
  const uint32_t cpus = std::max(1u, std::thread::hardware_concurrency());
  const uint32_t wanted = std::max({std::bit_ceil(2 * cpus), DefaultArenas(), kPartitionsMin});
  return std::min(wanted, hash::kPartitionsMax);
}

// Returns whether an operation concerns the whole keyspace, and no single key.
bool IsOfWhole(Op op) {
  return op == Op::kSample || op == Op::kDeleteAll || op == Op::kWalk || op == Op::kCount;
}

// A thread's batches reuse the memory of one station, whatever the engine.
hash::ReservationStation& ReservationStationOfThread() {
  static thread_local hash::ReservationStation station;
  return station;
}
struct Windows {
  hash::Groups groups;
  hash::PointRun::Window points;
  hash::ReadWindow reads;
};
Windows& WindowsOfThread() {
  static thread_local Windows windows;
  return windows;
}

}  // namespace

HashEngine::HashEngine(const EngineOptions& options)
    : options_(options),
      traits_{.name = kInfo.name,
              .ordered = false,
              .snapshots = false,
              .walks = true,
              .multi_version = false},
      core_(*options.budget, now_, watches_, options.numbers_writes) {
  watches_.set_budget(options.budget);
}

std::unique_ptr<Engine> HashEngine::Make(const EngineOptions& options) {
  return Make(options, {.table = {.inline_bytes_max = options.index.hash.inline_bytes_max,
                                  .fill_slots = options.index.hash.fill_slots}});
}

std::unique_ptr<HashEngine> HashEngine::Make(const EngineOptions& options, const Options& own) {
  auto engine = std::unique_ptr<HashEngine>(new HashEngine(options));
  hash::Core& core = engine->core_;
  const uint32_t partitions = own.partitions != 0 ? own.partitions : DefaultPartitions();
  SKEP_CHECK(std::has_single_bit(partitions) && partitions <= hash::kPartitionsMax);
  SKEP_CHECK(own.table.inline_bytes_max <= hash::Bucket::kInlineBytesMax);
  SKEP_CHECK(own.table.fill_slots > 0);
  const uint32_t arenas = own.arenas != 0 ? own.arenas : DefaultArenas();
  SKEP_CHECK(std::has_single_bit(arenas) && own.region_bytes <= hash::Slabs::kAddressableBytes);
  for (uint32_t i = 0; i < std::min(arenas, partitions); ++i) {
    core.arenas.push_back(std::make_unique<Arena>(ArenaOptions{
        .budget = &core.budget, .prefaulter = &core.prefaulter, .region_bytes = own.region_bytes}));
  }
  hash::TableOptions table = own.table;
  table.prefaulter = &core.prefaulter;
  for (uint32_t i = 0; i < partitions; ++i) {
    Arena& arena = *core.arenas[i % core.arenas.size()];
    core.partitions.push_back(std::make_unique<Partition>(arena, core.budget, table));
    if (!core.partitions.back()->table.Reserve()) return nullptr;
  }
  return engine;
}

Version HashEngine::Execute(Batch& batch) {
  BatchWriter out(batch);
  if (const Status s = CheckBatch(batch, traits_); !s.ok()) {
    out.RefuseAll(s);
    return 0;
  }
  if (batch.kind() == Batch::Kind::kAtomic) {
    return hash::AtomicRun(core_, traits_, batch, out, ReservationStationOfThread()).Do();
  }
  return ExecuteUnordered(batch, out);
}

// A key without a deadline is present at any time, so no "now" is asked for.
std::optional<Version> HashEngine::GetPlain(std::string_view key,
                                            std::optional<std::string>* value) {
  if (key.size() > traits_.key_bytes_max) return std::nullopt;
  const hash::Key k = hash::KeyOf(key);
  Partition& partition = *core_.partitions[core_.PartitionOf(k.hash)];
  const std::lock_guard locked(partition.lock);
  if (const Table::Place place = partition.table.Find(k)) {
    const auto pair = partition.table.Read(place);
    if (pair.deadline_ms != 0) return std::nullopt;
    value->emplace(pair.value);
  }
  return core_.numbers.wanted() ? partition.number : 0;
}

Version HashEngine::GetManyPlain(std::span<const std::string_view> keys,
                                 std::span<GetAnswer> answers, PlainValues values) {
  Windows& windows = WindowsOfThread();
  const hash::ManyGets gets(keys, traits_, answers, values);
  hash::ReadRun reads(core_, gets, windows.groups, windows.reads);
  const auto size = static_cast<uint32_t>(keys.size());
  for (uint32_t first = 0; first < size; first += hash::kWindow) {
    reads.Do(first, std::min(size - first, hash::kWindow));
  }
  return reads.ticket();
}

Version HashEngine::ExecuteUnordered(Batch& batch, BatchWriter& out) {
  now_.Advance(batch.now_ms());
  Windows& windows = WindowsOfThread();
  hash::PointRun points(core_, traits_, batch, out, ReservationStationOfThread(), windows.groups,
                        windows.points);
  const hash::BatchGets gets(batch, traits_, out);
  hash::ReadRun reads(core_, gets, windows.groups, windows.reads);
  bool looks_at_all = false;
  for (uint32_t slot = 0; slot < batch.size();) {
    if (const uint32_t count = gets.CountFrom(slot)) {
      points.Flush();
      reads.Do(slot, count);
      slot += count;
      continue;
    }
    const Request& r = batch.requests()[slot];
    if (!IsSoundPoint(r, traits_)) {
      if (const Status s = CheckRequest(r, batch, traits_); !s.ok()) {
        out.Refuse(slot++, s);
        continue;
      }
    }
    if (!IsOfWhole(r.op)) {
      slot = points.Add(slot);
      continue;
    }
    points.Flush();
    if (out.IsPostponing()) {
      out.Postpone(slot++);
      continue;
    }
    looks_at_all = true;
    switch (r.op) {
      case Op::kSample:
        Sample(r, out, slot);
        break;
      case Op::kWalk:
        hash::CursorScanner(core_, batch, slot, out).Scan();
        break;
      case Op::kCount:
        CountAll(out, slot);
        break;
      default:
        DeleteAll(out, slot);
    }
    ++slot;
  }
  points.Flush();
  return looks_at_all ? core_.numbers.last() : std::max(points.ticket(), reads.ticket());
}

void HashEngine::CountAll(BatchWriter& out, uint32_t slot) {
  core_.ApproachDue(now_.Latest());
  const AllLocked all(core_);
  const uint64_t keys = core_.LiveItems(now_.Latest());
  out.outcome(slot) = {.verdict = Verdict::kDone, .integer = static_cast<int64_t>(keys)};
}

void HashEngine::DeleteAll(BatchWriter& out, uint32_t slot) {
  core_.ApproachDue(now_.Latest());
  const AllLocked all(core_);
  const uint64_t keys = core_.LiveItems(now_.Latest());
  for (const auto& partition : core_.partitions) partition->table.Clear();
  watches_.TouchRange({}, {}, true, 0);
  Outcome& outcome = out.outcome(slot);
  outcome.verdict = Verdict::kDone;
  outcome.integer = static_cast<int64_t>(keys);
  if (!core_.numbers.wanted()) return;
  outcome.version = core_.numbers.Draw();
  for (const auto& partition : core_.partitions) partition->number = outcome.version;
}

void HashEngine::Sample(const Request& r, BatchWriter& out, uint32_t slot) {
  out.BeginItems(slot);
  const AllLocked all(core_);
  const auto drawn = hash::Sampler(core_, r.random, now_.Latest(), nullptr, false).Draw();
  out.outcome(slot).verdict = drawn ? Verdict::kDone : Verdict::kAbsent;
  if (!drawn) return;
  out.AddItem(slot, {.key = drawn->key, .value = drawn->value});
}

Result<SnapshotRef> HashEngine::OpenSnapshot(uint64_t) {
  return Fail(Code::kNotSupported, "this engine keeps one version of a key");
}

Result<std::unique_ptr<PairIterator>> HashEngine::OpenPairIterator(uint64_t now_ms) {
  return SnapshotIterator::Open(core_, now_ms);
}

void HashEngine::StartAfter(Version version, uint64_t now_ms) {
  now_.Advance(now_ms);
  core_.numbers.StartAfter(version);
}

// Under the partition's lock no write of the key takes effect, and a thread that locks it later
// sees the watch (watches.h).
Result<uint64_t> HashEngine::Watch(std::string_view key, uint64_t now_ms) {
  if (key.size() > traits_.key_bytes_max) {
    return Fail(Code::kTooLarge, "key exceeds the maximum size", traits_.key_bytes_max);
  }
  const hash::Key k = hash::KeyOf(key);
  Partition& partition = *core_.partitions[core_.PartitionOf(k.hash)];
  const std::lock_guard locked(partition.lock);
  hash::ReservationStation::Entry entry{.key = k};
  hash::ReservationStation::Load(entry, partition.table, now_.Advance(now_ms));
  const auto watch = watches_.Add(key);
  if (!watch) return NoRoomToWatch(core_.budget);
  watches_.Arm(*watch, entry.is_present, entry.is_present ? entry.deadline_ms : 0);
  return *watch;
}

// Each partition does a piece, so that on the whole the oldest keys go first.
bool HashEngine::Maintain(uint64_t now_ms) {
  constexpr size_t kKeys = 1024;
  const size_t keys_each = std::max<size_t>(1, kKeys / core_.partitions.size());
  const uint64_t now = now_.Advance(now_ms);
  const uint64_t due_ms = now - std::min(now, options_.expiry_lag_ms);
  bool has_more = false;
  uint64_t expired = 0;
  ExpiryObserver* const observer = expiry_observer_.load(std::memory_order_acquire);
  for (const auto& partition : core_.partitions) {
    const std::lock_guard locked(partition->lock);
    Table& table = partition->table;
    const auto* first = table.deadlines().First();
    for (size_t erased = 0; first != nullptr && first->deadline_ms <= due_ms;
         first = table.deadlines().First()) {
      if (erased >= keys_each) {
        has_more = true;
        break;
      }
      const size_t count = table.EraseDue(first->hash, first->deadline_ms, observer);
      erased += count;
      expired += count;
    }
    table.Trim();
    if (hash::BeforeImages* const images = table.before_images()) images->GiveWay();
  }
  expired_keys_.fetch_add(expired, std::memory_order_relaxed);
  for (const auto& arena : core_.arenas) has_more |= arena->Trim();
  return has_more;
}

EngineStatistics HashEngine::Statistics() const {
  EngineStatistics statistics{.expired_keys = expired_keys_.load(std::memory_order_relaxed),
                              .bytes = core_.MemoryStatistics().held_bytes};
  for (const auto& partition : core_.partitions) {
    const std::lock_guard locked(partition->lock);
    statistics.items += partition->table.items();
    statistics.deadlines += partition->table.deadlines().size();
    statistics.bytes += partition->table.own_bytes();
  }
  return statistics;
}

void HashEngine::Describe(uint64_t, const StatsVisitor& visit) const {
  uint64_t buckets = 0;
  uint64_t chained = 0;
  uint64_t own_bytes = 0;
  for (const auto& partition : core_.partitions) {
    const std::lock_guard locked(partition->lock);
    buckets += partition->table.bucket_count();
    chained += partition->table.chained_buckets();
    own_bytes += partition->table.own_bytes();
  }
  const ArenaStatistics arena = core_.MemoryStatistics();
  visit("partitions", core_.partitions.size());
  visit("buckets", buckets);
  visit("chained_buckets", chained);
  visit("index_held_bytes", own_bytes);
  visit("arena_allocated_bytes", arena.allocated_bytes);
  visit("arena_held_bytes", arena.held_bytes);
}

const char* HashEngine::Verify() const {
  for (const auto& partition : core_.partitions) {
    if (const char* broken = partition->table.Verify()) return broken;
  }
  for (const auto& arena : core_.arenas) {
    if (const char* broken = arena->Verify()) return broken;
  }
  return nullptr;
}

}  // namespace skep
