#include "engine/watches.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <utility>

#include "base/mutex.h"
#include "base/random.h"

namespace skep {

Watches::~Watches() { Release(bytes_); }

// Ids begin at 2^62, so that all of them take as many bytes as varints.
uint64_t Watches::NewId() {
  constexpr uint64_t kFirst = uint64_t{1} << 62;
  // Relaxed: only uniqueness matters.
  static std::atomic<uint64_t> next{kFirst | SystemRandom().Next() >> 2};
  return kFirst | next.fetch_add(1, std::memory_order_relaxed) % kFirst;
}

uint64_t Watches::HashOf(std::string_view key) { return XXH3_64bits(key.data(), key.size()); }

// Counted first: a caller that finds an observer knows that writers look, whoever has set it. What
// writers load is ordered behind this by the lock of the key, as in Touch().
void Watches::Observe(WriteObserver* observer) {
  if (observer_.load(std::memory_order_acquire) != nullptr) return;
  count_.fetch_add(1, std::memory_order_relaxed);
  if (observer_.exchange(observer, std::memory_order_acq_rel) != nullptr) {
    count_.fetch_sub(1, std::memory_order_relaxed);
  }
}

std::optional<uint64_t> Watches::Add(std::string_view key) {
  const MutexLock lock(mutex_);
  const size_t bytes_max = BytesOfKey(key) + kWatchBytes;
  if (budget_ != nullptr && !budget_->HasRoomFor(bytes_max)) return std::nullopt;
  auto at = keys_.find(key);
  const uint64_t hash = HashOf(key);
  const uint64_t id = NewId();
  const auto watch =
      by_id_.emplace(id, Watch{.key = at, .cohort = nullptr, .spare = std::make_shared<Cohort>()})
          .first;
  if (at == keys_.end()) {
    try {
      at = keys_.emplace(key, Key{}).first;
      by_hash_.emplace(hash, at);
    } catch (...) {
      if (at != keys_.end()) keys_.erase(at);
      by_id_.erase(watch);
      throw;
    }
    watch->second.key = at;
    cells_[hash % kCells].fetch_add(1, std::memory_order_relaxed);
    Charge(BytesOfKey(key));
  }
  ++at->second.watches;
  Charge(kWatchBytes);
  count_.fetch_add(1, std::memory_order_relaxed);
  return id;
}

void Watches::Arm(uint64_t watch, bool present, uint64_t deadline_ms) noexcept {
  const MutexLock lock(mutex_);
  const auto at = by_id_.find(watch);
  if (at == by_id_.end()) return;
  Watch& armed = at->second;
  Key& key = armed.key->second;
  std::shared_ptr<Cohort>& current = present ? key.present : key.absent;
  if (current == nullptr) current = std::move(armed.spare);
  armed.cohort = current;
  armed.spare.reset();
  armed.present = present;
  armed.deadline_ms = deadline_ms;
}

void Watches::Remove(uint64_t watch) {
  const MutexLock lock(mutex_);
  const auto at = by_id_.find(watch);
  if (at == by_id_.end()) return;
  const Keys::iterator key = at->second.key;
  by_id_.erase(at);
  Release(kWatchBytes);
  count_.fetch_sub(1, std::memory_order_relaxed);
  if (--key->second.watches == 0) DropKey(key);
}

// Called when no watch of the key is left.
void Watches::DropKey(Keys::iterator key) {
  const uint64_t hash = HashOf(key->first);
  cells_[hash % kCells].fetch_sub(1, std::memory_order_relaxed);
  auto [at, end] = by_hash_.equal_range(hash);
  while (at->second != key) ++at;
  by_hash_.erase(at);
  Release(BytesOfKey(key->first));
  keys_.erase(key);
}

namespace {

// Marks the cohort and lets go of it, so that the next watch begins another one.
template <typename CohortPointer>
void TouchCohort(CohortPointer& cohort, Version version) {
  if (cohort == nullptr) return;
  cohort->touched = true;
  cohort->version = version;
  cohort.reset();
}

}  // namespace

void Watches::TouchWatched(std::string_view key, Version version) {
  if (WriteObserver* const observer = observer_.load(std::memory_order_relaxed)) {
    observer->WillWrite(key);
    if (count_.load(std::memory_order_relaxed) == 1) return;  // no key is watched
  }
  const uint64_t hash = HashOf(key);
  if (cells_[hash % kCells].load(std::memory_order_relaxed) == 0) return;
  const MutexLock lock(mutex_);
  for (auto [at, end] = by_hash_.equal_range(hash); at != end; ++at) {
    if (at->second->first != key) continue;
    TouchCohort(at->second->second.present, version);
    TouchCohort(at->second->second.absent, version);
  }
}

void Watches::TouchWatchedRange(std::string_view lo, std::string_view hi, bool unbounded,
                                Version version) {
  if (WriteObserver* const observer = observer_.load(std::memory_order_relaxed)) {
    observer->WillWriteRange();
  }
  const MutexLock lock(mutex_);
  for (auto at = keys_.lower_bound(lo); at != keys_.end(); ++at) {
    if (!unbounded && at->first >= hi) return;
    // While it is not touched, a watched key is as it was when it was armed.
    TouchCohort(at->second.present, version);
  }
}

std::optional<Watches::Seen> Watches::Judge(uint64_t watch, std::string_view key,
                                            uint64_t now_ms) const {
  const MutexLock lock(mutex_);
  const auto at = by_id_.find(watch);
  if (at == by_id_.end()) return std::nullopt;
  const Watch& w = at->second;
  if (w.cohort == nullptr || w.key->first != key) return std::nullopt;
  const bool expired = w.present && w.deadline_ms != 0 && w.deadline_ms <= now_ms;
  return Seen{.unchanged = !w.cohort->touched && !expired, .version = w.cohort->version};
}

void Watches::Charge(size_t bytes) {
  bytes_ += bytes;
  if (budget_ != nullptr) budget_->Charge(bytes);
}

void Watches::Release(size_t bytes) {
  bytes_ -= bytes;
  if (budget_ != nullptr) budget_->Release(bytes);
}

}  // namespace skep
