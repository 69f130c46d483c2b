// log_format.h: the bytes of the log.
//
// The log is one stream of records. A record's position is the number of bytes before it. The
// stream lies in segments, files named by the position of their first record and by an epoch:
//
//   log-0000000000000000-00000001.skl            log-0000000003ffc2d8-00000001.skl
//                          log-0000000003ff0000-00000002.skl    log-0000000007ff1a40-00000002.skl
//
// The epoch rises each time that the log is begun anew: at a start, and after a failure. A segment
// is superseded by one of a higher epoch that begins where it begins or before: no reader takes it
// (above, the second one). The other segments are the chain: their positions ascend, and each is
// valid up to where the next one begins. So one new name replaces the end of the log.
//
// A segment is empty, and synced, before it gets its name: behind its last record there are zeroes,
// or the remains of records that were not synced.
//
// In version 1 names had no epoch, which counts as epoch 0, and the file of a segment could be used
// again: behind its last record there could be old records, of other positions.
//
//   record                                     all numbers little-endian
//   +------------+-------------+--------------+----------+---------------------------+
//   | header CRC | payload CRC | payload bytes| position | payload                   |
//   | 4          | 4           | 8            | 8        |                           |
//   +------------+-------------+--------------+----------+---------------------------+
//   header CRC    CRC-32C of the other 20 bytes of the header
//   payload CRC   CRC-32C of the payload
//   position      of this record, so that an old one of a file used again is not taken for new
//
//   payload: its first byte is the type
//   changes    of one batch: log_change.h
//   start      a process has begun to write here: what was not complete before is void
//              +------+---------+
//              | type | version |  4, of the format
//   progress   behind what was written at a time
//              +------+-----------------+-------+---------------------------------+
//              | type | synced position | count | keyspace, complete version | ...|
//              | 1    | varint          | varint| varint, varint             |
//              synced    all of the log before that position survives a power loss
//              complete  the log before this record has every change up to that version, in some
//                        order. Only what is complete counts, so what is recovered is a state that
//                        there was
//   end        all is complete, and nobody writes any more: the store was closed
//              | type |
//   pool       what an index server of a pool keeps: src/pool/disk/disk_index_log.h. Such a log has
//              no changes, and one of keyspaces has no such records
//              | type | kind | ...
//
// Whether a bad record is the torn end of the log or damage: it is damage if a good record behind
// it says that it was synced.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skep::durable {

inline constexpr uint32_t kLogVersion = 4;
inline constexpr size_t kRecordHeaderBytes = 24;
inline constexpr uint64_t kRecordBytesMax = uint64_t{1} << 40;  // of a payload

enum class RecordType : uint8_t { kChanges = 1, kStart = 2, kProgress = 3, kEnd = 4, kPool = 5 };

struct RecordHeader {
  uint32_t payload_crc = 0;
  uint64_t payload_bytes = 0;
  uint64_t position = 0;
};

// Writes kRecordHeaderBytes to `to`.
void WriteHeader(const RecordHeader& header, char* to);
// The position in the bytes of a header, which are not checked.
uint64_t PositionIn(const char* header);
// Reads a header; nothing if it is not that of a record at this position.
std::optional<RecordHeader> ReadHeader(const char* from, uint64_t position);

// The contents of a segment's name.
struct SegmentId {
  uint64_t begin = 0;  // the position of its first record
  uint64_t epoch = 0;

  bool operator==(const SegmentId&) const = default;
};
std::string SegmentName(const SegmentId& segment);
// The name that a segment has in version 1.
inline std::string SegmentName(uint64_t begin) { return SegmentName({.begin = begin}); }
// Reads a name; nothing if it is not that of a segment.
std::optional<SegmentId> ReadSegmentName(std::string_view name);
inline std::optional<uint64_t> PositionOfSegment(std::string_view name) {
  const auto segment = ReadSegmentName(name);
  return segment ? std::optional(segment->begin) : std::nullopt;
}

// Takes the superseded segments out of `segments`, which are the chain then, and sorts these by
// position. Returns the superseded ones.
std::vector<SegmentId> TakeSuperseded(std::vector<SegmentId>& segments);

}  // namespace skep::durable
