// directory.h: the files that a store is kept in, and the lock of the process that has them open.
//
//   DIRECTORY                               locked by the process that has it open
//            lock                           as well
//            keyspaces                      keyspace_file.h
//            log-0000000003ffc2d8-00000001.skl ...  log_format.h
//            log-next.tmp                   the next segment
//            reserve.tmp                    disk_reserve.h
//            snapshot-0000000003ffd010.sks  snapshot_format.h; by the position of the log from
//                                           which on the log is needed
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "durable/log_format.h"
#include "durable/snapshot_format.h"

namespace skep::durable {

// The next segment of the log, before it has its name.
inline constexpr const char* kNextSegmentFile = "log-next.tmp";
// Locked beside the directory: older versions of Skep lock it alone.
inline constexpr const char* kLockFile = "lock";
// The end of the name of a file that a repair has put aside. No program reads such a file any more.
inline constexpr const char* kDamagedSuffix = ".damaged";

// The locks of the one process that has the directory open. The directory itself is locked, too, so
// that nobody can let a second process in by deleting the lock file.
struct DirectoryLock {
  std::unique_ptr<FileLock> directory;  // null: the file system cannot lock directories
  std::unique_ptr<FileLock> file;
};
// Locks the directory, which is there. On an error *problem is a line for a person.
//   kUnavailable      another process, or another lock of this one, has it
//   kInvalidArgument  something with the name of a store's file is not a regular file
//   kIo
Result<DirectoryLock> LockDirectory(FileSystem& files, const std::string& directory,
                                    std::string* problem);
// Makes the directory if it is not there, and locks it. Errors as of LockDirectory().
Result<DirectoryLock> MakeDirectory(FileSystem& files, const std::string& directory,
                                    std::string* problem);

// The name of the snapshot behind which the log is needed from this position on.
std::string SnapshotName(uint64_t position);
// The position in the name of a snapshot; nothing if it is not the name of one.
std::optional<uint64_t> PositionOfSnapshot(std::string_view name);
// The log position that the contents of a snapshot tell, whatever its name; nothing if the snapshot
// has no keyspaces.
std::optional<uint64_t> PositionIn(const std::vector<SnapshotKeyspace>& keyspaces);
// What is wrong with a snapshot under the name of another position, as Damage::what.
inline constexpr const char* kWrongSnapshotName =
    "a snapshot of another position of the log than its name says";
// Whether it is the name of a snapshot that was never completed.
bool IsUnfinishedSnapshot(std::string_view name);

// What the names of a directory's files say.
struct StoreFiles {
  std::vector<SegmentId> segments;    // the chain that a reader takes (log_format.h), ascending
  std::vector<SegmentId> superseded;  // segments that a reader does not take
  std::vector<uint64_t> snapshots;    // the positions, ascending
};
//   kIo  the directory cannot be read
Result<StoreFiles> ListStoreFiles(FileSystem& files, const std::string& directory);

}  // namespace skep::durable
