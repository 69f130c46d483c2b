// slot_cache.h: where a client found keys before: a guess, which the read of the bucket proves.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "pool/bucket_reader.h"

namespace skep::pool {

// One entry a place, by the key's index word; a newer one replaces the older. 32 bytes an entry, of
// one cache line.
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
  // Nothing: it is not known.
  std::optional<CachedSlot> Find(uint64_t index) const {
    if (entries_.empty()) return std::nullopt;
    const Entry& entry = entries_[index & mask_];
    if (!entry.slot || entry.index != index) return std::nullopt;
    return CachedSlot{.slot = entry.slot,
                      .at = {entry.number >> 1, (entry.number & 1) != 0},
                      .chain = entry.chain};
  }
  void Put(uint64_t index, const CachedSlot& cached) {
    if (entries_.empty()) return;
    entries_[index & mask_] = {.index = index,
                               .slot = cached.slot,
                               .number = cached.at.number << 1 | uint64_t{cached.at.is_overflow},
                               .chain = cached.chain};
  }
  void Drop(uint64_t index) {
    if (Find(index)) entries_[index & mask_] = {};
  }
  void Clear() { entries_.assign(entries_.size(), {}); }

 private:
  struct alignas(32) Entry {
    uint64_t index = 0;
    Slot slot;
    uint64_t number = 0;  // of the bucket, and a bit that says that it is an overflow bucket
    uint64_t chain = 0;
  };
  static_assert(sizeof(Entry) == 32);

  std::vector<Entry> entries_;
  size_t mask_;
};

}  // namespace skep::pool
