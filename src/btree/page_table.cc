#include "btree/page_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"

namespace skep::btree {
namespace {

constexpr uint64_t kLidsMin = uint64_t{1} << 16;
constexpr uint64_t kChargeBytes = 4096;

static_assert(sizeof(std::atomic<uint64_t>) == 8 && std::atomic<uint64_t>::is_always_lock_free);

uint64_t Row(uint16_t generation, ArenaAddress buffer) {
  return uint64_t{generation} << 48 | uint64_t{buffer.region()} << 32 | buffer.offset() >> 8;
}

uint16_t Next(uint16_t generation) {
  return generation == UINT16_MAX ? 1 : static_cast<uint16_t>(generation + 1);
}

uint64_t WholePages(uint64_t bytes) {
  return (bytes + kChargeBytes - 1) / kChargeBytes * kChargeBytes;
}

std::unique_ptr<PageRegion> ReservePlain(uint64_t bytes) {
  auto region = PageRegion::Reserve(bytes, Pages::kPlain);
  return region ? std::make_unique<PageRegion>(std::move(*region)) : nullptr;
}

}  // namespace

PageTable::PageTable(MemoryBudget* budget, uint64_t lids_max, bool is_shared)
    : budget_(*budget), lids_max_(lids_max) {
  SKEP_CHECK(lids_max >= 2 && lids_max <= uint64_t{1} << 32);
  while (!Reserve(is_shared) && lids_max_ > kLidsMin) lids_max_ /= 2;
}

PageTable::~PageTable() { budget_.Release(held_bytes_); }

// Null: the system has no memory for them.
std::byte* PageTable::ReserveRows(bool is_shared) {
  const uint64_t bytes = lids_max_ * sizeof(*rows_);
  if (!is_shared) {
    row_memory_ = ReservePlain(bytes);
    return row_memory_ == nullptr ? nullptr : row_memory_->begin();
  }
  auto memory = SharedMemory::Create(bytes, SharedPages::kPlain);
  if (!memory) return nullptr;
  shared_rows_ = std::make_unique<SharedMemory>(std::move(*memory));
  return shared_rows_->begin();
}

bool PageTable::Reserve(bool is_shared) {
  std::byte* const rows = ReserveRows(is_shared);
  auto hits = ReservePlain(lids_max_ * sizeof(*hits_));
  auto free = ReservePlain(lids_max_ * sizeof(*free_));
  if (rows == nullptr || !hits || !free) return false;
  rows_ = reinterpret_cast<std::atomic<uint64_t>*>(rows);
  free_ = reinterpret_cast<uint32_t*>(free->begin());
  hits_ = reinterpret_cast<std::atomic<uint32_t>*>(hits->begin());
  hit_memory_ = std::move(hits);
  free_memory_ = std::move(free);
  return true;
}

Link PageTable::Allocate() {
  const MutexLock lock(mutex_);
  if (free_count_ > 0) {
    const Lid lid = free_[--free_count_];
    hits_[lid].store(0, std::memory_order_relaxed);
    return Link::Of(lid, Load(lid).generation());
  }
  const Lid lid = end_.load(std::memory_order_relaxed);
  if (rows_ == nullptr || lid == lids_max_) return {};
  constexpr uint16_t kFirst = 1;
  rows_[lid].store(Row(kFirst, {}), std::memory_order_relaxed);
  // Release: a thread that sees the LID below the end sees its row.
  end_.store(lid + 1, std::memory_order_release);
  Charge();
  return Link::Of(lid, kFirst);
}

void PageTable::Free(Link link) {
  const MutexLock lock(mutex_);
  const Lid lid = link.lid();
  SKEP_CHECK(lid != 0 && lid < end_.load(std::memory_order_relaxed));
  SKEP_CHECK(Load(lid).generation() == link.generation());  // else it was freed twice
  rows_[lid].store(Row(Next(link.generation()), {}), std::memory_order_seq_cst);
  free_[free_count_++] = static_cast<uint32_t>(lid);
  if (free_count_ > free_count_max_) {
    free_count_max_ = free_count_;
    Charge();
  }
}

void PageTable::Map(Link link, ArenaAddress buffer) {
  SKEP_DCHECK(buffer.offset() % 256 == 0 && buffer.offset() >> 40 == 0);
  SKEP_DCHECK(link.lid() < end() && Load(link.lid()).generation() == link.generation());
  rows_[link.lid()].store(Row(link.generation(), buffer), std::memory_order_seq_cst);
}

// Charges the budget for the pages that the rows and counts up to the end and the stack up to its
// highest may have touched.
void PageTable::Charge() {
  const uint64_t end = end_.load(std::memory_order_relaxed);
  const uint64_t touched = WholePages(end * sizeof(*rows_)) + WholePages(end * sizeof(*hits_)) +
                           WholePages(free_count_max_ * sizeof(*free_));
  if (touched == held_bytes_) return;
  budget_.Charge(touched - held_bytes_);
  held_bytes_ = touched;
}

uint64_t PageTable::allocated() const {
  const MutexLock lock(mutex_);
  return end_.load(std::memory_order_relaxed) - 1 - free_count_;
}

uint64_t PageTable::held_bytes() const {
  const MutexLock lock(mutex_);
  return held_bytes_;
}

}  // namespace skep::btree
