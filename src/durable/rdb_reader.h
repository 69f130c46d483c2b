// rdb_reader.h: reads the RDB files of Redis, for import: versions 1 to 12, which are those of
// Redis up to 7.4 and 8, and of Valkey up to 8.
//
// Strings, and hashes, sets, lists and sorted sets in all their encodings (rdb_collection.h) are
// shown. What there is none of here is skipped, and named: streams, values of modules that say
// where they end (all since Redis 4.0), and hashes whose fields have deadlines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "skep/status.h"

namespace skep::durable {

inline constexpr uint32_t kRdbVersionMax = 12;
// Bytes of a collection that are shown at once, about: at least one member.
inline constexpr size_t kRdbMembersBytes = size_t{1} << 20;

// Some members of a collection.
struct RdbMembers {
  uint8_t kind = 0;             // the type of its value: types/value_type.h
  std::string_view value = {};  // a collection of these members, in one value
  bool is_first = true;         // of its collection; the others follow before anything else does
  bool is_last = true;
};

// Is shown the contents of a file, in their order. A Status that is not ok ends the reading, and
// ReadRdb returns it. The views are valid in the call only.
class RdbVisitor {
 public:
  virtual ~RdbVisitor() = default;
  // `db` is the number of the database, as in SELECT. `deadline_ms` is in ms since 1970, 0: none.
  // It may have passed already.
  virtual Status OnString(uint64_t db, std::string_view key, std::string_view value,
                          uint64_t deadline_ms) = 0;
  // Members of the collection under the key; of a list in its order. An empty collection is not
  // shown.
  virtual Status OnMembers(uint64_t db, std::string_view key, const RdbMembers& members,
                           uint64_t deadline_ms) = 0;
  // `type` is a literal: "stream", "module", "hash with deadlines of fields".
  virtual Status OnSkipped(uint64_t db, std::string_view key, std::string_view type) = 0;
};

struct RdbSummary {
  uint32_t version = 0;
  uint64_t strings = 0;
  uint64_t collections = 0;
  uint64_t skipped = 0;     // keys of other types
  uint64_t functions = 0;   // libraries of functions, skipped
  bool is_checked = false;  // the file has a checksum, and it is right
};

// Reads all of a file, front to back, and shows its contents to the visitor. The checksum is at the
// end: contents may be wrong until ReadRdb has returned ok. A caller that must be certain earlier
// reads twice, the first time with a visitor that does nothing.
//   kCorrupt       this is no RDB file, or it is damaged; `detail` is the offset
//   kNotSupported  a newer version, which is `detail` then; or a module's value of before Redis 4.0
//                  or a library of functions of before 7.0, and `detail` is its offset
//   kTooLarge      a string has more than 512 MiB
//   kIo            the file cannot be opened or read
//   others         of the visitor
// Memory: 64 KiB, the key, and the string twice; none is longer than 512 MiB, nor than 88 times the
// file. Of a collection: its longest string or packed piece twice, and some MiB.
// Costs about two seconds a GiB, and half a microsecond a compressed value of 200 bytes.
// Thread-safe.
Result<RdbSummary> ReadRdb(FileSystem& files, const std::string& path, RdbVisitor& visitor);

}  // namespace skep::durable
