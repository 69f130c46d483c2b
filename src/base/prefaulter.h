// prefaulter.h: a thread that makes memory resident before somebody has to wait for it.
//
// Who first touches a huge page waits for the system to find and clear it: 0.1 ms as a rule,
// several where a hypervisor has to find the memory first. An owner that sees its memory run out
// asks for the next piece; the thread has the system fill it (MADV_POPULATE_WRITE, Linux 5.14).
//
// That changes no byte, so a piece may be in use meanwhile, and asking too late costs nothing but
// the call. A piece that its owner gives back to the system while it is asked for may be resident
// again afterwards, zero-filled, until it is used or given back once more. It must stay mapped as
// long as the prefaulter lives.
#pragma once

#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "base/cpu.h"
#include "base/mutex.h"

namespace skep {

// Thread-safe. There is no thread before the first Ask(); it then runs where the one that made the
// prefaulter may.
class Prefaulter {
 public:
  Prefaulter() = default;
  // Waits for the piece under way, a few milliseconds. Nobody may ask any more.
  ~Prefaulter();
  Prefaulter(const Prefaulter&) = delete;
  Prefaulter& operator=(const Prefaulter&) = delete;

  // Has these bytes, whole pages of a PageRegion, made resident soon. A wish: it is dropped if the
  // system has no thread to give, no memory or no such call, or if 256 are waiting.
  // Cost: a lock and mostly a wake-up, some microseconds; the first one starts the thread.
  void Ask(std::span<std::byte> bytes);

 private:
  void Work();

  const Affinity affinity_;
  Mutex mutex_;  // guards what follows
  ConditionVariable asked_;
  std::vector<std::span<std::byte>> waiting_ SKEP_GUARDED_BY(mutex_);
  bool ends_ SKEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace skep
