// bucket_array.h: the buckets that a table finds by index, one behind the other, growing on demand.
//
//   reserved address space (4 GiB, or what the system gives)
//   +--------+--------+----------------------+----------------------+ - - - - - - - -
//   | bucket | bucket | ..  2 MiB, huge page | 2 MiB, huge page     | not touched
//   +--------+--------+----------------------+----------------------+ - - - - - - - -
//                                                  ^ count()        ^ held_bytes()
//
// The array grows and shrinks at its end, a bucket at a time, and never moves. Memory is charged in
// steps: up to the next power of two below 1 MiB, then 2 MiB at a time. Up to 1 MiB it has plain
// pages, so that a small table does not cost a huge one; then the system joins them to one huge
// page, once, where it can (Linux 6.1), in some hundred microseconds. From 16 MiB on the next 2 MiB
// are charged once half of the last are used, and made resident by another thread (prefaulter.h),
// so that no operation waits for the system to clear them.
//
// Thread safety: the lock of the table's partition protects it. count(), BucketOf() and Prefetch()
// may be called at any time; their results may be out of date.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/huge_pages.h"
#include "base/memory_budget.h"
#include "base/prefaulter.h"
#include "base/prefetch.h"
#include "hash/bucket.h"

namespace skep::hash {

class BucketArray {
 public:
  // The budget must outlive the array. The prefaulter must be destroyed before the array; only
  // Add() uses it. Null: pages become resident when they are touched.
  BucketArray(MemoryBudget& budget, Prefaulter* prefaulter)
      : budget_(budget), prefaulter_(prefaulter) {}
  ~BucketArray();
  BucketArray(const BucketArray&) = delete;
  BucketArray& operator=(const BucketArray&) = delete;

  // Reserves address space; to be called first. The array then has one bucket, whatever the limit.
  // Returns false if there is no address space.
  bool Reserve();

  Bucket& operator[](uint64_t index) { return buckets_[index]; }
  const Bucket& operator[](uint64_t index) const { return buckets_[index]; }
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  // Returns the bucket of the keys of this index (key.h): its low bits, one bit less where there is
  // no such bucket.
  uint64_t BucketOf(uint64_t index) const {
    const uint64_t mask = mask_.load(std::memory_order_relaxed);
    const uint64_t at = index & mask;
    return at & mask >> (at >= count() ? 1 : 0);
  }
  uint64_t held_bytes() const { return held_bytes_; }
  void Prefetch(uint64_t index) const { FetchLine(buckets_ + index); }

  // Adds an empty bucket. Returns false if the budget has no room for its memory, or all address
  // space is used.
  bool Add();
  // Removes the last bucket, which must be empty, and not the only one.
  void RemoveLast();
  // Leaves one empty bucket.
  void Clear();

 private:
  static constexpr size_t kReservedBytesMax = size_t{4} << 30;
  static constexpr size_t kPlainBytesMax = PageRegion::kHugePageBytes / 2;
  static constexpr size_t kReservedBytesMin = size_t{64} << 20;
  static constexpr size_t kAheadBytesMin = size_t{16} << 20;
  static constexpr uint64_t kHugeBuckets = PageRegion::kHugePageBytes / sizeof(Bucket);

  // Returns how many bytes are held for `count` buckets.
  static uint64_t HeldFor(uint64_t count);
  void Hold(uint64_t bytes);
  void HoldAhead();
  void SetCount(uint64_t count);

  Bucket* buckets_ = nullptr;
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> mask_{0};  // the least 2^n - 1 that is not below count_ - 1
  std::optional<PageRegion> memory_;
  uint64_t held_bytes_ = 0;
  MemoryBudget& budget_;
  Prefaulter* const prefaulter_;
};

}  // namespace skep::hash
