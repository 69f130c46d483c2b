// atomic_run.h: executes an atomic batch: all or nothing, part by part, at one instant.
//
// All partitions that the batch names are locked, in ascending order, until it is done. A part is
// executed on a station (reservation_station.h), which starts from what the table holds. If a slot
// fails the station is cleared, and there is nothing to take back. A part that succeeds is written:
// first all memory is taken (Table::Prepare) and every byte copied, then all is installed, which
// cannot fail.
#pragma once

#include <bitset>
#include <optional>
#include <vector>

#include "engine/atomic_parts.h"
#include "engine/batch_writer.h"
#include "hash/core.h"
#include "hash/reservation_station.h"

namespace skep::hash {

// Owner: one execution of one batch.
class AtomicRun {
 public:
  // The station must not be in use.
  AtomicRun(Core& core, const EngineTraits& traits, Batch& batch, BatchWriter& out,
            ReservationStation& station)
      : core_(core), traits_(traits), batch_(batch), out_(out), station_(station) {}

  // Fills in the outcomes. Returns the ticket.
  Version Do();

  // Called by ExecuteParts.
  void BeginPart(const Part& part);
  void Perform(uint32_t slot);
  std::optional<uint32_t> FinishPart(const Part& part);
  void TakeBack(const Part&) {}  // the table has nothing of the part

 private:
  // Holds the locks of `locked` until it is destroyed.
  class Locks {
   public:
    Locks(Core& core, const std::bitset<kPartitionsMax>& locked);
    ~Locks();
    Locks(const Locks&) = delete;
    Locks& operator=(const Locks&) = delete;

   private:
    Core& core_;
    const std::bitset<kPartitionsMax>& locked_;
  };
  struct Writing {
    Table* table;
    Key key;
    Table::Prepared prepared;
  };

  const Request& request(uint32_t slot) const { return batch_.requests()[slot]; }

  void ListPartitions();
  bool PrepareAll(std::vector<Writing>* writings, const Part& part, uint32_t* culprit);
  void PrefetchRecords() const;
  Version Number();
  ReservationStation::Entry& EntryOf(std::string_view key);
  void Point(uint32_t slot);
  void Move(uint32_t slot);
  int64_t CountAll() const;
  void DeleteAll(uint32_t slot);
  void Sample(uint32_t slot);

  Core& core_;
  const EngineTraits& traits_;
  Batch& batch_;
  BatchWriter& out_;
  ReservationStation& station_;
  uint64_t now_ms_ = 0;
  bool is_cleared_ = false;  // the part has deleted everything: the tables count as empty
  std::bitset<kPartitionsMax> locked_;
};

}  // namespace skep::hash
