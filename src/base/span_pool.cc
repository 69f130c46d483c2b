#include "base/span_pool.h"

#include <algorithm>

#include "base/check.h"

namespace skep {
namespace {

constexpr uint64_t kRegionBytesMin = uint64_t{64} << 20;
constexpr uint64_t kRegionBytesMax = uint64_t{1} << 40;
static_assert(kRegionBytesMax / Arena::kSpanBytes == 1 << 24, "SpanId's 24 bits");

// Kept spans lie here and there, so to give a few of them back would cost many blocks their huge
// pages.
constexpr uint64_t kKeptFraction = 12;
constexpr uint64_t kKeptAfterTrim = 2;
// The least that is kept ahead. KeptMax() leaves room for another block above it, so that spans
// that are free for a moment do not send back the ones kept ahead.
constexpr uint64_t kAheadSpansMin = 2 * SpanRegion::kBlockSpans;
constexpr uint64_t kAheadSpansMax = 4 * SpanRegion::kBlockSpans;
// An arena with no more spans in use than these is as good as empty.
constexpr uint64_t kUsedAtRest = 4;

}  // namespace

SpanPool::SpanPool(const ArenaOptions& options, std::span<std::atomic<std::byte*>> bases)
    : budget_(*options.budget),
      pages_(options.pages),
      is_shared_(options.is_shared),
      bases_(bases),
      region_bytes_min_(std::min(options.region_bytes, kRegionBytesMin)),
      region_bytes_(std::min(options.region_bytes, kRegionBytesMax)) {}

SpanPool::~SpanPool() { budget_.Release(charged_spans_ * Arena::kSpanBytes); }

std::expected<SpanId, SpanPool::Refusal> SpanPool::Take(uint32_t count, Arena::Limit limit) {
  const uint64_t spared = limit == Arena::Limit::kObey ? kReserveSpans : 0;
  std::optional<SpanId> found = Find(count);
  if (!found || FreeSpans() < count + spared) {
    if (AddRegion(count)) {
      found = Find(count);
    } else if (!found || FreeSpans() < count + spared) {
      return std::unexpected(Refusal::kSystem);
    }
  }
  SpanRegion& region = *regions_[found->region()];
  const uint32_t fresh = region.FreshIn(found->span(), count);
  const uint64_t bytes = fresh * Arena::kSpanBytes;
  if (limit == Arena::Limit::kObey && fresh > 0 && !budget_.HasRoomFor(bytes)) {
    return std::unexpected(Refusal::kBudget);
  }
  budget_.Charge(bytes);
  charged_spans_ += fresh;
  kept_spans_ -= count - fresh;
  region.Take(found->span(), count);
  return *found;
}

std::optional<SpanId> SpanPool::Find(uint32_t count) const {
  for (uint32_t i = 0; count == 1 && kept_spans_ > 0 && i < regions_.size(); ++i) {
    if (const auto span = regions_[i]->FindKept()) return SpanId::Of(i, *span);
  }
  for (uint32_t i = 0; i < regions_.size(); ++i) {
    if (const auto span = regions_[i]->FindFree(count)) return SpanId::Of(i, *span);
  }
  return std::nullopt;
}

uint64_t SpanPool::FreeSpans() const {
  uint64_t spans = 0;
  for (const auto& region : regions_) spans += region->span_count() - region->used_count();
  return spans;
}

// Adds a region with room for `count` spans that follow each other, and for the reserve.
bool SpanPool::AddRegion(uint32_t count) {
  if (regions_.size() == bases_.size()) return false;
  const uint64_t needed = (count + 1 + kReserveSpans) * Arena::kSpanBytes;
  const uint64_t bytes_min = std::max(region_bytes_min_, needed);
  uint64_t bytes = std::max(region_bytes_, needed);
  auto region = SpanRegion::Reserve(bytes, pages_, is_shared_);
  while (!region && bytes > bytes_min) {
    bytes = std::max(bytes / 2, bytes_min);
    region = SpanRegion::Reserve(bytes, pages_, is_shared_);
    region_bytes_ = bytes;
  }
  if (!region) return false;
  if (regions_.empty()) {
    (*region)->MakeFirstBlockPlain();
    (*region)->Take(0, 1);  // P1
  }
  bases_[regions_.size()].store((*region)->begin(), std::memory_order_relaxed);
  regions_.push_back(std::move(*region));
  return true;
}

void SpanPool::Keep(SpanId first, uint32_t count) {
  regions_[first.region()]->Keep(first.span(), count);
  kept_spans_ += count;
}

std::optional<SpanId> SpanPool::KeepAhead() {
  const uint64_t wanted = std::min(charged_spans_ / (2 * kKeptFraction), kAheadSpansMax);
  if (wanted < kAheadSpansMin || kept_spans_ >= wanted) return std::nullopt;
  if (!budget_.HasRoomFor(SpanRegion::kBlockBytes)) return std::nullopt;
  for (uint32_t i = 0; i < regions_.size(); ++i) {
    SpanRegion& region = *regions_[i];
    const auto block = region.FindFreshBlock();
    if (!block) continue;
    const uint32_t fresh = region.KeepFresh(*block);
    budget_.Charge(fresh * Arena::kSpanBytes);
    charged_spans_ += fresh;
    kept_spans_ += fresh;
    return SpanId::Of(i, *block * SpanRegion::kBlockSpans);
  }
  return std::nullopt;
}

uint64_t SpanPool::KeptMax() const {
  return std::max<uint64_t>(SpanRegion::kBlockSpans, charged_spans_ / kKeptFraction);
}

uint64_t SpanPool::KeptMaxAfterTrim() const {
  const bool over_limit = !budget_.HasRoomFor(0);
  if (over_limit || charged_spans_ - kept_spans_ <= kUsedAtRest) return 0;
  return std::max(kKeptAfterTrim, charged_spans_ / kKeptFraction);
}

std::optional<SpanPool::Returning> SpanPool::BeginReturn(uint64_t kept_max) {
  if (kept_spans_ <= kept_max) return std::nullopt;
  for (size_t i = regions_.size(); i-- > 0;) {
    SpanRegion& region = *regions_[i];
    if (region.kept_count() == 0) continue;
    const Returning returning = {.region = &region, .spans = region.BeginReturn()};
    kept_spans_ -= returning.spans.kept;
    return returning;
  }
  return std::nullopt;
}

void SpanPool::GiveBack(const Returning& returning) { returning.region->GiveBack(returning.spans); }

void SpanPool::EndReturn(const Returning& returning) {
  returning.region->EndReturn(returning.spans);
  charged_spans_ -= returning.spans.kept;
  budget_.Release(returning.spans.kept * Arena::kSpanBytes);
}

std::vector<const SpanRegion*> SpanPool::regions() const {
  std::vector<const SpanRegion*> regions;
  for (const auto& region : regions_) regions.push_back(region.get());
  return regions;
}

std::vector<SharedMemory*> SpanPool::SharedRegions() const {
  std::vector<SharedMemory*> shared;
  for (const auto& region : regions_) {
    if (region->shared() != nullptr) shared.push_back(region->shared());
  }
  return shared;
}

const char* SpanPool::Verify() const {
  uint64_t here = 0;
  uint64_t kept = 0;
  for (const auto& region : regions_) {
    if (const char* broken = region->Verify()) return broken;
    here += region->used_count() + region->kept_count();
    kept += region->kept_count();
  }
  const uint64_t nobodys = regions_.empty() ? 0 : 1;
  if (charged_spans_ + nobodys != here) return "P1: charged is not what is held";
  if (kept_spans_ != kept) return "P2: kept spans";
  return nullptr;
}

}  // namespace skep
