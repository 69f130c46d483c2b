// arena.h: the memory an engine keeps its nodes and values in.
//
//   region 0 (64 GiB of address space, touched as it is needed)
//   +--------- block, 2 MiB ---------+--------- block, 2 MiB ---------+ ...
//   | span 64 KiB | span | span | .. |
//   | slot slot slot slot ..         |
//   +--------------------------------+
//
// A span holds slots of one size class (size_classes.h, slot_spans.h), or a run of spans holds one
// allocation that is larger than every class. Spans are taken lowest first, so that memory drains
// towards the beginning. A free span is kept for reuse while few are; beyond that its pages go back
// to the system (span_pool.h). Another region is reserved when the first has no room; where the
// system gives less address space than asked for, regions are smaller.
//
// Position-independent: an allocation is named by an ArenaAddress, a region number and an offset,
// so that another process or a device that maps the same bytes elsewhere can follow it. Regions are
// private memory, or shared memory (shared_memory.h) where these are to map them.
//
// Memory limit: the arena charges its budget for every span it holds. An allocation that needs a
// span the budget has no room for fails, unless it may exceed (deletes do, so that they always
// work; a reserve of spans is kept for them where the system itself has no memory left). Free slots
// in the cache of another thread do not count as room: at the limit an allocation may fail although
// a few slots of its size are idle there. With a prefaulter up to 10 MiB of the memory held are
// spans that will be needed next.
//
// Errors of the arena's user (a double free, a wrong size) stop the process: for a slot when its
// cache returns it, for a run at once. AddressSanitizer, if it is built in, sees free memory as
// poisoned.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/huge_pages.h"
#include "base/memory_budget.h"
#include "base/mutex.h"
#include "base/shared_memory.h"

namespace skep {

class Prefaulter;

// Where an allocation lies, wherever its arena is mapped.
struct ArenaAddress {
  uint64_t bits = 0;  // region 16 | offset in bytes 48; 0: no address
  static ArenaAddress Of(uint16_t region, uint64_t offset) {
    return {.bits = uint64_t{region} << 48 | offset};
  }
  uint16_t region() const { return static_cast<uint16_t>(bits >> 48); }
  uint64_t offset() const { return bits & ((uint64_t{1} << 48) - 1); }
  explicit operator bool() const { return bits != 0; }
  friend bool operator==(const ArenaAddress&, const ArenaAddress&) = default;
};

struct ArenaOptions {
  MemoryBudget* budget = nullptr;  // must outlive the arena
  // A thread that makes resident the spans that will be needed next, once the arena holds 96 MiB;
  // null: they become resident when they are touched. Must be destroyed before the arena; only
  // allocations use it.
  Prefaulter* prefaulter = nullptr;
  Pages pages = Pages::kHuge;
  // Whether other processes may map the regions: SharedRegions() are they.
  bool is_shared = false;
  uint64_t region_bytes = uint64_t{64} << 30;
};

struct ArenaStatistics {
  uint64_t allocated_bytes = 0;  // in slots handed out, rounded up to their class
  uint64_t held_bytes = 0;       // spans charged to the budget: resident, or about to be
};

class SlotSpans;
class SpanPool;

class Arena {
 public:
  static constexpr size_t kRegionsMax = 256;
  static constexpr size_t kSpanBytes = 64 * 1024;
  static constexpr size_t kSlotBytesMax = 32 * 1024;  // larger ones take whole spans
  static constexpr size_t kBytesMax = size_t{128} << 20;

  enum class Limit : uint8_t {
    kObey,    // fails if the budget has no room for another span
    kExceed,  // for what must work at the limit, such as deletes
  };

  // The free slots that one thread keeps, so that most of its allocations take no lock: of each
  // size class up to 8 slots, and up to 32 KiB; slots from 1 KiB up that the thread frees are not
  // kept. Takes three words until it is used, then 3 KiB. Owner: one thread at a time. A cache
  // serves one arena at a time: it must be flushed (Arena::Flush) before it serves another one and
  // before the arena is destroyed. Until then its slots keep their spans from the system.
  class Cache;

  explicit Arena(const ArenaOptions& options);
  ~Arena();  // gives all memory back, allocated or not
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The size that an allocation of `bytes` really takes: a multiple of 64; a multiple of 256 from
  // 1024 up. 0 < bytes <= kBytesMax.
  static size_t RoundUp(size_t bytes);

  // Uninitialised memory of RoundUp(bytes) bytes; no address if there is none: the limit or the
  // system refuses. Aligned to 64 bytes, and to 256 if RoundUp(bytes) is a multiple of 256.
  // Thread-safe; each thread with its own cache. Cost: a few instructions from the cache, else a
  // lock; a new span adds a system call and page faults.
  ArenaAddress Allocate(Cache& cache, size_t bytes, Limit limit);

  // Frees an allocation; `bytes` is its size as allocated, or RoundUp of it. Thread-safe; each
  // thread with its own cache.
  void Free(Cache& cache, ArenaAddress at, size_t bytes);

  // Returns the cache's slots to their spans. Thread-safe; the cache must not be in use meanwhile.
  void Flush(Cache& cache);

  // Gives free spans back to the system until few are kept, or none while the budget is over its
  // limit. Returns whether it gave any. Thread-safe. Takes well under a millisecond.
  bool Trim();

  // Returns where the address is in this process. Valid as long as the allocation.
  std::byte* At(ArenaAddress at) const {
    return bases_[at.region()].load(std::memory_order_relaxed) + at.offset();
  }

  // The memory of every region so far, by its number; empty if the arena is not shared. Each is
  // valid as long as the arena. What is in them, free slots and spans given back included, is for
  // whoever maps them to judge.
  std::vector<SharedMemory*> SharedRegions() const;

  ArenaStatistics Statistics() const;
  // Returns how many bytes of the arena are on huge pages now. Reads /proc/self/smaps:
  // milliseconds.
  Result<uint64_t> HugeBytes() const;

  // For tests: the n-th Allocate from now fails once, as if the system had no memory (1: the next
  // one; 0: none). Allocations of either limit count.
  void FailAt(uint64_t n) { fail_at_.store(n, std::memory_order_relaxed); }

  // Checks the accounts: every span is free or its slots add up, and what is charged is what is
  // held. Returns null, or a literal that names the broken invariant. Nothing else may run
  // meanwhile.
  const char* Verify() const;

 private:
  struct Magazine;

  bool FailsNow();
  Magazine& MagazineOf(Cache& cache, size_t size_class);
  bool Refill(Cache& cache, size_t size_class, Limit limit);
  void Unload(Cache& cache, size_t size_class, size_t count);
  void GiveSlots(size_t size_class, std::span<const ArenaAddress> slots);
  ArenaAddress AllocateRun(size_t bytes, Limit limit);
  void FreeRun(ArenaAddress at, size_t bytes);
  ArenaAddress TakeSpans(uint32_t count, Limit limit) SKEP_REQUIRES(mutex_);
  void KeepAhead() SKEP_REQUIRES(mutex_);
  bool ReturnBlock(uint64_t kept_max) SKEP_REQUIRES(mutex_);
  bool ReturnBlocks(uint64_t kept_max, size_t blocks_max) SKEP_REQUIRES(mutex_);
  const char* VerifyRuns() const SKEP_REQUIRES(mutex_);

  Prefaulter* const prefaulter_;
  std::array<std::atomic<std::byte*>, kRegionsMax> bases_{};
  std::atomic<uint64_t> fail_at_{0};

  mutable Mutex mutex_;  // guards everything below
  std::unique_ptr<SpanPool> pool_ SKEP_GUARDED_BY(mutex_);
  std::unique_ptr<SlotSpans> slots_ SKEP_GUARDED_BY(mutex_);
  uint64_t run_bytes_ SKEP_GUARDED_BY(mutex_) = 0;
  std::vector<Cache*> caches_ SKEP_GUARDED_BY(mutex_);  // the caches that may hold slots
};

class Arena::Cache {
 public:
  Cache();
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

 private:
  friend class Arena;
  Arena* arena_ = nullptr;                 // null: the cache holds nothing
  std::unique_ptr<Magazine[]> magazines_;  // one of each size class
  std::atomic<uint64_t> bytes_{0};         // written by the owner
};

}  // namespace skep
