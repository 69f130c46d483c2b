// cleaner.h: makes room in a pool: moves what is left of chunks that are mostly garbage into new
// ones, so that the old ones are empty and can be used again; or, in a cache that is full, deletes
// the items of the chunk that was sealed first.
//
//   hash server                cleaner                            memory servers
//     | <---------- victims ---- |                                    |
//     | -- fewest live units --> |  reads the first one whole ------> |
//     | <------------- find ---- |  which of its items have           |
//     | -- slots --------------> |  their keys' slots still           |
//     |                          |  writes those to its own chunk --> |
//     | <----------- commit ---- |  each on condition that its key    |
//     | -- verdicts -----------> |  has the old slot still            |
//     |                          |
//   no slot names the old chunk: it is recycled as any empty chunk (chunk_upkeep.h)
//
// The cleaner is a client of the pool (client_session.h, item_writer.h). It runs beside the hash
// server (upkeep_agent.h), but nothing depends on that: its crash is the crash of a client.
//
// Safety
//   C1  A move changes no value. The bytes that are moved checked themselves as the item of the old
//       slot, which are the same ones for as long as a key has that slot: nothing of a chunk is
//       written twice in one generation. However long the cleaner takes, if the key has the old
//       slot when the move is judged, then its value is the one that is moved.
//   C2  A concurrent write wins. A move is a put on condition that the key has the old slot, judged
//       by the order of the log as every write is. So the history is that of the clients' writes
//       alone. Likewise an eviction is a delete on that condition.
//   C3  A client that has looked up the old slot reads the old bytes, which stay as they are until
//       twice read_ns_max after the chunk was seen empty (H2, H3). If it wanted to write on
//       condition of the old slot, it is told that this is not met, looks up again, and finds the
//       same value at the new slot.
//   C4  A slot comes again only after its chunk was used 256 times, for items or for copies, and
//       free chunks take turns; a cleaner that sleeps for so long was forgotten, and commits
//       nothing.
//   C5  A move that is sent again is done once, as any write (H4). One whose answer is lost is
//       given up: the item is at either place, and the chunk is a victim again, or empty.
//   C6  Items that were written and never committed are named by no slot: they are left behind.
// Progress
//   Amplification. A chunk is moved only if a 64th of it at least is garbage: items that nobody has
//     any more, or a tail that no item has taken. A tail does not count where a survivor is longer
//     than a 64th of a chunk: such an item may have made it necessary, and to move it could leave
//     the same tail again, for ever. So 63 units are moved for each unit of garbage at most; the
//     emptiest chunk goes first, so only a pool that is nearly full of live items pays as much.
//     Garbage comes of clients' writes; the cleaner itself makes a tail only before a long item
//     that it moves, or when it ends.
//   Chunks in vain. A chunk that looked emptier than it is, since long items count as 255 units
//     only, or of which something could not be moved, is remembered with its count, and passed over
//     until that changes.
//   In the way. One request is under way at a time, for kBatchItems items or kBatchBytes bytes. It
//     works only while the pool has fewer free chunks than it wants (free_space.h), and waits for
//     nobody but the servers, up to the session's deadline. A client's conditional write may have
//     to be made again once for each move of its key, of which there is one for many writes.
//   A cleaner that has stopped holds back the chunk it has leased and the hash server's belief that
//     it works (free_space.h), both until it has been silent for a while.
// Eviction is for caches. It begins when a look at all victims has gained nothing. The chunk whose
//   sealing was entered first goes; a move makes an item young.
//
// Thread safety: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "pool/chunk_items.h"
#include "pool/cleaner_messages.h"
#include "pool/client_session.h"
#include "pool/item_writer.h"

namespace skep::pool {

enum class Eviction : uint8_t { kNone, kOldest };

class Cleaner {
 public:
  static constexpr size_t kBatchItems = 128;
  static constexpr size_t kBatchBytes = 256 * 1024;

  // All outlive it; it adds to `figures`. `writer`, of the session, leases for LeaseFor::kCleaning.
  Cleaner(ClientSession& session, ItemWriter& writer, Eviction eviction, UpkeepFigures& figures)
      : session_(session), eviction_(eviction), writer_(writer), figures_(figures) {}

  // One step: looks for a victim and reads it, or moves some of its items. Returns whether there is
  // more to be done; else it is to be asked again after a pause.
  bool Step();

 private:
  // An item that its key has.
  struct Survivor {
    Slot slot;
    ChunkItem item;
  };
  struct Seen {
    uint8_t gen = 0;
    uint32_t live_units = 0;
  };

  bool Begin();
  std::optional<Victims> AskForVictims();
  void BeginPass(bool evicts);
  bool EndPass();
  bool IsPassedOver(const Victim& victim) const;
  void PassOver(const Victim& victim, uint64_t live_units);
  bool Load(const Victim& victim);
  bool FindSurvivors(std::span<const ChunkItem> items);
  // Asks for the slots of items that follow each other. False: there was no answer.
  bool AskForSlots(std::span<const ChunkItem> items);
  bool IsWorthIt() const;
  bool MoveSome();
  void Settle(const Write& write);
  bool GiveUp(const Status& status);
  void EndVictim();

  ClientSession& session_;
  const Eviction eviction_;
  ItemWriter& writer_;
  UpkeepFigures& figures_;

  // The pass over the victims.
  uint64_t from_rank_ = 0;
  uint32_t from_chunk_ = 0;
  bool has_gained_ = false;     // since it began
  bool evicts_ = false;         // it is over all sealed chunks, by age, to evict one
  bool found_nothing_ = false;  // in the last pass
  // Chunks that are looked at again when their count has changed: to be moved, or to be evicted.
  std::unordered_map<uint32_t, Seen> passed_over_[2];

  // The victim, if there are survivors.
  Victim victim_;
  std::unique_ptr<std::byte[]> bytes_;  // of a whole chunk
  uint32_t end_unit_ = 0;               // behind its last item
  std::vector<Survivor> survivors_;
  size_t next_ = 0;             // of the survivors
  uint64_t settled_units_ = 0;  // of those that are gone, as their slots tell
};

}  // namespace skep::pool
