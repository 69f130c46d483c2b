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
// Behind the name of a file that a repair has put aside; nothing reads it any more.
inline constexpr const char* kDamagedSuffix = ".damaged";

// What the one process holds that has the directory open. The directory itself is locked, so that
// no file of it can be deleted to let a second process in.
struct DirectoryLock {
  std::unique_ptr<FileLock> directory;  // null: the file system cannot lock directories
  std::unique_ptr<FileLock> file;
};
// On an error *problem is a line for a person.
//   kUnavailable      another process, or a lock of this one, has it
//   kInvalidArgument  what has the name of a store's file is not a regular one
//   kIo
Result<DirectoryLock> LockDirectory(FileSystem& files, const std::string& directory,
                                    std::string* problem);
// The same, and makes the directory if it is not there.
Result<DirectoryLock> MakeDirectory(FileSystem& files, const std::string& directory,
                                    std::string* problem);

// `position`: of the log, from which on it is needed.
std::string SnapshotName(uint64_t position);
// Nothing if it is not the name of a snapshot.
std::optional<uint64_t> PositionOfSnapshot(std::string_view name);
// The position that a snapshot has, whatever its name is. Nothing: it has no keyspaces.
std::optional<uint64_t> PositionIn(const std::vector<SnapshotKeyspace>& keyspaces);
// What is wrong with one under the name of another position.
inline constexpr const char* kWrongSnapshotName =
    "a snapshot of another position of the log than its name says";
// Whether it is one that was never completed.
bool IsUnfinishedSnapshot(std::string_view name);

// What the names say.
struct StoreFiles {
  std::vector<SegmentId> segments;    // the chain that a reader takes (log_format.h), ascending
  std::vector<SegmentId> superseded;  // the others
  std::vector<uint64_t> snapshots;    // the positions, ascending
};
// kIo: the directory cannot be read.
Result<StoreFiles> ListStoreFiles(FileSystem& files, const std::string& directory);

}  // namespace skep::durable
