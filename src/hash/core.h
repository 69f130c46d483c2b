// core.h: what the parts of the hash engine share.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/engine.h"
#include "engine/sequence_numbers.h"
#include "hash/partition.h"

namespace skep::hash {

struct Core {
  MemoryBudget& budget;
  LatestNow& now;
  Watches& watches;
  SequenceNumbers numbers;
  // Each for some of the partitions: slabs have addresses for one region of an arena. It keeps some
  // free spans of its own, also where the budget refuses another arena one. A power of two.
  std::vector<std::unique_ptr<Arena>> arenas;
  std::vector<std::unique_ptr<Partition>> partitions;  // a power of two
  // Of both. Goes first, as it may be at work on their memory.
  Prefaulter prefaulter;

  // All must outlive it. Arenas and partitions are added by who makes it.
  Core(MemoryBudget& the_budget, LatestNow& the_now, Watches& the_watches, bool numbers_writes)
      : budget(the_budget), now(the_now), watches(the_watches), numbers(numbers_writes) {}

  uint32_t PartitionOf(uint64_t hash) const {
    return hash::PartitionOf(hash, static_cast<uint32_t>(partitions.size()));
  }
  Table& TableOf(uint64_t hash) { return partitions[PartitionOf(hash)]->table; }
  ArenaStatistics MemoryStatistics() const {
    ArenaStatistics sum;
    for (const auto& arena : arenas) {
      const ArenaStatistics one = arena->Statistics();
      sum.allocated_bytes += one.allocated_bytes;
      sum.held_bytes += one.held_bytes;
    }
    return sum;
  }
  // Passes the keys that have expired, if nobody has counted since, piece by piece: so that
  // LiveItems does not hold all partitions meanwhile.
  void ApproachDue(uint64_t now_ms) const {
    constexpr size_t kEntries = 1024;
    for (const auto& partition : partitions) {
      for (bool more = true; more;) {
        const std::lock_guard locked(partition->lock);
        more = partition->table.deadlines().Approach(now_ms, kEntries);
      }
    }
  }
  // Keys that have not expired. All partitions must be locked.
  uint64_t LiveItems(uint64_t now_ms) const {
    uint64_t items = 0;
    for (const auto& partition : partitions) {
      Table& table = partition->table;
      items += table.items() - table.deadlines().CountDue(now_ms);
    }
    return items;
  }
};

// Holds every partition.
class AllLocked {
 public:
  explicit AllLocked(const Core& core) : core_(core) {
    for (const auto& partition : core_.partitions) partition->lock.lock();
  }
  ~AllLocked() {
    for (const auto& partition : core_.partitions) partition->lock.unlock();
  }
  AllLocked(const AllLocked&) = delete;
  AllLocked& operator=(const AllLocked&) = delete;

 private:
  const Core& core_;
};

}  // namespace skep::hash
