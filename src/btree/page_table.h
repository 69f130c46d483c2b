// page_table.h: maps LIDs to node buffers (Honeycomb, section 3.2).
//
// One 8-byte word a LID, so that a reader learns the generation and the buffer in one load, and a
// subtree is replaced by one store:
//
//    63             48 47             32 31              0
//   +-----------------+-----------------+-----------------+   buffers start at multiples of 256 B,
//   |   generation    |     region      |  offset / 256   |   so a region may be 1 TiB
//   +-----------------+-----------------+-----------------+   low 48 bits zero: no buffer
//
// Roles
//   reader   Load(lid): sees the buffer complete, because Map stored it with release. Any thread.
//   writer   Map(link, buffer) while it holds the lock of the node that is replaced, or while
//            nobody else knows the LID.
//   freer    Free(link), once no reader can hold the link: the generation goes up by one, so that a
//            link that was kept too long does not match, unless 65535 nodes had the LID meanwhile.
//
// Generations are 1 .. 65535, so neither a row that was never used nor Link() matches any link. A
// row of a free LID holds the generation of its next link and no buffer. Rows are never given back
// to the system, since they remember the generations.
//
// Beside each row is a count of sampled operations on the node (CountHit), from which a client or a
// switch can choose which nodes to keep. It begins at 0 with each node.
//
// The free LIDs are a stack of 4 bytes each in memory of its own, so that pushing one never copies
// the others.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/arena.h"
#include "base/huge_pages.h"
#include "base/mutex.h"
#include "base/prefetch.h"
#include "base/shared_memory.h"
#include "btree/link.h"

namespace skep::btree {

class PageTable {
 public:
  // A row of the table.
  struct Entry {
    uint64_t bits;
    uint16_t generation() const { return static_cast<uint16_t>(bits >> 48); }
    // No address if the LID has no buffer.
    ArenaAddress buffer() const {
      return ArenaAddress::Of(static_cast<uint16_t>(bits >> 32), (bits & 0xffffffff) << 8);
    }
  };

  // Charges the budget for the pages it touches. `budget` must outlive the table. LIDs are below
  // `lids_max`, 2 to 2^32; fewer if the system has less address space. `is_shared`: other processes
  // may map the rows.
  explicit PageTable(MemoryBudget* budget, uint64_t lids_max = uint64_t{1} << 28,
                     bool is_shared = false);
  ~PageTable();
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;

  // Returns a LID of its current generation, without a buffer; no link if all are taken or the
  // system has no memory. Freed LIDs come first. Thread-safe.
  Link Allocate();
  // Unmaps the LID; its generation goes up. Thread-safe.
  void Free(Link link);

  // Thread-safe. Sequentially consistent (E1 of versions.h): the caller sees the buffer as it was
  // when it was mapped. Requires lid < end().
  Entry Load(Lid lid) const { return {rows_[lid].load(std::memory_order_seq_cst)}; }
  // Counts a sampled operation on the node. Requires lid < end(). Thread-safe.
  void CountHit(Lid lid) { hits_[lid].fetch_add(1, std::memory_order_relaxed); }
  uint32_t Hits(Lid lid) const { return hits_[lid].load(std::memory_order_relaxed); }
  // Fetches the cache line of the row.
  void Prefetch(Lid lid) const { FetchLine(&rows_[lid]); }
  // The buffer of the link; no address if the link is of another generation.
  ArenaAddress Find(Link link) const {
    if (link.lid() >= end_.load(std::memory_order_acquire)) return {};
    const Entry entry = Load(link.lid());
    return entry.generation() == link.generation() ? entry.buffer() : ArenaAddress();
  }
  // Maps the link's LID to the buffer; keeps the generation. Sequentially consistent, for the
  // argument about sibling links in split_join.h.
  void Map(Link link, ArenaAddress buffer);

  // LIDs are 1 .. end()-1; for walks over all of them.
  Lid end() const { return end_.load(std::memory_order_acquire); }
  uint64_t allocated() const;   // LIDs in use
  uint64_t held_bytes() const;  // bytes charged to the budget
  // The memory of the rows; null if it is private.
  SharedMemory* shared_rows() const { return shared_rows_.get(); }

 private:
  // No other thread knows the table yet.
  bool Reserve(bool is_shared) SKEP_NO_THREAD_SAFETY_ANALYSIS;
  std::byte* ReserveRows(bool is_shared);
  void Charge() SKEP_REQUIRES(mutex_);

  MemoryBudget& budget_;
  uint64_t lids_max_;
  std::unique_ptr<PageRegion> row_memory_;     // or
  std::unique_ptr<SharedMemory> shared_rows_;  // this
  std::unique_ptr<PageRegion> hit_memory_;
  std::unique_ptr<PageRegion> free_memory_;
  std::atomic<uint64_t>* rows_ = nullptr;  // null: the system has no address space left
  std::atomic<uint32_t>* hits_ = nullptr;  // for each row
  std::atomic<Lid> end_{1};                // written under the mutex; LID 0 is no LID

  mutable Mutex mutex_;
  uint32_t* free_ SKEP_GUARDED_BY(mutex_) = nullptr;  // the stack
  uint64_t free_count_ SKEP_GUARDED_BY(mutex_) = 0;
  uint64_t free_count_max_ SKEP_GUARDED_BY(mutex_) = 0;  // the most free LIDs that there ever were
  uint64_t held_bytes_ SKEP_GUARDED_BY(mutex_) = 0;
};

}  // namespace skep::btree
