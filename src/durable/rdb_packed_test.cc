#include "durable/rdb_packed.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "durable/rdb_packing_test.h"

namespace skep::durable {
namespace {

using ReadPacked = bool (*)(std::string_view, const OnPacked&);
using Packed = std::pair<ReadPacked, std::string>;

// The entries; nothing if the bytes are refused.
std::optional<PackedEntries> EntriesOf(ReadPacked read, std::string_view bytes) {
  PackedEntries entries;
  if (!read(bytes, [&](std::string_view entry) { entries.emplace_back(entry); })) {
    return std::nullopt;
  }
  return entries;
}

// Strings and integers at the edges of all encodings, an even number of them.
PackedEntries EdgeEntries() {
  PackedEntries entries;
  for (const int bits : {1, 4, 5, 7, 8, 13, 16, 24, 32, 63}) {
    const int64_t edge = bits == 63 ? INT64_MAX - 1 : int64_t{1} << (bits - 1);
    for (const int64_t off : {-1, 0, 1}) {
      entries.push_back(std::to_string(edge + off));
      entries.push_back(std::to_string(-(edge + off)));
    }
  }
  for (const std::string_view number : {"0", "12", "13", "127", "128", "-9223372036854775808"}) {
    entries.emplace_back(number);
  }
  for (const std::string_view text : {"01", "-0", "+1", " 1", "9223372036854775808", "1.5"}) {
    entries.emplace_back(text);
  }
  std::mt19937 rng(1);
  for (const size_t bytes :
       {0,      1,      61,     62,     63,     64,        123,       124,      125,    126,
        127,    252,    253,    254,    255,    4094,      4095,      4096,     16'377, 16'378,
        16'379, 16'380, 16'383, 16'384, 70'000, 2'097'139, 2'097'146, 2'097'150}) {
    entries.emplace_back(bytes, '\0');
    for (char& c : entries.back()) c = static_cast<char>(rng());
  }
  return entries;
}

// Goal: the bytes are those that Redis's own sources give as examples.
TEST(RdbPacked, ExamplesOfRedis) {
  EXPECT_EQ(EntriesOf(ReadZiplist, Ziplist({"2", "5", "Hello World"})),
            (PackedEntries{"2", "5", "Hello World"}));
  EXPECT_EQ(Ziplist({"2", "5"}), std::string("\x0f\0\0\0\x0c\0\0\0\2\0\0\xf3\2\xf6\xff", 15));
  EXPECT_EQ(EntriesOf(ReadZiplist, std::string("\x0f\0\0\0\x0c\0\0\0\2\0\0\xf3\2\xf6\xff", 15)),
            (PackedEntries{"2", "5"}));
  EXPECT_EQ(EntriesOf(ReadZipmap, std::string("\2\3foo\3\0bar\5hello\5\0world\xff", 24)),
            (PackedEntries{"foo", "bar", "hello", "world"}));
  // DUMP of a hash and of an intset, by Redis 7.0.
  EXPECT_EQ(EntriesOf(ReadListpack, std::string("\x13\0\0\0\4\0\x81"
                                                "f\2\1\1\x82hi\3\xc1,\2\xff",
                                                19)),
            (PackedEntries{"f", "1", "hi", "300"}));
  EXPECT_EQ(EntriesOf(ReadIntset, std::string("\2\0\0\0\3\0\0\0\xff\xff\1\0\x2c\1", 14)),
            (PackedEntries{"-1", "1", "300"}));
}

// Goal: every entry comes back, whichever way it is packed.
TEST(RdbPacked, RoundTrips) {
  const PackedEntries entries = EdgeEntries();
  ASSERT_EQ(entries.size() % 2, 0u);
  EXPECT_TRUE(EntriesOf(ReadListpack, Listpack(entries)) == entries);
  EXPECT_TRUE(EntriesOf(ReadZiplist, Ziplist(entries)) == entries);
  EXPECT_TRUE(EntriesOf(ReadZiplist, Ziplist(entries, true)) == entries);
  EXPECT_TRUE(EntriesOf(ReadZipmap, Zipmap(entries)) == entries);
  EXPECT_TRUE(EntriesOf(ReadZipmap, Zipmap(entries, 253)) == entries);
  for (const auto& [read, empty] :
       {Packed(ReadListpack, Listpack({})), Packed(ReadZiplist, Ziplist({})),
        Packed(ReadZipmap, Zipmap({})), Packed(ReadIntset, Intset({}, 2))}) {
    EXPECT_EQ(EntriesOf(read, empty), PackedEntries());
  }
  EXPECT_EQ(EntriesOf(ReadIntset, Intset({INT64_MIN, -1, 0, INT64_MAX}, 8)),
            (PackedEntries{"-9223372036854775808", "-1", "0", "9223372036854775807"}));
  EXPECT_EQ(EntriesOf(ReadIntset, Intset({INT32_MIN, INT32_MAX}, 4)),
            (PackedEntries{"-2147483648", "2147483647"}));
}

// Goal: a number of entries that Redis could not count is not believed; another one is.
TEST(RdbPacked, NumbersOfEntries) {
  const auto with = [](std::string bytes, size_t at, std::string_view count) {
    return bytes.replace(at, count.size(), count);
  };
  const PackedEntries two = {"a", "b"};
  const std::string_view unknown = "\xff\xff";
  const std::string_view three("\3\0", 2);
  EXPECT_EQ(EntriesOf(ReadListpack, with(Listpack(two), 4, unknown)), two);
  EXPECT_EQ(EntriesOf(ReadListpack, with(Listpack(two), 4, three)), std::nullopt);
  EXPECT_EQ(EntriesOf(ReadZiplist, with(Ziplist(two), 8, unknown)), two);
  EXPECT_EQ(EntriesOf(ReadZiplist, with(Ziplist(two), 8, three)), std::nullopt);
  EXPECT_EQ(EntriesOf(ReadZipmap, with(Zipmap(two), 0, "\xfe")), two);
  EXPECT_EQ(EntriesOf(ReadZipmap, with(Zipmap(two), 0, "\3")), std::nullopt);
  EXPECT_EQ(EntriesOf(ReadIntset, with(Intset({1, 2}, 2), 4, three)), std::nullopt);
  EXPECT_EQ(EntriesOf(ReadIntset, with(Intset({1, 2}, 2), 0, "\3")), std::nullopt);
}

// Goal: bytes that end too early, or go on, are refused.
TEST(RdbPacked, EveryTruncationIsFound) {
  const PackedEntries entries = {"",
                                 "a",
                                 "12",
                                 "-5",
                                 "300",
                                 "70000",
                                 "5000000000",
                                 "1.5",
                                 std::string(70, 'x'),
                                 std::string(300, 'y')};
  for (const auto& [read, whole] :
       {Packed(ReadListpack, Listpack(entries)), Packed(ReadZiplist, Ziplist(entries)),
        Packed(ReadZipmap, Zipmap(entries, 3)), Packed(ReadIntset, Intset({1, 2, 3}, 8))}) {
    ASSERT_TRUE(EntriesOf(read, whole));
    for (size_t left = 0; left < whole.size(); ++left) {
      EXPECT_EQ(EntriesOf(read, whole.substr(0, left)), std::nullopt) << left;
    }
    EXPECT_EQ(EntriesOf(read, whole + "x"), std::nullopt);
    EXPECT_EQ(EntriesOf(read, whole + "\xff"), std::nullopt);
  }
}

// Goal: a flipped byte of a head, a length or a place is refused: what is read is what was packed,
// but for the bytes of strings and integers themselves.
TEST(RdbPacked, LengthsThatContradict) {
  const PackedEntries entries = {"ab", "300", std::string(70, 'x'), "cd"};
  const std::string listpack = Listpack(entries);
  const std::string ziplist = Ziplist(entries);
  const auto flipped = [](std::string bytes, size_t at) {
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    return bytes;
  };
  // The total; the lengths at the ends of the entries.
  for (const size_t at : {0, 9, 12}) {
    EXPECT_EQ(EntriesOf(ReadListpack, flipped(listpack, at)), std::nullopt) << at;
  }
  // The total; the place of the last entry; the lengths of the entries before the first three.
  for (const size_t at : {0, 4, 10, 14, 18}) {
    EXPECT_EQ(EntriesOf(ReadZiplist, flipped(ziplist, at)), std::nullopt) << at;
  }
  for (const int kind : {0xf5, 0xfe, 0xff}) {
    std::string bytes = Listpack({"1"});
    bytes[6] = static_cast<char>(kind);
    EXPECT_EQ(EntriesOf(ReadListpack, bytes), std::nullopt);
  }
  for (const int kind : {0x81, 0xc1, 0xff}) {
    std::string bytes = Ziplist({"1"});
    bytes[11] = static_cast<char>(kind);
    EXPECT_EQ(EntriesOf(ReadZiplist, bytes), std::nullopt);
  }
}

}  // namespace
}  // namespace skep::durable
