// model_engine.h: the engine that is simple and certainly right.
//
// A std::map from key to the newest value and the older ones that snapshots still need, behind one
// mutex. It is the first engine a server can run on, and the oracle of every later one; it is meant
// to be read, not raced.
//
// Versions. A batch runs from start to end under the mutex. All its writes carry one version, one
//   more than the last batch that wrote, and are released to readers before the mutex is dropped.
//   So every batch takes effect at one instant, atomic or not, and no ticket ever has to wait.
// Snapshots. A snapshot is the number of the last released version. An old value, written at v and
//   replaced at w, is kept while a live snapshot s has v <= s < w. When a snapshot is dropped, the
//   entries that hold old values are swept a few at a time (stale_).
// Undo. Before an atomic batch changes an entry it keeps a copy; if a slot fails, the copies of its
//   part are put back.
// Deadlines. A key past its deadline counts as absent. Maintain() deletes such keys by a write of
//   its own, in the order of their deadlines, which deadlines_ has.
// Flush. Deleting everything while no snapshot lives hands the whole map to graveyard_, which is
//   freed a few entries at a time, so that FLUSHALL delays no other batch.
//
// Invariants. True whenever the mutex is free; Verify() checks them.
//   M1  versions in an entry rise from older[0] to newest, and none exceeds version_.
//   M2  live_[e.live_index] is e exactly for the entries whose newest value is present.
//   M3  an entry that holds old values or whose newest is absent is marked stale, and is in stale_
//       exactly once; an entry not marked is not in it.
//   M4  old_versions_ is the number of old values.
//   M5  deadlines_ has exactly the entries whose newest value is present and has a deadline.
//
// Cost: O(log n) for a point, O(log n + keys visited) for a range; deleted keys that a snapshot
// still needs are visited too. A batch holds the mutex from start to end: a range delete, an atomic
// batch, a scan or a value of many megabytes delays every other batch for as long as it takes.
// Bytes: the map's node, the key and value where they exceed 15 bytes, and 8 bytes in live_.
#pragma once

#include <deque>
#include <map>
#include <memory_resource>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "engine/engine_info.h"
#include "engine/point.h"

namespace skep {

class BatchWriter;

class ModelEngine final : public Engine {
 public:
  static const EngineInfo kInfo;

  explicit ModelEngine(const EngineOptions& options);

  const EngineTraits& traits() const override { return traits_; }
  Version Execute(Batch& batch) override;
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override;
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override;
  void CloseSnapshot(SnapshotRef snapshot) override;
  Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t now_ms) override;
  void StartAfter(Version version, uint64_t now_ms) override;
  bool Maintain(uint64_t now_ms) override;
  EngineStatistics Statistics() const override;
  const char* Verify() const override;

 private:
  using Bytes = std::pmr::string;

  struct Value {
    Version version = 0;
    bool present = false;
    uint8_t type = kPlainType;
    uint64_t deadline_ms = 0;  // 0: none
    Bytes bytes;

    PointState state() const { return {bytes, deadline_ms, type}; }
  };
  struct Entry {
    using allocator_type = std::pmr::polymorphic_allocator<>;
    explicit Entry(allocator_type memory) : newest{.bytes = Bytes(memory)}, older(memory) {}

    Value newest;
    std::pmr::vector<Value> older;  // oldest first
    size_t live_index = 0;          // in live_, if newest is present
    bool stale = false;             // M3
  };
  using Map = std::pmr::map<Bytes, Entry, std::less<>>;
  struct OpenedSnapshot {
    Version version;
    uint64_t deadline_ms;
  };
  // The state of an entry before an atomic batch changed it.
  struct Undo {
    std::string key;
    bool present;
    uint8_t type;
    Version version;
    uint64_t deadline_ms;
    Bytes bytes;
    bool pushed;  // the newest value was moved to `older`
  };
  class Run;  // one batch; model_engine.cc

  static const Value* ReadAt(const Entry& entry, Version at);
  // Throws before it has changed anything, or not at all. If it throws, the caller removes an entry
  // that is empty.
  void Write(Map::iterator at, std::optional<PointState> state, Version version)
      SKEP_REQUIRES(mutex_);
  void PrepareWrite(Map::iterator at, bool present, uint64_t deadline_ms, bool keeps)
      SKEP_REQUIRES(mutex_);
  void SetPresent(Map::iterator at, bool present, uint64_t deadline_ms) SKEP_REQUIRES(mutex_);
  bool IsNeeded(Version from, Version until) const SKEP_REQUIRES(mutex_);
  bool KeepsNewest(const Entry& entry, Version replaced_at) const SKEP_REQUIRES(mutex_);
  void EraseIfEmpty(Map::iterator at) SKEP_REQUIRES(mutex_);
  void Prune(Entry& entry) SKEP_REQUIRES(mutex_);
  bool SweepSome(size_t entries_max) SKEP_REQUIRES(mutex_);
  void Unpin(std::map<uint64_t, OpenedSnapshot>::iterator snapshot) SKEP_REQUIRES(mutex_);
  void RevokeOld(uint64_t now_ms) SKEP_REQUIRES(mutex_);
  bool BurySome(size_t entries_max) SKEP_REQUIRES(mutex_);
  bool ExpireSome(uint64_t now_ms, size_t entries_max) SKEP_REQUIRES(mutex_);
  bool MakeRoomFor(uint64_t bytes) SKEP_REQUIRES(mutex_);

  const EngineTraits traits_;
  const EngineOptions options_;
  BudgetedMemory memory_;

  mutable Mutex mutex_;
  Map map_ SKEP_GUARDED_BY(mutex_);
  std::pmr::vector<Map::iterator> live_ SKEP_GUARDED_BY(mutex_);
  Version version_ SKEP_GUARDED_BY(mutex_) = 0;  // of the last batch that wrote
  std::map<uint64_t, OpenedSnapshot> snapshots_ SKEP_GUARDED_BY(mutex_);  // by id, so oldest first
  std::multiset<Version> pinned_ SKEP_GUARDED_BY(mutex_);                 // versions of snapshots_
  std::pmr::set<std::pair<uint64_t, std::string_view>> deadlines_
      SKEP_GUARDED_BY(mutex_);  // and the keys they are of
  std::pmr::deque<Map::iterator> stale_ SKEP_GUARDED_BY(mutex_);
  size_t sweep_left_ SKEP_GUARDED_BY(mutex_) =
      0;  // entries of stale_ to look at since a snapshot went
  size_t old_versions_ SKEP_GUARDED_BY(mutex_) = 0;
  uint64_t expired_keys_ SKEP_GUARDED_BY(mutex_) = 0;
  std::vector<Map> graveyard_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep
