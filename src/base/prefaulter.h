// prefaulter.h: a thread that makes memory resident before another thread has to wait for it.
//
// The thread that first touches a huge page waits for the system to find and clear it: 0.1 ms as a
// rule, several where a hypervisor has to find the memory first. An owner of memory that is about
// to run out asks for the next piece to be made resident; the prefaulter's thread has the system
// fill it (MADV_POPULATE_WRITE, Linux 5.14).
//
// Filling changes no byte, so a piece may be in use meanwhile, and asking too late costs nothing
// but the call. A piece that its owner gives back to the system while it is being filled may be
// resident again afterwards, zero-filled, until it is used or given back once more. It must stay
// mapped as long as the prefaulter lives.
#pragma once

#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "base/cpu.h"
#include "base/mutex.h"

namespace skep {

// Thread-safe. The thread is started by the first Ask(), and runs on the cores that the thread that
// made the prefaulter may use.
class Prefaulter {
 public:
  Prefaulter() = default;
  // Waits for the piece under way, a few milliseconds. No thread may call Ask() any more.
  ~Prefaulter();
  Prefaulter(const Prefaulter&) = delete;
  Prefaulter& operator=(const Prefaulter&) = delete;

  // Has these bytes, whole pages of a PageRegion, made resident soon. The request is dropped if the
  // system has no thread to give, no memory or no such call, or if 256 are waiting. Cost: a lock
  // and mostly a wake-up, some microseconds; the first call starts the thread.
  void Ask(std::span<std::byte> bytes);

 private:
  void Work();

  const Affinity affinity_;
  Mutex mutex_;  // guards the fields below
  ConditionVariable asked_;
  std::vector<std::span<std::byte>> waiting_ SKEP_GUARDED_BY(mutex_);
  bool ends_ SKEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace skep
