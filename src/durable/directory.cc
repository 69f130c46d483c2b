#include "durable/directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "durable/disk_reserve.h"
#include "durable/keyspace_file.h"

namespace skep::durable {
namespace {

constexpr std::string_view kSnapshotPrefix = "snapshot-";
constexpr std::string_view kSnapshotSuffix = ".sks";
constexpr std::string_view kTemporary = ".tmp";

bool IsFileOfStore(std::string_view name) {
  return name == kKeyspaceFile || name == std::string(kKeyspaceFile) + kTemporary.data() ||
         name == kReserveFile || name == kNextSegmentFile || ReadSegmentName(name) ||
         PositionOfSnapshot(name);
}

// Refuses a directory in which something with the name of a store's file is not a regular file;
// *path is its path. A later opening of the file would find out, but knows no path to tell.
Status CheckKinds(FileSystem& files, const std::string& directory, std::string* path) {
  *path = directory;
  const auto names = files.List(directory);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (!IsFileOfStore(name)) continue;
    *path = directory + "/" + name;
    const auto file = files.Open(*path, FileSystem::Mode::kRead);
    // Any other error is told by the code that needs the file.
    if (!file && file.error().code() == Code::kInvalidArgument) return file.error();
  }
  return {};
}

std::string ParentOf(std::string_view directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.remove_suffix(1);
  const size_t slash = directory.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(directory.substr(0, std::max<size_t>(slash, 1)));
}

}  // namespace

Result<DirectoryLock> MakeDirectory(FileSystem& files, const std::string& directory,
                                    std::string* problem) {
  const auto fail = [&](const std::string& path, const Status& status) {
    *problem = fmt::format("{}: {}", path, status.ToString());
    return Fail(status);
  };
  if (const Status s = files.CreateDirectory(directory); !s.ok()) return fail(directory, s);
  const std::string parent = ParentOf(directory);
  if (const Status s = files.SyncDirectory(parent); !s.ok()) return fail(parent, s);
  return LockDirectory(files, directory, problem);
}

Result<DirectoryLock> LockDirectory(FileSystem& files, const std::string& directory,
                                    std::string* problem) {
  const auto fail = [&](const std::string& path, const Status& status) {
    *problem = status.code() == Code::kUnavailable
                   ? fmt::format("{}: a server has it open: end it first", directory)
                   : fmt::format("{}: {}", path, status.ToString());
    return Fail(status);
  };
  DirectoryLock lock;
  auto locked = files.Lock(directory);
  if (locked) {
    lock.directory = std::move(*locked);
  } else if (locked.error().code() != Code::kNotSupported) {
    return fail(directory, locked.error());
  }
  const std::string path = directory + "/" + kLockFile;
  locked = files.Lock(path);
  if (!locked) return fail(path, locked.error());
  lock.file = std::move(*locked);
  std::string wrong;
  if (const Status s = CheckKinds(files, directory, &wrong); !s.ok()) return fail(wrong, s);
  return lock;
}

std::string SnapshotName(uint64_t position) {
  return fmt::format("{}{:016x}{}", kSnapshotPrefix, position, kSnapshotSuffix);
}

std::optional<uint64_t> PositionOfSnapshot(std::string_view name) {
  uint64_t position = 0;
  if (!name.starts_with(kSnapshotPrefix)) return std::nullopt;
  const char* const digits = name.data() + kSnapshotPrefix.size();
  const auto [end, error] = std::from_chars(digits, name.data() + name.size(), position, 16);
  if (error != std::errc() || SnapshotName(position) != name) return std::nullopt;
  return position;
}

// All keyspaces of a snapshot have the same position.
std::optional<uint64_t> PositionIn(const std::vector<SnapshotKeyspace>& keyspaces) {
  if (keyspaces.empty()) return std::nullopt;
  return keyspaces.front().log_position;
}

bool IsUnfinishedSnapshot(std::string_view name) {
  return name.starts_with(kSnapshotPrefix) && name.ends_with(kTemporary);
}

// The names of snapshots are sorted, and so are their positions: these have 16 digits each.
Result<StoreFiles> ListStoreFiles(FileSystem& files, const std::string& directory) {
  const auto names = files.List(directory);
  if (!names) return Fail(names.error());
  StoreFiles found;
  for (const std::string& name : *names) {
    if (const auto segment = ReadSegmentName(name)) found.segments.push_back(*segment);
    if (const auto snapshot = PositionOfSnapshot(name)) found.snapshots.push_back(*snapshot);
  }
  found.superseded = TakeSuperseded(found.segments);
  return found;
}

}  // namespace skep::durable
