// directory_check.h: whether the files of a store are sound, and what they have, without an engine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "durable/damage.h"
#include "durable/keyspace_file.h"
#include "durable/log_check.h"
#include "durable/rdb_reader.h"
#include "durable/snapshot_format.h"

namespace skep::durable {

// Is shown the contents of the files as a check reads them, in the order of the files. The views
// are valid in the call only.
class CheckVisitor {
 public:
  virtual ~CheckVisitor() = default;
  virtual void OnItem(uint64_t keyspace, const SnapshotItem& item) = 0;
  virtual void OnChange(const LoggedChange& change) = 0;
};

struct SnapshotCheck {
  std::string file;
  uint64_t file_bytes = 0;
  std::optional<uint64_t> created_ms;                      // unless the header is damaged
  std::optional<std::vector<SnapshotKeyspace>> keyspaces;  // unless the footer is damaged
  uint64_t blocks = 0;                                     // good ones; `items` are in them
  uint64_t items = 0;
  std::vector<Damage> damage;
};
// Reads and checks every byte of a snapshot.
//   kNotSupported  a newer Skep wrote it; `detail` is its version
//   kIo
// Memory: as SnapshotReader.
Result<SnapshotCheck> CheckSnapshot(FileSystem& files, const std::string& path,
                                    CheckVisitor* visitor);

struct RdbCheck {
  std::string file;
  uint64_t file_bytes = 0;
  RdbSummary summary;  // up to the damage
  std::vector<Damage> damage;
};
// Reads and checks every byte of an RDB file.
//   kNotSupported, kTooLarge, kIo  as ReadRdb
Result<RdbCheck> CheckRdb(FileSystem& files, const std::string& path, CheckVisitor* visitor);

struct DirectoryCheck {
  std::string directory;
  KeyspaceEngines keyspaces;             // by the list of keyspaces and the newest snapshot
  std::vector<SnapshotCheck> snapshots;  // the newest last
  LogCheck log;
  std::vector<std::string> put_aside;  // damaged files that a repair has kept
  // Damage that keeps a server from starting, or has cost data.
  std::vector<Damage> damage;
  // Damage that a recovery passes by: in older snapshots, and in the log before the newest one.
  std::vector<Damage> not_needed;
};
// Checks all files of a store, and holds the directory's lock meanwhile. On an error *problem is a
// line for a person. `visitor` may be null.
//   kUnavailable      a process has the directory open
//   kInvalidArgument  there is nothing of a store in it
//   kNotSupported     a newer Skep wrote a file
//   kIo               the directory, or one of its files, cannot be read
// Cost: reads every file once.
Result<DirectoryCheck> CheckDirectory(FileSystem& files, const std::string& directory,
                                      CheckVisitor* visitor, std::string* problem);

enum class FileKind : uint8_t { kDirectory, kSegment, kSnapshot, kRdb };
// The kind of a file by its first bytes or, where they are damaged, by its name. Nothing: the file
// is none of these.
//   kIo  the file cannot be read
Result<std::optional<FileKind>> KindOf(FileSystem& files, const std::string& path);

}  // namespace skep::durable
