// item_writer.h: PUTs and DELETEs: items written to the memory servers, then committed by the hash
// server (HStore, section 4.2).
//
//   round 1   WRITE of all items to all replicas, which are in memory when it has ended
//   call      commit of all of them: the verdicts
//
// The items go to chunks that this client leases, one behind the other; a chunk that is full is
// sealed once nothing of it waits for a verdict. Nothing is freed: what was replaced, and what was
// written and not committed, goes when its chunk is recycled.
//
// A commit whose reply is lost is sent again under the same numbers, to whoever is the hash server
// then, and is done once (H4). If no reply comes before the deadline, it is not known whether it
// was done.
//
// In a pool that is full each write that needs another chunk is refused by itself, after the others
// were done: those that fit, and deletes. As long as there may be room soon (free_space.h) it is
// tried again, for up to half of the time that is left.
//
// When memory servers have come or gone the chunk that is being filled is sealed, too, since it
// lies in the servers that there were. So is a chunk of a lease whose answer was lost, which the
// hash server tells when the client's lease is renewed.
//
// A pool whose hash server cannot write its log refuses all writes at once, as long as that lasts.
//
// A write that has failed may still arrive (rule F5 of rma/fabric.h). So the client then gives up
// its name: the hash server seals its chunks when it has been silent for long enough, and recycles
// them after a fence.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pool/client_session.h"
#include "pool/item.h"
#include "pool/log_entry.h"
#include "skep/status.h"

namespace skep::pool {

// One write. The caller fills in what is above `status`.
struct Write {
  LogEntry::Kind kind = LogEntry::Kind::kPut;
  LogEntry::Condition condition = LogEntry::Condition::kNone;
  std::string_view key;
  std::string_view value = {};
  Slot expected = {};  // kIfSlot

  //   kUnavailable  it was not done, or it is not known whether it was: the text says which
  //   kIo           it was not done: the pool cannot log it
  //   kOutOfMemory  it was not done: the pool has no free chunk, and none came about while there
  //                 was hope (free_space.h); or its index has no room
  Status status = {};
  CommitVerdict verdict = {};  // if the status is ok
  Slot slot = {};              // kPut: of the item that was written
  bool is_settled = false;     // the writer's
};

class ItemWriter {
 public:
  // How many writes are committed by one call.
  static constexpr size_t kWritesMax = 512;

  explicit ItemWriter(ClientSession& session, LeaseFor purpose = LeaseFor::kWrites)
      : session_(session), purpose_(purpose) {}

  // Does all of them, in their order for each key. At most kWritesMax.
  void Run(std::span<Write> writes);
  // Seals what this client leases and does not fill any more, for a client that may write nothing
  // for long. What is sealed can be copied and recycled.
  void SealUnneeded();

 private:
  struct Chunk {
    uint32_t number = 0;
    uint8_t gen = 0;
    std::vector<FramePlace> places;
    uint32_t next_unit = 0;       // the first one that is free
    uint64_t places_version = 0;  // when it was leased
  };

  void Try(std::span<Write> writes);
  Status WriteItems(std::span<Write> writes);
  // Room for the item in a chunk.
  //   kUnavailable, kOutOfMemory, kIo  there is none
  Status Place(Write& write, Round& round);
  // Has those chunks sealed next time that are this client's, and are not to be filled any more.
  void GiveUpUnneeded();
  Status TakeChunk();
  // A chunk to be filled; or none yet, and the request is to be made again.
  Status Lease(std::optional<Chunk>* chunk);
  // False: the client was forgotten, and nothing was done.
  bool Commit(std::span<Write> writes);
  enum class Answer : uint8_t { kVerdicts, kLost, kForgotten, kFull, kNotLogged };
  Answer Send(std::span<Write> writes, uint64_t first_sequence);
  void SealFull();
  void StartAnew();

  ClientSession& session_;
  const LeaseFor purpose_;
  uint32_t client_ = 0;  // whose chunks and numbers these are
  uint64_t next_sequence_ = 1;
  uint64_t next_item_ = 1;      // the sequence number of the item that is placed next
  std::optional<Chunk> chunk_;  // that is being filled
  std::vector<uint32_t> full_;  // to be sealed
  bool is_full_ = false;        // no chunk was to be had, in this try
  bool may_wait_ = false;       // and there may be one soon
  std::vector<std::unique_ptr<std::byte[]>> buffers_;
  std::string request_;
};

}  // namespace skep::pool
