// client_pause.h: CLIENT PAUSE: until when commands of clients wait, for all workers.
//
// A worker looks at it before each command of RESP (command_dispatch.h), so what it reads is two
// words that are written by CLIENT PAUSE and UNPAUSE only. A command that began before is not
// stopped. Messages of the packed protocol do not wait.
//
// Thread-safe. Relaxed: nothing else is read because of it; a worker that sees a pause a moment
// late has run a command that came a moment before. Of two pauses that begin at the same time
// either may be the one that counts.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace skep {

class ClientPause {
 public:
  // Until the instant `until_ms` of the monotonic clock. Of a pause that goes on the later end
  // counts, and that all commands wait.
  void Begin(uint64_t until_ms, bool only_writes, uint64_t now_ms) {
    const bool goes_on = now_ms < until_ms_.load(std::memory_order_relaxed);
    const bool all = !only_writes || (goes_on && !only_writes_.load(std::memory_order_relaxed));
    only_writes_.store(!all, std::memory_order_relaxed);
    if (goes_on) until_ms = std::max(until_ms, until_ms_.load(std::memory_order_relaxed));
    until_ms_.store(until_ms, std::memory_order_relaxed);
  }
  void End() { until_ms_.store(0, std::memory_order_relaxed); }

  // Whether a command has to wait.
  bool Holds(bool writes, uint64_t now_ms) const {
    if (now_ms >= until_ms_.load(std::memory_order_relaxed)) return false;
    return writes || !only_writes_.load(std::memory_order_relaxed);
  }
  uint64_t until_ms() const { return until_ms_.load(std::memory_order_relaxed); }

  // Clients that wait.
  void CountWaiting(int64_t more) { waiting_.fetch_add(more, std::memory_order_relaxed); }
  int64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> until_ms_{0};
  std::atomic<bool> only_writes_{false};
  std::atomic<int64_t> waiting_{0};
};

}  // namespace skep
