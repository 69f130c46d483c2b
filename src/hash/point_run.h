// point_run.h: the points of an unordered batch.
//
//   window of up to 256 units, a unit being consecutive requests of one key
//     hash, sort by partition         stable: the order for one key is that of arrival
//     fetch the buckets               some way ahead of the next step, which has enough to do until
//                                     they are here
//     look, partition by partition    the bucket is read: where all requests are reads, what it has
//                                     inline is answered; what is elsewhere is fetched
//     finish, partition by partition  what is left is done
//
// Each step locks a partition for as long as it needs it. Between the two the bucket may change:
// the second does not rely on what the first has seen. Operations on different keys are
// independent, so that it does not matter which partition comes first.
//
// Where a request of the window writes, a unit whose key occurs once is done on the table at once,
// with one write for all its requests. Keys that occur more often, as 4096 slots by hash tell,
// which may take two keys for one but never one for two, go to the station (station.h): it does the
// operations in order, and writes each key that has changed once. An update of elements is done in
// the table's own bytes where nothing else of its key waits to be written: nobody sees them until
// the partition is unlocked, and it cannot fail once it has begun.
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
  struct Window;

  // Station and window are free to be used.
  PointRun(Core& core, const EngineTraits& traits, Batch& batch, BatchWriter& out, Station& station,
           Window& window)
      : core_(core),
        partitions_(core.partitions.data()),
        mask_(static_cast<uint32_t>(core.partitions.size() - 1)),
        first_(FirstOfThread() & mask_),
        traits_(traits),
        requests_(batch.requests()),
        out_(out),
        station_(station),
        window_(window) {}

  // A well-formed point, and those behind it that IsSoundPoint() knows. They are done by the next
  // Flush() at the latest. The slot behind them.
  uint32_t Add(uint32_t slot);
  // Fills in the outcomes of all that were added.
  void Flush();
  // Of all that is done.
  Version ticket() const { return ticket_; }

 private:
  static constexpr uint32_t kWindow = 256;
  // How far ahead buckets are fetched: more than a core has lines in flight.
  static constexpr uint32_t kAhead = 40;
  static constexpr uint32_t kSeenSlots = 4096;

  // Consecutive requests of one key.
  struct Unit {
    Key key;
    const Table* table;   // for what needs no lock
    uint32_t begin, end;  // slots
    uint32_t group;
  };

  // Those of one partition.
  struct Group {
    uint16_t begin, end;  // in the window's order
    Version number;       // of its writes, if they are numbered
  };

  std::span<const uint16_t> UnitsOf(const Group& group) const;
  static uint32_t FirstOfThread();
  static size_t SeenSlotOf(const Key& key) { return key.hash >> 32 & (kSeenSlots - 1); }

  Partition& PartitionOf(uint32_t group) const { return *partitions_[(group + first_) & mask_]; }
  void Sort();
  void FetchTo(uint32_t end);
  void RunGroups(void (PointRun::*step)(Table&, Group&));
  void Number(Partition& partition, Group& group);
  void TellNumbers();
  void Look(Table& table, Group& group);
  void Finish(Table& table, Group& group);
  void PrefetchNext(Table& table, const Group& group, const uint16_t& number);
  void Answer(const Unit& unit, const std::optional<PointState>& state);
  void Read(Table& table, const Unit& unit);
  void Change(Table& table, Group& group);
  void ChangeOne(Table& table, uint32_t unit);
  bool Put(Table& table, const Unit& unit);
  void Combine(Table& table, std::span<const uint16_t> units);
  void Do(Table& table, Station::Entry& entry, uint32_t unit);
  void Write(Table& table, const Station::Entry& entry);
  bool TryWrite(Table& table, const Station::Entry& entry);

  Core& core_;
  const std::unique_ptr<Partition>* const partitions_;
  const uint32_t mask_;   // the number of partitions, less one
  const uint32_t first_;  // the partition of group 0
  const EngineTraits& traits_;
  const std::span<const Request> requests_;
  BatchWriter& out_;
  Station& station_;
  uint64_t now_ms_ = 0;
  Version ticket_ = 0;
  uint32_t count_ = 0;
  bool writes_ = false;
  uint32_t fetched_ = 0;  // of the window's order
  Window& window_;
};

// What a window is worked on in: too large to be made anew for each batch.
struct PointRun::Window {
  std::array<Unit, kWindow> units;
  std::array<uint16_t, kWindow> order;  // numbers of units, by group
  std::array<Group, kPartitionsMax> groups;
  std::array<uint8_t, kSeenSlots> seen;  // by hash: units of the window; 3 is two or more
};

}  // namespace skep::hash
