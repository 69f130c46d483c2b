// test_arena_test.h: an arena of its own for each test, in private and in shared memory.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/arena.h"
#include "base/prefaulter.h"

namespace skep {

constexpr uint64_t kMiB = uint64_t{1} << 20;
using Limit = Arena::Limit;

// The parameter: whether the memory is shared.
using ArenaTest = testing::TestWithParam<bool>;
using ArenaDeathTest = testing::TestWithParam<bool>;

inline std::string NameOfMemory(const testing::TestParamInfo<bool>& is_shared) {
  return is_shared.param ? "Shared" : "Private";
}

// An arena with one cache that is flushed at the end.
struct TestArena {
  explicit TestArena(bool is_shared, uint64_t limit_bytes = 0,
                     uint64_t region_bytes = uint64_t{1} << 30, bool is_prefaulted = false)
      : budget(limit_bytes),
        arena({.budget = &budget,
               .prefaulter = is_prefaulted ? &prefaulter : nullptr,
               .is_shared = is_shared,
               .region_bytes = region_bytes}) {}
  ~TestArena() { arena.Flush(cache); }

  ArenaAddress Allocate(size_t bytes, Limit limit = Limit::kObey) {
    return arena.Allocate(cache, bytes, limit);
  }
  void Free(ArenaAddress at, size_t bytes) { arena.Free(cache, at, bytes); }
  void FlushAndTrim() {
    arena.Flush(cache);
    while (arena.Trim()) {
    }
  }
  uint64_t held() const { return arena.Statistics().held_bytes; }
  uint64_t allocated() const { return arena.Statistics().allocated_bytes; }

  MemoryBudget budget;
  Arena arena;
  Arena::Cache cache;
  Prefaulter prefaulter;  // goes before the arena
};

}  // namespace skep
