#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/crc32c_step.h"

namespace skep {
namespace {

static_assert(std::endian::native == std::endian::little);

// Castagnoli's polynomial, lowest bit first.
constexpr uint32_t kPolynomial = 0x82f63b78;

// kTables[n][b]: what byte `b` contributes when n more bytes follow it in its word.
using Tables = std::array<std::array<uint32_t, 256>, 8>;
constexpr Tables kTables = [] {
  Tables tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t n = 1; n < 8; ++n) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[n - 1][byte];
      tables[n][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}();

uint32_t TableByte(uint32_t crc, uint8_t byte) {
  return crc >> 8 ^ kTables[0][(crc ^ byte) & 0xff];
}

uint32_t TableWord(uint32_t crc, uint64_t word) {
  word ^= crc;
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 8; ++i) sum ^= kTables[7 - i][word >> 8 * i & 0xff];
  return sum;
}

template <typename Word, typename Byte>
uint32_t Run(std::string_view bytes, uint32_t seed, Word add_word, Byte add_byte) {
  uint32_t crc = ~seed;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof(word));
    crc = add_word(crc, word);
  }
  for (const char byte : bytes) crc = add_byte(crc, static_cast<uint8_t>(byte));
  return ~crc;
}

}  // namespace

#if !defined(__SSE4_2__) && !defined(__ARM_FEATURE_CRC32)
uint32_t Crc32cByte(uint32_t crc, uint8_t byte) { return TableByte(crc, byte); }
uint32_t Crc32cHalf(uint32_t crc, uint32_t half) {
  for (uint32_t i = 0; i < 4; ++i) crc = TableByte(crc, static_cast<uint8_t>(half >> 8 * i));
  return crc;
}
uint32_t Crc32cWord(uint32_t crc, uint64_t word) { return TableWord(crc, word); }
#endif

uint32_t Crc32c(std::string_view bytes, uint32_t seed) {
  return Run(
      bytes, seed, [](uint32_t crc, uint64_t word) { return Crc32cWord(crc, word); },
      [](uint32_t crc, uint8_t byte) { return Crc32cByte(crc, byte); });
}

uint32_t Crc32cByTables(std::string_view bytes, uint32_t seed) {
  return Run(bytes, seed, TableWord, TableByte);
}

}  // namespace skep
