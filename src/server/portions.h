// portions.h: replies that have many members of a large collection.
//
//   turn of the command   the read of the whole would be long: the engine leaves it out
//                         (Batch::set_portion_bytes_max), and the command goes to the task of its
//                         connection (postponed_task.h)
//   the next turn         a snapshot is opened; how many members are there, at its version
//   turns behind that     a portion each, at the same version: read, and encoded
//
// Other connections are served between the portions; the client takes one while the next ones are
// made, and if it does not, none is made. So a reply takes the memory of a portion, and of what its
// client has not read, and all of it is of one version.
//
// The pin ends with the reply, or earlier as that of a range does (range_task.h). That cannot be
// reported inside an array: the connection is closed.
//
// Thread safety: the owning worker only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "engine/engine.h"
#include "server/call.h"
#include "server/server_call.h"
#include "skep/batch.h"
#include "skep/store.h"

namespace skep {

// Bytes of the members that a reply reads in a turn, about: a segment, or a member, may come on top
// where they are read in the order of their bytes; else where they differ much in length it may be
// twice as much.
inline constexpr size_t kPortionBytesMax = size_t{256} << 10;

// Whether the engine has left out an atomic batch that has that bound: nothing of it was done.
inline bool IsLeftOut(const Batch& batch) {
  return batch.kind() == Batch::Kind::kAtomic && !batch.empty() &&
         batch.outcome(0).verdict == Verdict::kPostponed;
}

// What a command reads, step by step: how much there is, and then that.
class Portions {
 public:
  virtual ~Portions() = default;
  // Adds the requests of the next step.
  virtual void Plan(Batch& batch) = 0;
  // Replies with what they have found; none of them was refused. Returns whether there is more.
  virtual bool Reply(const Call& call, const Batch& batch) = 0;
};

// Makes such a reply.
class PortionedReply {
 public:
  explicit PortionedReply(std::unique_ptr<Portions> portions) : portions_(std::move(portions)) {}

  // Does a step, if the connection's earlier writes are released: the snapshot has them then.
  // Returns false once the reply is complete.
  bool Step(const ServerCall& call, Engine& engine);
  void GiveUpPin() { snapshot_ = Snapshot(); }
  // Whether the last step has done nothing, because earlier writes are not released.
  bool waits() const { return waits_; }
  // Whether the reply has ended in the middle: nothing can follow it.
  bool is_broken() const { return is_broken_; }

 private:
  bool Open(const ServerCall& call, Engine& engine);

  const std::unique_ptr<Portions> portions_;
  Snapshot snapshot_;  // not valid once it is given up
  SnapshotRef ref_;
  bool has_begun_ = false;  // bytes of the reply are encoded
  bool waits_ = false;
  bool is_broken_ = false;
};

// HGETALL, HKEYS, HVALS, SMEMBERS, LRANGE; and ZRANGE and its kin by rank and by score, null for
// those by member. The words of the call were found right.
std::unique_ptr<Portions> PortionsOfHash(const Call& call);
std::unique_ptr<Portions> PortionsOfSet(const Call& call);
std::unique_ptr<Portions> PortionsOfList(const Call& call);

// The entries of a sorted set whose ranks, or scores, are in bounds: as the operand of zset-range.
struct EntryRange {
  bool is_by_score = false;
  bool reverse = false;
  std::string_view low, high;
  int64_t offset = 0;
  int64_t count = -1;
  bool with_scores = false;
};
std::unique_ptr<Portions> PortionsOfEntries(const Call& call, const EntryRange& range);

}  // namespace skep
