#include "bench/kv_direct/dispatch_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace skep::bench {

double DispatchModel::HitRate(double l) const {
  const bool fits = l <= k;
  if (mode == DispatchMode::kExact && fits) return 1;
  return popularity == Popularity::kUniform ? k / l : std::log(k * keys) / std::log(l * keys);
}

// The DRAM's time grows with l and PCIe's does not: l * h(l) grows from l * keys = e on.
double DispatchModel::BestRatio() const {
  double low = std::numbers::e / keys;
  double high = 1;
  if (DramTime(high) <= PcieTime(high)) return high;
  while (high - low > 1e-12) {
    const double middle = (low + high) / 2;
    (DramTime(middle) < PcieTime(middle) ? low : high) = middle;
  }
  return high;
}

double DispatchModel::Throughput() const {
  const double l = BestRatio();
  if (mode == DispatchMode::kPaper) return 1 / DramTime(l);
  return 1 / std::max(DramTime(l), PcieTime(l));
}

double DispatchModel::GainOverPartition() const {
  const double in_dram = std::min(k / (1 + k), r / (1 + r));
  return Throughput() * std::max(in_dram / r, 1 - in_dram);
}

}  // namespace skep::bench
