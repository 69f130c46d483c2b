#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace skep {
namespace {

std::string Ascending(char first, int step) {
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes += static_cast<char>(first + step * i);
  return bytes;
}

// An iSCSI read command of RFC 3720, B.4.
std::string ScsiRead() {
  std::string bytes(48, '\0');
  bytes[0] = 0x01;
  bytes[1] = static_cast<char>(0xc0);
  bytes[16] = 0x14;
  bytes[22] = 0x04;
  bytes[27] = 0x14;
  bytes[31] = 0x18;
  bytes[32] = 0x28;
  bytes[40] = 0x02;
  return bytes;
}

// Goal: the CRC is the one that other implementations compute.
// Method: the examples of RFC 3720, B.4, and the usual check value.
TEST(Crc32c, KnownValues) {
  const std::pair<std::string, uint32_t> known[] = {
      {"", 0},
      {"123456789", 0xe3069283},
      {std::string(32, '\0'), 0x8a9136aa},
      {std::string(32, '\xff'), 0x62a8ab43},
      {Ascending(0, 1), 0x46dd794e},
      {Ascending(31, -1), 0x113fdb5c},
      {ScsiRead(), 0xd9963a56},
  };
  for (const auto& [bytes, crc] : known) {
    EXPECT_EQ(Crc32c(bytes), crc);
    EXPECT_EQ(Crc32cByTables(bytes), crc);
  }
}

// Goal: both forms agree, and bytes may come in pieces.
// Method: random bytes of random lengths at all alignments, cut at a random place.
TEST(Crc32c, FormsAgreeAndPiecesAddUp) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  std::string bytes(1'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng());
  for (int round = 0; round < 5'000; ++round) {
    const size_t begin = rng() % 16;
    const std::string_view all = std::string_view(bytes).substr(begin, rng() % 300);
    const uint32_t before = rng() % 2 == 0 ? 0 : static_cast<uint32_t>(rng());
    const uint32_t crc = Crc32c(all, before);
    ASSERT_EQ(Crc32cByTables(all, before), crc);
    const size_t cut = rng() % (all.size() + 1);
    ASSERT_EQ(Crc32c(all.substr(cut), Crc32c(all.substr(0, cut), before)), crc);
  }
}

// Goal: no single flipped bit goes unnoticed.
TEST(Crc32c, EveryBitCounts) {
  std::string bytes = ScsiRead();
  const uint32_t crc = Crc32c(bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    EXPECT_NE(Crc32c(bytes), crc) << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
  }
}

}  // namespace
}  // namespace skep
