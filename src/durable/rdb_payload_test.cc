#include "durable/rdb_payload.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "durable/rdb_crc64.h"

namespace skep::durable {
namespace {

constexpr size_t kBytesMax = size_t{1} << 20;

// A payload with a right footer around these bytes.
std::string Sealed(std::string payload, uint16_t version = kRdbPayloadVersion) {
  payload.append(reinterpret_cast<const char*>(&version), sizeof(version));
  const uint64_t crc = RdbCrc64(payload);
  return payload.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
}

Code CodeOf(const std::string& payload, size_t bytes_max = kBytesMax) {
  const auto value = RestoreString(payload, bytes_max);
  return value ? Code::kOk : value.error().code();
}

// Goal: the payloads are byte for byte those of Redis 7.0.
TEST(RdbPayload, IsThatOfRedis) {
  const std::pair<std::string, std::string> payloads[] = {
      {"x", std::string("\0\1x\n\0\"\x80\x86_\xbd\xe8H\xd0", 13)},
      {"", std::string("\0\0\n\0]\x9b\\@\x0f\x7f\xa2\xda", 12)},
      {"-7", std::string("\0\xc0\xf9\n\0^&\xd1\x30\xd7\xa2\x42\xab", 13)},
      {"70000", std::string("\0\xc2p\x11\1\0\n\0\1\xa4\x08\xfe\x95\x30\x95\xa5", 16)},
      {std::string(1000, 'z'),
       std::string("\0\xc3\x12\x43\xe8\1zz\xe0\xff\0\xe0\xff\0\xe0\xff\0\xe0\xc3\0\1zz\n\0"
                   "9CK\xfa)\xf7T\x9d",
                   33)},
  };
  for (const auto& [value, payload] : payloads) {
    EXPECT_EQ(DumpString(value), payload) << value.substr(0, 10);
    EXPECT_EQ(RestoreString(payload, kBytesMax), value);
  }
}

// Goal: every string comes back, whichever way it was written.
// Method: lengths at the edges of the encodings, of one letter and of random bytes, and numbers.
TEST(RdbPayload, RoundTrips) {
  std::mt19937 rng(1);
  std::vector<std::string> values = {"0",           "127",   "128",    "-128",       "-129",
                                     "32767",       "32768", "-32769", "2147483647", "2147483648",
                                     "-2147483649", "01",    "-0",     "+1"};
  for (const size_t bytes : {1, 20, 21, 63, 64, 16383, 16384, 70000}) {
    values.emplace_back(bytes, 'a');
    values.emplace_back(bytes, '\0');
    for (char& c : values.back()) c = static_cast<char>(rng());
  }
  values.emplace_back(kCompressedBytesMax + 1, 'a');
  for (const std::string& value : values) {
    EXPECT_EQ(RestoreString(DumpString(value), 2 * kCompressedBytesMax), value) << value.size();
  }
}

// Goal: what is no string of Redis's, or too long, is refused for the right reason.
TEST(RdbPayload, Refuses) {
  const std::string good = DumpString("hello");
  EXPECT_EQ(CodeOf(good), Code::kOk);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_EQ(CodeOf(bad), Code::kCorrupt) << i;
    EXPECT_EQ(CodeOf(good.substr(0, i)), Code::kCorrupt) << i;
  }
  EXPECT_EQ(CodeOf(Sealed(std::string("\0\1x", 3), 9999)), Code::kCorrupt);
  EXPECT_EQ(CodeOf(Sealed("")), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Sealed(std::string("\0", 1))), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Sealed(std::string("\0\5x", 3))), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Sealed(std::string("\0\xc3\1\5x", 5))), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Sealed("\4\1x")), Code::kNotSupported);
  EXPECT_EQ(CodeOf(DumpString(std::string(100, 'a')), 99), Code::kTooLarge);
  EXPECT_EQ(CodeOf(DumpString("hello"), 4), Code::kTooLarge);
}

}  // namespace
}  // namespace skep::durable
