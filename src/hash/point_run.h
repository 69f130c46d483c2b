// point_run.h: the points of an unordered batch.
//
//   window of up to 256 requests
//     hash, fetch the bucket          for each, so that all misses overlap
//     sort by partition               stable: the order for one key is that of arrival
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

  struct Operation {
    Key key;
    uint32_t slot;
    uint32_t partition;
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

  void Sort();
  void RunGroups(void (PointRun::*step)(Table&, Group&));
  void Look(Table& table, Group& group);
  void Finish(Table& table, Group& group);
  void Combine(Table& table, std::span<const uint16_t> operations);
  void Do(Station::Entry& entry, uint32_t operation);
  bool Write(Table& table, const Station::Entry& entry);
  void DoAgain(Table& table, const Station::Entry& entry);

  Core& core_;
  const std::unique_ptr<Partition>* const partitions_;
  const uint32_t mask_;  // the number of partitions, less one
  const EngineTraits& traits_;
  Batch& batch_;
  BatchWriter& out_;
  Station& station_;
  uint64_t now_ms_ = 0;
  uint32_t count_ = 0;
  bool writes_ = false;
  std::array<Operation, kWindow> operations_;
  std::array<uint16_t, kWindow> order_;       // numbers of operations, by partition
  std::array<Group, kPartitionsMax> groups_;  // of each partition
};

inline void PointRun::Add(uint32_t slot) {
  if (count_ == kWindow) Flush();
  const Request& r = batch_.requests()[slot];
  Operation& operation = operations_[count_++];
  operation.key = KeyOf(r.key);
  operation.slot = slot;
  operation.partition = hash::PartitionOf(operation.key.hash, mask_ + 1);
  writes_ = writes_ || r.op != Op::kGet;
  partitions_[operation.partition]->table.Prefetch(operation.key.hash);
}

}  // namespace skep::hash
