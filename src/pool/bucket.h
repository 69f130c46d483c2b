// bucket.h: one line of a pool's hash index, as a client reads it from the hash server's memory.
//
//   offset  size  field
//        0    56  slots  7 slots (slot.h); 0: free
//       56     8  link   depth 6 bits | 18 bits 0 | number of the next bucket of the chain + 1, 40
//              bits
//
// A chain is a bucket of the table, and overflow buckets behind it. A key with the index word h is
// in the chain of the bucket b that has the depth d and h mod 2^d == b. The hash server alone
// writes, one thread of it; hash_index.h has the protocol of growing, bucket_reader.h that of
// readers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "pool/slot.h"

namespace skep::pool {

// Behind a bucket's slots.
class Link {
 public:
  static constexpr uint64_t kNextMax = (uint64_t{1} << 40) - 1;
  static constexpr uint32_t kDepthMax = 56;  // as many bits as an index word has for it

  explicit Link(uint64_t bits = 0) : bits_(bits) {}
  Link(uint32_t depth, uint64_t next_plus_one) : bits_(uint64_t{depth} << 58 | next_plus_one) {}

  uint64_t bits() const { return bits_; }
  uint32_t depth() const { return static_cast<uint32_t>(bits_ >> 58); }
  bool has_next() const { return (bits_ & kNextMax) != 0; }
  // Among the overflow buckets. has_next().
  uint64_t next() const { return (bits_ & kNextMax) - 1; }

 private:
  uint64_t bits_;
};

inline constexpr uint32_t kBucketSlots = 7;

// In the server's memory.
struct Bucket {
  std::array<std::atomic<uint64_t>, kBucketSlots> slots;
  std::atomic<uint64_t> link;
};
static_assert(sizeof(Bucket) == 64 && std::atomic<uint64_t>::is_always_lock_free);

// What a read has brought.
struct BucketImage {
  std::array<uint64_t, kBucketSlots> slots;
  uint64_t link;
};
static_assert(sizeof(BucketImage) == sizeof(Bucket));

// The lowest `depth` bits.
inline uint64_t LowBits(uint64_t index, uint32_t depth) {
  return index & ((uint64_t{1} << depth) - 1);
}

}  // namespace skep::pool
