// window.h: the measured part of a run, and the counts in it.
//
//   warm-up | measured              | the last answers
//           ^ begin                 ^ end
//
//   operations  those answered while measuring
//   latency     of all requests meant to be sent in [begin, end), from when they were meant to be
//               sent, whenever the answer comes: so requests that a stall held up are included
//   lateness    how long after its intended time a request was sent
//
// Times are Clock::MonotonicNs, and are given by the caller: the window reads no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/histogram.h"

namespace skep::bench {

// Thread safety: none; one owner.
class NetWindow {
 public:
  enum class Phase : uint8_t { kWarmUp, kMeasured, kOver };
  static constexpr uint64_t kNever = UINT64_MAX;

  // Ends `length_ns` after it began, or when ops_max operations were answered in it.
  NetWindow(uint64_t begin_ns, uint64_t length_ns, uint64_t ops_max)
      : begin_ns_(begin_ns),
        end_ns_(length_ns > kNever - begin_ns ? kNever : begin_ns + length_ns),
        ops_max_(ops_max) {}

  Phase phase() const { return phase_; }
  // Returns when the phase ends, unless by operations; kNever if it is the last one.
  uint64_t edge_ns() const {
    if (phase_ == Phase::kOver) return kNever;
    return phase_ == Phase::kWarmUp ? begin_ns_ : end_ns_;
  }
  // Returns whether a phase has ended now: at most one in a call.
  bool Observe(uint64_t now_ns) {
    if (phase_ == Phase::kWarmUp && now_ns >= begin_ns_) {
      phase_ = Phase::kMeasured;
      observed_begin_ns_ = now_ns;
      return true;
    }
    if (phase_ == Phase::kMeasured && (now_ns >= end_ns_ || ops_ >= ops_max_)) {
      phase_ = Phase::kOver;
      observed_end_ns_ = now_ns;
      end_ns_ = std::min(end_ns_, now_ns);
      return true;
    }
    return false;
  }

  // Returns whether a request meant for that time belongs to the run: it must not be after its end.
  bool Sends(uint64_t meant_ns) const { return meant_ns < end_ns_; }
  void Sent(uint64_t meant_ns, uint64_t now_ns) {
    if (IsMeasured(meant_ns)) late_ns_.Record(now_ns - meant_ns);
  }
  void Answered(uint64_t meant_ns, uint64_t now_ns, uint64_t operations) {
    if (phase_ == Phase::kMeasured) ops_ += operations;
    if (IsMeasured(meant_ns)) latency_ns_.Record(now_ns - meant_ns, operations);
  }

  uint64_t ops() const { return ops_; }
  // Returns how long it measured. The window must be over.
  double seconds() const {
    return static_cast<double>(observed_end_ns_ - observed_begin_ns_) * 1e-9;
  }
  const Histogram& latency_ns() const { return latency_ns_; }  // one entry an operation
  const Histogram& late_ns() const { return late_ns_; }        // one entry a request

 private:
  bool IsMeasured(uint64_t meant_ns) const { return meant_ns >= begin_ns_ && meant_ns < end_ns_; }

  const uint64_t begin_ns_;
  uint64_t end_ns_;
  const uint64_t ops_max_;
  Phase phase_ = Phase::kWarmUp;
  uint64_t observed_begin_ns_ = 0;
  uint64_t observed_end_ns_ = 0;
  uint64_t ops_ = 0;
  Histogram latency_ns_;
  Histogram late_ns_;
};

}  // namespace skep::bench
