// point_run.h: executes the points of an unordered batch, except runs of gets (read_run.h).
//
//   window of up to 256 units, a unit being consecutive requests of one key
//     hash, sort by partition         stable: the order for one key is that of arrival
//     fetch the buckets
//     look, partition by partition    done at once: what needs only the first bucket of its key's
//                                     chain. The rest is deferred
//     fetch what the buckets of the deferred units point to
//     change, partition by partition  the deferred units are done
//
// Done at once are, if the pair of the key lies inline in that bucket, gets, puts of a value of
// the same size, inserts, which are refused, and updates of elements, in the bucket's bytes; and
// if the bucket tells that the key is absent, gets, and puts and inserts, which add the pair
// (Table::AddAbsent). The second step does a deferred unit whose key was deferred once on the
// table, with one write for all its requests. It goes on from where the first has led it, if the
// leads still hold: in the bytes of a record, or in the chain behind the first bucket. Keys that
// were deferred more often go to the station (reservation_station.h), which does the operations in
// order, and writes each key that has changed once.
//
// Two bits for each of 16384 slots by hash tell which keys were deferred, and which of them more
// often than once; they may take two keys for one, but never one for two.
//
// Why the operations of one key take effect in the order of their slots
//   (1) Units of one key are in the group of one partition, and the first step meets them in order.
//   (2) From the first unit of a key that it defers on, it defers all of that key. So what it does
//       at once comes before what waits, and under an earlier lock of the partition.
//   (3) The second step does a key's only unit, or gives all of them to the station, in order.
// Operations on different keys are independent: neither the order of partitions matters, nor that
// the second step does keys of one unit first.
//
// Why each is linearizable. Each unit is done while its partition is locked (partition.h), and the
// second step relies on nothing of the first but a lead, which holds while Table::moves() has not
// changed: other threads that have locked the partition in between have then added, removed and
// moved no pair. What the second step itself adds leaves the leads of other keys valid, and it
// follows a lead only for the one deferred unit of its key. Growth moves pairs, so the first step
// leaves it to the end of the second, or does it last if it has deferred nothing.
//
// Numbers (sequence_numbers.h). The writes of each step have a number that is drawn under its lock.
// By (2) those of one key ascend.
//
// Progress. Each step locks each partition once, and waits with no lock held.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

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
  // Finds the keys that have been added, once or more often.
  class Seen {
   public:
    void Add(const Key& key) {
      uint8_t& four = slots_[ByteOf(key)];
      four |= static_cast<uint8_t>((1 | (four >> ShiftOf(key) & 1) << 1) << ShiftOf(key));
    }
    bool Has(const Key& key) const { return (slots_[ByteOf(key)] >> ShiftOf(key) & 1) != 0; }
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
  void Defer(uint16_t unit);
  void Number(Partition& partition, Groups::Group& group);
  void NumberDone(const Unit& unit, Partition& partition, Version* number);
  void TellNumbers();
  void Look(Partition& partition, Groups::Group& group);
  bool LookAt(Table& table, uint16_t unit);
  bool DoInPlace(Table& table, const Unit& unit, const PointState& state);
  bool UpdateAll(Table& table, const Unit& unit, const PointState& state);
  bool DoAbsent(Table& table, const Unit& unit);
  void Change(Table& table, const Groups::Group& group);
  bool DoOnPair(Table& table, const Unit& unit, const Pair& pair, const Bucket* pointing);
  void ChangeOne(Table& table, uint32_t unit);
  bool Store(Table& table, const Unit& unit, const Table::Place& place,
             const std::optional<PointState>& state);
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
  uint64_t moves_ = 0;  // Table::moves() of the group, as long as its leads hold
  uint32_t count_ = 0;
  uint32_t deferred_ = 0;
  bool writes_ = false;
};

// The memory of a window: too large to be made anew for each batch.
struct PointRun::Window {
  std::array<Unit, kWindow> units;
  Seen seen;  // the keys of the deferred units
  std::array<uint16_t, kWindow> deferred;
  std::array<Table::Lead, kWindow> leads;  // by unit, of those that the first look has deferred
  LinesToFetch lines;
};

}  // namespace skep::hash
