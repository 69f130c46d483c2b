// recovery.h: fills the keyspaces of a store with what its directory has.
//
// The newest snapshot is read, then the log from its position P on: of each keyspace the changes
// above the version S of which the snapshot has it (replay.h, saver.h). Versions go on behind the
// highest one there was.
// Time. It passes neither in a snapshot nor in a recovery: pairs are written with their deadlines,
// also those that have passed, and changes are replayed on the values that they found when they
// were made. Only after the replay does time go on, and expired keys are gone. If the wall clock is
// behind the latest time that a write or a snapshot had, the time begins there (store_time.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "durable/durable_keyspaces.h"
#include "durable/log_reader.h"
#include "durable/repair.h"
#include "durable/replay.h"
#include "durable/saver.h"
#include "durable/snapshot_format.h"
#include "keyspace/keyspaces.h"
#include "skep/options.h"
#include "skep/status.h"

namespace skep::durable {

// The findings of a recovery. Times in nanoseconds.
struct RecoveryReport {
  std::string snapshot;  // the file; empty: none
  uint64_t snapshot_items = 0;
  uint64_t snapshot_ns = 0;
  uint64_t log_records = 0;
  uint64_t log_changes = 0;  // applied
  uint64_t log_dropped = 0;  // changes that were never complete: no reply told of them
  uint64_t log_ns = 0;
  // There is no log, or it ends before the position of the snapshot: later writes are lost, except
  // after a power loss soon after the snapshot, which has taken only bytes that the snapshot has.
  bool lacks_log = false;
  std::string torn_file;  // the end of the log was torn, and cut; empty: it was not
  uint64_t torn_offset = 0;
  uint64_t clock_behind_ms = 0;  // the wall clock is so far behind the recovered time
  RepairReport repair;
};

// The end of the log that is not known to be synced: its position, and its records.
struct LogTail {
  uint64_t position = 0;
  std::string records;
};

// Thread safety: one owner.
class Recovery {
 public:
  // `is_repair`: damage does not end the recovery; the good parts are taken (repair.h). The
  // references must outlive it.
  Recovery(FileSystem& files, Clock& clock, const Options& options, bool is_repair,
           Keyspaces& keyspaces, DurableKeyspaces& engines);

  // Fills the keyspaces, which are empty; once. It writes nothing, but removes snapshots that were
  // never completed.
  //   kIo, kCorrupt, kOutOfMemory
  //   kInvalidArgument  the directory needs a keyspace or function that is not configured
  Status Run();

  // If Run() has failed, a line for a person that names file and offset.
  const std::string& problem() const { return problem_; }
  RecoveryReport& report() { return report_; }
  // The loaded snapshot, and the position from which on the log is needed.
  const SnapshotStatistics& snapshot() const { return snapshot_; }
  LogTail& tail() { return tail_; }
  // The latest time that a write or a snapshot had.
  uint64_t now_ms() const { return now_ms_; }

 private:
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }
  Result<RecoveryStart> FindStart();
  Status Load(const RecoveryStart& start);
  Status LoadWhole(const RecoveryStart& start);
  Status LoadRest();
  Status MakeEngines(const std::vector<SnapshotKeyspace>& snapshot);
  void StartEngines(const std::vector<SnapshotKeyspace>& snapshot);
  Status ReplayLog(const RecoveryStart& start);
  // Reads the log to its end and applies its changes; a repair goes on behind damage.
  Status ApplyRecords(LogReader& reader, Replay& replay);
  void AddToTail(const LogRecord& record);
  // Reports what the log had, and whether its end is torn or missing.
  Status CheckEnd(const RecoveryStart& start, const LogReader& reader, const Replay& replay);
  // Versions and the time go on behind those of the snapshot and the log.
  void StartBehind(const Replay& replay);
  // Returns the status, after it has set problem_: about a file, or about a record of the log.
  Status FailAt(const std::string& path, const Status& status);
  Status FailAt(const LogReader& reader, const Replay& replay, uint64_t position,
                const Status& status);

  FileSystem& files_;
  Clock& clock_;
  const std::string directory_;
  const uint32_t threads_;
  const bool is_repair_;
  Keyspaces& keyspaces_;
  DurableKeyspaces& engines_;

  std::vector<Version> has_;  // by keyspace: the version of which the snapshot has it
  SnapshotStatistics snapshot_;
  LogTail tail_;
  uint64_t now_ms_ = 0;
  RecoveryReport report_;
  std::string problem_;
};

}  // namespace skep::durable
