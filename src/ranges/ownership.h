// ownership.h: the operations that one version of a map of ranges lets a server do.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranges/range_map.h"
#include "skep/batch.h"
#include "skep/status.h"

namespace skep::ranges {

// Immutable but for the lease. Thread-safe.
class Ownership {
 public:
  // Of the server at the address `self`, until this instant of the monotonic clock.
  Ownership(const RangeMap& map, std::string_view self, uint64_t lease_end_ns);

  int32_t version() const { return version_; }
  bool IsLeasedAt(uint64_t now_ns) const {
    return now_ns < lease_end_ns_.load(std::memory_order_relaxed);
  }
  uint64_t lease_end_ns() const { return lease_end_ns_.load(std::memory_order_relaxed); }
  void Extend(uint64_t lease_end_ns) {
    lease_end_ns_.store(lease_end_ns, std::memory_order_relaxed);
  }
  size_t ranges() const { return ranges_.size(); }

  // kOk: the server may execute the request.
  //   kMoved        some of its keys are not this server's; the detail is the map's version
  //   kUnavailable  it writes to a range that is being moved
  // Cost: a search among the server's ranges.
  Status WhyNot(const Request& request) const;
  // The lower bound of the consecutive ranges of this server that have the key. Requires that it
  // has it.
  std::string_view FloorOf(std::string_view key) const;

 private:
  struct Range {
    std::string lower;
    std::optional<std::string> upper;  // nothing: all keys from `lower` on
    bool is_writable;
  };

  const Range* Find(std::string_view key) const;
  // As WhyNot, for all keys from `lower` on; before `upper`, if that is given.
  Status WhyNot(std::string_view lower, std::optional<std::string_view> upper, bool writes) const;
  Status WhyNotPoint(std::string_view key, bool writes) const;
  Status Moved() const;

  const int32_t version_;
  std::vector<Range> ranges_;  // rising
  std::atomic<uint64_t> lease_end_ns_;
};

}  // namespace skep::ranges
