#include "bench/zipf.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace skep::bench {

uint64_t ScrambleFnv(uint64_t number) {
  uint64_t hash = 0xcbf29ce484222325;
  for (int octet = 0; octet < 8; ++octet) {
    hash ^= number & 0xff;
    hash *= 1099511628211;
    number >>= 8;
  }
  return hash >> 63 == 0 ? hash : 0 - hash;
}

double UnitInterval(Random& random) { return static_cast<double>(random.Next() >> 11) * 0x1p-53; }

Zipf::Zipf(uint64_t items, double theta) : theta_(theta) {
  SKEP_CHECK(theta > 0 && theta != 1);
  area_first_ = Area(1.5) - 1;
  sure_ = 2 - InverseArea(Area(2.5) - Bar(2));
  Resize(items);
}

void Zipf::Resize(uint64_t items) {
  SKEP_CHECK(items > 0);
  items_ = items;
  area_last_ = Area(static_cast<double>(items) + 0.5);
}

uint64_t Zipf::Draw(Random& random) {
  for (;;) {
    const double area = area_last_ + UnitInterval(random) * (area_first_ - area_last_);
    const double x = InverseArea(area);
    const double rank = std::clamp(std::round(x), 1.0, static_cast<double>(items_));
    if (rank - x <= sure_ || area >= Area(rank + 0.5) - Bar(rank)) {
      return static_cast<uint64_t>(rank) - 1;
    }
  }
}

// expm1 and log1p keep all digits where theta is near 1 and the plain formulas cancel.
double Zipf::Area(double x) const { return std::expm1((1 - theta_) * std::log(x)) / (1 - theta_); }

double Zipf::InverseArea(double area) const {
  return std::exp(std::log1p(area * (1 - theta_)) / (1 - theta_));
}

double Zipf::Bar(double x) const { return std::exp(-theta_ * std::log(x)); }

}  // namespace skep::bench
