// rdb_payload.h: one value as Redis's DUMP writes it and RESTORE reads it.
//
//   size    field
//      1    type of the value; 0 is a string, collections: rdb_collection.h
//      ..   the value, as in an RDB file (rdb_input.h)
//      2    version of the RDB format, little-endian
//      8    CRC-64 of all bytes before, little-endian (rdb_crc64.h)
//
// Thread safety: all of it is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "skep/status.h"

namespace skep::durable {

// The version that Redis 7.0 writes. Versions up to kRdbVersionMax (rdb_reader.h) are read.
inline constexpr uint16_t kRdbPayloadVersion = 10;
// The version that Redis 7.4 writes, of a hash whose fields have deadlines.
inline constexpr uint16_t kRdbVersionOfDeadlines = 12;
// Longer values are not compressed, because that takes some 5 ns a byte.
inline constexpr size_t kCompressedBytesMax = size_t{1} << 20;

// The payload of a string: byte for byte what Redis 7.0 makes of it, up to kCompressedBytesMax.
std::string DumpString(std::string_view value);

// The payload of a collection of this kind (types/value_type.h) in one value, which Redis 7.0 and
// later read, or Redis 7.4 and later if fields of a hash have deadlines, which are in Unix
// milliseconds: Redis itself writes other encodings of the same members. Members are compressed as
// strings are, unless the value has more than kCompressedBytesMax bytes. Nothing if the bytes are
// no such collection.
std::optional<std::string> DumpCollection(uint8_t kind, std::string_view value);

// What RESTORE stores: a type (types/value_type.h), and bytes of that type.
struct RestoredValue {
  uint8_t type = 0;
  std::string bytes;
  friend bool operator==(const RestoredValue&, const RestoredValue&) = default;
};
struct RestoreLimits {
  size_t string_bytes;
  size_t collection_bytes;  // of a collection in one value
};

// The value of a payload.
//   kCorrupt       the version is not known, or the checksum is wrong
//   kInvalidArgument  the value is malformed, is an empty collection or has a member twice
//   kNotSupported  there is nothing of its type, which is the detail, here
//   kTooLarge      it has more bytes than the limits allow
// Reading ends with the first member beyond the limit, and a packed string of more than twice the
// limit is not unpacked. Memory: the payload, a packed string, the value twice, 40 bytes for each
// member, and 64 KiB.
Result<RestoredValue> RestoreValue(std::string_view payload, const RestoreLimits& limits);

}  // namespace skep::durable
