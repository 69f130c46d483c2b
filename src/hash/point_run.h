// point_run.h: executes the points of an unordered batch, except runs of gets (read_run.h).
//
//   window of up to 256 units, a unit being consecutive requests of one key
//     hash, sort by partition         stable: the order for one key is that of arrival
//     fetch the buckets
//     look, partition by partition    what the bucket has inline is read, or overwritten by a value
//                                     of the same size, if that is all its key needs
//     fetch what the buckets of the rest point to
//     change, partition by partition  the rest is done
//
// Each step locks a partition for as long as it needs it. Between the two steps the bucket may
// change: the second step does not rely on what the first has seen. Operations on different keys
// are independent, so that the order of partitions does not matter.
//
// A unit whose key occurs once is done on the table at once, with one write for all its requests.
// Keys that occur more often go to the station (reservation_station.h), which does the operations
// in order, and writes each key that has changed once. Two bits for each of 16384 slots by hash
// tell which keys occur more often; they may take two keys for one, but never one for two. An
// update of elements is done in the table's own bytes where no other write of its key is pending:
// no other thread sees the bytes until the partition is unlocked, and the update cannot fail once
// it has begun.
#pragma once

#include <array>
#include <cstdint>

#include "engine/batch_writer.h"
#include "hash/core.h"
#include "hash/groups.h"
#include "hash/reservation_station.h"

namespace skep::hash {

// Owner: one execution of one batch.
class PointRun {
 public:
  struct Window;

  // The station, the groups and the window must not be in other use during a Flush().
  PointRun(Core& core, const EngineTraits& traits, Batch& batch, BatchWriter& out,
           ReservationStation& station, Groups& groups, Window& window)
      : core_(core),
        traits_(traits),
        requests_(batch.requests()),
        out_(out),
        station_(station),
        groups_(groups),
        window_(window) {}

  // Adds the well-formed point at `slot`, and those behind it that IsSoundPoint() knows. The next
  // Flush() does them at the latest. Returns the slot behind them.
  uint32_t Add(uint32_t slot);
  // Does all points that were added, and fills in their outcomes.
  void Flush();
  // Returns the ticket of all points that are done.
  Version ticket() const { return ticket_; }

 private:
  // Finds the keys that occur once in a window.
  class Seen {
   public:
    void Add(const Key& key) {
      uint8_t& four = slots_[ByteOf(key)];
      four |= static_cast<uint8_t>((1 | (four >> ShiftOf(key) & 1) << 1) << ShiftOf(key));
    }
    bool IsOnce(const Key& key) const { return (slots_[ByteOf(key)] >> ShiftOf(key) & 3) == 1; }
    void Forget(const Key& key) { slots_[ByteOf(key)] = 0; }

   private:
    static constexpr uint32_t kSlots = 16384;
    static uint32_t SlotOf(const Key& key) {
      return static_cast<uint32_t>(key.hash >> 32) & (kSlots - 1);
    }
    static uint32_t ByteOf(const Key& key) { return SlotOf(key) / 4; }
    static uint32_t ShiftOf(const Key& key) { return SlotOf(key) % 4 * 2; }

    std::array<uint8_t, kSlots / 4> slots_ = {};  // two bits a slot: it has a key, and another one
  };

  // Consecutive requests of one key.
  struct Unit {
    Key key;
    uint32_t begin, end;  // slots
  };

  // Empties the window at the end of its scope, also after an exception.
  class Forgetting {
   public:
    explicit Forgetting(PointRun& run) : run_(run) {}
    ~Forgetting();
    Forgetting(const Forgetting&) = delete;
    Forgetting& operator=(const Forgetting&) = delete;

   private:
    PointRun& run_;
  };

  void Sort();
  void Number(Partition& partition, Groups::Group& group);
  void TellNumbers();
  void Look(Table& table, Groups::Group& group);
  bool DoInline(Table& table, const Unit& unit);
  void Change(Table& table, const Groups::Group& group);
  void ChangeOne(Table& table, uint32_t unit);
  bool Put(Table& table, const Unit& unit);
  void Combine(Table& table, std::span<const uint16_t> units);
  void Do(Table& table, ReservationStation::Entry& entry, uint32_t unit);
  void Write(Table& table, const ReservationStation::Entry& entry);
  bool TryWrite(Table& table, const ReservationStation::Entry& entry);

  Core& core_;
  const EngineTraits& traits_;
  const std::span<const Request> requests_;
  BatchWriter& out_;
  ReservationStation& station_;
  Groups& groups_;
  Window& window_;
  uint64_t now_ms_ = 0;
  Version ticket_ = 0;
  uint32_t count_ = 0;
  bool writes_ = false;
};

// The memory of a window: too large to be made anew for each batch.
struct PointRun::Window {
  std::array<Unit, kWindow> units;
  Seen seen;
  LinesToFetch lines;
};

}  // namespace skep::hash
