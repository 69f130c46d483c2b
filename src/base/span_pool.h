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
// KeepAhead turns fresh spans into kept ones, charged, which the arena has made resident.
//
// A kept span is taken before a fresh one: it is charged already, and its pages are resident or
// will be soon. Of either kind the lowest goes first, and the highest kept spans go back first, so
// that memory drains towards the beginning.
//
// A region is reserved when no other has room. Where the system refuses one, the last kReserveSpans
// of the existing regions serve only Limit::kExceed; they cost address space alone.
//
// Invariants. Verify() checks them.
//   P1  charged_spans() is the number of spans used or kept, but for span 0 of region 0: it is
//       never handed out, so that no allocation has the address 0.
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
    kBudget,  // no room; giving kept spans back makes some
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

  // Returns the first of `count` > 0 spans that follow each other; the caller fills in their info.
  std::expected<SpanId, Refusal> Take(uint32_t count, Arena::Limit limit);
  void Keep(SpanId first, uint32_t count);

  // Keeps the fresh spans of one block if few spans are kept, and returns the first span of the
  // block. Few: below 1/24 of all, which is half of what Trim leaves, and below 8 MiB; an arena
  // below 96 MiB keeps none ahead. Returns nothing where the budget or the regions have no room.
  std::optional<SpanId> KeepAhead();

  // Returns how many spans may be kept: as many as a block has, so that a small arena does not give
  // back and take again what it needs in a moment, or 1/12 of all.
  uint64_t KeptMax() const;
  // Returns how many kept spans Trim leaves: two, or 1/12 of all; none if hardly any span is used.
  uint64_t KeptMaxAfterTrim() const;
  // Chooses the spans of at most one block, so that the work is bounded, to go back to the system.
  // Returns nothing if no more than `kept_max` are kept.
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
  uint64_t region_bytes_;  // size of the next region
  std::vector<std::unique_ptr<SpanRegion>> regions_;
  uint64_t charged_spans_ = 0;
  uint64_t kept_spans_ = 0;
};

}  // namespace skep
