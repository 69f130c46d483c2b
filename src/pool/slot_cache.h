// slot_cache.h: where a client found keys before: a guess, which the read of the bucket proves.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "pool/bucket_reader.h"

namespace skep::pool {

// One entry a place, by the key's index word; a newer one replaces the older. 48 bytes an entry.
// Thread safety: one owner.
class SlotCache {
 public:
  // `entries` is rounded up to a power of two; 0: nothing is kept.
  explicit SlotCache(size_t entries)
      : entries_(entries == 0 ? 0 : std::bit_ceil(entries)), mask_(entries_.size() - 1) {}

  // Find and Put of this index are about to come.
  void Prefetch(uint64_t index) const {
    if (!entries_.empty()) __builtin_prefetch(&entries_[index & mask_], 1);
  }
  // Null: it is not known. Valid until the next Put.
  const CachedSlot* Find(uint64_t index) const {
    if (entries_.empty()) return nullptr;
    const Entry& entry = entries_[index & mask_];
    return entry.cached.slot && entry.index == index ? &entry.cached : nullptr;
  }
  void Put(uint64_t index, const CachedSlot& cached) {
    if (!entries_.empty()) entries_[index & mask_] = {.index = index, .cached = cached};
  }
  void Drop(uint64_t index) {
    if (Find(index) != nullptr) entries_[index & mask_] = {};
  }
  void Clear() { entries_.assign(entries_.size(), {}); }

 private:
  struct Entry {
    uint64_t index = 0;
    CachedSlot cached;
  };

  std::vector<Entry> entries_;
  size_t mask_;
};

}  // namespace skep::pool
