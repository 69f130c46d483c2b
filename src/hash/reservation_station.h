// reservation_station.h: the reservation station: operations on one key are done one after the
// other on a value that is at hand, and the table is written once (KV-Direct, section 3.3.3).
//
//   batch   a+1  b=5  a+1  a?  c+1  a+1
//            |         |    |        |
//   entry a  load -- apply apply -- apply ------> one write of the table
//
// The paper's station has 1024 slots by hash and takes two keys of one slot for dependent. Here a
// slot compares the key itself, so that different keys never wait for each other.
//
// Order. An entry's operations are applied as they arrive; each sees what the ones before have made
// of the key. One that fails leaves the value as it was, and the next goes on from there.
// Failure of the write. If the table has no memory for the final value, nothing of the chain has
// happened yet: the chain is done again from the table's value, with each operation written by
// itself, so that only those fail for which there is no memory. The chain is kept for that. A value
// that is replaced within its chain needs no memory and is not refused. An update of elements in
// the table's own bytes, done before anything else of its key is written, has happened: the chain
// begins behind it.
//
// Owner: one thread, for the points of one partition or of one part of an atomic batch.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/point.h"
#include "hash/key.h"
#include "hash/table.h"

namespace skep::hash {

class ReservationStation {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Entry {
    Key key;
    std::string_view value;  // the table's bytes, the caller's, or the batch's scratch
    uint64_t deadline_ms = 0;
    uint32_t first = kNone;  // number of the chain's first unit; Next() leads on
    uint32_t last = kNone;
    uint32_t done = 0;            // requests of the first unit that are not to be done again
    uint32_t last_store = kNone;  // the slot of the last request that stored
    bool is_present = false;      // now
    bool was_live = false;        // whether it was in the table, and not expired
    bool is_written = false;
    bool has_new_value = false;  // else the value is the one in the table

    std::optional<PointState> state() const {
      if (!is_present) return std::nullopt;
      return PointState{.value = value, .deadline_ms = deadline_ms};
    }
  };

  // Empties the station, and makes room for `keys` keys and `units` units (consecutive requests of
  // one key).
  void Reset(size_t keys, size_t units);

  // Returns the key's entry, and whether it is new. A new entry must be loaded. Valid until the
  // next Reset.
  std::pair<Entry&, bool> Add(const Key& key);
  // Returns the key's entry, or null.
  const Entry* Find(const Key& key) const;
  // Appends unit number `unit` to the chain of this entry.
  void Chain(Entry& entry, uint32_t unit);
  uint32_t Next(uint32_t unit) const { return next_[unit]; }

  std::span<Entry> entries() { return {entries_.data(), count_}; }
  std::span<const Entry> entries() const { return {entries_.data(), count_}; }

  // Loads what the table has of the key; an expired pair counts as absent.
  static void Load(Entry& entry, Table& table, uint64_t now_ms);

  // Does a request on the entry and fills in the outcome of `slot`; the write may still fail.
  // Requests that store are refused while there is no memory.
  static void Do(Entry& entry, const Request& request, uint32_t slot, uint64_t now_ms,
                 const EngineTraits& traits, const MemoryBudget& budget, BatchWriter& out);
  // Applies what ApplyPoint said of a request to this entry, which `scratch` must outlive.
  static void Apply(Entry& entry, const PointEffect& effect, const Request& request, uint32_t slot,
                    Scratch& scratch);

 private:
  size_t SlotOf(const Key& key) const;

  std::vector<Entry> entries_;
  size_t count_ = 0;
  std::vector<uint32_t> slots_;  // by hash with linear probing: an entry's number + 1, or 0
  size_t mask_ = 0;
  std::vector<uint32_t> next_;
};

inline void ReservationStation::Reset(size_t keys, size_t units) {
  constexpr size_t kSlotsAKey = 4;
  // The memory of one huge batch is not kept for ever.
  constexpr size_t kKeptMax = 16 * 1024;
  if (entries_.size() > kKeptMax && keys <= kKeptMax) {
    std::vector<Entry>().swap(entries_);
    std::vector<uint32_t>().swap(slots_);
    std::vector<uint32_t>().swap(next_);
  }
  const size_t slots = std::bit_ceil(keys * kSlotsAKey + 1);
  if (entries_.size() < keys) entries_.resize(keys);
  if (next_.size() < units) next_.resize(units);
  count_ = 0;
  slots_.assign(slots, 0);
  mask_ = slots - 1;
}

// Returns the slot where the key is, or may be put.
inline size_t ReservationStation::SlotOf(const Key& key) const {
  size_t at = key.hash & mask_;
  while (slots_[at] != 0) {
    const Key& other = entries_[slots_[at] - 1].key;
    if (IsSame(key, other)) break;
    at = (at + 1) & mask_;
  }
  return at;
}

inline std::pair<ReservationStation::Entry&, bool> ReservationStation::Add(const Key& key) {
  const size_t at = SlotOf(key);
  if (slots_[at] != 0) return {entries_[slots_[at] - 1], false};
  slots_[at] = static_cast<uint32_t>(++count_);
  Entry& entry = entries_[count_ - 1];
  entry = Entry{.key = key};
  return {entry, true};
}

inline const ReservationStation::Entry* ReservationStation::Find(const Key& key) const {
  const size_t at = SlotOf(key);
  return slots_[at] == 0 ? nullptr : &entries_[slots_[at] - 1];
}

inline void ReservationStation::Chain(Entry& entry, uint32_t unit) {
  next_[unit] = kNone;
  if (entry.first == kNone) {
    entry.first = unit;
  } else {
    next_[entry.last] = unit;
  }
  entry.last = unit;
}

inline void ReservationStation::Load(Entry& entry, Table& table, uint64_t now_ms) {
  const Table::Place place = table.Find(entry.key);
  if (!place) return;
  const Pair pair = table.Read(place);
  if (HasExpired(pair.deadline_ms, now_ms)) return;
  entry.value = pair.value;
  entry.deadline_ms = pair.deadline_ms;
  entry.is_present = true;
  entry.was_live = true;
}

}  // namespace skep::hash
