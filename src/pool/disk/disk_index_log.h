// disk_index_log.h: the log of an index server in a directory of its own, over the log of keyspaces
// (durable/log.h), which has one keyspace here: its versions are the tickets.
//
//   record: type 5 (kPool, log_format.h), kind 1 (IndexLog::Kind), then
//     owner        server varint, 1 if it goes on with the state before, else 0
//     state begin, state, state end      a piece each (state_pieces.h)
//     entries      a batch (log_entry.h)
//
// All that is told there of segments, failures, mending, space and syncs holds. What is before the
// last whole state is dropped once that state is synced.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "durable/directory.h"
#include "durable/log.h"
#include "engine/release_gate.h"
#include "pool/index_log.h"

namespace skep::pool {

struct DiskIndexLogOptions {
  std::string directory;  // made, if it is not there
  LogSync sync = LogSync::kEverySecond;
  uint64_t segment_bytes = uint64_t{64} << 20;
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
  // Ends the log in good order. Nothing is appended any more.
  Status Close() { return log_.Close(); }
  durable::LogStatistics statistics() const { return log_.statistics(); }

 private:
  static constexpr uint32_t kKeyspace = 0;

  DiskIndexLog(FileSystem& files, Clock& clock, DiskIndexLogOptions options);
  void NotePlace(Kind kind, uint64_t position);

  const DiskIndexLogOptions options_;
  durable::DirectoryLock lock_;
  FoundState found_;
  std::atomic<Ticket> last_{0};
  std::string record_;  // scratch
  // The state that is being appended, and the last whole one.
  std::optional<uint64_t> begun_position_;
  uint64_t state_position_ = 0;
  Ticket state_end_ = 0;
  bool is_dropped_ = true;
  // The log uses the gates, and may call `wake` until it is destroyed.
  ReleaseGate written_;
  ReleaseGate synced_;
  durable::Log log_;
};

}  // namespace skep::pool
