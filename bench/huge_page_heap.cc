#include "bench/huge_page_heap.h"

#include <new>
#include <utility>

#include "base/check.h"

namespace skep::bench {
namespace {

constexpr size_t UnitsOf(size_t bytes) {
  return (bytes + HugePageHeap::kUnitBytes - 1) / HugePageHeap::kUnitBytes;
}

}  // namespace

Result<std::unique_ptr<HugePageHeap>> HugePageHeap::Open(size_t capacity_bytes) {
  auto region = PageRegion::Reserve(capacity_bytes, Pages::kHuge);
  if (!region) return Fail(region.error());
  return std::unique_ptr<HugePageHeap>(new HugePageHeap(std::move(*region)));
}

void* HugePageHeap::Allocate(size_t bytes) {
  FreeBlock*& list = ListOf(bytes);
  if (list != nullptr) return std::exchange(list, list->next);
  const size_t block_bytes = UnitsOf(bytes) * kUnitBytes;
  SKEP_CHECK(block_bytes <= region_.size() - held_bytes_);
  return region_.begin() + std::exchange(held_bytes_, held_bytes_ + block_bytes);
}

void HugePageHeap::Free(void* block, size_t bytes) {
  FreeBlock*& list = ListOf(bytes);
  list = new (block) FreeBlock{.next = list};
}

HugePageHeap::FreeBlock*& HugePageHeap::ListOf(size_t bytes) {
  SKEP_CHECK(bytes > 0 && bytes <= kBlockBytesMax);
  return free_[UnitsOf(bytes)];
}

}  // namespace skep::bench
