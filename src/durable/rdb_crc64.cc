#include "durable/rdb_crc64.h"

#include <array>
#include <bit>
#include <cstring>

namespace skep::durable {
namespace {

static_assert(std::endian::native == std::endian::little);

// 0xad93d23594c935a9, lowest bit first.
constexpr uint64_t kPolynomial = 0x95ac9329ac4bc9b5;

// kTables[n][b]: what byte `b` contributes when n more bytes follow it in its word.
using Tables = std::array<std::array<uint64_t, 256>, 8>;
constexpr Tables kTables = [] {
  Tables tables = {};
  for (uint64_t byte = 0; byte < 256; ++byte) {
    uint64_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t n = 1; n < 8; ++n) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint64_t before = tables[n - 1][byte];
      tables[n][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}();

}  // namespace

uint64_t RdbCrc64(std::string_view bytes, uint64_t seed) {
  uint64_t crc = seed;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof(word));
    word ^= crc;
    crc = 0;
    for (uint32_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][word >> 8 * i & 0xff];
  }
  for (const char c : bytes) crc = crc >> 8 ^ kTables[0][(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return crc;
}

}  // namespace skep::durable
