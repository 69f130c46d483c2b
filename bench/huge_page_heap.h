// huge_page_heap.h: heap memory on huge pages for containers with an allocator, so that a peer is
// not slower than Skep only because of its page tables.
//
//   region  | block | block | ... | never used        |
//                                 ^ held_bytes()
//
// Blocks are multiples of a cache line and aligned to one. A freed block goes to the list of its
// size; memory that was used once is not given back before the heap is destroyed.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "base/huge_pages.h"
#include "skep/status.h"

namespace skep::bench {

// Thread safety: none; one owner.
class HugePageHeap {
 public:
  static constexpr size_t kUnitBytes = 64;
  static constexpr size_t kBlockBytesMax = 16 * 1024;

  // `capacity_bytes` > 0 is address space: pages become resident when they are touched.
  //   kIo  as PageRegion::Reserve
  static Result<std::unique_ptr<HugePageHeap>> Open(size_t capacity_bytes);
  ~HugePageHeap();
  HugePageHeap(const HugePageHeap&) = delete;
  HugePageHeap& operator=(const HugePageHeap&) = delete;

  // Allocates a block. Stops the process if the capacity is used up, or `bytes` is over
  // kBlockBytesMax.
  void* Allocate(size_t bytes);
  void Free(void* block, size_t bytes);

  // Returns how many bytes are or ever were in use.
  size_t held_bytes() const { return held_bytes_; }

 private:
  struct FreeBlock {
    FreeBlock* next;
  };

  explicit HugePageHeap(PageRegion region) : region_(std::move(region)) {}
  // Returns the list of blocks that can hold so many bytes.
  FreeBlock*& ListOf(size_t bytes);

  PageRegion region_;
  size_t held_bytes_ = 0;
  std::array<FreeBlock*, kBlockBytesMax / kUnitBytes + 1> free_{};  // by units
};

// A standard allocator over such a heap, which must outlive all its allocations.
template <typename T>
class HugePageAllocator {
 public:
  static_assert(alignof(T) <= HugePageHeap::kUnitBytes);
  using value_type = T;

  explicit HugePageAllocator(HugePageHeap& heap) : heap_(&heap) {}
  template <typename U>
  HugePageAllocator(const HugePageAllocator<U>& other) : heap_(&other.heap()) {}

  T* allocate(size_t count) { return static_cast<T*>(heap_->Allocate(count * sizeof(T))); }
  void deallocate(T* at, size_t count) { heap_->Free(at, count * sizeof(T)); }

  HugePageHeap& heap() const { return *heap_; }
  template <typename U>
  friend bool operator==(const HugePageAllocator& a, const HugePageAllocator<U>& b) {
    return &a.heap() == &b.heap();
  }

 private:
  HugePageHeap* heap_;
};

}  // namespace skep::bench
