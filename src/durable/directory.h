// directory.h: the names of the files that a store is kept in; persistence.h says what they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "durable/log_format.h"

namespace skep::durable {

inline constexpr const char* kLockFile = "lock";
// Behind the name of a file that a repair has put aside; nothing reads it any more.
inline constexpr const char* kDamagedSuffix = ".damaged";

// `position`: of the log, from which on it is needed.
std::string SnapshotName(uint64_t position);
// Nothing if it is not the name of a snapshot.
std::optional<uint64_t> PositionOfSnapshot(std::string_view name);
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
