// disk_index_log.h: the log of an index server in a directory of its own, over the log of keyspaces
// (durable/log.h), which has one keyspace here: its versions are the tickets.
//
//   record: type 5 (kPool, log_format.h), kind 1 (IndexLog::Kind), then
//     owner        server varint, 1 if it goes on with the state before, else 0
//     state begin, state, state end      a piece each (state_pieces.h)
//     entries      a batch (log_entry.h)
//     state since  position varint, owners (count varint, each a varint), then a first piece
//
// All that is told there of segments, failures, mending, space and syncs holds.
//
// Compaction. A log that has become long is read as a server that comes back would read it, up to a
// position P, by a thread of its own; the state that this makes is appended, piece by piece, while
// its owner goes on appending. So it needs nothing of the owner's state, and a hash server, which
// has no keys, does it as any other. What it costs is the memory of one more ordered index for the
// time that it takes. What lies before P is dropped once the whole new state is synced: until then
// the log has what it had. If the owner begins another state meanwhile, as a newcomer, or takes
// leave of what it had, the compaction is given up: its pieces end before those of the owner. It is
// given up, too, when the log refuses one of its pieces, as it does while the disk is slow or full.
// What is in the log of a compaction that was given up is passed over by every reader, and does not
// stand in the way of the next one: only a state that the owner has begun, and not ended, does.
// Not more than kUnsyncedMax bytes of it wait for a sync: entries are not kept behind more.
//
// Thread safety: one owner, and the two threads of the log itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "durable/directory.h"
#include "durable/log.h"
#include "engine/release_gate.h"
#include "pool/disk/index_recovery.h"
#include "pool/index_log.h"

namespace skep::pool {

struct DiskIndexLogOptions {
  std::string directory;  // made, if it is not there
  LogSync sync = LogSync::kEverySecond;
  uint64_t segment_bytes = uint64_t{64} << 20;
  // The log is compacted when what lies behind the last state has more bytes than this, and twice
  // as many as that state.
  uint64_t compact_bytes_min = uint64_t{256} << 20;
  std::function<std::unique_ptr<Engine>()> make_tree;  // an ordered engine, empty
  // Is called by another thread when something that was to be logged is. Null: the log has no
  // thread, and does what a thread would do in Step().
  std::function<void()> wake;
};

class DiskIndexLog final : public IndexLog {
 public:
  // Locks the directory, reads it, and begins to write. On an error *problem is a line for a
  // person. Errors as durable::LockDirectory and RecoverIndexLog. `files` and `clock` outlive it.
  static Result<std::unique_ptr<DiskIndexLog>> Open(FileSystem& files, Clock& clock,
                                                    DiskIndexLogOptions options,
                                                    std::string* problem);
  ~DiskIndexLog() override;

  FoundState TakeFound() override { return std::move(found_); }
  Ticket Append(Kind kind, std::string_view bytes) override;
  void Flush(bool syncs) override;
  Ticket logged() const override;
  Ticket synced() const override { return synced_.released(); }
  Status status() const override { return log_.status(); }
  void Step() { log_.Step(); }
  // Whether the log is so long that it should be compacted.
  bool IsLong() const;
  // Appends the state that the log makes, and drops what lies before it. False: it was given up, or
  // there is no state yet. Without a thread, IsLong() and this are its owner's to call.
  Result<bool> Compact();
  // Ends the log in good order. Nothing is appended any more.
  Status Close();
  durable::LogStatistics statistics() const { return log_.statistics(); }

 private:
  static constexpr uint32_t kKeyspace = 0;
  static constexpr uint64_t kUnsyncedMax = uint64_t{4} << 20;

  DiskIndexLog(FileSystem& files, Clock& clock, DiskIndexLogOptions options);
  Ticket AppendRecord(Kind kind, std::string_view bytes) SKEP_REQUIRES(mutex_);
  void NoteState(Kind kind, uint64_t position) SKEP_REQUIRES(mutex_);
  void DropOld() SKEP_REQUIRES(mutex_);
  Ticket AppendPiece(uint64_t generation, Kind kind, std::string_view bytes);
  Result<Ticket> AppendState(IndexState& state, const StateSince& since, uint64_t generation);
  bool AwaitSync(Ticket ticket);
  void RunCompactor();
  void StopCompactor();

  FileSystem& files_;
  const DiskIndexLogOptions options_;
  durable::DirectoryLock lock_;
  FoundState found_;
  std::atomic<Ticket> last_{0};

  // Held while a record is appended.
  mutable Mutex mutex_;
  std::string record_ SKEP_GUARDED_BY(mutex_);  // scratch
  // How many states its owner has begun, or taken leave of.
  uint64_t generation_ SKEP_GUARDED_BY(mutex_) = 0;
  bool is_owners_state_begun_ SKEP_GUARDED_BY(mutex_) = false;  // and is not whole yet
  // Positions of the state that is being appended, and of the last whole one: from where on it is
  // to be read, and where it ends.
  std::optional<uint64_t> begun_from_ SKEP_GUARDED_BY(mutex_);
  uint64_t begun_at_ SKEP_GUARDED_BY(mutex_) = 0;
  uint64_t state_from_ SKEP_GUARDED_BY(mutex_) = 0;
  uint64_t state_bytes_ SKEP_GUARDED_BY(mutex_) = 0;
  uint64_t state_ends_at_ SKEP_GUARDED_BY(mutex_) = 0;
  Ticket state_ticket_ SKEP_GUARDED_BY(mutex_) = 0;  // of its last piece
  bool is_dropped_ SKEP_GUARDED_BY(mutex_) = true;

  // The log uses the gates, and may call `wake` until it is destroyed.
  ReleaseGate written_;
  ReleaseGate synced_;
  durable::Log log_;

  std::atomic<bool> stops_{false};
  std::thread compactor_;
};

}  // namespace skep::pool
