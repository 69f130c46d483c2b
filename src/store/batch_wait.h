// batch_wait.h: how long a batch that is not full waits for more operations (HeteroKV's batches
// have a fixed size and wait for ever: at a low load an operation's latency has no bound).
//
// A batch waits only if the operations that come while it waits will make it as large as is wanted,
// at the pace at which operations came lately. At a low load no batch waits, because few operations
// would come; at a high one none waits, because there are enough; between, a batch waits as long as
// it takes, and at most `wait_ns_max` from its first operation on.
//
// The pace does not tell that threads wait for an answer before their next operation. So a wait
// that has brought less than half of the operations that were wanted is followed by batches that do
// not wait: two, and twice as many each time it happens again, up to 64.
//
// The pace is a mean of the gaps between operations, of each batch that left: the newest counts a
// quarter. A gap above twice the longest wait counts as that, so that after a silence the pace is
// found again within some ten batches.
#pragma once

#include <algorithm>
#include <cstdint>

namespace skep {

// Thread safety: none; one owner. Knows no clock.
class BatchWait {
 public:
  // A batch of `wanted` operations (at least 1) does not wait.
  BatchWait(uint32_t wanted, uint64_t wait_ns_max)
      : wanted_(wanted), wait_ns_max_(wait_ns_max), gap_ns_(gap_ns_max()) {}

  // Notes that a batch leaves, with so many operations (at least 1).
  void Left(uint32_t operations, uint64_t now_ns) {
    const double gap = static_cast<double>(now_ns - left_ns_) / operations;
    gap_ns_ += (std::min(gap, gap_ns_max()) - gap_ns_) / 4;
    left_ns_ = now_ns;
    if (!has_waited_) {
      if (skips_ > 0) --skips_;
    } else if (operations < wanted_ / 2) {
      penalty_ = std::min(penalty_ * 2, kPenaltyMax);
      skips_ = penalty_;
    } else {
      penalty_ = 1;
    }
    has_waited_ = false;
  }

  // How many nanoseconds a batch of so many operations, whose first came `age_ns` ago, waits at
  // most. 0: it leaves.
  uint64_t WaitNs(uint32_t operations, uint64_t age_ns) {
    if (operations >= wanted_ || age_ns >= wait_ns_max_ || skips_ > 0) return 0;
    const double until_wanted = gap_ns_ * (wanted_ - operations);
    const uint64_t left = wait_ns_max_ - age_ns;
    if (until_wanted > static_cast<double>(left)) return 0;
    has_waited_ = true;
    return std::max<uint64_t>(static_cast<uint64_t>(until_wanted), 1);
  }

  // The mean gap between operations.
  double gap_ns() const { return gap_ns_; }
  uint32_t wanted() const { return wanted_; }

 private:
  double gap_ns_max() const { return 2 * static_cast<double>(wait_ns_max_); }

  const uint32_t wanted_;
  const uint64_t wait_ns_max_;
  double gap_ns_;
  uint64_t left_ns_ = 0;
  static constexpr uint32_t kPenaltyMax = 64;
  bool has_waited_ = false;
  uint32_t penalty_ = 1;
  uint32_t skips_ = 0;  // the next so many batches do not wait
};

}  // namespace skep
