// watches.h: keys that somebody watches, and whether they were written since (Redis's WATCH).
//
// The engine's side of kRequireUnchanged. A watch is made in two steps: Add() makes writers look;
// then the engine, while no write of the key can take effect, reads the key and calls Arm(). From
// then on every write calls Touch() before it takes effect and while it excludes Arm() and the
// judging of the condition: under the lock of the key's node, say. So a write is either seen by the
// read of Arm(), or touches the watch.
//
// Ids. A watch is of one key, of one engine, in one process. Its id must never be taken for that of
// another watch, also when a server was started again and its clients were not. So ids are drawn
// from one counter for all engines of the process, which begins at random among 2^62 numbers; and
// the caller that judges a watch names its key.
//
// All watches of a key that were armed since it was last written share a cohort. A write marks the
// cohort; the next watch begins another one. So a write costs the same for any number of watches:
//
//   key ---- present: cohort -------+---- watch 7 (armed since the last write of the key)
//     |                              `--- watch 9
//     |      (no longer current)
//     |                cohort, touched at version 12 ---- watch 3
//      `---- absent:  cohort              (armed when the key was absent)
//
// An observer is told of every write of any key, at the same place as the watches: by the lock that
// a write holds there, it is told before the write can be seen, and after Engine::Watch of the key
// was called for the last time before that.
//
// Writers pay a load while no key is watched and nobody observes; else a hash and a load, and the
// mutex only if the key shares its hash's cell with a watched one. Watches are charged to the
// engine's budget.
//
// Thread safety: any thread may call any method.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/memory_budget.h"
#include "base/mutex.h"
#include "skep/batch.h"

namespace skep {

// Is told of writes. Its methods run on the writers' threads, which hold locks: they must not wait,
// write to the engine, or throw.
class WriteObserver {
 public:
  virtual ~WriteObserver() = default;
  virtual void WillWrite(std::string_view key) noexcept = 0;
  // Keys of a range, or all, will be deleted.
  virtual void WillWriteRange() noexcept = 0;
};

class Watches {
 public:
  struct Seen {
    bool unchanged;
    Version version;  // of the write that changed the key; 0: none, it expired
  };

  Watches() = default;
  ~Watches();
  // Called before anything else. The budget must outlive this object.
  void set_budget(MemoryBudget* budget) { budget_ = budget; }

  // Tells the observer of every write that locks its key after a Watch that is called after this.
  // One observer for the life of the object, which it must outlive.
  void Observe(WriteObserver* observer);

  // Nullopt if the budget has no room for the watch. If std::bad_alloc is thrown nothing is
  // watched. Cost: logarithmic in the number of watched keys.
  std::optional<uint64_t> Add(std::string_view key);
  // Tells the watch what the key was: present, until the deadline (0: none). Once a watch, after
  // Add().
  void Arm(uint64_t watch, bool present, uint64_t deadline_ms) noexcept;
  void Remove(uint64_t watch);

  // Marks a write or delete of the key at this version. Cost: the same for any number of watches.
  void Touch(std::string_view key, Version version) {
    // Relaxed: the caller's lock orders it after Add() if Arm() came before (see above).
    if (count_.load(std::memory_order_relaxed) != 0) TouchWatched(key, version);
  }
  // Marks the deletion of all keys in [lo, hi). Cost: the watched keys in the range.
  void TouchRange(std::string_view lo, std::string_view hi, bool unbounded, Version version) {
    if (count_.load(std::memory_order_relaxed) != 0) TouchWatchedRange(lo, hi, unbounded, version);
  }

  // Nullopt if there is no such watch of this key.
  std::optional<Seen> Judge(uint64_t watch, std::string_view key, uint64_t now_ms) const;

  // The bytes charged for the watches of one key together, and for each watch.
  static constexpr size_t BytesOfKey(std::string_view key) { return kKeyBytes + key.size(); }
  static constexpr size_t kWatchBytes = 128;

 private:
  struct Cohort {
    bool touched = false;
    Version version = 0;
  };
  struct Key {
    // The current cohorts of the key: of watches armed since it was last written, by whether it was
    // present or absent then; null: there are none. (An expired key is absent, though nobody has
    // written it.)
    std::shared_ptr<Cohort> present, absent;
    size_t watches = 0;
  };
  using Keys = std::map<std::string, Key, std::less<>>;  // in order, for ranges
  struct Watch {
    Keys::iterator key;
    std::shared_ptr<Cohort> cohort;  // null: it is not armed
    std::shared_ptr<Cohort> spare;   // gives Arm() its memory; null: the watch is armed
    bool present = false;
    uint64_t deadline_ms = 0;
  };
  static constexpr size_t kKeyBytes = 400;
  static constexpr size_t kCells = 4096;

  static uint64_t NewId();
  static uint64_t HashOf(std::string_view key);
  void TouchWatched(std::string_view key, Version version);
  void TouchWatchedRange(std::string_view lo, std::string_view hi, bool unbounded, Version version);
  void Charge(size_t bytes) SKEP_REQUIRES(mutex_);
  void Release(size_t bytes) SKEP_REQUIRES(mutex_);
  void DropKey(Keys::iterator key) SKEP_REQUIRES(mutex_);

  MemoryBudget* budget_ = nullptr;
  std::atomic<WriteObserver*> observer_{nullptr};
  std::atomic<uint32_t> count_{0};                     // of watches, and 1 for an observer
  std::array<std::atomic<uint32_t>, kCells> cells_{};  // the number of watched keys with this hash
  mutable Mutex mutex_;
  Keys keys_ SKEP_GUARDED_BY(mutex_);
  std::unordered_multimap<uint64_t, Keys::iterator> by_hash_ SKEP_GUARDED_BY(mutex_);  // of keys_
  std::unordered_map<uint64_t, Watch> by_id_ SKEP_GUARDED_BY(mutex_);
  size_t bytes_ SKEP_GUARDED_BY(mutex_) = 0;  // charged
};

}  // namespace skep
