// zipf.h: the skewed choices of YCSB (Cooper et al., SoCC 2010): Zipf, scrambled Zipf.
//
// The law is YCSB's: rank r (from 0) of n items has a probability in proportion to
// 1 / (r + 1)^0.99. The sampler is not: YCSB draws with the approximation of Gray et al. (SIGMOD
// 1994), which is exact for the first two ranks only and needs the sum of n terms for each n. Here
// ranks follow the exact law, by rejection-inversion (Hoermann and Derflinger, ACM TOMACS 1996):
// the area under the continuous 1/x^theta is inverted, and the little by which its bars exceed the
// law is rejected. A draw costs two logarithms and an exponential, accepts after 1.0x tries, and
// growing n costs one logarithm.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace skep::bench {

// YCSB's scrambling: FNV-1a over the eight octets of the number, lowest first, as a Java long made
// non-negative: below 2^63, except one value in 2^64 that is 2^63 itself.
uint64_t ScrambleFnv(uint64_t number);

// Returns a number that is uniform in [0, 1), of 53 bits.
double UnitInterval(Random& random);

// Thread safety: none; one owner.
class Zipf {
 public:
  static constexpr double kTheta = 0.99;

  // `items` > 0; theta > 0 and not 1.
  explicit Zipf(uint64_t items, double theta = kTheta);

  // Draws a rank in [0, items()): 0 is the most frequent.
  uint64_t Draw(Random& random);

  uint64_t items() const { return items_; }
  // `items` > 0.
  void Resize(uint64_t items);

 private:
  double Area(double x) const;  // integral of 1/x^theta from 1
  double InverseArea(double area) const;
  double Bar(double x) const;  // 1/x^theta

  double theta_;
  double area_first_;  // left edge of what Draw inverts: one bar of height 1 ends at Area(1.5)
  double area_last_;
  double sure_;  // a candidate at most this far right of its rank needs no test
  uint64_t items_;
};

// YCSB's ScrambledZipfianGenerator: Zipf over ten thousand million virtual items, each hashed to
// one of `items`. So hot items lie anywhere, and which are hot does not change with `items`.
// Thread safety: none; one owner.
class ScrambledZipf {
 public:
  static constexpr uint64_t kVirtualItems = 10'000'000'000;

  explicit ScrambledZipf(uint64_t items) : items_(items), zipf_(kVirtualItems) {}

  // Draws an item in [0, items).
  uint64_t Draw(Random& random) { return ScrambleFnv(zipf_.Draw(random)) % items_; }

 private:
  uint64_t items_;
  Zipf zipf_;
};

}  // namespace skep::bench
