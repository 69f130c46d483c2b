// index_memory_test.h: memory, digests and slots for tests of the hash index.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pool/hash_index.h"

namespace skep::pool {

// What the hash server shares with its readers.
struct IndexMemory {
  IndexMemory(uint64_t table_buckets, uint64_t overflow_buckets)
      : table(table_buckets), overflow(overflow_buckets) {}

  HashIndexMemory Shared() {
    return {.bucket_count = &bucket_count, .table = table, .overflow = overflow};
  }
  std::unique_ptr<HashIndex> Create(const HashIndexOptions& options) {
    return HashIndex::Create(Shared(), options).value();
  }
  const Bucket& At(const BucketAddress& at) const {
    return at.is_overflow ? overflow[at.number] : table[at.number];
  }

  std::atomic<uint64_t> bucket_count{0};
  std::vector<Bucket> table;
  std::vector<Bucket> overflow;
};

// Word `i` of a bucket: its slots, then its link.
inline const std::atomic<uint64_t>& WordOf(const Bucket& bucket, uint32_t i) {
  return i < kBucketSlots ? bucket.slots[i] : bucket.link;
}
inline uint64_t& WordOf(BucketImage& image, uint32_t i) {
  return i < kBucketSlots ? image.slots[i] : image.link;
}

inline KeyDigest DigestAt(uint64_t key) {
  return DigestOf({.index = {1, 2}, .tag = {3, 4}}, std::to_string(key));
}

// The item that is a key's version: no two have the same slot.
inline Slot SlotAt(const KeyDigest& digest, uint32_t key, uint32_t version) {
  return {digest.signature(), 1, 0, key, version};
}

}  // namespace skep::pool
