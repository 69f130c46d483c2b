// span_pool.h: the spans of all regions of an arena, and what they cost.
//
//            Take                      Keep
//   fresh -----------> used ------------------------> kept
//     ^   charges        ^            Take              |
//     |                  +------------------------------+
//     |   BeginReturn, GiveBack (no lock), EndReturn     |
//     +--------------------------------------------------+
//         uncharges
//
// KeepAhead makes fresh spans kept ones, charged, for somebody to make them resident.
//
// A kept span is taken before a fresh one: it is paid for, its pages are here or come soon. Of each
// the lowest goes first, and the highest goes back first, so that memory drains towards the
// beginning.
//
// A region is reserved when no other has room. Where the system refuses, the last
// kReserveSpans of those there are serve only Limit::kExceed; they cost address space alone.
//
// Invariants. Verify() checks them.
//   P1  charged_spans() is the number of spans used or kept, but for span 0 of region 0: nobody
//       ever gets it, so that no allocation has the address 0.
//   P2  kept_spans() is the sum over the regions.
//
// Thread safety: none, the arena's lock protects it; GiveBack() alone needs no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/arena.h"
#include "base/span_region.h"

namespace skep {

// A span of an arena.
struct SpanId {
  uint32_t bits;  // region 8 | span 24
  static constexpr uint32_t kNone = ~uint32_t{0};
  static SpanId Of(uint32_t region, uint32_t span) { return {region << 24 | span}; }
  static SpanId Of(ArenaAddress at) {
    return Of(at.region(), static_cast<uint32_t>(at.offset() / Arena::kSpanBytes));
  }
  uint32_t region() const { return bits >> 24; }
  uint32_t span() const { return bits & 0xffffff; }
  ArenaAddress address() const {
    return ArenaAddress::Of(static_cast<uint16_t>(region()), uint64_t{span()} * Arena::kSpanBytes);
  }
};
static_assert(Arena::kRegionsMax == 256);

class SpanPool {
 public:
  static constexpr uint64_t kReserveSpans = 4;

  enum class Refusal : uint8_t {
    kBudget,  // no room; giving back kept spans makes some
    kSystem,  // no address space
  };

  // Spans on their way back to the system.
  struct Returning {
    SpanRegion* region;
    SpanRegion::Returning spans;
  };

  // Stores where each region begins in `bases`, before a span of it is taken. Both outlive the
  // pool.
  SpanPool(const ArenaOptions& options, std::span<std::atomic<std::byte*>> bases);
  ~SpanPool();

  // The first of `count` > 0 spans that follow each other; their info is the caller's to fill in.
  std::expected<SpanId, Refusal> Take(uint32_t count, Arena::Limit limit);
  void Keep(SpanId first, uint32_t count);

  // If few spans are kept, keeps the fresh ones of a block, too: the block's first span. Few: below
  // 1/24 of all, half of what Trim leaves, and below 8 MiB; none below 96 MiB. Nothing where the
  // budget or the regions have no room.
  std::optional<SpanId> KeepAhead();

  // How many spans may be kept: a block's, so that a small arena does not give back and take again
  // what it needs in a moment, or 1/12 of all.
  uint64_t KeptMax() const;
  // How many are left by Trim: two, or 1/12 of all; none if hardly any span is used.
  uint64_t KeptMaxAfterTrim() const;
  // Nothing if no more than `kept_max` are kept. One block at most, so that the work is bounded.
  std::optional<Returning> BeginReturn(uint64_t kept_max);
  static void GiveBack(const Returning& returning);
  void EndReturn(const Returning& returning);

  SpanInfo& info(SpanId id) { return regions_[id.region()]->info(id.span()); }
  uint64_t charged_spans() const { return charged_spans_; }
  uint64_t kept_spans() const { return kept_spans_; }
  std::vector<const SpanRegion*> regions() const;
  // Empty if they are not shared.
  std::vector<SharedMemory*> SharedRegions() const;
  const char* Verify() const;

 private:
  std::optional<SpanId> Find(uint32_t count) const;
  uint64_t FreeSpans() const;
  bool AddRegion(uint32_t count);

  MemoryBudget& budget_;
  const Pages pages_;
  const bool is_shared_;
  const std::span<std::atomic<std::byte*>> bases_;
  const uint64_t region_bytes_min_;
  uint64_t region_bytes_;  // of the next one
  std::vector<std::unique_ptr<SpanRegion>> regions_;
  uint64_t charged_spans_ = 0;
  uint64_t kept_spans_ = 0;
};

}  // namespace skep
