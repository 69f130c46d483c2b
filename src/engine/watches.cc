#include "engine/watches.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace skep {

size_t Watches::CellOf(std::string_view key) {
  return XXH3_64bits(key.data(), key.size()) % kCells;
}

uint64_t Watches::Add(std::string_view key) {
  std::lock_guard lock(mutex_);
  const uint64_t id = ++last_id_;
  by_id_[id] = by_key_.emplace(key, Watch{.id = id});
  cells_[CellOf(key)].fetch_add(1, std::memory_order_relaxed);
  count_.fetch_add(1, std::memory_order_relaxed);
  return id;
}

void Watches::Arm(uint64_t watch, bool present, uint64_t deadline_ms) {
  std::lock_guard lock(mutex_);
  const auto at = by_id_.find(watch);
  if (at == by_id_.end()) return;
  at->second->second = {.id = watch, .present = present, .deadline_ms = deadline_ms};
}

void Watches::Remove(uint64_t watch) {
  std::lock_guard lock(mutex_);
  const auto at = by_id_.find(watch);
  if (at == by_id_.end()) return;
  cells_[CellOf(at->second->first)].fetch_sub(1, std::memory_order_relaxed);
  count_.fetch_sub(1, std::memory_order_relaxed);
  by_key_.erase(at->second);
  by_id_.erase(at);
}

void Watches::TouchWatched(std::string_view key, Version version) {
  if (cells_[CellOf(key)].load(std::memory_order_relaxed) == 0) return;
  std::lock_guard lock(mutex_);
  for (auto [at, end] = by_key_.equal_range(key); at != end; ++at) {
    if (at->second.touched) continue;
    at->second.touched = true;
    at->second.version = version;
  }
}

void Watches::TouchWatchedRange(std::string_view lo, std::string_view hi, bool unbounded,
                                Version version) {
  std::lock_guard lock(mutex_);
  for (auto at = by_key_.lower_bound(lo); at != by_key_.end(); ++at) {
    if (!unbounded && at->first >= hi) return;
    // A watched key that is not touched is as it was when it was armed.
    if (at->second.touched || !at->second.present) continue;
    at->second.touched = true;
    at->second.version = version;
  }
}

std::optional<Watches::Seen> Watches::Judge(uint64_t watch, uint64_t now_ms) const {
  std::lock_guard lock(mutex_);
  const auto at = by_id_.find(watch);
  if (at == by_id_.end()) return std::nullopt;
  const Watch& w = at->second->second;
  const bool expired = w.present && w.deadline_ms != 0 && w.deadline_ms <= now_ms;
  return Seen{.unchanged = !w.touched && !expired, .version = w.version};
}

}  // namespace skep
