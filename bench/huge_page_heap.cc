#include "bench/huge_page_heap.h"

#include <new>
#include <utility>

#include "base/check.h"
#include "base/poison.h"

namespace skep::bench {
namespace {

constexpr size_t UnitsOf(size_t bytes) {
  return (bytes + HugePageHeap::kUnitBytes - 1) / HugePageHeap::kUnitBytes;
}

constexpr size_t BlockBytes(size_t bytes) { return UnitsOf(bytes) * HugePageHeap::kUnitBytes; }

}  // namespace

Result<std::unique_ptr<HugePageHeap>> HugePageHeap::Open(size_t capacity_bytes) {
  auto region = PageRegion::Reserve(capacity_bytes, Pages::kHuge);
  if (!region) return Fail(region.error());
  return std::unique_ptr<HugePageHeap>(new HugePageHeap(std::move(*region)));
}

HugePageHeap::~HugePageHeap() { Unpoison(region_.begin(), held_bytes_); }

void* HugePageHeap::Allocate(size_t bytes) {
  FreeBlock*& list = ListOf(bytes);
  const size_t block_bytes = BlockBytes(bytes);
  if (list != nullptr) {
    Unpoison(list, block_bytes);
    return std::exchange(list, list->next);
  }
  SKEP_CHECK(block_bytes <= region_.size() - held_bytes_);
  return region_.begin() + std::exchange(held_bytes_, held_bytes_ + block_bytes);
}

void HugePageHeap::Free(void* block, size_t bytes) {
  FreeBlock*& list = ListOf(bytes);
  Unpoison(block, sizeof(FreeBlock));  // the container may have poisoned it: absl does
  list = new (block) FreeBlock{.next = list};
  Poison(block, BlockBytes(bytes));
}

HugePageHeap::FreeBlock*& HugePageHeap::ListOf(size_t bytes) {
  SKEP_CHECK(bytes > 0 && bytes <= kBlockBytesMax);
  return free_[UnitsOf(bytes)];
}

}  // namespace skep::bench
