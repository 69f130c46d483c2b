// span_region.h: one region of an arena, and the state of each of its spans.
//
//   +--------- block 0, 2 MiB ---------+--------- block 1, 2 MiB ---------+ ...     PageRegion
//   | span 0 | span 1 | ..   | span 31 | span 32 | ..                     |
//   +----------------------------------+----------------------------------+
//   used   1 bit a span: it is handed out
//   kept   1 bit a span: it is free; its pages are resident, or will be soon
//   plain  1 byte a block: it has plain pages although the region has huge ones
//   infos  SpanInfo, 144 bytes a span
//
// A span is used, kept, or fresh, which is neither: its pages are not resident, but for those that
// belong to the huge page of a neighbour. A block that gave back some of its spans gets plain pages
// until it is wholly used or wholly free. Otherwise the kernel would in time give it a huge page
// again, and the pages that went back would be held for no use, and not be charged.
//
// The tables are zero-filled memory of the system, so that a region costs in proportion to its use
// (0.2 %, not charged). They lie beside the spans, not in them, so that slots pack and the cold
// tables stay off the huge pages.
//
// Invariants. Verify() checks them.
//   R1  no span is both used and kept.
//   R2  used_count and kept_count are the numbers of bits.
//   R3  every span of a block below free_begin is used; every span that is kept is of a block from
//       kept_begin to below kept_end; no span of a block below fresh_begin is fresh.
//   R4  no span at or above touched_end is used or kept.
//
// Thread safety: none, the arena's lock protects it; GiveBack() alone needs no lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "base/huge_pages.h"
#include "base/shared_memory.h"
#include "base/size_classes.h"

namespace skep {

// What an arena knows about a span in use.
struct SpanInfo {
  enum class Kind : uint8_t {
    kNone,   // free, or on its way back to the system
    kSlots,  // cut into slots of one class
    kRun,    // the first of the spans of a large allocation
    kTail,   // a later span of a large allocation
  };

  Kind kind;
  uint8_t size_class;   // kSlots
  uint16_t free_slots;  // kSlots
  uint32_t run_spans;   // kRun
  uint32_t previous;    // kSlots: neighbour in a list of SlotSpans
  uint32_t next;
  std::array<uint64_t, size_classes::kSlotsMax / 64> free;  // kSlots: one bit a free slot
};
static_assert(sizeof(SpanInfo) == 144);

class SpanRegion {
 public:
  static constexpr size_t kSpanBytes = size_classes::kSpanBytes;
  static constexpr size_t kBlockBytes = PageRegion::kHugePageBytes;
  static constexpr uint32_t kBlockSpans = kBlockBytes / kSpanBytes;

  // The free spans of one block on their way back to the system. They count as used until they are
  // back.
  struct Returning {
    uint32_t block;
    uint32_t spans;  // one bit of each
    uint32_t kept;   // how many of them were kept
    std::optional<Pages> advice;
  };

  // Reserves at least `bytes` of address space, in whole blocks.
  //   kIo  as PageRegion::Reserve, or SharedMemory::Create
  static Result<std::unique_ptr<SpanRegion>> Reserve(size_t bytes, Pages pages,
                                                     bool is_shared = false);
  ~SpanRegion();

  // Puts plain pages under the first block until it is full, so that a region that is hardly used
  // does not cost a huge page. To be called before the block is touched.
  void MakeFirstBlockPlain();

  std::byte* begin() const { return memory_.begin(); }
  // Null if it is private.
  SharedMemory* shared() { return std::get_if<SharedMemory>(&held_); }
  uint32_t span_count() const { return block_count_ * kBlockSpans; }
  // Returns the first span from which on no span was ever used.
  uint32_t touched_end() const { return touched_end_; }
  uint32_t used_count() const { return used_count_; }
  uint32_t kept_count() const { return kept_count_; }
  SpanInfo& info(uint32_t span) { return infos_[span]; }
  const SpanInfo& info(uint32_t span) const { return infos_[span]; }

  // Returns the first span of the lowest `count` > 0 that follow each other and are not used.
  std::optional<uint32_t> FindFree(uint32_t count) const;
  // Returns the lowest span that is kept.
  std::optional<uint32_t> FindKept() const;
  // Returns how many of these spans, of which none is used, are fresh.
  uint32_t FreshIn(uint32_t first, uint32_t count) const;

  // Turns spans from kept or fresh into used.
  void Take(uint32_t first, uint32_t count);
  // Turns spans from used into kept.
  void Keep(uint32_t first, uint32_t count);
  // Returns the lowest block that has a fresh span.
  std::optional<uint32_t> FindFreshBlock() const;
  // Turns the fresh spans of a block into kept ones, which the caller has made resident. Returns
  // how many.
  uint32_t KeepFresh(uint32_t block);

  // Chooses spans to give back: if one of the highest blocks that keep spans has no used span, all
  // spans of that block (its huge page then goes as a whole), else the free spans of the one of
  // these blocks that keeps most.
  // Requires kept_count() > 0.
  Returning BeginReturn();
  // Gives the pages back to the system. Needs no lock.
  void GiveBack(const Returning& returning);
  // Turns the spans from used into fresh.
  void EndReturn(const Returning& returning);

  Result<uint64_t> HugeBytes() const { return memory_.HugeBytes(); }
  const char* Verify() const;

 private:
  using Held = std::variant<PageRegion, SharedMemory>;

  static Result<Held> Hold(size_t bytes, Pages pages, bool is_shared);

  SpanRegion(Held held, PageRegion tables, Pages pages);

  void Advise(uint32_t block, Pages pages) {
    memory_.Advise(block * kBlockBytes, kBlockBytes, pages);
  }
  void MakeHugeIfFull(uint32_t block);
  std::optional<Pages> AdviceFor(uint32_t block, bool is_whole);
  uint32_t ReturnableBlock();
  template <typename Function>
  static void ForEachBlock(uint32_t first, uint32_t count, Function function);

  Held held_;
  PageRegion& memory_;  // of what is held
  PageRegion tables_;
  const Pages pages_;
  const uint32_t block_count_;
  uint32_t* used_;  // one word a block
  uint32_t* kept_;
  SpanInfo* infos_;
  bool* plain_;

  uint32_t used_count_ = 0;
  uint32_t kept_count_ = 0;
  uint32_t touched_end_ = 0;
  mutable uint32_t free_begin_ = 0;  // a block, as are the three below
  mutable uint32_t kept_begin_ = 0;
  mutable uint32_t fresh_begin_ = 0;
  uint32_t kept_end_ = 0;
};

}  // namespace skep
