// watches.h: keys that somebody watches, and whether they were written since (Redis's WATCH).
//
// The engine's side of kRequireUnchanged. A watch is made in two steps: Add() makes writers look;
// then the engine, while no write of the key can take effect, reads the key and calls Arm(). From
// then on every write calls Touch() before it takes effect and while it excludes Arm() and the
// judging of the condition: under the lock of the key's node, say. So a write is either seen by the
// read of Arm(), or touches the watch.
//
// Writers pay a load while nobody watches; else a hash and a load, and the mutex only if the key
// shares its hash's cell with a watched one.
//
// Thread safety: all calls, from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "skep/batch.h"

namespace skep {

class Watches {
 public:
  struct Seen {
    bool unchanged;
    Version version;  // of the write that changed it; 0: none, it expired
  };

  uint64_t Add(std::string_view key);
  // What the key was: present, until the deadline (0: none).
  void Arm(uint64_t watch, bool present, uint64_t deadline_ms);
  void Remove(uint64_t watch);

  // A write or delete of the key at this version.
  void Touch(std::string_view key, Version version) {
    // Relaxed: the caller's lock orders it after Add() if Arm() came before (see above).
    if (count_.load(std::memory_order_relaxed) != 0) TouchWatched(key, version);
  }
  // Everything present in [lo, hi) is deleted. Cost: the watches in the range.
  void TouchRange(std::string_view lo, std::string_view hi, bool unbounded, Version version) {
    if (count_.load(std::memory_order_relaxed) != 0) TouchWatchedRange(lo, hi, unbounded, version);
  }

  // Nothing if there is no such watch.
  std::optional<Seen> Judge(uint64_t watch, uint64_t now_ms) const;

 private:
  struct Watch {
    uint64_t id;
    bool touched = false;
    bool present = false;
    Version version = 0;
    uint64_t deadline_ms = 0;
  };
  using ByKey = std::multimap<std::string, Watch, std::less<>>;
  static constexpr size_t kCells = 1024;

  void TouchWatched(std::string_view key, Version version);
  void TouchWatchedRange(std::string_view lo, std::string_view hi, bool unbounded, Version version);
  static size_t CellOf(std::string_view key);

  std::atomic<uint32_t> count_{0};
  std::array<std::atomic<uint32_t>, kCells> cells_{};  // how many watched keys have this hash
  mutable std::mutex mutex_;                           // guards everything below
  uint64_t last_id_ = 0;
  ByKey by_key_;
  std::unordered_map<uint64_t, ByKey::iterator> by_id_;
};

}  // namespace skep
