#include "base/histogram.h"

#include <algorithm>
#include <cmath>

namespace skep {

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

uint64_t Histogram::Quantile(double fraction) const {
  if (count_ == 0) return 0;
  const double exact_rank = std::ceil(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(count_));
  const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(exact_rank), 1, count_);
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= rank) return std::min(LastOf(i), max_);
  }
  return max_;
}

}  // namespace skep
