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
  // Each arena serves some of the partitions, because slabs address one region of an arena. An
  // arena keeps some free spans of its own, also where the budget refuses another arena one. Their
  // number is a power of two.
  std::vector<std::unique_ptr<Arena>> arenas;
  std::vector<std::unique_ptr<Partition>> partitions;  // their number is a power of two
  // The prefaulter is destroyed first: it may still be touching pages of the tables and the arenas.
  Prefaulter prefaulter;

  // All arguments must outlive the core. Its creator adds the arenas and partitions.
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
  // Passes the keys that have expired, piece by piece, if no count has passed them yet, so that
  // LiveItems does not hold all partitions for so long.
  void ApproachDue(uint64_t now_ms) const {
    constexpr size_t kEntries = 1024;
    for (const auto& partition : partitions) {
      for (bool more = true; more;) {
        const std::lock_guard locked(partition->lock);
        more = partition->table.deadlines().Approach(now_ms, kEntries);
      }
    }
  }
  // Returns the number of keys that have not expired. All partitions must be locked.
  uint64_t LiveItems(uint64_t now_ms) const {
    uint64_t items = 0;
    for (const auto& partition : partitions) {
      Table& table = partition->table;
      items += table.items() - table.deadlines().CountDue(now_ms);
    }
    return items;
  }
};

// Holds the locks of all partitions.
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
