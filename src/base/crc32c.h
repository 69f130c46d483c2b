// crc32c.h: CRC-32C (Castagnoli), the checksum of the files on disk.
#pragma once

#include <cstdint>
#include <string_view>

namespace skep {

// Returns the CRC-32C of `bytes`, as RFC 3720 defines it. `seed` is the CRC of the bytes before
// them: Crc32c(b, Crc32c(a)) is the CRC of a followed by b, and the CRC of no bytes is 0.
// Thread-safe. Costs about three cycles for 8 bytes where the processor has an instruction for it.
uint32_t Crc32c(std::string_view bytes, uint32_t seed = 0);

// Computes the same CRC by tables, about five times slower: for processors without the instruction,
// and for tests to compare with.
uint32_t Crc32cByTables(std::string_view bytes, uint32_t seed = 0);

}  // namespace skep
