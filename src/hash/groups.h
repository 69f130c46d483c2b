// groups.h: what of a window falls into which partition.
//
//   Begin    no place is in any group
//   Count    of each place, its group
//   Divide   the order has a stretch for each group
//   Put      of each place, in order: it is the next one of its group
//   Run      a step with each group, and its partition locked
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "hash/core.h"

namespace skep::hash {

inline constexpr uint32_t kWindow = 256;

// Owner: one execution of one batch at a time; the memory is used again.
class Groups {
 public:
  struct Group {
    uint16_t begin, end;  // of its places, in the window's order
    Version number;       // of its writes, if they are numbered
  };

  void Begin(const Core& core) {
    partitions_ = core.partitions.data();
    mask_ = static_cast<uint32_t>(core.partitions.size() - 1);
    first_ = FirstOfThread() & mask_;
    std::ranges::fill(std::span(groups_).first(mask_ + 1), Group{});
  }
  uint32_t Of(uint64_t hash) const { return (hash::PartitionOf(hash, mask_ + 1) - first_) & mask_; }
  void Count(uint32_t group) { ++groups_[group].end; }
  void Divide();
  void Put(uint32_t group, uint32_t place) {
    order_[groups_[group].end++] = static_cast<uint16_t>(place);
  }

  const Group& operator[](uint32_t group) const { return groups_[group]; }
  std::span<uint16_t> PlacesOf(const Group& group) {
    return std::span(order_).subspan(group.begin, group.end - group.begin);
  }

  // Calls step(partition, group) for each group that is not empty, its partition locked. Those that
  // are taken come last.
  template <typename Step>
  void Run(Step step) {
    Run([](uint32_t) {}, step);
  }
  // Before that, starts fetching the buckets of `count` places, some way ahead of the step, which
  // has enough to do until they are here. hash_of(place) is asked for them.
  template <typename HashOf, typename Step>
  void RunFetching(uint32_t count, HashOf hash_of, Step step) {
    constexpr uint32_t kAhead = 40;  // more than a core has lines in flight
    uint32_t fetched = 0;
    const auto fetch = [&](uint32_t end) {
      for (end = std::min(end + kAhead, count); fetched < end; ++fetched) {
        const uint64_t hash = hash_of(order_[fetched]);
        partitions_[hash::PartitionOf(hash, mask_ + 1)]->table.Prefetch(hash);
      }
    };
    Run(fetch, step);
  }

 private:
  static uint32_t FirstOfThread();

  // Calls fetch(end) before each group that ends there.
  template <typename Fetch, typename Step>
  void Run(Fetch fetch, Step step) {
    std::bitset<kPartitionsMax> left;
    for (uint32_t i = 0; i <= mask_; ++i) {
      Group& group = groups_[i];
      if (group.begin == group.end) continue;
      fetch(group.end);
      Partition& partition = PartitionOf(i);
      if (!partition.lock.try_lock()) {
        left.set(i);
        continue;
      }
      step(partition, group);
      partition.lock.unlock();
    }
    for (uint32_t i = 0; left.any() && i <= mask_; ++i) {
      if (!left[i]) continue;
      Partition& partition = PartitionOf(i);
      const std::lock_guard locked(partition.lock);
      step(partition, groups_[i]);
    }
  }

  Partition& PartitionOf(uint32_t group) const { return *partitions_[(group + first_) & mask_]; }

  const std::unique_ptr<Partition>* partitions_ = nullptr;
  uint32_t mask_ = 0;   // the number of partitions, less one
  uint32_t first_ = 0;  // the partition of group 0
  std::array<uint16_t, kWindow> order_;
  std::array<Group, kPartitionsMax> groups_;
};

}  // namespace skep::hash
