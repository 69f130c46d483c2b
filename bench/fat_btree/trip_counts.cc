#include "bench/fat_btree/trip_counts.h"

namespace skep::bench {

void TripCounts::Add(uint32_t trips) {
  if (trips >= counts_.size()) counts_.resize(trips + 1);
  ++counts_[trips];
  ++queries_;
}

double TripCounts::mean() const {
  uint64_t sum = 0;
  for (uint64_t trips = 0; trips < counts_.size(); ++trips) sum += trips * counts_[trips];
  return queries_ == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(queries_);
}

uint32_t TripCounts::Quantile(double fraction) const {
  uint64_t reached = 0;
  for (uint32_t trips = 0; trips < max(); ++trips) {
    reached += counts_[trips];
    if (static_cast<double>(reached) >= fraction * static_cast<double>(queries_)) return trips;
  }
  return max();
}

}  // namespace skep::bench
