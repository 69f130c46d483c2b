// histogram.h: counts of values over the whole 64-bit range, in constant memory.
//
// Buckets are linear up to 2 * kSubBuckets; above that each power of two is cut into kSubBuckets
// equal ones, so a bucket is never wider than 1/kSubBuckets of the values in it:
//
//   value   0 1 2 ... 255 | 256 258 260 ... 510 | 512 516 ... 1020 | 1024 1032 ...
//   bucket  0 1 2 ... 255 | 256 257 258 ... 383 | 384 385 ...  511 |  512  513 ...
//
// Invariants
//   H1  count() is the sum of all buckets.
//   H2  a quantile is never below the exact one and never above it by more than 1/kSubBuckets of
//       it; the quantile 1 is the exact maximum.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace skep {

// A histogram takes 59 KiB. Thread safety: none; give each thread its own and merge them.
class Histogram {
 public:
  static constexpr int kSubBucketBits = 7;
  static constexpr uint64_t kSubBuckets = uint64_t{1} << kSubBucketBits;
  static constexpr size_t kBuckets = (64 - kSubBucketBits + 1) * kSubBuckets;

  void Record(uint64_t value, uint64_t times = 1) {
    buckets_[BucketOf(value)] += times;
    count_ += times;
    if (times != 0 && value > max_) max_ = value;
  }

  void Merge(const Histogram& other);
  void Clear() { *this = Histogram(); }

  uint64_t count() const { return count_; }
  // Returns the largest value recorded, exactly; 0 if there is none.
  uint64_t max() const { return max_; }
  // Returns the smallest v such that at least `fraction` (0..1) of all values are <= v, up to H2's
  // error; 0 if there is none.
  uint64_t Quantile(double fraction) const;

  static constexpr size_t BucketOf(uint64_t value) {
    const int shift = static_cast<int>(std::bit_width(value | kSubBuckets)) - 1 - kSubBucketBits;
    return static_cast<size_t>(shift) * kSubBuckets + (value >> shift);
  }
  // Returns the largest value of a bucket.
  static constexpr uint64_t LastOf(size_t bucket) {
    if (bucket < 2 * kSubBuckets) return bucket;
    const int shift = static_cast<int>(bucket / kSubBuckets) - 1;
    const uint64_t head = bucket % kSubBuckets + kSubBuckets;
    return (head << shift) + ((uint64_t{1} << shift) - 1);
  }

 private:
  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

static_assert(Histogram::BucketOf(0) == 0);
static_assert(Histogram::BucketOf(255) == 255 && Histogram::BucketOf(256) == 256);
static_assert(Histogram::BucketOf(UINT64_MAX) == Histogram::kBuckets - 1);
static_assert(Histogram::LastOf(Histogram::kBuckets - 1) == UINT64_MAX);

}  // namespace skep
