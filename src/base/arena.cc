#include "base/arena.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/poison.h"
#include "base/prefaulter.h"
#include "base/size_classes.h"
#include "base/slot_spans.h"
#include "base/span_pool.h"

namespace skep {
namespace {

static_assert(Arena::kSpanBytes == size_classes::kSpanBytes);
static_assert(Arena::kSlotBytesMax == size_classes::kSlotBytesMax);

constexpr size_t kMagazineSlots = 8;
constexpr size_t kMagazineBytes = 32 * 1024;
// Slots from this size on are few to a span. If a thread used again what it has just freed, a span
// with holes would keep them: so these go back to the spans at once, where the fullest has the next
// allocation, and sparse ones drain.
constexpr size_t kPackedBytesMin = 1024;
// One block is 2 MiB, whose return takes some hundred microseconds.
constexpr size_t kBlocksAtOnce = 4;

size_t MagazineSlots(size_t size_class) {
  return std::min(kMagazineSlots, kMagazineBytes / size_classes::SlotBytes(size_class));
}

// Returns how many slots go to or from the spans at once: half of a magazine, so that neither an
// allocation nor, below kPackedBytesMin, a free that follows needs the lock again.
size_t Portion(size_t size_class) { return (MagazineSlots(size_class) + 1) / 2; }

uint32_t SpansOf(size_t bytes) {
  return static_cast<uint32_t>((bytes + Arena::kSpanBytes - 1) / Arena::kSpanBytes);
}

// Adds to a sum that one thread writes and any thread reads.
void Add(std::atomic<uint64_t>& sum, uint64_t value) {
  sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

}  // namespace

struct Arena::Magazine {
  uint32_t count = 0;
  std::array<ArenaAddress, kMagazineSlots> slots;
};

Arena::Cache::Cache() = default;

Arena::Cache::~Cache() { SKEP_DCHECK(arena_ == nullptr); }

Arena::Arena(const ArenaOptions& options)
    : prefaulter_(options.prefaulter),
      pool_(std::make_unique<SpanPool>(options, bases_)),
      slots_(std::make_unique<SlotSpans>(*pool_)) {}

Arena::~Arena() { SKEP_DCHECK(caches_.empty()); }

size_t Arena::RoundUp(size_t bytes) {
  SKEP_DCHECK(bytes > 0 && bytes <= kBytesMax);
  return bytes <= kSlotBytesMax ? size_classes::SlotBytes(size_classes::Of(bytes))
                                : SpansOf(bytes) * kSpanBytes;
}

ArenaAddress Arena::Allocate(Cache& cache, size_t bytes, Limit limit) {
  SKEP_DCHECK(bytes > 0 && bytes <= kBytesMax);
  if (FailsNow()) return {};
  if (bytes > kSlotBytesMax) return AllocateRun(bytes, limit);

  const size_t size_class = size_classes::Of(bytes);
  Magazine& magazine = MagazineOf(cache, size_class);
  if (magazine.count == 0 && !Refill(cache, size_class, limit)) return {};
  const ArenaAddress at = magazine.slots[--magazine.count];
  const size_t slot_bytes = size_classes::SlotBytes(size_class);
  Add(cache.bytes_, -slot_bytes);
  Unpoison(At(at), slot_bytes);
  return at;
}

void Arena::Free(Cache& cache, ArenaAddress at, size_t bytes) {
  SKEP_DCHECK(at && bytes > 0 && bytes <= kBytesMax);
  if (bytes > kSlotBytesMax) return FreeRun(at, bytes);

  const size_t size_class = size_classes::Of(bytes);
  const size_t slot_bytes = size_classes::SlotBytes(size_class);
  Magazine& magazine = MagazineOf(cache, size_class);
  SKEP_DCHECK(std::ranges::count(std::span(magazine.slots).first(magazine.count), at) == 0);
  Poison(At(at), slot_bytes);
  if (slot_bytes >= kPackedBytesMin) return GiveSlots(size_class, {&at, 1});
  if (magazine.count == MagazineSlots(size_class)) Unload(cache, size_class, Portion(size_class));
  magazine.slots[magazine.count++] = at;
  Add(cache.bytes_, slot_bytes);
}

void Arena::Flush(Cache& cache) {
  if (cache.arena_ == nullptr) return;
  SKEP_DCHECK(cache.arena_ == this);
  for (size_t i = 0; i < size_classes::kCount; ++i) {
    if (cache.magazines_[i].count > 0) Unload(cache, i, cache.magazines_[i].count);
  }
  cache.magazines_.reset();
  cache.arena_ = nullptr;
  const MutexLock lock(mutex_);
  std::erase(caches_, &cache);
}

bool Arena::Trim() {
  const MutexLock lock(mutex_);
  return ReturnBlocks(pool_->KeptMaxAfterTrim(), kBlocksAtOnce);
}

// Returns true once: for the allocation that FailAt() has named.
bool Arena::FailsNow() {
  uint64_t left = fail_at_.load(std::memory_order_relaxed);
  while (left != 0) {
    if (fail_at_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return left == 1;
  }
  return false;
}

Arena::Magazine& Arena::MagazineOf(Cache& cache, size_t size_class) {
  if (cache.arena_ == nullptr) {
    auto magazines = std::make_unique<Magazine[]>(size_classes::kCount);
    const MutexLock lock(mutex_);
    caches_.push_back(&cache);
    cache.magazines_ = std::move(magazines);
    cache.arena_ = this;
  }
  SKEP_DCHECK(cache.arena_ == this);
  return cache.magazines_[size_class];
}

// Fills an empty magazine from the spans. Returns false if it stays empty.
bool Arena::Refill(Cache& cache, size_t size_class, Limit limit) {
  Magazine& magazine = cache.magazines_[size_class];
  const std::span<ArenaAddress> to = std::span(magazine.slots).first(Portion(size_class));
  const MutexLock lock(mutex_);
  size_t taken = slots_->Take(size_class, to);
  if (taken == 0) {
    const ArenaAddress span = TakeSpans(1, limit);
    if (!span) return false;
    Poison(At(span), kSpanBytes);
    slots_->Add(SpanId::Of(span), size_class);
    taken = slots_->Take(size_class, to);
  }
  magazine.count = static_cast<uint32_t>(taken);
  Add(cache.bytes_, taken * size_classes::SlotBytes(size_class));
  return true;
}

// Returns the slots that are longest in the magazine to their spans.
void Arena::Unload(Cache& cache, size_t size_class, size_t count) {
  Magazine& magazine = cache.magazines_[size_class];
  Add(cache.bytes_, -(count * size_classes::SlotBytes(size_class)));
  GiveSlots(size_class, std::span(magazine.slots).first(count));
  std::ranges::copy(std::span(magazine.slots).subspan(count), magazine.slots.begin());
  magazine.count -= static_cast<uint32_t>(count);
}

void Arena::GiveSlots(size_t size_class, std::span<const ArenaAddress> slots) {
  const MutexLock lock(mutex_);
  size_t spans = 0;
  for (const ArenaAddress at : slots) {
    const auto span = slots_->Give(at, size_class);
    if (!span) continue;
    pool_->Keep(*span, 1);
    ++spans;
  }
  ReturnBlocks(pool_->KeptMax(), spans);
}

ArenaAddress Arena::AllocateRun(size_t bytes, Limit limit) {
  const uint32_t count = SpansOf(bytes);
  const MutexLock lock(mutex_);
  const ArenaAddress at = TakeSpans(count, limit);
  if (!at) return {};
  const SpanId first = SpanId::Of(at);
  for (uint32_t i = 1; i < count; ++i) {
    pool_->info(SpanId{first.bits + i}).kind = SpanInfo::Kind::kTail;
  }
  SpanInfo& info = pool_->info(first);
  info.kind = SpanInfo::Kind::kRun;
  info.run_spans = count;
  run_bytes_ += count * kSpanBytes;
  Unpoison(At(at), count * kSpanBytes);
  return at;
}

void Arena::FreeRun(ArenaAddress at, size_t bytes) {
  const uint32_t count = SpansOf(bytes);
  const MutexLock lock(mutex_);
  const SpanInfo& info = pool_->info(SpanId::Of(at));
  SKEP_CHECK(info.kind == SpanInfo::Kind::kRun && info.run_spans == count);
  Poison(At(at), count * kSpanBytes);
  run_bytes_ -= count * kSpanBytes;
  pool_->Keep(SpanId::Of(at), count);
  ReturnBlocks(pool_->KeptMax(), kBlocksAtOnce);
}

// Takes `count` spans that follow each other. No address if the limit or the system refuses.
ArenaAddress Arena::TakeSpans(uint32_t count, Limit limit) {
  for (;;) {
    const auto taken = pool_->Take(count, limit);
    if (taken) {
      KeepAhead();
      return taken->address();
    }
    // The budget may be full of kept spans that do not fit the run.
    if (taken.error() == SpanPool::Refusal::kSystem || !ReturnBlock(0)) return {};
  }
}

// Has the spans that will be taken next made resident.
void Arena::KeepAhead() {
  if (prefaulter_ == nullptr) return;
  try {
    const auto block = pool_->KeepAhead();
    if (block) prefaulter_->Ask({At(block->address()), SpanRegion::kBlockBytes});
  } catch (const std::bad_alloc&) {
    // The block only becomes resident later. To throw would lose the spans that the caller has
    // taken.
  }
}

// Gives the kept spans of one block back if more than `kept_max` are kept. The lock is free
// meanwhile.
bool Arena::ReturnBlock(uint64_t kept_max) {
  const auto returning = pool_->BeginReturn(kept_max);
  if (!returning) return false;
  {
    const MutexUnlock unlock(mutex_);
    SpanPool::GiveBack(*returning);
  }
  pool_->EndReturn(*returning);
  return true;
}

// Gives back the kept spans of at most `blocks_max` blocks. Returns whether it gave any.
bool Arena::ReturnBlocks(uint64_t kept_max, size_t blocks_max) {
  size_t blocks = 0;
  while (blocks < blocks_max && ReturnBlock(kept_max)) ++blocks;
  return blocks > 0;
}

std::vector<SharedMemory*> Arena::SharedRegions() const {
  const MutexLock lock(mutex_);
  return pool_->SharedRegions();
}

ArenaStatistics Arena::Statistics() const {
  const MutexLock lock(mutex_);
  uint64_t allocated = run_bytes_ + slots_->used_bytes();
  for (const Cache* cache : caches_) allocated -= cache->bytes_.load(std::memory_order_relaxed);
  return {.allocated_bytes = allocated, .held_bytes = pool_->charged_spans() * kSpanBytes};
}

Result<uint64_t> Arena::HugeBytes() const {
  std::vector<const SpanRegion*> regions;
  {
    const MutexLock lock(mutex_);
    regions = pool_->regions();
  }
  uint64_t bytes = 0;
  for (const SpanRegion* region : regions) {
    const auto here = region->HugeBytes();
    if (!here) return here;
    bytes += *here;
  }
  return bytes;
}

const char* Arena::Verify() const {
  const MutexLock lock(mutex_);
  if (const char* broken = pool_->Verify()) return broken;
  if (const char* broken = slots_->Verify()) return broken;
  return VerifyRuns();
}

// Checks that the runs add up, and that every used span is of a run or cut into slots.
const char* Arena::VerifyRuns() const {
  uint64_t run_spans = 0;
  uint64_t slot_spans = 0;
  uint64_t tails = 0;
  uint64_t runs = 0;
  uint64_t used = 0;
  for (const SpanRegion* region : pool_->regions()) {
    used += region->used_count();
    for (uint32_t span = 0; span < region->touched_end(); ++span) {
      const SpanInfo& info = region->info(span);
      if (info.kind == SpanInfo::Kind::kSlots) ++slot_spans;
      if (info.kind == SpanInfo::Kind::kTail) ++tails;
      if (info.kind != SpanInfo::Kind::kRun) continue;
      ++runs;
      run_spans += info.run_spans;
    }
  }
  if (runs + tails != run_spans || run_spans * kSpanBytes != run_bytes_)
    return "runs do not add up";
  const uint64_t nobodys = used == 0 ? 0 : 1;
  if (run_spans + slot_spans + nobodys != used) return "a used span that nobody has";
  return nullptr;
}

}  // namespace skep
