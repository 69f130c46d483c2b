// directory_check.h: whether what a store is kept in is sound, and what is in it, without an
// engine.
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

// What a check comes across, in the order of the files. The views are valid in the call only.
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
  uint64_t blocks = 0;                                     // that are good, and the items in them
  uint64_t items = 0;
  std::vector<Damage> damage;
};
// Reads and checks every byte of it.
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
//   kNotSupported, kTooLarge, kIo  as ReadRdb
Result<RdbCheck> CheckRdb(FileSystem& files, const std::string& path, CheckVisitor* visitor);

struct DirectoryCheck {
  std::string directory;
  KeyspaceEngines keyspaces;             // by the list of keyspaces and the newest snapshot
  std::vector<SnapshotCheck> snapshots;  // the newest last
  LogCheck log;
  std::vector<std::string> put_aside;  // damaged files that a repair has kept
  // What keeps a server from starting, or has been lost.
  std::vector<Damage> damage;
  // Damage of what a recovery does not need: older snapshots, and the log before the newest.
  std::vector<Damage> not_needed;
};
// Takes the directory's lock meanwhile. On an error *problem is a line for a person. `visitor` may
// be null.
//   kUnavailable      a process has the directory open
//   kInvalidArgument  there is nothing of a store in it
//   kNotSupported     a newer Skep wrote a file
//   kIo               it, or one of its files, cannot be read
// Cost: reads every file once.
Result<DirectoryCheck> CheckDirectory(FileSystem& files, const std::string& directory,
                                      CheckVisitor* visitor, std::string* problem);

enum class FileKind : uint8_t { kDirectory, kSegment, kSnapshot, kRdb };
// By its first bytes, and where they are damaged by its name. Nothing: it is none of these.
//   kIo  it cannot be read
Result<std::optional<FileKind>> KindOf(FileSystem& files, const std::string& path);

}  // namespace skep::durable
