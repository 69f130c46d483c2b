// field_sweeper.h: removes the fields of hashes whose deadlines have passed.
//
// A field that is due is seen by nobody (types/hash_fields.h); the sweeper gives its memory back,
// and takes away a hash that has no other fields. It knows of hashes by *hints*: a key, and a time
// at which to look at it.
//
//   hints   a batch gives a field a deadline: the key and that deadline
//           a hash with deadlines is stored or moved, or becomes a large one: the key, now
//           a look has found later deadlines: the key, and the earliest of them
//           a hash was put back into one value, or was replaced, while it was looked at: the key,
//           kSegmentMs later
//   pass    a walk over all keys, which makes a hint for each hash with deadlines: once after a
//           start, and when hints were lost for want of room
//
// A hint may be wrong: a look at a key finds what there is. So hints need no lock of a key, and
// nothing is wrong but late if one is lost.
//
// A large hash is walked a few segments at a time, and again at the earliest kSegmentMs after that
// for each segment it has. So walks of hashes of which a field expires all the time take a bounded
// part of the time, whatever their size.
//
// Cost of a step: looks at kSweepHashes hashes in one value, or kSweepSegments segments of a large
// one, or kPassKeys keys. Memory: kHintsMax hints of kHintBytesMax bytes of keys; the ones that are
// due last are lost first, and a pass over all keys finds them again once the first of them is due.
//
// Thread-safe: the hints have a lock of their own, which nobody holds while an engine executes.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "collections/access.h"

namespace skep::collections {

inline constexpr uint32_t kSweepHashes = 16;
inline constexpr uint32_t kSweepSegments = 8;
inline constexpr uint32_t kPassKeys = 64;
inline constexpr uint64_t kSegmentMs = 1;
inline constexpr size_t kHintsMax = size_t{1} << 16;
inline constexpr size_t kHintBytesMax = size_t{16} << 20;

class FieldSweeper {
 public:
  // Whether a request gives fields deadlines, or stores a hash with deadlines. Cost: some
  // comparisons.
  static bool MayGiveDeadline(const Request& request);
  // Such a request, or a move, was done.
  void NoteRequest(const Request& request);
  // A batch has such a request, and is about to be executed: from here on the keys to which
  // something is moved are looked at.
  void NoteGiven() { is_given_.store(true, std::memory_order_seq_cst); }
  // A hash with deadlines is to be looked at, at this time.
  void Note(std::string_view key, uint64_t at_ms);

  // Does a step of what is due, if no other thread is at it. `engine` executes functions on hashes
  // of either form; `access` reads parts of them. Returns whether there is more to do now.
  bool Run(Engine& engine, Access& access);
  // How many hints there are.
  size_t hints() const;

 private:
  bool MayHaveHashes() const {
    return is_given_.load(std::memory_order_seq_cst) || is_passing_.load(std::memory_order_relaxed);
  }

  struct Hint {
    uint64_t at_ms = 0;
    // While a walk of a large hash is under way, `cursor` tells where the walk goes on, `segments`
    // how many segments it has seen, and `next_ms` the earliest deadline that it leaves (0: none).
    std::optional<std::string> cursor = std::nullopt;
    uint64_t segments = 0;
    uint64_t next_ms = 0;
  };
  using Hints = std::map<std::string, Hint, std::less<>>;

  void Add(std::string_view key, const Hint& hint);
  void Erase(Hints::iterator at) SKEP_REQUIRES(mutex_);
  std::optional<std::pair<std::string, Hint>> TakeDue(uint64_t now_ms);
  // Looks at a hash; returns how many segments of a large one it has read.
  uint64_t Look(Engine& engine, Access& access, const std::string& key, Hint hint);
  uint64_t Walk(Engine& engine, Access& access, const std::string& key, uint64_t id, Hint hint);
  bool Pass(Access& access) SKEP_REQUIRES(run_mutex_);
  bool WantsPass(uint64_t now_ms) const;

  Mutex run_mutex_;
  // Where the pass goes on; nothing: none is under way.
  std::optional<std::string> pass_at_ SKEP_GUARDED_BY(run_mutex_) = std::string();
  mutable Mutex mutex_;
  Hints hints_ SKEP_GUARDED_BY(mutex_);
  std::set<std::pair<uint64_t, std::string_view>> by_time_ SKEP_GUARDED_BY(mutex_);
  size_t key_bytes_ SKEP_GUARDED_BY(mutex_) = 0;
  static constexpr uint64_t kNoneLost = UINT64_MAX;
  uint64_t lost_ms_ SKEP_GUARDED_BY(mutex_) = kNoneLost;  // when the first of the lost ones is due
  std::atomic<bool> is_passing_{true};                    // pass_at_ has a value
  std::atomic<bool> is_given_{false};                     // there was a hash with deadlines
};

}  // namespace skep::collections
