#include "btree/snapshots.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/mutex.h"

namespace skep::btree {

SnapshotRef Snapshots::Open(const ReleaseGate& gate, uint64_t id, uint64_t deadline_ms) {
  const MutexLock lock(mutex_);
  const Version version = gate.released();
  const auto pin = pins_.emplace(id, Pin{.version = version, .deadline_ms = deadline_ms}).first;
  try {
    ++PinnedAt(version).pins;
  } catch (...) {
    pins_.erase(pin);
    throw;
  }
  next_deadline_ms_.store(std::min(next_deadline_ms_.load(std::memory_order_relaxed), deadline_ms),
                          std::memory_order_relaxed);
  return {.version = version, .id = id};
}

bool Snapshots::Close(uint64_t id) {
  const MutexLock lock(mutex_);
  const auto pin = pins_.find(id);
  if (pin == pins_.end()) return false;
  Drop(pin);
  return true;
}

void Snapshots::CloseExpired(uint64_t now_ms) {
  if (now_ms < next_deadline_ms_.load(std::memory_order_relaxed)) return;
  const MutexLock lock(mutex_);
  uint64_t next = UINT64_MAX;
  for (auto pin = pins_.begin(); pin != pins_.end();) {
    const auto here = pin++;
    if (here->second.deadline_ms <= now_ms) {
      Drop(here);
    } else {
      next = std::min(next, here->second.deadline_ms);
    }
  }
  next_deadline_ms_.store(next, std::memory_order_relaxed);
}

bool Snapshots::CloseOldest() {
  const MutexLock lock(mutex_);
  for (auto pin = pins_.begin(); pin != pins_.end(); ++pin) {
    if (versions_.find(pin->second.version)->second.uses > 0) continue;
    Drop(pin);
    return true;
  }
  return false;
}

Snapshots::Pinned& Snapshots::PinnedAt(Version version) {
  Pinned& pinned = versions_.try_emplace(version, &memory_).first->second;
  pinned_versions_.store(versions_.size(), std::memory_order_relaxed);
  return pinned;
}

void Snapshots::Drop(std::map<uint64_t, Pin>::iterator pin) {
  Unpin(versions_.find(pin->second.version));
  pins_.erase(pin);
}

void Snapshots::Unpin(std::map<Version, Pinned>::iterator version) {
  Pinned& pinned = version->second;
  if (--pinned.pins > 0) return;
  if (pinned.kept.empty()) {
    versions_.erase(version);
  } else {
    released_.insert(versions_.extract(version));
  }
  pinned_versions_.store(versions_.size(), std::memory_order_relaxed);
}

std::optional<Version> Snapshots::BeginUse(uint64_t id) {
  const MutexLock lock(mutex_);
  const auto pin = pins_.find(id);
  if (pin == pins_.end()) return std::nullopt;
  Pinned& pinned = versions_.find(pin->second.version)->second;
  ++pinned.pins;
  if (++pinned.uses == 1) used_bytes_ += pinned.bytes;
  return pin->second.version;
}

void Snapshots::BeginUseAt(Version version) {
  const MutexLock lock(mutex_);
  Pinned& pinned = PinnedAt(version);
  ++pinned.pins;
  if (++pinned.uses == 1) used_bytes_ += pinned.bytes;
}

void Snapshots::EndUse(Version version) {
  const MutexLock lock(mutex_);
  const auto pinned = versions_.find(version);
  if (--pinned->second.uses == 0) used_bytes_ -= pinned->second.bytes;
  Unpin(pinned);
}

SnapshotStatistics Snapshots::Statistics() const {
  const MutexLock lock(mutex_);
  if (pins_.empty()) return {};
  return {.count = pins_.size(),
          .oldest = pins_.begin()->second.version,
          .oldest_deadline_ms = pins_.begin()->second.deadline_ms};
}

Version Snapshots::PinIn(Version begin, Version end) const {
  const MutexLock lock(mutex_);
  const auto above = versions_.lower_bound(end);
  if (above == versions_.begin()) return ThreadState::kIdle;
  const Version newest = std::prev(above)->first;
  return newest >= begin ? newest : ThreadState::kIdle;
}

void Snapshots::Keep(Version version, const Retired& what) {
  const MutexLock lock(mutex_);
  if (const auto at = versions_.find(version); at != versions_.end()) {
    Pinned& pinned = at->second;
    pinned.kept.push_back(what);
    pinned.bytes += what.bytes;
    if (pinned.uses > 0) used_bytes_ += what.bytes;
  } else {
    Pinned gone(&memory_);
    gone.kept.push_back(what);
    released_.emplace(version, std::move(gone));
  }
  ++kept_count_;
  kept_bytes_ += what.bytes;
}

bool Snapshots::TakeReleased(std::vector<Retired>* out, size_t pieces_max) {
  const MutexLock lock(mutex_);
  while (pieces_max > 0 && !released_.empty()) {
    const auto last = std::prev(released_.end());
    std::pmr::vector<Retired>& pieces = last->second.kept;
    const size_t taken = std::min(pieces_max, pieces.size());
    out->insert(out->end(), pieces.end() - static_cast<ptrdiff_t>(taken), pieces.end());
    for (size_t i = pieces.size() - taken; i < pieces.size(); ++i) kept_bytes_ -= pieces[i].bytes;
    pieces.resize(pieces.size() - taken);
    pieces_max -= taken;
    kept_count_ -= taken;
    if (pieces.empty()) released_.erase(last);
  }
  return !released_.empty();
}

uint64_t Snapshots::RevocableBytes() const {
  const MutexLock lock(mutex_);
  return kept_bytes_ - used_bytes_;
}

uint64_t Snapshots::kept() const {
  const MutexLock lock(mutex_);
  return kept_count_;
}

}  // namespace skep::btree
