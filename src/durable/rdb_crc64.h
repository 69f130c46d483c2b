// rdb_crc64.h: the checksum at the end of Redis' RDB files.
#pragma once

#include <cstdint>
#include <string_view>

namespace skep::durable {

// The CRC-64 of Jones' polynomial, as Redis computes it. `seed` is the CRC of what comes before the
// bytes, 0 for nothing. Thread-safe. Costs about a nanosecond for 2 bytes.
uint64_t RdbCrc64(std::string_view bytes, uint64_t seed = 0);

}  // namespace skep::durable
