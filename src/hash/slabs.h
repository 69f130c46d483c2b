// slabs.h: memory of 32 to 512 bytes for records and chained buckets (KV-Direct, section 3.3.2).
//
//   pool of a class      128 addresses at most: what allocations and frees touch
//     ^ refill, 64       | spill, 64: from the bottom, so what was freed last is used first
//     |                  v
//   span, 64 KiB of the arena
//   +--------+----+----+--------+----------------+--------------------------------------+
//   | header | 32 | 32 |   64   |      128       |                ...                   |
//   +--------+----+----+--------+----------------+--------------------------------------+
//   header: one bit for each free unit of 32 B, and the neighbours in a list of spans
//
// A slab of class c takes 1 << c units and lies at a multiple of its size. A free block of units is
// of no class: a refill takes from it whatever size it needs (splitting), and neighbours that a
// spill frees are one larger block at once, because their bits are neighbours (merging). Unlike the
// paper's, merging never waits for later. Refills and spills move lots of addresses, when a pool is
// empty or full, so most allocations and frees are a few instructions on the pool. A lot costs a
// line or two for each span it meets.
//
// Spans are in a list by the largest class they have a free block of. A refill first uses the spans
// that have no larger block than it needs, and breaks larger blocks last. A span that is wholly
// free goes back to the arena, and so to the system, or to larger values; Flush() empties the pools
// for that.
//
// Addresses have 31 bits: only spans of the arena's first region are used, 64 GiB, which its large
// values share. More memory takes more arenas, each for some of the partitions (core.h).
//
// Invariants. Verify() checks them.
//   A1  used_bytes() + free_bytes() + the headers is the size of all spans.
//   A2  a span's count of free units is the number of its bits, and it is in the list of the
//       largest block they make.
//   A3  a block in a pool is aligned to its class and has no free bit.
//
// Thread safety: none; the partition's lock protects it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "hash/bucket.h"

namespace skep::hash {

// It has 26 methods: pools, spans and lists hand the same units to one another, and A1 to A3 bind
// them together.
class Slabs {
 public:
  static constexpr uint32_t kClasses = 5;
  static constexpr size_t kSlabBytesMax = kSlabUnitBytes << (kClasses - 1);
  static constexpr size_t kSpanBytes = Arena::kSpanBytes;
  static constexpr uint64_t kAddressableBytes = (uint64_t{kSlabAddressMax} + 1) * kSlabUnitBytes;

  // Returns the smallest class of `bytes` <= kSlabBytesMax.
  static constexpr uint32_t ClassOf(size_t bytes) {
    return bytes <= kSlabUnitBytes
               ? 0
               : static_cast<uint32_t>(std::bit_width((bytes - 1) / kSlabUnitBytes));
  }
  static size_t BytesOf(uint32_t size_class) { return kSlabUnitBytes << size_class; }

  // The arena and the cache must outlive it; the cache is the partition's.
  Slabs(Arena& arena, Arena::Cache& cache) : arena_(arena), cache_(cache) {}
  ~Slabs() { DropAll(); }
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  // Returns 0 if there is no memory: the limit, or the system, refuses another span and the free
  // units here do not suffice.
  SlabAddress Allocate(uint32_t size_class, Arena::Limit limit) {
    Pool& pool = pools_[size_class];
    if (pool.count == 0 && !Refill(size_class, limit)) return 0;
    const SlabAddress at = pool.entries[--pool.count];
    used_units_ += 1u << size_class;
    UnpoisonBlock(at, 1u << size_class);
    return at;
  }
  void Free(uint32_t size_class, SlabAddress at) {
    Pool& pool = pools_[size_class];
    if (pool.count == kPoolMax) Spill(size_class, kLot);
    PoisonBlock(at, 1u << size_class);
    used_units_ -= 1u << size_class;
    pool.entries[pool.count++] = at;
  }

  std::byte* At(SlabAddress at) const {
    return arena_.At(ArenaAddress::Of(0, uint64_t{at} * kSlabUnitBytes));
  }

  // Empties the pools, so that spans which are free go back. Bounded: 640 addresses.
  void Flush();
  // Gives all spans back; all allocations end.
  void DropAll();

  uint64_t used_bytes() const { return used_units_ * kSlabUnitBytes; }
  uint64_t free_bytes() const;
  uint64_t span_count() const { return span_count_; }
  // Returns null, or a literal that names the broken invariant. Visits all spans.
  const char* Verify() const;

 private:
  static constexpr uint32_t kPoolMax = 128;
  static constexpr uint32_t kLot = 64;
  static constexpr uint32_t kSpanUnits = kSpanBytes / kSlabUnitBytes;
  static constexpr uint32_t kWords = kSpanUnits / 64;
  static constexpr uint32_t kLists = kClasses + 1;
  static constexpr uint32_t kFullList = kClasses;  // no unit is free

  struct Pool {
    uint32_t count = 0;
    std::array<SlabAddress, kPoolMax> entries;
  };
  struct Span {
    std::array<uint64_t, kWords> free;
    SlabAddress previous;  // in its list; 0: none
    SlabAddress next;
    uint32_t free_units;
    uint32_t list;
  };
  static constexpr uint32_t kHeaderUnits = (sizeof(Span) + kSlabUnitBytes - 1) / kSlabUnitBytes;
  static constexpr uint32_t kUsableUnits = kSpanUnits - kHeaderUnits;

  static uint64_t BlocksIn(uint64_t word, uint32_t size_class);
  static uint32_t LargestIn(const Span& span);

  Span& SpanAt(SlabAddress first) const { return *reinterpret_cast<Span*>(At(first)); }
  void PoisonBlock(SlabAddress at, uint32_t units) const;
  void UnpoisonBlock(SlabAddress at, uint32_t units) const;

  bool Refill(uint32_t size_class, Arena::Limit limit);
  bool RefillFromSpans(uint32_t size_class);
  void TakeFrom(SlabAddress first, uint32_t size_class);
  bool AddSpan(Arena::Limit limit);
  void Spill(uint32_t size_class, uint32_t count);
  void GiveBlock(SlabAddress at, uint32_t size_class);
  void Link(SlabAddress first, uint32_t list);
  void Unlink(SlabAddress first);

  Arena& arena_;
  Arena::Cache& cache_;
  std::array<Pool, kClasses> pools_;
  std::array<SlabAddress, kLists> lists_{};  // the first span of each
  uint64_t used_units_ = 0;
  uint64_t span_count_ = 0;
};

}  // namespace skep::hash
