// stand_in.h: a thread that drains an endpoint's completion queue while the owner does not poll.
//
//   owner in Poll       drains by itself; the stand-in looks from time to time whether it is away
//   owner away          after kAwayMs the stand-in drains: it waits at the queue's descriptor, or
//                       naps kNapUs at a time where the provider has none
//
// So peers read and write the regions of a process that is busy with something else, stopped in a
// debugger excepted. A provider that carries out operations in hardware does not need it, and is
// not slower for it: nothing is ready then.
//
// What the stand-in drains is kept in the links until the owner's next Poll; it calls nothing of
// the owner's. Both hold the domain's mutex while they drain, for as long as there are completions.
// The owner's destructor waits for the stand-in, which wakes up at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/file_descriptor.h"
#include "base/mutex.h"
#include "ofi/ofi_domain.h"

namespace skep::rma {

class StandIn {
 public:
  static constexpr int kAwayMs = 1;
  static constexpr int kAwayMsMax = 16;
  static constexpr int kNapUs = 50;

  // The domain outlives it.
  explicit StandIn(OfiDomain& domain);
  ~StandIn();

  // By the owner: it begins to wait in Poll, and has waited.
  void OwnerWaits() { is_waiting_.store(true, std::memory_order_relaxed); }
  void OwnerHasWaited() {
    is_waiting_.store(false, std::memory_order_relaxed);
    turns_.fetch_add(1, std::memory_order_relaxed);
  }
  // How often it has drained.
  uint64_t drained() const { return drained_.load(std::memory_order_relaxed); }

 private:
  void Run();
  bool IsAway(uint64_t turns) const;
  bool Drain();
  void Nap(int fd, int64_t microseconds) const;

  OfiDomain& domain_;
  FileDescriptor stop_;  // an eventfd
  std::atomic<bool> is_stopped_ = false;
  // Relaxed: they say when to drain, which is right at any time.
  std::atomic<bool> is_waiting_ = false;
  std::atomic<uint64_t> turns_ = 0;
  std::atomic<uint64_t> drained_ = 0;
  std::thread thread_;
};

}  // namespace skep::rma
