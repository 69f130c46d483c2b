#include "base/span_region.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/poison.h"

namespace skep {
namespace {

constexpr uint32_t kAll = ~uint32_t{0};
static_assert(SpanRegion::kBlockSpans == 32, "a word a block");

// How many of the highest blocks with kept spans BeginReturn() compares.
constexpr int kCandidates = 16;

constexpr size_t TableBytes(size_t blocks) {
  return blocks *
         (2 * sizeof(uint32_t) + SpanRegion::kBlockSpans * sizeof(SpanInfo) + sizeof(bool));
}

// Returns the bits [first, first + count) of a word; count > 0.
constexpr uint32_t Mask(uint32_t first, uint32_t count) { return (kAll >> (32 - count)) << first; }

// Returns the bits at which `count` ones in a row begin; 0 < count <= 32.
uint32_t BeginsOf(uint32_t bits, uint32_t count) {
  for (uint32_t rest = count; rest > 1 && bits != 0;) {
    const uint32_t step = rest / 2;
    bits &= bits >> step;
    rest -= step;
  }
  return bits;
}

}  // namespace

Result<SpanRegion::Held> SpanRegion::Hold(size_t bytes, Pages pages, bool is_shared) {
  if (!is_shared) return PageRegion::Reserve(bytes, pages);
  return SharedMemory::Create(
      bytes, pages == Pages::kHuge ? SharedPages::kTransparent : SharedPages::kPlain);
}

Result<std::unique_ptr<SpanRegion>> SpanRegion::Reserve(size_t bytes, Pages pages, bool is_shared) {
  const size_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
  auto held = Hold(blocks * kBlockBytes, pages, is_shared);
  if (!held) return Fail(held.error());
  const auto* const shared = std::get_if<SharedMemory>(&*held);
  if (shared != nullptr && shared->pages() == SharedPages::kPlain) pages = Pages::kPlain;
  auto tables = PageRegion::Reserve(TableBytes(blocks), Pages::kPlain);
  if (!tables) return Fail(tables.error());
  return std::unique_ptr<SpanRegion>(new SpanRegion(std::move(*held), std::move(*tables), pages));
}

SpanRegion::SpanRegion(Held held, PageRegion tables, Pages pages)
    : held_(std::move(held)),
      memory_(shared() == nullptr ? std::get<PageRegion>(held_) : shared()->memory()),
      tables_(std::move(tables)),
      pages_(pages),
      block_count_(static_cast<uint32_t>(memory_.size() / kBlockBytes)),
      used_(reinterpret_cast<uint32_t*>(tables_.begin())),
      kept_(used_ + block_count_),
      infos_(reinterpret_cast<SpanInfo*>(kept_ + block_count_)),
      plain_(reinterpret_cast<bool*>(infos_ + span_count())) {}

// The next mapping at the same place must not inherit what the allocator poisoned.
SpanRegion::~SpanRegion() { Unpoison(memory_.begin(), touched_end_ * kSpanBytes); }

void SpanRegion::MakeFirstBlockPlain() {
  if (pages_ == Pages::kPlain) return;
  Advise(0, Pages::kPlain);
  plain_[0] = true;
}

// Calls function(block, mask) for each block of the spans [first, first + count); the mask has its
// spans.
template <typename Function>
void SpanRegion::ForEachBlock(uint32_t first, uint32_t count, Function function) {
  while (count > 0) {
    const uint32_t bit = first % kBlockSpans;
    const uint32_t here = std::min(count, kBlockSpans - bit);
    function(first / kBlockSpans, Mask(bit, here));
    first += here;
    count -= here;
  }
}

std::optional<uint32_t> SpanRegion::FindFree(uint32_t count) const {
  while (free_begin_ < block_count_ && used_[free_begin_] == kAll) ++free_begin_;
  uint32_t run = 0;  // number of free spans up to the block's first bit
  for (uint32_t block = free_begin_; block < block_count_; ++block) {
    const uint32_t free = ~used_[block];
    const uint32_t base = block * kBlockSpans;
    const auto low = static_cast<uint32_t>(std::countr_one(free));
    if (run + low >= count) return base - run;
    if (count <= kBlockSpans) {
      if (const uint32_t begins = BeginsOf(free, count); begins != 0) {
        return base + static_cast<uint32_t>(std::countr_zero(begins));
      }
    }
    run = free == kAll ? run + kBlockSpans : static_cast<uint32_t>(std::countl_one(free));
  }
  return std::nullopt;
}

std::optional<uint32_t> SpanRegion::FindKept() const {
  if (kept_count_ == 0) return std::nullopt;
  while (kept_[kept_begin_] == 0) ++kept_begin_;
  return kept_begin_ * kBlockSpans + static_cast<uint32_t>(std::countr_zero(kept_[kept_begin_]));
}

uint32_t SpanRegion::FreshIn(uint32_t first, uint32_t count) const {
  uint32_t kept = 0;
  ForEachBlock(first, count, [&](uint32_t block, uint32_t mask) {
    kept += static_cast<uint32_t>(std::popcount(kept_[block] & mask));
  });
  return count - kept;
}

void SpanRegion::Take(uint32_t first, uint32_t count) {
  kept_count_ -= count - FreshIn(first, count);
  used_count_ += count;
  touched_end_ = std::max(touched_end_, first + count);
  ForEachBlock(first, count, [&](uint32_t block, uint32_t mask) {
    SKEP_DCHECK((used_[block] & mask) == 0);
    used_[block] |= mask;
    kept_[block] &= ~mask;
    MakeHugeIfFull(block);
  });
}

// Lets the kernel join the pages of a full block. Spans on their way back count as used here; if
// this advice and that of their return cross, the block has the wrong pages until it is full or
// gives back the next time.
void SpanRegion::MakeHugeIfFull(uint32_t block) {
  if (used_[block] != kAll || !plain_[block]) return;
  plain_[block] = false;
  Advise(block, Pages::kHuge);
}

void SpanRegion::Keep(uint32_t first, uint32_t count) {
  kept_count_ += count;
  used_count_ -= count;
  ForEachBlock(first, count, [&](uint32_t block, uint32_t mask) {
    SKEP_DCHECK((used_[block] & mask) == mask);
    used_[block] &= ~mask;
    kept_[block] |= mask;
  });
  for (uint32_t span = first; span < first + count; ++span) {
    infos_[span].kind = SpanInfo::Kind::kNone;
  }
  const uint32_t block = first / kBlockSpans;
  free_begin_ = std::min(free_begin_, block);
  kept_begin_ = std::min(kept_begin_, block);
  kept_end_ = std::max(kept_end_, (first + count - 1) / kBlockSpans + 1);
}

std::optional<uint32_t> SpanRegion::FindFreshBlock() const {
  while (fresh_begin_ < block_count_ && (used_[fresh_begin_] | kept_[fresh_begin_]) == kAll) {
    ++fresh_begin_;
  }
  if (fresh_begin_ == block_count_) return std::nullopt;
  return fresh_begin_;
}

uint32_t SpanRegion::KeepFresh(uint32_t block) {
  const uint32_t fresh = ~(used_[block] | kept_[block]);
  const auto count = static_cast<uint32_t>(std::popcount(fresh));
  kept_[block] |= fresh;
  kept_count_ += count;
  touched_end_ = std::max(touched_end_, (block + 1) * kBlockSpans);
  kept_begin_ = std::min(kept_begin_, block);
  kept_end_ = std::max(kept_end_, block + 1);
  return count;
}

uint32_t SpanRegion::ReturnableBlock() {
  while (kept_[kept_end_ - 1] == 0) --kept_end_;
  int candidates = kCandidates;
  uint32_t best = kept_end_ - 1;
  for (uint32_t block = kept_end_; block-- > kept_begin_ && candidates > 0;) {
    if (kept_[block] == 0) continue;
    if (used_[block] == 0) return block;
    if (std::popcount(kept_[block]) > std::popcount(kept_[best])) best = block;
    --candidates;
  }
  return best;
}

// Returns the pages that a block is to have from now on, if they change: it gives back all its
// spans (`is_whole`) or some.
std::optional<Pages> SpanRegion::AdviceFor(uint32_t block, bool is_whole) {
  if (pages_ == Pages::kPlain || plain_[block] == !is_whole) return std::nullopt;
  plain_[block] = !is_whole;
  return is_whole ? Pages::kHuge : Pages::kPlain;
}

SpanRegion::Returning SpanRegion::BeginReturn() {
  const uint32_t block = ReturnableBlock();
  const Returning returning = {.block = block,
                               .spans = ~used_[block],
                               .kept = static_cast<uint32_t>(std::popcount(kept_[block])),
                               .advice = AdviceFor(block, used_[block] == 0)};
  kept_count_ -= returning.kept;
  used_count_ += static_cast<uint32_t>(std::popcount(returning.spans));
  used_[block] = kAll;
  kept_[block] = 0;
  return returning;
}

void SpanRegion::GiveBack(const Returning& returning) {
  if (returning.advice) Advise(returning.block, *returning.advice);
  uint32_t rest = returning.spans;
  while (rest != 0) {
    const auto first = static_cast<uint32_t>(std::countr_zero(rest));
    const auto count = static_cast<uint32_t>(std::countr_one(rest >> first));
    memory_.GiveBack((size_t{returning.block} * kBlockSpans + first) * kSpanBytes,
                     count * kSpanBytes);
    rest &= ~Mask(first, count);
  }
}

void SpanRegion::EndReturn(const Returning& returning) {
  used_count_ -= static_cast<uint32_t>(std::popcount(returning.spans));
  used_[returning.block] &= ~returning.spans;
  free_begin_ = std::min(free_begin_, returning.block);
  fresh_begin_ = std::min(fresh_begin_, returning.block);
}

const char* SpanRegion::Verify() const {
  uint32_t used = 0;
  uint32_t kept = 0;
  const uint32_t touched_blocks = (touched_end_ + kBlockSpans - 1) / kBlockSpans;
  for (uint32_t block = 0; block < touched_blocks; ++block) {
    if ((used_[block] & kept_[block]) != 0) return "R1: a span is used and kept";
    if (block < free_begin_ && used_[block] != kAll) return "R3: a free span below free_begin";
    if (block < fresh_begin_ && (used_[block] | kept_[block]) != kAll) {
      return "R3: a fresh span below fresh_begin";
    }
    if ((block < kept_begin_ || block >= kept_end_) && kept_[block] != 0) {
      return "R3: a kept span outside its bounds";
    }
    used += static_cast<uint32_t>(std::popcount(used_[block]));
    kept += static_cast<uint32_t>(std::popcount(kept_[block]));
  }
  if (used != used_count_ || kept != kept_count_) return "R2, R4: a count is not that of the bits";
  return nullptr;
}

}  // namespace skep
