// persistence.h: what keeps the keyspaces of a store in a directory: its lock (directory.h), the
// engines whose writes are logged (durable_keyspaces.h), the log (log.h), and what writes snapshots
// (saver.h). A recovery (recovery.h) makes them begin where the directory ends.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "base/store_time.h"
#include "durable/directory.h"
#include "durable/directory_engines.h"
#include "durable/durable_keyspaces.h"
#include "durable/log.h"
#include "durable/recovery.h"
#include "durable/saver.h"
#include "keyspace/keyspaces.h"
#include "skep/options.h"
#include "skep/status.h"

namespace skep::durable {

// Owns what a store with a directory has beside its keyspaces. Thread-safe, once it has recovered.
class Persistence {
 public:
  // Makes options.directory if it is not there, and locks it. On an error *problem is a line for a
  // person.
  //   kIo, kCorrupt     a file cannot be read or written, or is damaged
  //   kUnavailable      another process has the directory
  //   kInvalidArgument  a keyspace has another engine in the directory: by the list of keyspaces
  //                     or, where that does not have it, by the newest snapshot
  // `repairs`: damage does not end the recovery. The good parts are taken (repair.h) and written as
  // a new snapshot; then the damaged files are put aside, with ".damaged" behind their names. None
  // is put aside before that snapshot is on the disk.
  static Result<std::unique_ptr<Persistence>> Open(FileSystem& files, Clock& clock,
                                                   const Options& options, std::string* problem,
                                                   bool repairs = false);
  ~Persistence();

  // The keyspaces that are to be recovered are made with this wrapper.
  EngineWrapper& wrapper() { return keyspaces_; }

  // Fills the keyspaces, and makes the log ready for writes. To be called once, and first. On an
  // error *problem names file and offset.
  //   kIo, kCorrupt, kOutOfMemory
  //   kInvalidArgument  the directory needs a keyspace or function that is not configured
  Status Recover(Keyspaces& keyspaces, RecoveryReport* report, std::string* problem);

  // Fills the keyspaces, and leaves the log as it is: only the destruction may follow.
  Status Rehearse(Keyspaces& keyspaces, RecoveryReport* report, std::string* problem);

  Log& log() { return log_; }
  Saver& saver() { return saver_; }
  const Saver& saver() const { return saver_; }
  // The time of the keyspaces, which is the "now" of every batch. After a recovery it is not before
  // that of any write or snapshot that the directory has.
  StoreTime& time() { return time_; }

  // Starts the log's thread, and the saver's.
  void StartThreads();
  // Stops both threads, before the engines are destroyed. A snapshot that is being written is given
  // up.
  void StopThreads();
  // Stops both threads, and ends the log (Log::Close); there may be no writes any more.
  Status Close();

 private:
  Persistence(FileSystem& files, Clock& clock, const Options& options, DirectoryLock lock,
              const DirectoryEngines& engines, bool repairs);

  Status Fill(Recovery& recovery, RecoveryReport* report, std::string* problem);
  Status Start(Recovery& recovery, RecoveryReport* report, std::string* problem);
  Status FinishRepair(RepairReport* report);

  FileSystem& files_;
  Clock& clock_;
  const Options options_;
  const DirectoryLock lock_;
  const bool repairs_;
  StoreTime time_;
  Log log_;
  DurableKeyspaces keyspaces_;
  Saver saver_;
};

}  // namespace skep::durable
