// rdb_payload.h: one value as Redis's DUMP writes it and RESTORE reads it.
//
//   size    field
//      1    type of the value; 0 is a string
//      ..   the value, as in an RDB file (rdb_input.h)
//      2    version of the RDB format, little-endian
//      8    CRC-64 of all bytes before, little-endian (rdb_crc64.h)
//
// Thread safety: all of it is thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "skep/status.h"

namespace skep::durable {

// The version that Redis 7.0 writes. Versions up to kRdbVersionMax (rdb_reader.h) are read.
inline constexpr uint16_t kRdbPayloadVersion = 10;
// Longer values are not compressed, because that takes some 5 ns a byte.
inline constexpr size_t kCompressedBytesMax = size_t{1} << 20;

// The payload of a string: byte for byte what Redis 7.0 makes of it, up to kCompressedBytesMax.
std::string DumpString(std::string_view value);

// The string of a payload.
//   kCorrupt       the version is not known, or the checksum is wrong
//   kInvalidArgument  the value is malformed
//   kNotSupported  the value is no string; the detail is its type
//   kTooLarge      it has more than `bytes_max` bytes
// Costs no more memory than the payload and `bytes_max` bytes, and 64 KiB.
Result<std::string> RestoreString(std::string_view payload, size_t bytes_max);

}  // namespace skep::durable
