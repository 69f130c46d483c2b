#include "base/epochs.h"

#include <algorithm>

#include "base/mutex.h"

namespace skep {

Epochs::~Epochs() {
  for (Retired& retired : retired_) retired.free();
}

uint32_t Epochs::ShardOfThread() {
  static std::atomic<uint32_t> next{0};
  static thread_local const uint32_t shard = next.fetch_add(1, std::memory_order_relaxed) % kShards;
  return shard;
}

void Epochs::Retire(Garbage& garbage) noexcept {
  const MutexLock lock(mutex_);
  const uint64_t epoch = epoch_.load(std::memory_order_seq_cst);
  for (Retired& one : garbage) one.epoch = epoch;
  retired_.splice(retired_.end(), garbage);
}

bool Epochs::Reclaim() {
  Garbage free;
  bool has_more = false;
  {
    const MutexLock lock(mutex_);
    if (retired_.empty()) return false;
    uint64_t epoch = epoch_.load(std::memory_order_seq_cst);
    const auto is_empty = [&](uint64_t set) {
      return std::ranges::all_of(counts_[set & 1], [](const Count& count) {
        return count.value.load(std::memory_order_seq_cst) == 0;  // (1)
      });
    };
    for (int steps = 0; steps < 2 && is_empty(epoch + 1); ++steps) {
      epoch_.store(++epoch, std::memory_order_seq_cst);
    }
    while (!retired_.empty() && retired_.front().epoch + 2 <= epoch) {
      free.splice(free.end(), retired_, retired_.begin());
    }
    has_more = !retired_.empty();
  }
  for (const Retired& one : free) one.free();
  return has_more;
}

}  // namespace skep
