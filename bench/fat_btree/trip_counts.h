// trip_counts.h: how many queries took how many round trips one after the other, and the times that
// follow.
#pragma once

#include <cstdint>
#include <vector>

namespace skep::bench {

class TripCounts {
 public:
  void Add(uint32_t trips);

  double mean() const;
  // The smallest number that so many of the queries do not exceed; 0 < fraction <= 1.
  uint32_t Quantile(double fraction) const;
  uint32_t max() const { return static_cast<uint32_t>(counts_.size()) - 1; }

 private:
  std::vector<uint64_t> counts_ = {0};  // by trips
  uint64_t queries_ = 0;
};

// A query takes a time for each trip and a fixed time besides.
struct TripTimes {
  double trip_us = 0;
  double fixed_us = 0;

  double Of(double trips) const { return fixed_us + trips * trip_us; }
};

}  // namespace skep::bench
