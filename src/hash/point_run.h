// point_run.h: the points of an unordered batch.
//
//   window of up to 256 requests
//     hash, sort by partition         stable: the order for one key is that of arrival
//     fetch the buckets               some way ahead of the next step, which has enough to do until
//                                     they are here
//     look, partition by partition    the bucket is read: where all requests are reads, what it has
//                                     inline is answered; what is elsewhere is fetched
//     finish, partition by partition  what is left is read; or, where one request writes, the
//                                     station (station.h) does the operations in order, and writes
//                                     each key that has changed once
//
// Each step locks a partition for as long as it needs it. Between the two the bucket may change:
// the second does not rely on what the first has seen. Operations on different keys are
// independent, so that it does not matter which partition comes first.
#pragma once

#include <array>
#include <cstdint>

#include "engine/batch_writer.h"
#include "hash/core.h"
#include "hash/station.h"

namespace skep::hash {

// Owner: one execution of one batch.
class PointRun {
 public:
  // The station is free to be used.
  PointRun(Core& core, const EngineTraits& traits, Batch& batch, BatchWriter& out, Station& station)
      : core_(core),
        partitions_(core.partitions.data()),
        mask_(static_cast<uint32_t>(core.partitions.size() - 1)),
        first_(FirstOfThread() & mask_),
        traits_(traits),
        batch_(batch),
        out_(out),
        station_(station) {}

  // A well-formed point. It is done by the next Flush() at the latest.
  void Add(uint32_t slot);
  // Fills in the outcomes of all that were added.
  void Flush();

 private:
  static constexpr uint32_t kWindow = 256;
  // How far ahead buckets are fetched: more than a core has lines in flight.
  static constexpr uint32_t kAhead = 40;

  struct Operation {
    Key key;
    uint32_t slot;
    uint32_t group;
  };

  // Those of one partition.
  struct Group {
    uint16_t begin, end;  // in order_
  };

  std::span<const uint16_t> OperationsOf(const Group& group) const {
    return std::span(order_).subspan(group.begin, group.end - group.begin);
  }
  const Request& request(uint32_t operation) const {
    return batch_.requests()[operations_[operation].slot];
  }

  static uint32_t FirstOfThread();

  Partition& PartitionOf(uint32_t group) const { return *partitions_[(group + first_) & mask_]; }
  void Sort();
  void FetchTo(uint32_t end);
  void RunGroups(void (PointRun::*step)(Table&, Group&));
  void Look(Table& table, Group& group);
  void Finish(Table& table, Group& group);
  void Combine(Table& table, std::span<const uint16_t> operations);
  void Do(Station::Entry& entry, uint32_t operation);
  bool Write(Table& table, const Station::Entry& entry);
  void DoAgain(Table& table, const Station::Entry& entry);

  Core& core_;
  const std::unique_ptr<Partition>* const partitions_;
  const uint32_t mask_;   // the number of partitions, less one
  const uint32_t first_;  // the partition of group 0
  const EngineTraits& traits_;
  Batch& batch_;
  BatchWriter& out_;
  Station& station_;
  uint64_t now_ms_ = 0;
  uint32_t count_ = 0;
  bool writes_ = false;
  uint32_t fetched_ = 0;  // of order_
  std::array<Operation, kWindow> operations_;
  std::array<uint16_t, kWindow> order_;  // numbers of operations, by group
  std::array<Group, kPartitionsMax> groups_;
};

inline void PointRun::Add(uint32_t slot) {
  if (count_ == kWindow) Flush();
  const Request& r = batch_.requests()[slot];
  Operation& operation = operations_[count_++];
  operation.key = KeyOf(r.key);
  operation.slot = slot;
  operation.group = (hash::PartitionOf(operation.key.hash, mask_ + 1) - first_) & mask_;
  writes_ = writes_ || r.op != Op::kGet;
}

}  // namespace skep::hash
