// persistence.h: the keyspaces of a store, kept in a directory.
//
//   DIRECTORY                               locked by the process that has it open
//            lock                           as well
//            keyspaces                      keyspace_file.h
//            log-0000000003ffc2d8-00000001.skl ...  log_format.h
//            log-next.tmp                   the next segment
//            reserve.tmp                    disk_reserve.h
//            snapshot-0000000003ffd010.sks  snapshot_format.h; by the position of the log from
//                                           which on the log is needed
//
// Snapshot. The position P of the log is noted first, then which keyspaces there are: one that is
// first used later has nothing before P. For each of them the highest version that the log has by
// then is noted; once that is released, all pairs are written as of a version S not below it. So
// what the log has before P is in the snapshot, and of what it has behind it, what is not above S.
// Then older snapshots go, and the log before P.
// Space. A snapshot is due when the disk is short of space and the log is long enough to be worth
// it: a quarter of what the snapshot would have. That is how a disk which has become full of log
// gets space again. So the log leaves the snapshot's space free (Log::set_kept_free), unless it
// could not become so long: then the snapshot would gain little, and the log may have all there is.
// How many bytes a snapshot would have is an estimate: not more than the last one and the log
// behind it, nor than the memory of the engines.
// Recovery. The newest snapshot is read, then the log from its P on: of each keyspace what is above
// its S (replay.h). Versions go on behind the highest one there was.
// Time. Neither in a snapshot nor in a recovery does it pass: pairs are written with their
// deadlines, also those that have passed, and changes are replayed on what they found when they
// were made. Only then is it time again, and what has expired is gone. If the wall clock is behind
// the latest time that a write or a snapshot had, the time begins there (store_time.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/store_time.h"
#include "durable/directory.h"
#include "durable/disk_reserve.h"
#include "durable/durable_engine.h"
#include "durable/keyspace_file.h"
#include "durable/log.h"
#include "durable/repair.h"
#include "durable/snapshot_format.h"
#include "keyspace/keyspaces.h"

namespace skep::durable {

// What a recovery has found. Times in nanoseconds.
struct RecoveryReport {
  std::string snapshot;  // the file; empty: none
  uint64_t snapshot_items = 0;
  uint64_t snapshot_ns = 0;
  uint64_t log_records = 0;
  uint64_t log_changes = 0;  // applied
  uint64_t log_dropped = 0;  // changes that were never complete: nobody was told of them
  uint64_t log_ns = 0;
  // There is no log, or it ends before the position of the snapshot: what was written since then is
  // gone, but for a power loss soon after the snapshot, which takes what the snapshot has.
  bool lacks_log = false;
  std::string torn_file;  // the end of the log was torn, and cut; empty: it was not
  uint64_t torn_offset = 0;
  uint64_t clock_behind_ms = 0;  // by which the wall clock is behind the time that was recovered
  RepairReport repair;
};

struct SnapshotStatistics {
  uint64_t finished = 0;      // since the start, also such as failed
  uint64_t last_ms = 0;       // when the last one that succeeded was done; 0: never
  Status last_status;         // of the last one
  uint64_t last_took_ms = 0;  // of the last one
  uint64_t last_items = 0;    // of the last one that succeeded
  uint64_t last_bytes = 0;    // likewise
  bool is_saving = false;     // from the asking on
  uint64_t log_position = 0;  // from which on the log is needed
  uint64_t for_space = 0;     // begun since the start because the disk was short of space
};

// Thread-safe, once it is recovered.
class Persistence final : public EngineWrapper {
 public:
  // Makes options.directory if it is not there, and takes hold of it. On an error *problem is a
  // line for a person.
  //   kIo, kCorrupt     a file cannot be read or written, or is damaged
  //   kUnavailable      another process has the directory
  //   kInvalidArgument  a keyspace has another engine in the directory: by the list of keyspaces
  //                     or, where that does not have it, by the newest snapshot
  // `repairs`: damage does not end the recovery. What is good is taken (repair.h) and written as a
  // new snapshot, and the damaged files are put aside, called what they were with ".damaged" behind
  // it. Nothing is put aside before that snapshot is on the disk.
  static Result<std::unique_ptr<Persistence>> Open(FileSystem& files, Clock& clock,
                                                   const Options& options, std::string* problem,
                                                   bool repairs = false);
  ~Persistence() override;

  std::unique_ptr<Engine> Wrap(uint32_t keyspace, std::unique_ptr<Engine> engine) override;

  // Fills the keyspaces, which this wraps, and makes the log ready for more. Once, before anything
  // else. On an error *problem names file and offset.
  //   kIo, kCorrupt, kOutOfMemory
  //   kInvalidArgument  the directory needs what is not configured: a keyspace, a function
  Status Recover(Keyspaces& keyspaces, RecoveryReport* report, std::string* problem);

  // The same, but for the log, which is left as it is: nothing but its destruction may follow.
  Status Rehearse(Keyspaces& keyspaces, RecoveryReport* report, std::string* problem);

  Log& log() { return log_; }
  // The time of the keyspaces: once it has recovered, not before that of any write or snapshot that
  // the directory has. Whoever executes batches takes their "now" from here.
  StoreTime& time() { return time_; }

  // Writes a snapshot of all keyspaces and drops what it makes superfluous. Takes as long as it
  // takes; writers go on.
  //   kUnavailable     one is being written
  //   kIo              the disk; what was there is still there
  //   kSnapshotTooOld  there was no memory for what changed meanwhile
  Status Save();
  // Asks the thread below for one. False: one is being written.
  bool RequestSave();
  SnapshotStatistics snapshots() const;
  // When a snapshot is due, after so many seconds with so many changes at least.
  struct SavePoint {
    uint64_t seconds = 0;
    uint64_t changes = 0;
  };
  void SetSavePoints(std::vector<SavePoint> points);
  // One is also due when the log behind the last one is longer than both: so many percent of it,
  // and so many bytes. 0 percent: not for that reason.
  struct AutoSnapshot {
    uint32_t percentage = 200;
    uint64_t log_bytes_min = uint64_t{1} << 30;
  };
  void SetAutoSnapshot(const AutoSnapshot& options);
  // About how many bytes the directory's file system has left; kMuch if that is not known.
  static constexpr uint64_t kMuch = uint64_t{1} << 62;
  uint64_t free_bytes() const { return std::min(files_.FreeBytes(directory_), kMuch); }

  // Starts the log's thread, and one that writes snapshots.
  void StartThreads();
  // What the second one does, once: a snapshot, if one was asked for or is due. Returns whether it
  // was.
  bool StepSaver();
  // Before the engines are destroyed. A snapshot that is being written is given up.
  void StopThreads();
  // The same, and ends the log (Log::Close); nobody may write any more.
  Status Close();

 private:
  // The end of the log, from where on it is not known to be synced.
  struct LogTail {
    uint64_t position = 0;
    std::string records;
  };

  Persistence(FileSystem& files, Clock& clock, const Options& options, bool repairs);

  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }
  Status Fill(Keyspaces& keyspaces, LogTail* tail, RecoveryReport* report, std::string* problem);
  Result<RecoveryStart> FindStart(RecoveryReport* report, std::string* problem);
  uint64_t SizeOf(const std::string& path);
  Status Load(Keyspaces& keyspaces, const RecoveryStart& start, RecoveryReport* report,
              std::string* problem);
  Status LoadWhole(Keyspaces& keyspaces, const RecoveryStart& start, RecoveryReport* report);
  Status LoadRest(Keyspaces& keyspaces, RecoveryReport* report);
  Status MakeEngines(Keyspaces& keyspaces, const std::vector<SnapshotKeyspace>& snapshot);
  void StartEngines(const std::vector<SnapshotKeyspace>& snapshot);
  Status ReplayLog(Keyspaces& keyspaces, const RecoveryStart& start, LogTail* tail,
                   RecoveryReport* report, std::string* problem);
  Status FinishRepair(RepairReport* report);
  Status WriteSnapshot(SnapshotStatistics* statistics);
  void RemoveSnapshotsBefore(uint64_t position);
  bool IsDue(uint64_t free_bytes);
  bool IsDueForSpace(uint64_t free_bytes) const;
  bool IsWorthIt(uint64_t log_bytes, uint64_t snapshot_bytes) const;
  // Behind the last snapshot, whose position may be ahead of what is written.
  uint64_t LogBytes() const {
    return std::max(log_.End(), snapshots_.log_position) - snapshots_.log_position;
  }
  uint64_t SnapshotBytes() const;
  void KeepSpace();
  void MakeSpaceForSnapshot();
  void RunSaver();
  DurableEngine* EngineOf(uint32_t keyspace);
  Status ListKeyspaces();

  FileSystem& files_;
  Clock& clock_;
  StoreTime time_;
  const std::string directory_;
  const uint32_t recovery_threads_;
  const bool is_repair_;
  const uint64_t segment_bytes_;
  DirectoryLock lock_;
  Log log_;
  std::vector<Version> has_;       // by keyspace: the version that the snapshot was of
  uint64_t snapshot_now_ms_ = 0;   // the latest of the time of its keyspaces
  std::set<std::string> damaged_;  // files that a repair keeps

  mutable Mutex mutex_;  // guards what follows
  KeyspaceEngines recorded_;
  bool is_listed_ = false;     // the list of keyspaces has all of recorded_
  bool is_recovered_ = false;  // before that no list is written
  std::map<uint32_t, DurableEngine*> engines_;
  SnapshotStatistics snapshots_;
  std::vector<SavePoint> save_points_;
  AutoSnapshot auto_snapshot_;
  uint32_t failures_ = 0;       // of snapshots, in a row
  uint64_t saved_changes_ = 0;  // Log's, when the last snapshot was begun
  uint64_t last_begin_ms_ = 0;  // monotonic: of the last snapshot
  bool is_wanted_ = false;
  bool has_log_news_ = false;  // it has taken space, or has found none
  std::atomic<bool> is_stopping_{false};
  ConditionVariable wake_;
  std::thread saver_;

  // Taken before mutex_. Held while the reserve and what the log leaves free are set, also by a
  // snapshot that begins: it waits for a disk that does not answer, but is not refused.
  Mutex space_mutex_;
  DiskReserve reserve_;
  // That the log is to leave free for the snapshot being written. Only its writer looks at it.
  uint64_t bytes_to_write_ = 0;
};

}  // namespace skep::durable
