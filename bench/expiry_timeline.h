// expiry_timeline.h: says which part of a run a command belongs to.
//
//   warm-up |   before   |gap|      during      |   after    |
//           ^            ^   ^                  ^            ^
//      first - seconds   |   first deadline     |            + seconds
//                  - kGapNs        all expired keys are reclaimed
//
// A command belongs to the part in which it was meant to be sent, however late its reply comes. A
// command sent in the gap may be answered after the first deadline, so it counts nowhere.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace skep::bench {

enum class ExpiryPart : uint8_t { kBefore, kDuring, kAfter };
inline constexpr size_t kExpiryParts = 3;

// All times are Clock::MonotonicNs. Thread-safe: one thread sets the ends of parts, another one
// reads them.
class ExpiryTimeline {
 public:
  static constexpr uint64_t kGapNs = 50'000'000;

  ExpiryTimeline(uint64_t first_deadline_ns, uint64_t part_ns)
      : first_deadline_ns_(first_deadline_ns), part_ns_(part_ns) {}

  uint64_t before_begins_ns() const { return first_deadline_ns_ - kGapNs - part_ns_; }
  uint64_t first_deadline_ns() const { return first_deadline_ns_; }

  // Called once, not before the first deadline.
  void MarkReclaimed(uint64_t now_ns) {
    reclaimed_ns_.store(now_ns, std::memory_order_relaxed);
    end_ns_.store(now_ns + part_ns_, std::memory_order_relaxed);
  }
  // Ends the run, however far it is.
  void Stop() { end_ns_.store(0, std::memory_order_relaxed); }

  // Relaxed: no other memory is read because of these, and a part may end a moment late.
  uint64_t end_ns() const { return end_ns_.load(std::memory_order_relaxed); }
  std::optional<ExpiryPart> PartOf(uint64_t meant_ns) const {
    if (meant_ns < before_begins_ns()) return std::nullopt;
    if (meant_ns < first_deadline_ns_ - kGapNs) return ExpiryPart::kBefore;
    if (meant_ns < first_deadline_ns_) return std::nullopt;
    if (meant_ns < reclaimed_ns_.load(std::memory_order_relaxed)) return ExpiryPart::kDuring;
    return ExpiryPart::kAfter;
  }
  double SecondsOf(ExpiryPart part) const {
    if (part != ExpiryPart::kDuring) return static_cast<double>(part_ns_) * 1e-9;
    const uint64_t reclaimed_ns = reclaimed_ns_.load(std::memory_order_relaxed);
    return static_cast<double>(reclaimed_ns - first_deadline_ns_) * 1e-9;
  }

 private:
  static constexpr uint64_t kNever = UINT64_MAX;

  const uint64_t first_deadline_ns_;
  const uint64_t part_ns_;
  std::atomic<uint64_t> reclaimed_ns_{kNever};
  std::atomic<uint64_t> end_ns_{kNever};
};

}  // namespace skep::bench
