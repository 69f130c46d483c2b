// log_check.h: checks whether the log is sound, and counts what it has, without an engine.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "durable/damage.h"
#include "durable/log_change.h"

namespace skep::durable {

// A change as the log has it. The views are valid in the call only.
struct LoggedChange {
  uint64_t position = 0;  // of its record
  uint32_t keyspace = 0;
  LogChange change;
  std::string_view function_name = {};  // kApply
  std::optional<Element> function_element = {};
};
using ChangeVisit = std::function<void(const LoggedChange&)>;

struct KeyspaceInLog {
  uint64_t changes = 0;
  Version highest = 0;
  Version complete = 0;  // 0: no record says so
};

struct SegmentCheck {
  static constexpr size_t kKinds = static_cast<size_t>(LogChange::Kind::kPutTyped) + 1;

  std::string file;
  uint64_t begin = 0;       // position of its first record
  uint64_t epoch = 0;       // 0: of version 1
  uint64_t end = 0;         // position behind its last record
  uint64_t file_bytes = 0;  // with the bytes behind the last record
  uint64_t records = 0;
  uint64_t batches = 0;  // records of changes; the others by type:
  uint64_t progresses = 0;
  uint64_t starts = 0;
  uint64_t ends = 0;
  std::map<uint8_t, uint64_t> pool;           // records of an index server of a pool, by their kind
  std::array<uint64_t, kKinds> changes = {};  // by LogChange::Kind
  std::map<uint32_t, KeyspaceInLog> keyspaces;
  uint64_t synced_position = 0;  // the highest that a record names

  uint64_t all_changes() const;
};

struct LogCheck {
  std::vector<SegmentCheck> segments;  // the chain that is read, ascending
  std::vector<std::string>
      superseded;  // segments that a crash has left, and the next start removes
  std::map<uint32_t, KeyspaceInLog> keyspaces;
  uint64_t end = 0;  // behind the last record
  uint64_t synced_position = 0;
  bool is_ended = false;    // the store was closed
  bool ends_early = false;  // no record ends at `needed` or behind it
  uint64_t incomplete = 0;  // changes that a recovery will drop
  std::string torn_file;    // bytes of an incomplete record are at the end
  uint64_t torn_offset = 0;
  std::vector<Damage> damage;      // from `needed` on
  std::vector<Damage> not_needed;  // damage before `needed`

  // It is the log of an index server of a pool: there are no snapshots, and what is before its last
  // state is dropped.
  bool is_of_pool() const;
};

// Reads all of the log of a directory, from its first segment on, and checks that the segments of
// one epoch do not overlap (log.h, D2). Damage is reported and passed over. `needed`: the position
// from which on a recovery needs the log. `visit` may be empty.
//   kIo            *file is the file that could not be read
//   kNotSupported  the log is of a newer format, which is the detail
// Memory: the largest record, and 8 bytes for each change that is not complete.
Result<LogCheck> CheckLog(FileSystem& files, const std::string& directory, uint64_t needed,
                          const ChangeVisit& visit, std::string* file);
// Checks one segment by itself. The bytes behind its last record may be of an older segment.
//   kCorrupt  neither its name nor a record says where in the log the segment lies
Result<LogCheck> CheckSegment(FileSystem& files, const std::string& path, const ChangeVisit& visit);

// The name of a kind for people: "put", "put until", ...
std::string_view NameOf(LogChange::Kind kind);

}  // namespace skep::durable
