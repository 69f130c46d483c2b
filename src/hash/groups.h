// groups.h: divides the places of a window by partition.
//
//   Begin    empties all groups
//   Count    counts one place into its group
//   Divide   gives each group its stretch of the order
//   Put      appends a place, in order, to its group
//   Fetch    starts fetching the buckets
//   Run      calls a step with each group, its partition locked
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

// Owner: one execution of one batch at a time; the memory is used again.
class Groups {
 public:
  struct Group {
    uint16_t begin, end;  // of its places, in the window's order
    Version number;       // of the group's writes, if they are numbered
    uint64_t moves;       // Table::moves() when its places were looked at
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

  // Starts fetching the buckets of `count` places, whose hashes hash_of(place) tells.
  template <typename HashOf>
  void Fetch(uint32_t count, HashOf hash_of, LinesToFetch* lines) const {
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t hash = hash_of(order_[i]);
      lines->Add(partitions_[hash::PartitionOf(hash, mask_ + 1)]->table.LineOf(hash));
    }
    lines->Fetch();
  }

  // Calls step(partition, group) for each group that is not empty, its partition locked. Partitions
  // that other threads hold come last.
  template <typename Step>
  void Run(Step step) {
    std::bitset<kPartitionsMax> left;
    for (uint32_t i = 0; i <= mask_; ++i) {
      Group& group = groups_[i];
      if (group.begin == group.end) continue;
      Partition& partition = PartitionOf(i);
      const std::unique_lock locked(partition.lock, std::try_to_lock);
      if (!locked) {
        left.set(i);
        continue;
      }
      step(partition, group);
    }
    for (uint32_t i = 0; left.any() && i <= mask_; ++i) {
      if (!left[i]) continue;
      Partition& partition = PartitionOf(i);
      const std::lock_guard locked(partition.lock);
      step(partition, groups_[i]);
    }
  }

 private:
  static uint32_t FirstOfThread();

  Partition& PartitionOf(uint32_t group) const { return *partitions_[(group + first_) & mask_]; }

  const std::unique_ptr<Partition>* partitions_ = nullptr;
  uint32_t mask_ = 0;   // the number of partitions, less one
  uint32_t first_ = 0;  // the partition of group 0
  std::array<uint16_t, kWindow> order_;
  std::array<Group, kPartitionsMax> groups_;
};

}  // namespace skep::hash
