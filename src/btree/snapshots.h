// snapshots.h: the versions that are pinned, and what is kept for them.
//
// Protocol S of versions.h covers reads inside a batch; a snapshot lives longer. The freer asks for
// the pins in an interval after it has read the released version h, and drops only what was
// replaced at a version <= h. Open() reads the released version under the mutex that pins are asked
// for under, so a snapshot that was not found reads at h or later.
//
// A batch that reads at a snapshot announces its version as read floor first, and only then asks
// whether the snapshot is live: a freer that saw it revoked sees the floor.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "btree/versions.h"
#include "engine/release_gate.h"
#include "skep/batch.h"

namespace skep::btree {

struct SnapshotStatistics {
  size_t count = 0;
  Version oldest = 0;               // 0: none
  uint64_t oldest_deadline_ms = 0;  // likewise
};

// Thread-safe.
class Snapshots {
 public:
  // Pins what `gate` has released.
  SnapshotRef Open(const ReleaseGate& gate, uint64_t id, uint64_t deadline_ms);
  // Drops the pin; false if there is none of that id. What was kept for it alone is to be looked at
  // again: TakeReleased().
  bool Close(uint64_t id);
  // Drops those whose deadline has come. Cheap if there are none.
  void CloseExpired(uint64_t now_ms);
  // Drops the oldest; false if there is none.
  bool CloseOldest();

  bool IsLive(uint64_t id) const;
  SnapshotStatistics Statistics() const;

  // The newest pinned version in [begin, end); Slot::kIdle if there is none.
  Version PinIn(Version begin, Version end) const;

  // Keeps `what` until the pin at `version` goes. If it went meanwhile, it is released at once.
  void Keep(Version version, const Retired& what);
  // Some of what was kept for pins that are gone, appended to `out`. True if there is more.
  bool TakeReleased(std::vector<Retired>* out, size_t pieces_max);
  uint64_t kept() const;  // pieces kept for pins, also for some that are gone

 private:
  struct Pin {
    Version version;
    uint64_t deadline_ms;
  };
  void Drop(std::map<uint64_t, Pin>::iterator pin);

  mutable std::mutex mutex_;              // guards all but next_deadline_ms_
  std::map<uint64_t, Pin> pins_;          // by id, so oldest first
  std::map<Version, uint32_t> versions_;  // how many pins each version has
  std::map<Version, std::vector<Retired>> kept_;
  // What was retired under pins that are gone. It comes from the map above without an allocation,
  // since pins are dropped where nothing may fail.
  std::multimap<Version, std::vector<Retired>> released_;
  uint64_t kept_count_ = 0;  // in kept_ and released_
  std::atomic<uint64_t> next_deadline_ms_{UINT64_MAX};
};

}  // namespace skep::btree
