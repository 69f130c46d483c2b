#include "hash/bucket_array.h"

#include <unistd.h>

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace skep::hash {

BucketArray::~BucketArray() { budget_.Release(held_bytes_); }

bool BucketArray::Reserve() {
  for (size_t bytes = kReservedBytesMax; !memory_; bytes /= 2) {
    if (bytes < kReservedBytesMin) return false;
    if (auto region = PageRegion::Reserve(bytes, Pages::kHuge)) memory_ = std::move(*region);
  }
  memory_->Advise(0, PageRegion::kHugePageBytes, Pages::kPlain);
  buckets_ = reinterpret_cast<Bucket*>(memory_->begin());
  Hold(HeldFor(1));
  SetCount(1);
  return true;
}

uint64_t BucketArray::HeldFor(uint64_t count) {
  static const uint64_t kPageBytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  constexpr uint64_t kHuge = PageRegion::kHugePageBytes;
  const uint64_t bytes = count * sizeof(Bucket);
  if (bytes > kPlainBytesMax) return (bytes + kHuge - 1) / kHuge * kHuge;
  return std::max(kPageBytes, std::bit_ceil(bytes));
}

void BucketArray::Hold(uint64_t bytes) {
  if (bytes > held_bytes_) {
    budget_.Charge(bytes - held_bytes_);
    if (held_bytes_ <= kPlainBytesMax && bytes > kPlainBytesMax) {
      memory_->MakeHuge(0, PageRegion::kHugePageBytes);
    }
  } else if (bytes < held_bytes_) {
    if (bytes <= kPlainBytesMax) memory_->Advise(0, PageRegion::kHugePageBytes, Pages::kPlain);
    memory_->GiveBack(bytes, held_bytes_ - bytes);
    budget_.Release(held_bytes_ - bytes);
  }
  held_bytes_ = bytes;
}

void BucketArray::SetCount(uint64_t count) {
  mask_.store(std::bit_ceil(count) - 1, std::memory_order_relaxed);
  count_.store(count, std::memory_order_relaxed);
}

bool BucketArray::Add() {
  if ((count() + 1) * sizeof(Bucket) > held_bytes_) {
    const uint64_t bytes = HeldFor(count() + 1);
    if (bytes > memory_->size()) return false;
    if (!budget_.HasRoomFor(bytes - held_bytes_)) return false;
    Hold(bytes);
  }
  SetCount(count() + 1);
  if (held_bytes_ >= kAheadBytesMin && prefaulter_ != nullptr) HoldAhead();
  return true;
}

void BucketArray::HoldAhead() {
  constexpr uint64_t kHuge = PageRegion::kHugePageBytes;
  if (held_bytes_ - count() * sizeof(Bucket) > kHuge / 2) return;
  if (held_bytes_ + kHuge > memory_->size() || !budget_.HasRoomFor(kHuge)) return;
  std::byte* const next = memory_->begin() + held_bytes_;
  Hold(held_bytes_ + kHuge);
  prefaulter_->Ask({next, kHuge});
}

void BucketArray::RemoveLast() {
  SKEP_DCHECK(count() > 1);
  SetCount(count() - 1);
  // Keeps as much as the next few calls of Add() would ask for again.
  const uint64_t ahead = prefaulter_ != nullptr && held_bytes_ > kAheadBytesMin ? kHugeBuckets : 0;
  const uint64_t bytes = HeldFor(count() + count() / 4 + ahead);
  if (bytes < held_bytes_) Hold(bytes);
}

void BucketArray::Clear() {
  const uint64_t had = count();
  Hold(HeldFor(1));
  // Pages that were given back read as zeros; the kept ones must be zeroed, so that Add() finds
  // empty buckets.
  std::fill_n(buckets_, std::min(had, held_bytes_ / sizeof(Bucket)), Bucket{});
  SetCount(1);
}

}  // namespace skep::hash
