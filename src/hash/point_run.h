// point_run.h: the points of an unordered batch.
//
//   window of up to 256 requests
//     hash, fetch the bucket          for each, so that all misses overlap
//     sort by partition               stable: the order for one key is that of arrival
//     for each partition, locked:
//       only reads    what is inline answers at once; records are fetched, then read
//       else          records are fetched, then the station (station.h) does the operations in
//                     order, and writes each key that has changed once
//
// Operations on different keys are independent, so that it does not matter which partition comes
// first.
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
      : core_(core), traits_(traits), batch_(batch), out_(out), station_(station) {}

  // A well-formed point. It is done by the next Flush() at the latest.
  void Add(uint32_t slot);
  // Fills in the outcomes of all that were added.
  void Flush();

 private:
  static constexpr uint32_t kWindow = 256;

  struct Operation {
    Key key;
    uint32_t slot;
  };

  const Request& request(uint32_t operation) const {
    return batch_.requests()[operations_[operation].slot];
  }

  struct Group {
    uint16_t begin, end;  // in order_
  };

  void Sort();
  void RunGroups();
  void RunLocked(Partition& partition, std::span<const uint16_t> operations);
  void Run(Table& table, std::span<const uint16_t> operations);
  void Read(Table& table, std::span<const uint16_t> operations);
  void Combine(Table& table, std::span<const uint16_t> operations);
  void Do(Station::Entry& entry, uint32_t operation);
  bool Write(Table& table, const Station::Entry& entry);
  void DoAgain(Table& table, const Station::Entry& entry);

  Core& core_;
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

}  // namespace skep::hash
