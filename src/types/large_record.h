// large_record.h: the value under the key of a large collection, whose members lie elsewhere.
//
//   offset  size  field                                                         little-endian
//        0     8  id       names the segments that are the collection's
//        8     8  members  how many there are, at least one
//       16     8  bytes    of the members as the small form would have them, about
//       24     8  writes   grows with every write of a member
//       32     8  first    lists: the number of the first segment; else how many levels of counts
//                          there are above the lowest one (collections/counts.h)
//       40     8  last     lists: the number of the last segment; hashes: how many fields have a
//                          deadline (hash_fields.h); else 0
//       48    16  blocks_begin, blocks_end   lists: the blocks of segments that are counted
//                          (collections/list_counts.h), none if they are equal; else 0
//       64     8  before   lists: the elements before these blocks; else 0
//       72     8  counted  lists: the elements in these blocks; else 0
//
// The type of the value is kLargeForm and the type of the collection. The segments with the id are
// this collection's as long as a record has the id, and nobody's afterwards. So a delete, a
// rename, a deadline and whatever else happens to the key happens to the collection at that
// instant, and costs what it costs for a string.
//
// The functions large-hash-change, large-set-change and large-zset-change change a record of their
// type. Operand: a RecordChange, and behind it, for a hash, 8 bytes: how many more fields have a
// deadline, which may be missing if it is 0. Integer: the members after. A record that has another
// id, or is absent, is kAborted; without members the record is erased. The function
// large-list-store replaces the record of a list. Operand: a record. Without a record it is
// kAborted.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "types/function_table.h"
#include "types/value_type.h"

namespace skep::types {

struct LargeRecord {
  uint64_t id = 0;
  uint64_t members = 0;
  uint64_t bytes = 0;
  uint64_t writes = 0;
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t blocks_begin = 0;
  uint64_t blocks_end = 0;
  uint64_t before = 0;
  uint64_t counted = 0;
  friend bool operator==(const LargeRecord&, const LargeRecord&) = default;
};
static_assert(sizeof(LargeRecord) == 80);
static_assert(std::has_unique_object_representations_v<LargeRecord>);

// Nothing if the bytes are no record.
inline std::optional<LargeRecord> ReadLargeRecord(std::string_view bytes) {
  LargeRecord record;
  if (bytes.size() != sizeof(record)) return std::nullopt;
  std::memcpy(&record, bytes.data(), sizeof(record));
  if (record.members == 0) return std::nullopt;
  return record;
}
// The bytes of a record, which lie in it.
inline std::string_view BytesOf(const LargeRecord& record) {
  return {reinterpret_cast<const char*>(&record), sizeof(record)};
}

struct RecordChange {
  uint64_t id;      // that the record must have
  int64_t members;  // to add
  int64_t bytes;    // to add
  // Several calls are one change. After the call that leaves the fewest members there are so many
  // more than before, at most 0. A collection that would be empty then, and is not at the end, is
  // kAborted: it is another collection, without a deadline, from there on.
  int64_t fewest;
  uint64_t levels;  // of counts above the lowest one, that the record must have
};
static_assert(std::has_unique_object_representations_v<RecordChange>);

std::span<const TypeFunction> LargeRecordFunctions();

}  // namespace skep::types
