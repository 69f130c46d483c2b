// log_format.h: the bytes of the log.
//
// The log is one stream of records. A record's position is the number of bytes before it. The
// stream lies in segments, files named by the position of their first record:
//
//   log-0000000000000000.skl    log-0000000003ffc2d8.skl    log-0000000007ff1a40.skl
//
// A segment is taken from the system whole before it is written, and may be an old one that is used
// again, so behind its last record there are zeroes or old bytes. Where two segments overlap the
// one that begins later counts.
//
//   record                                     all numbers little-endian
//   +------------+-------------+--------------+----------+---------------------------+
//   | header CRC | payload CRC | payload bytes| position | payload                   |
//   | 4          | 4           | 8            | 8        |                           |
//   +------------+-------------+--------------+----------+---------------------------+
//   header CRC    CRC-32C of the other 20 bytes of the header
//   payload CRC   CRC-32C of the payload
//   position      of this record, so that an old one in a segment used again is not taken for new
//
//   payload: its first byte is the type
//   changes    of one batch: change.h
//   start      a process has begun to write here: what was not complete before is void
//              +------+---------+
//              | type | version |  1, of the format
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
//
// Whether a bad record is the torn end of the log or damage: it is damage if a good record behind
// it says that it was synced.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace skep::durable {

inline constexpr uint32_t kLogVersion = 1;
inline constexpr size_t kRecordHeaderBytes = 24;
inline constexpr uint64_t kRecordBytesMax = uint64_t{1} << 40;  // of a payload

enum class RecordType : uint8_t { kChanges = 1, kStart = 2, kProgress = 3, kEnd = 4 };

struct RecordHeader {
  uint32_t payload_crc = 0;
  uint64_t payload_bytes = 0;
  uint64_t position = 0;
};

// Writes kRecordHeaderBytes to `to`.
void WriteHeader(const RecordHeader& header, char* to);
// The position that the bytes of a header say; they may be anything.
uint64_t PositionIn(const char* header);
// Nothing if it is not the header of a record at this position.
std::optional<RecordHeader> ReadHeader(const char* from, uint64_t position);

std::string SegmentName(uint64_t position);
// Nothing if it is not the name of a segment.
std::optional<uint64_t> PositionOfSegment(std::string_view name);

}  // namespace skep::durable
