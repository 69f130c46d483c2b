// messages.h: what the processes of a pool say to each other, beside the reads and writes of
// memory.
//
// A request begins with its kind; a reply with a ReplyCode, and if that is kOk the fields below
// follow. Numbers are varints if nothing else is said.
//
//   to the hash server
//     join      -                                     -> client, epoch, digest keys 4 x 8,
//                                                        read_ns_max, lease_ns, version of the
//                                                        memory servers
//     commit    epoch, client, entries to the end     -> for each: verdict 1, before 8, version
//     renew     epoch, client                         -> lease in ns, buckets of the table, version
//                                                        of the memory servers; chunks that the
//                                                        client leases, to the end
//     lease     epoch, client, count, for 1, servers to be avoided, to the end
//                                                     -> count, then of each: chunk, gen, frames;
//                                                        version of the memory servers
//     seal      epoch, client, chunks to the end      -> -
//     places    first chunk, count                    -> 1 if keys of lost items are removed,
//                                                        ranges of frames, of each chunk: gen 1,
//                                                        frames
//     copy      epoch, client                         -> chunk, gen, a chunk that the client now
//                                                        leases to copy it to, the frame of that;
//                                                        no field: there is none
//     adopt     epoch, client, chunk, gen, the chunk that it was copied to     -> 1: it is adopted
//     drain     server                                -> -
//     servers   -                                     -> of each: server, state 1, frames, free
//     find      epoch, count, then of each: key       -> for each: slot 8
//     status    -                                     -> the numbers of a PoolStatus
//     victims   epoch, then cleaner_messages.h        -> cleaner_messages.h
//   to the sorted server
//     scan      epoch, a scan                         -> applied, flags, next key, slots 8 to the
//               end
//     lost      epoch, lower bound                    -> the next lower bound, empty at the end;
//               of keys that have lost items: key, slot 8, to the end
//     ship      epoch, a batch of the log             -> end index
//   to an index server without a role
//     state     epoch, attempt, number, part 1, fields of the part (state_transfer.h)   -> -
//   to a memory server
//     hello     client, the server's number           -> chunk count; kNotServing: it is another
//               server, at the same address
//     fence     client                                -> 1: nothing of the client can arrive any
//               more
//     retire    the server's number, 1 if it was drained   -> -
//
// An epoch that is not the server's is answered by kWrongEpoch: the client asks for the map again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "pool/chunks.h"
#include "pool/cleaner_messages.h"
#include "pool/key_digest.h"
#include "pool/log_entry.h"

namespace skep::pool {

enum class MessageKind : uint8_t {
  kJoin = 1,
  kCommit,
  kRenew,
  kLease,
  kSeal,
  kPlaces,
  kFind,
  kScan,
  kShip,
  kHello,
  kFence,
  kStatus,
  kState,
  kRetire,
  kCopy,
  kAdopt,
  kDrain,
  kServers,
  kLost,
  kVictims,
};

// How many keys a kFind asks for at most.
inline constexpr size_t kFindsMax = 4096;

// What a chunk is leased for.
enum class LeaseFor : uint8_t {
  kWrites,
  kCleaning,  // also one of the chunks that are kept for it (free_space.h)
};

enum class ReplyCode : uint8_t {
  kOk = 0,
  kMalformed,      // the request
  kWrongEpoch,     // the map has changed, or is about to
  kNotServing,     // the server has not this role, or cannot serve in it now
  kUnknownClient,  // it has been silent for too long
  kPoolFull,       // there is no free chunk
  kCleaning,       // the same, but soon there may be one
  kRefused,        // it cannot be: kDrain, no such server, or no other one
  kCannotLog,      // the hash server's disk is full or fails, so nothing can be changed now
};

// Of a whole pool.
struct PoolStatus {
  uint64_t items = 0;
  uint64_t chunks = 0;
  uint64_t free_chunks = 0;
  uint64_t clients = 0;
  uint64_t live_units = 0;  // of all items, as their slots tell (chunks.h), for each replica
  uint64_t under_replicated_chunks = 0;  // on fewer open servers than there should be (copy_plan.h)
  uint64_t lost_chunks = 0;              // with items, on no server
  UpkeepFigures cleaner = {};
};

// What a hash server knows of a memory server.
struct ToldServer {
  uint32_t server = 0;
  Chunks::ServerState state = Chunks::ServerState::kOpen;
  uint32_t frames = 0;
  uint32_t free_frames = 0;
};

void EncodeServers(const Chunks& chunks, std::string& to);
bool DecodeServers(std::string_view from, std::vector<ToldServer>* servers);

void EncodeStatus(const PoolStatus& status, std::string& to);
bool DecodeStatus(std::string_view from, PoolStatus* status);

// A scan of keys, in their order.
struct ScanRequest {
  uint64_t epoch = 0;
  std::string_view lower = {};  // inclusive
  std::string_view upper = {};  // exclusive
  bool has_upper = false;
  bool is_reverse = false;      // from the upper end down
  bool seeks_floor = false;     // begins at the largest key <= lower
  bool counts_only = false;     // no slots, but how many
  uint32_t limit = UINT32_MAX;  // slots, or with counts_only keys
};

struct ScanReply {
  uint64_t applied = 0;  // the scan has seen what was acknowledged up to here
  uint64_t count = 0;    // with counts_only
  bool more = false;     // it stopped early; `next` is the bound to go on from
  std::string_view next = {};
  std::string_view slots = {};  // 8 bytes each
};

void EncodeScan(const ScanRequest& scan, std::string& to);
bool DecodeScan(std::string_view& from, ScanRequest* scan);
void EncodeScanReply(const ScanReply& reply, std::string& to);
bool DecodeScanReply(std::string_view& from, ScanReply* reply);

void AppendVerdict(std::string& to, const CommitVerdict& verdict);
bool TakeVerdict(std::string_view& from, CommitVerdict* verdict);

// The word by which a hash server tells how far it is (rule A of pool_engine.h).
class AppliedWord {
 public:
  static constexpr uint32_t kIndexBits = 44;
  static constexpr uint64_t kIndexMax = (uint64_t{1} << kIndexBits) - 1;
  // The epoch modulo 2^20.
  static constexpr uint64_t kEpochMask = (uint64_t{1} << (64 - kIndexBits)) - 1;

  explicit AppliedWord(uint64_t bits) : bits_(bits) {}
  // The index is at most kIndexMax, which takes eleven months at 0.6 M entries a second.
  AppliedWord(uint64_t epoch, uint64_t index) : bits_((epoch & kEpochMask) << kIndexBits | index) {
    SKEP_CHECK(index <= kIndexMax);
  }
  uint64_t bits() const { return bits_; }
  uint64_t index() const { return bits_ & kIndexMax; }
  bool IsOf(uint64_t epoch) const { return bits_ >> kIndexBits == (epoch & kEpochMask); }

 private:
  uint64_t bits_;
};

}  // namespace skep::pool
