// sweeper.h: deletes the segments of collections that nobody has any more.
//
// A delete, an overwrite or a deadline takes the record away and leaves the segments. The sweeper
// goes through the ids in the hidden keys. An id of which no record lies under one of its names
// (names.h, invariant N) never gets one again, for ids are not used twice: its items are deleted,
// kSweepItems at a time, in the order of their keys, so the names are the last.
//
// A round goes through all ids, and is begun when something may have been left: by the engine's
// batches (Want), by deadlines, and once after a start.
//
// Locks. The names are read, then the locks of those keys are taken, then it is decided: a rename
// that adds a name holds the locks of the names before (collection_engine.h).
//
// Cost of a step: at most kSweepIds looks at an id, or the deletes of kSweepItems items.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "collections/access.h"
#include "collections/key_locks.h"

namespace skep::collections {

inline constexpr uint32_t kSweepIds = 16;
inline constexpr uint32_t kSweepItems = 32;

// A collection whose name another thread has locked, for as long as a long call takes, is left to
// the next round: the sweeper, which a worker runs, does not wait, and says that there is nothing
// more to do now.
//
// Thread-safe.
class Sweeper {
 public:
  explicit Sweeper(KeyLocks& locks) : locks_(locks) {}

  // A collection may have been left by its record.
  void Want() { wanted_.fetch_add(1, std::memory_order_relaxed); }

  struct Step {
    bool more = false;    // there is more to do now
    int64_t deleted = 0;  // items
    uint64_t id = 0;      // of the collection that had them
    Version version = 0;  // of the delete
    uint32_t looks = 0;   // ids
  };
  // Does a piece of a round, if one is wanted and no other thread is at it.
  Step Run(Access& access);

 private:
  std::optional<uint64_t> NextId(Access& access) SKEP_REQUIRES(mutex_);
  bool IsLeft(Access& access, uint64_t id) SKEP_REQUIRES(mutex_);

  KeyLocks& locks_;
  std::atomic<uint64_t> wanted_{0};
  Mutex mutex_;
  uint64_t round_ SKEP_GUARDED_BY(mutex_) = 0;    // `wanted_` when the round began
  uint64_t done_ SKEP_GUARDED_BY(mutex_) = 0;     // of the last whole round
  uint64_t next_id_ SKEP_GUARDED_BY(mutex_) = 0;  // 0: no round is under way
  // A collection of this round is left to the next one.
  bool has_left_ SKEP_GUARDED_BY(mutex_) = false;
};

}  // namespace skep::collections
