// memory_budget.h: how much memory a process may hold, and how much it holds now.
//
// Engines charge the memory that they allocate, the server charges its connection buffers; both
// release what they free. A limit never stops a charge: a write that stores something asks
// HasRoomFor() first and is refused, so that deletes and replies, which also allocate a little,
// always work.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory_resource>

namespace skep {

class MemoryBudget {
 public:
  // A limit of 0 is no limit.
  explicit MemoryBudget(uint64_t limit_bytes = 0) : limit_(limit_bytes) {}

  // Relaxed: the counter is only summed and compared with the limit; no other memory is read
  // because of its value.
  void Charge(uint64_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void Release(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  void set_limit(uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  bool HasRoomFor(uint64_t bytes) const {
    const uint64_t max = limit();
    return max == 0 || used() + bytes <= max;
  }

 private:
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> limit_;
};

// Heap memory that is charged to a budget, and counted by itself too. What malloc adds to each
// block is counted. Thread-safe.
class BudgetedMemory final : public std::pmr::memory_resource {
 public:
  explicit BudgetedMemory(MemoryBudget& budget) : budget_(budget) {}
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* at, size_t bytes, size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  MemoryBudget& budget_;
  std::atomic<uint64_t> used_{0};
};

}  // namespace skep
