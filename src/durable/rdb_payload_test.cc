#include "durable/rdb_payload.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <set>
#include <string>

#include "durable/rdb_packing_test.h"
#include "durable/rdb_test.h"
#include "skep/batch.h"

namespace skep::durable {
namespace {

constexpr size_t kBytesMax = size_t{1} << 20;

// A payload with a right footer around these bytes.
std::string Sealed(std::string payload, uint16_t version = kRdbPayloadVersion) {
  payload.append(reinterpret_cast<const char*>(&version), sizeof(version));
  const uint64_t crc = RdbCrc64(payload);
  return payload.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
}

Result<RestoredValue> Restore(const std::string& payload, size_t bytes_max = kBytesMax) {
  return RestoreValue(payload, {.string_bytes = bytes_max, .collection_bytes = bytes_max});
}
Code CodeOf(const std::string& payload, size_t bytes_max = kBytesMax) {
  const auto value = Restore(payload, bytes_max);
  return value ? Code::kOk : value.error().code();
}
RestoredValue StringValue(const std::string& value) {
  return {.type = types::kString, .bytes = value};
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
    EXPECT_EQ(Restore(payload), StringValue(value));
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
    EXPECT_EQ(Restore(DumpString(value), 2 * kCompressedBytesMax), StringValue(value))
        << value.size();
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
  EXPECT_EQ(CodeOf(Sealed("\x0f\1x")), Code::kNotSupported);  // a stream
  EXPECT_EQ(CodeOf(Sealed("\x08\1x")), Code::kNotSupported);  // nothing that there is
  EXPECT_EQ(CodeOf(DumpString(std::string(100, 'a')), 99), Code::kTooLarge);
  EXPECT_EQ(CodeOf(DumpString("hello"), 4), Code::kTooLarge);
}

// Goal: the payloads that Redis 7.0 makes of collections are read, and what is made of them is read
// again as the same.
TEST(RdbPayload, CollectionsOfRedis) {
  using std::string_literals::operator""s;
  const struct {
    std::string payload;
    uint8_t kind;
    std::string members;
  } values[] = {
      {"\x10\x13\x13\0\0\0\4\0\x81"
       "f\2\1\1\x82hi\3\xc1,\2\xff\n\0\xaa\xe3\xc3\x8a"
       "F\xa8\xc4\x85"s,
       types::kHash, "f=1 hi=300"},
      {"\x0b\x0e\2\0\0\0\3\0\0\0\xff\xff\1\0,\1\n\0\x1fN\xc7\xab\xe2\x94}2"s, types::kSet,
       "-1 1 300"},
      {"\2\3\0\1"
       "b\1"
       "a\n\0\x9d\xab:c\x1b\6\xe4\xa6"s,
       types::kSet, " a b"},
      {"\x12\1\2\x10\x10\0\0\0\3\0\x81"
       "a\2\1\1\x82"
       "bb\3\xff\n\0\xdf\n\xf3\x10\xbe\x9d\x9e\x9d"s,
       types::kList, "a 1 bb"},
      {"\x11\x1c\x1c\0\0\0\6\0\x81"
       "b\2\x84-inf\5\x81"
       "a\2\x83"
       "1.5\4\7\1\2\1\xff\n\0(\xae|]\x91\4\x89*"s,
       types::kSortedSet, "7=2 a=1.5 b=-inf"},
      {"\4\3\2f2\xc3\t@A\1xx\xe0"
       "4\0\1xx\2f1\xc3\t@A\1xx\xe0"
       "4\0\1xx\2f0\xc3\t@A\1xx\xe0"
       "4\0\1xx"
       "\n\0)\xac\x84\x1f\1\x8d\xc1\x82"s,
       types::kHash,
       "f0=" + std::string(65, 'x') + " f1=" + std::string(65, 'x') +
           " f2=" + std::string(65, 'x')},
      {"\5\2\1b\0\0\0\0\0\0\xf0\x7f\xc3\t@A\1yy\xe0"
       "4\0\1yy\0\0\0\0\0\0\xd0?\n\0\xb3+\xd1$\x8e\xe7\x1f\xe8"s,
       types::kSortedSet, "b=inf " + std::string(65, 'y') + "=0.25"},
  };
  for (const auto& [payload, kind, members] : values) {
    SCOPED_TRACE(members);
    const auto value = Restore(payload);
    ASSERT_TRUE(value) << value.error().ToString();
    EXPECT_EQ(value->type, kind);
    EXPECT_EQ(TextOfMembers(kind, value->bytes), members);
    const auto dumped = DumpCollection(kind, value->bytes);
    ASSERT_TRUE(dumped);
    EXPECT_EQ(Restore(*dumped), *value);
  }
}

// Goal: every collection comes back, whatever is in it.
// Method: random members of all byte values, of sizes at the edges of the lengths' encodings, and
// numbers; collections of one member to some thousand.
TEST(RdbPayload, CollectionsRoundTrip) {
  std::mt19937_64 rng(1);
  const auto text = [&] {
    if (rng() % 4 == 0) return std::to_string(static_cast<int64_t>(rng()) >> rng() % 64);
    std::string bytes(
        std::array{0, 1, 2, 20, 21, 63, 64, 126, 127, 300, 16'383, 16'384}[rng() % 12], 'a');
    for (char& c : bytes) c = static_cast<char>(rng() % 3 == 0 ? rng() : 'b');
    return bytes;
  };
  const double scores[] = {0, 1, -1, 0.1, 5e-324, 1e308, INFINITY, -INFINITY};
  for (const uint8_t kind : {types::kHash, types::kSet, types::kList, types::kSortedSet}) {
    for (const size_t members : {1, 2, 63, 64, 3000}) {
      CollectionBuilder builder(kind);
      std::set<std::string> distinct;
      while (builder.members() < members) {
        const std::string member = text() + (members > 64 ? std::to_string(rng()) : "");
        if (kind != types::kList && !distinct.insert(member).second) continue;
        // Fields without a deadline, with the earliest and latest one, and with some between.
        const uint64_t deadlines[] = {0, 0, 1, kDeadlineMax, rng() % kDeadlineMax + 1};
        const uint64_t deadline_ms = kind == types::kHash ? deadlines[rng() % 5] : 0;
        builder.Add({.member = member,
                     .value = text(),
                     .score = scores[rng() % 8],
                     .deadline_ms = deadline_ms});
      }
      const auto value = builder.Take();
      ASSERT_TRUE(value);
      const auto payload = DumpCollection(kind, *value);
      ASSERT_TRUE(payload);
      const auto back = Restore(*payload, size_t{64} << 20);
      ASSERT_TRUE(back) << back.error().ToString();
      EXPECT_EQ(back->type, kind);
      EXPECT_TRUE(back->bytes == *value);
    }
  }
}

// Goal: the limit holds to the byte, and what is too long by far takes no memory.
TEST(RdbPayload, LimitOfCollections) {
  for (const uint8_t kind : {types::kHash, types::kSet, types::kList, types::kSortedSet}) {
    CollectionBuilder builder(kind);
    for (int i = 0; i < 300; ++i) builder.Add({.member = std::to_string(i)});
    const std::string value = *builder.Take();
    const std::string payload = *DumpCollection(kind, value);
    EXPECT_EQ(CodeOf(payload, value.size()), Code::kOk);
    EXPECT_EQ(CodeOf(payload, value.size() - 1), Code::kTooLarge);
    EXPECT_EQ(CodeOf(payload, 10), Code::kTooLarge);
  }
  // A packed string of which LZF says that it is long.
  const std::string packed = Listpack(PackedEntries(20'000, "aaaaaaaa"));
  const std::string value = RdbBuilder("").Byte(20).Lzf(packed).bytes().substr(5);
  EXPECT_EQ(CodeOf(Sealed(value), 1000), Code::kTooLarge);
  EXPECT_EQ(CodeOf(Sealed(value), size_t{1} << 20), Code::kInvalidArgument);
}

// Goal: values that are no collections are refused, also stored ones.
TEST(RdbPayload, RefusesCollections) {
  EXPECT_EQ(CodeOf(Sealed(std::string("\1\0", 2))), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Sealed("\2\2\1a\1a")), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Sealed("\2\2\1a")), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Sealed("\x10\4junk")), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Sealed("\x16\1\5\1f\1v")), Code::kOk);
  // A deadline that is not behind an earliest one, and one that is too late.
  EXPECT_EQ(CodeOf(Sealed(std::string("\x18\0\0\0\0\0\0\0\0\1\5\1f\1v", 14))),
            Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Sealed(std::string("\x18\0\0\0\0\0\0\0\1\1\5\1f\1v", 14))),
            Code::kInvalidArgument);
  for (const uint8_t kind : {types::kHash, types::kSet, types::kList, types::kSortedSet}) {
    EXPECT_EQ(DumpCollection(kind, ""), std::nullopt);
    EXPECT_EQ(DumpCollection(kind, "\3\2a"), std::nullopt);
  }
}

}  // namespace
}  // namespace skep::durable
