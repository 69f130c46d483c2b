// bucket_array.h: the buckets that a table finds by index, one behind the other, as many as it
// needs.
//
//   reserved address space (4 GiB, or what the system gives)
//   +--------+--------+----------------------+----------------------+ - - - - - - - -
//   | bucket | bucket | ..  2 MiB, huge page | 2 MiB, huge page     | not touched
//   +--------+--------+----------------------+----------------------+ - - - - - - - -
//                                                  ^ count()        ^ held_bytes()
//
// It grows and shrinks at its end, a bucket at a time, and never moves. Memory is charged as it is
// begun: the next power of two up to 1 MiB, then 2 MiB at a time. Up to 1 MiB it has plain pages,
// so that a small table does not cost a huge one; the system then joins them to one, once, where it
// can (Linux 6.1), some hundred microseconds. From 16 MiB on the next 2 MiB are charged once half
// of the last are used, and made resident by another thread (prefaulter.h), so that no operation
// waits for the system to clear them.
//
// Thread safety: its partition's lock protects it. count(), BucketOf() and Prefetch() may be called
// at any time; what they say may be out of date.
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
  // The budget outlives it. The prefaulter must be gone before it; only Add() uses it. Null: pages
  // come as they are touched.
  BucketArray(MemoryBudget& budget, Prefaulter* prefaulter)
      : budget_(budget), prefaulter_(prefaulter) {}
  ~BucketArray();
  BucketArray(const BucketArray&) = delete;
  BucketArray& operator=(const BucketArray&) = delete;

  // Before anything else. It then has one bucket, whatever the limit. False: no address space.
  bool Reserve();

  Bucket& operator[](uint64_t index) { return buckets_[index]; }
  const Bucket& operator[](uint64_t index) const { return buckets_[index]; }
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  // Which bucket has the keys of this index (key.h): its low bits, one bit less where there is no
  // such bucket.
  uint64_t BucketOf(uint64_t index) const {
    const uint64_t mask = mask_.load(std::memory_order_relaxed);
    const uint64_t at = index & mask;
    return at & mask >> (at >= count() ? 1 : 0);
  }
  uint64_t held_bytes() const { return held_bytes_; }
  void Prefetch(uint64_t index) const { FetchLine(buckets_ + index); }

  // One more empty bucket. False: the budget has no room for its memory, or all is used.
  bool Add();
  // One less. It must be empty, and not the only one.
  void RemoveLast();
  // Back to one empty bucket.
  void Clear();

 private:
  static constexpr size_t kReservedBytesMax = size_t{4} << 30;
  static constexpr size_t kPlainBytesMax = PageRegion::kHugePageBytes / 2;
  static constexpr size_t kReservedBytesMin = size_t{64} << 20;
  static constexpr size_t kAheadBytesMin = size_t{16} << 20;
  static constexpr uint64_t kHugeBuckets = PageRegion::kHugePageBytes / sizeof(Bucket);

  // What is held for so many buckets.
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
