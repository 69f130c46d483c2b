// saver.h: writes the snapshots of a store, and drops the log that they make superfluous.
//
// Snapshot. The position P of the log is noted first, then which keyspaces there are: a keyspace
// that is first used later has nothing before P. For each keyspace the highest version that the log
// has by then is noted; once that version is released, all pairs are written as of a version S not
// below it. So the snapshot has all changes that the log has before P and, of those behind P, the
// ones that are not above S. Then older snapshots are removed, and the log before P.
// Space. A snapshot is due when the disk is short of space and the log is long enough to be worth
// it: a quarter of the size of the snapshot. So a disk that is full of log gets space again. For
// that the log leaves the snapshot's space free (Log::set_kept_free), unless the log could not
// become so long: then the snapshot would gain little, and the log may have all the space.
// The size of the next snapshot is an estimate: not more than the last one and the log behind it,
// nor than the memory of the engines.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/store_time.h"
#include "durable/disk_reserve.h"
#include "durable/durable_keyspaces.h"
#include "durable/log.h"
#include "durable/snapshot_format.h"
#include "durable/snapshot_writer.h"
#include "skep/options.h"
#include "skep/status.h"

namespace skep::durable {

struct SnapshotStatistics {
  uint64_t finished = 0;       // snapshots since the start, including failed ones
  uint64_t last_ms = 0;        // when the last one that succeeded was done; 0: never
  Status last_status;          // of the last one
  uint64_t last_took_ms = 0;   // of the last one
  uint64_t last_items = 0;     // of the last one that succeeded
  uint64_t last_bytes = 0;     // of the last one that succeeded
  bool is_saving = false;      // from the request on
  uint64_t log_position = 0;   // the log is needed from here on
  uint64_t for_space = 0;      // begun since the start because the disk was short of space
  uint64_t changes_since = 0;  // of keys, since the last one was begun
  uint64_t saving_ms = 0;      // for so long the one that is being written has been
};

// Writes snapshots when they are asked for or due. Thread-safe from StartAfter() on. It has some 25
// methods: asking, the snapshot's own thread and its retries change one state under one lock.
class Saver {
 public:
  // The references must outlive it.
  Saver(FileSystem& files, Clock& clock, const Options& options, StoreTime& time, Log& log,
        DurableKeyspaces& keyspaces);
  ~Saver() { StopThread(); }

  // Begins behind the snapshot that a recovery has found, whose statistics these are. To be called
  // first.
  void StartAfter(const SnapshotStatistics& found);
  // Keeps these files, also when a snapshot makes them superfluous. Not while a snapshot is
  // written.
  void KeepFiles(std::set<std::string> paths) { kept_files_ = std::move(paths); }

  // Writes a snapshot of all keyspaces and drops the files that it makes superfluous. Writers go on
  // meanwhile.
  //   kUnavailable     a snapshot is being written already
  //   kIo              the disk; the earlier snapshot and its log are still there
  //   kSnapshotTooOld  there was no memory for the older values of pairs that changed meanwhile
  Status Save();
  // Asks the thread for a snapshot. False: one is being written, or was asked for.
  bool Request();
  SnapshotStatistics statistics() const;

  // A snapshot is due after so many seconds with so many changes, or more.
  struct SavePoint {
    uint64_t seconds = 0;
    uint64_t changes = 0;
  };
  void SetSavePoints(std::vector<SavePoint> points);
  // A snapshot is also due when the log behind the last one is longer than so many percent of that
  // snapshot, and longer than so many bytes. 0 percent: it is not due for its length.
  struct AutoSnapshot {
    uint32_t percentage = 200;
    uint64_t log_bytes_min = uint64_t{1} << 30;
  };
  void SetAutoSnapshot(const AutoSnapshot& options);
  // The free bytes of the directory's file system, about; kMuch if they are not known.
  static constexpr uint64_t kMuch = uint64_t{1} << 62;
  uint64_t free_bytes() const { return std::min(files_.FreeBytes(directory_), kMuch); }

  // Starts a thread that does a step every second, and whenever there is something to do.
  void StartThread();
  // Writes a snapshot if one was asked for or is due, and sees to the disk's space. Returns whether
  // a snapshot was asked for or due.
  bool Step();
  // Gives up the snapshot that is being written. To be called before the engines are destroyed.
  void StopThread();
  // Wakes the thread, as the log has taken space or has found none.
  void NoteLogNews();

 private:
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }
  Status WriteSnapshot(SnapshotStatistics* statistics);
  Result<SnapshotKeyspace> WriteKeyspace(uint32_t index, DurableEngine& engine,
                                         SnapshotWriter& writer, uint64_t* items);
  void RemoveSnapshotsBefore(uint64_t position);
  bool IsDue(uint64_t free_bytes) SKEP_REQUIRES(mutex_);
  bool IsDueForSpace(uint64_t free_bytes) const SKEP_REQUIRES(mutex_);
  bool IsWorthIt(uint64_t log_bytes, uint64_t snapshot_bytes) const;
  // The length of the log behind the last snapshot, whose position may be ahead of the written end.
  uint64_t LogBytes() const SKEP_REQUIRES(mutex_) {
    return std::max(log_.End(), statistics_.log_position) - statistics_.log_position;
  }
  uint64_t SnapshotBytes() const SKEP_REQUIRES(mutex_);
  void KeepSpace();
  void MakeSpaceForSnapshot();
  void RunThread();

  FileSystem& files_;
  Clock& clock_;
  const std::string directory_;
  const uint64_t segment_bytes_;
  StoreTime& time_;
  Log& log_;
  DurableKeyspaces& keyspaces_;
  std::set<std::string> kept_files_;

  mutable Mutex mutex_;
  SnapshotStatistics statistics_ SKEP_GUARDED_BY(mutex_);
  std::vector<SavePoint> save_points_ SKEP_GUARDED_BY(mutex_);
  AutoSnapshot auto_snapshot_ SKEP_GUARDED_BY(mutex_);
  uint32_t failures_ SKEP_GUARDED_BY(mutex_) = 0;  // of snapshots, in a row
  // The log's changes, when the last snapshot was begun.
  uint64_t saved_changes_ SKEP_GUARDED_BY(mutex_) = 0;
  uint64_t last_begin_ms_ SKEP_GUARDED_BY(mutex_) = 0;  // monotonic: of the last snapshot
  bool is_wanted_ SKEP_GUARDED_BY(mutex_) = false;
  bool has_log_news_ SKEP_GUARDED_BY(mutex_) = false;
  std::atomic<bool> is_stopping_{false};
  ConditionVariable wake_;
  std::thread thread_;

  // Held while the reserve, and the bytes that the log leaves free, are set; also by a snapshot
  // that begins, which waits for a disk that does not answer instead of being refused. Taken before
  // mutex_.
  Mutex space_mutex_;
  DiskReserve reserve_;
  // Bytes that the log leaves free for the snapshot that is being written. Owner: its writer.
  uint64_t bytes_to_write_ = 0;
};

}  // namespace skep::durable
