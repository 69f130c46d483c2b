// snapshots.h: the versions that are pinned, and the pieces that are kept for them.
//
// Protocol S of versions.h covers reads inside a batch; a snapshot lives longer. The freer looks
// for pins in an interval after it has read the released version h, and drops only pieces replaced
// at a version <= h. Open() reads the released version under the mutex under which the freer looks,
// so a snapshot that the freer did not find reads at h or later.
//
// A batch that reads at a snapshot pins its version once more until the batch ends, so that a
// snapshot that is dropped meanwhile keeps what it sees. Such a batch announces no read floor: a
// floor would hold back every piece that any thread replaces, not only those that the snapshot
// sees. A batch of many reads at one version without a snapshot pins that version, too, once it has
// gone on for a while, and gives up its floor: else each buffer that others replace meanwhile would
// lie between the newest one and the one it reads, and the longer the batch took the longer each
// read would take.
//
// Waiting. One mutex guards the list. A batch that reads at a snapshot takes it when it begins and
// when it ends, and not in between; a batch that reads at no snapshot takes it only when a snapshot
// has come to its age. A thread that holds the mutex does one look-up, or takes over a bounded
// number of pieces (TakeReleased), or walks the pins once when one has come to its age
// (CloseExpired).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <optional>
#include <vector>

#include "base/memory_budget.h"
#include "base/mutex.h"
#include "btree/versions.h"
#include "engine/release_gate.h"
#include "skep/batch.h"

namespace skep::btree {

struct SnapshotStatistics {
  size_t count = 0;
  Version oldest = 0;               // 0: none
  uint64_t oldest_deadline_ms = 0;  // 0: none
};

// Thread-safe. The lists of kept pieces are charged to the memory budget.
class Snapshots {
 public:
  explicit Snapshots(MemoryBudget& budget) : memory_(budget) {}

  // Pins the version that `gate` has released.
  SnapshotRef Open(const ReleaseGate& gate, uint64_t id, uint64_t deadline_ms);
  // Drops the pin; false if there is none of that id. The pieces kept for it alone go to
  // TakeReleased().
  bool Close(uint64_t id);
  // Drops the snapshots whose deadline has come. Cheap if there are none.
  void CloseExpired(uint64_t now_ms);
  // Drops the oldest snapshot at which no batch is reading: what a batch reads at would not be
  // freed before that batch ends. False if there is none.
  bool CloseOldest();

  struct ReadVersion {
    Version version;
  };
  // A batch's use of a snapshot, for as long as this object lives. What the snapshot sees is kept
  // so long, also if the snapshot is dropped meanwhile.
  class Use {
   public:
    Use(Snapshots& snapshots, uint64_t id)
        : snapshots_(snapshots), version_(snapshots.BeginUse(id)) {}
    // A use of a version that need not be that of a snapshot. The caller has announced a read floor
    // that is not above it.
    Use(Snapshots& snapshots, ReadVersion at) : snapshots_(snapshots), version_(at.version) {
      snapshots.BeginUseAt(at.version);
    }
    ~Use() {
      if (version_) snapshots_.EndUse(*version_);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    // The version of the snapshot; none if there is no snapshot of that id.
    std::optional<Version> version() const { return version_; }

   private:
    Snapshots& snapshots_;
    const std::optional<Version> version_;
  };

  SnapshotStatistics Statistics() const;

  // Whether any version is pinned. Takes no lock, so that another thread may pin one meanwhile.
  bool has_pins() const { return pinned_versions_.load(std::memory_order_relaxed) > 0; }
  // The newest pinned version in [begin, end); ThreadState::kIdle if there is none.
  Version PinIn(Version begin, Version end) const;

  // Keeps `what` until the pin at `version` goes. If it is gone already, `what` is released at
  // once.
  void Keep(Version version, const Retired& what);
  // Appends some of the pieces kept for pins that are gone to `out`. True if there are more.
  bool TakeReleased(std::vector<Retired>* out, size_t pieces_max);
  uint64_t kept() const;  // pieces kept for pins, also for some that are gone
  // The bytes of the pieces that are kept for snapshots at which no batch is reading. At most so
  // many would be freed if all of those snapshots were dropped.
  uint64_t RevocableBytes() const;
  // The bytes that the lists of these pieces take.
  uint64_t held_bytes() const { return memory_.used(); }

 private:
  struct Pin {
    Version version;
    uint64_t deadline_ms;
  };
  struct Pinned {
    explicit Pinned(std::pmr::memory_resource* memory) : kept(memory) {}

    uint32_t pins = 0;   // snapshots at this version, and batches that read at them
    uint32_t uses = 0;   // those of `pins` that are batches
    uint64_t bytes = 0;  // of the pieces in `kept`
    std::pmr::vector<Retired> kept;
  };
  std::optional<Version> BeginUse(uint64_t id);
  void BeginUseAt(Version version);
  void EndUse(Version version);
  // The entry of a version that gets a pin.
  Pinned& PinnedAt(Version version) SKEP_REQUIRES(mutex_);
  void Drop(std::map<uint64_t, Pin>::iterator pin) SKEP_REQUIRES(mutex_);
  void Unpin(std::map<Version, Pinned>::iterator version) SKEP_REQUIRES(mutex_);

  BudgetedMemory memory_;
  mutable Mutex mutex_;
  std::map<uint64_t, Pin> pins_ SKEP_GUARDED_BY(mutex_);        // by id, so oldest first
  std::map<Version, Pinned> versions_ SKEP_GUARDED_BY(mutex_);  // the versions that have pins
  // The pieces that were kept for pins that are gone. An entry moves here from the map above
  // without an allocation, since pins are dropped where nothing may fail.
  std::multimap<Version, Pinned> released_ SKEP_GUARDED_BY(mutex_);
  uint64_t kept_count_ SKEP_GUARDED_BY(mutex_) = 0;  // pieces in both maps
  uint64_t kept_bytes_ SKEP_GUARDED_BY(mutex_) = 0;  // bytes of those
  uint64_t used_bytes_ SKEP_GUARDED_BY(mutex_) = 0;  // those at versions that batches read at
  std::atomic<uint64_t> next_deadline_ms_{UINT64_MAX};
  std::atomic<size_t> pinned_versions_{0};  // the size of versions_
};

}  // namespace skep::btree
