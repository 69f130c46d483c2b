#include "durable/rdb_reader.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "durable/rdb_input.h"
#include "durable/rdb_packing_test.h"
#include "durable/rdb_test.h"

namespace skep::durable {
namespace {

// Opcodes and types, as Redis numbers them.
constexpr unsigned kSelectDb = 0xfe;
constexpr unsigned kExpireTime = 0xfd;
constexpr unsigned kExpireTimeMs = 0xfc;

void ExpectEntries(const std::string& bytes, const std::vector<RdbEntry>& expected) {
  const RdbContents read = ReadRdbBytes(bytes);
  EXPECT_TRUE(read.status.ok()) << read.status.ToString();
  ASSERT_EQ(read.entries.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "entry " << i << ", key " << expected[i].key);
    EXPECT_EQ(read.entries[i].db, expected[i].db);
    EXPECT_EQ(read.entries[i].type, expected[i].type);
    EXPECT_EQ(read.entries[i].key, expected[i].key);
    EXPECT_TRUE(read.entries[i].value == expected[i].value);
    EXPECT_EQ(read.entries[i].deadline_ms, expected[i].deadline_ms);
  }
}

void ExpectError(const std::string& bytes, Code code, uint64_t detail) {
  const RdbContents read = ReadRdbBytes(bytes);
  EXPECT_EQ(read.status, Status(code, "", detail)) << read.status.ToString();
}

// One file with a bit of everything, small enough to damage everywhere.
std::string SmallFile() {
  return RdbBuilder()
      .Byte(0xfa)
      .String("redis-ver")
      .String("7.0.15")
      .Byte(kSelectDb)
      .Length(0)
      .Byte(0xfb)
      .Length(3)
      .Length(1)
      .Byte(0)
      .String("key")
      .String("value")
      .Byte(kExpireTimeMs)
      .Number(int64_t{1'800'000'000'123})
      .Byte(0xf9)
      .Byte(7)
      .Byte(0)
      .Byte(0xc0)
      .Byte(5)
      .Byte(0xc1)
      .Number(int16_t{-300})
      .Byte(18)
      .String("list")
      .Length(1)
      .Length(2)
      .String(Listpack({"a", "1"}))
      .Byte(15)
      .String("stream")
      .Length(0)
      .Length(0)
      .Length(0)
      .Length(0)
      .Length(0)
      .Byte(0)
      .String("lzf")
      .Lzf(std::string(40, 'a') + "b")
      .Byte(0xf5)
      .String("#!lua name=lib")
      .End();
}

TEST(RdbCrc64, KnownValue) {
  EXPECT_EQ(RdbCrc64("123456789"), 0xe9c6d914c4b8d9ca);
  EXPECT_EQ(RdbCrc64(""), 0u);
  const std::string text = "Bytes may come in pieces, and words need not be aligned.";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(RdbCrc64(text.substr(cut), RdbCrc64(text.substr(0, cut))), RdbCrc64(text));
  }
}

TEST(RdbReader, SmallFile) {
  ExpectEntries(SmallFile(), {{0, "string", "key", "value", 0},
                              {0, "string", "5", "-300", 1'800'000'000'123},
                              {0, "list", "list", "a 1", 0},
                              {0, "stream", "stream", "", 0},
                              {0, "string", "lzf", std::string(40, 'a') + "b", 0}});
  const RdbSummary summary = ReadRdbBytes(SmallFile()).summary;
  EXPECT_EQ(summary.version, 10u);
  EXPECT_EQ(summary.strings, 3u);
  EXPECT_EQ(summary.collections, 1u);
  EXPECT_EQ(summary.skipped, 1u);
  EXPECT_EQ(summary.functions, 1u);
  EXPECT_TRUE(summary.is_checked);
}

TEST(RdbReader, StringsInAllEncodings) {
  RdbBuilder file;
  std::vector<RdbEntry> expected;
  const auto add = [&](const std::string& value) {
    expected.push_back({0, "string", "k" + std::to_string(expected.size()), value, 0});
    file.Byte(0).String(expected.back().key);
  };
  const auto number = [&](unsigned encoding, auto value) {
    add(std::to_string(value));
    file.Byte(encoding).Number(value);
  };
  for (const int value : {0, 1, -1, 127, -128}) number(0xc0, static_cast<int8_t>(value));
  for (const int value : {128, -129, 32'767, -32'768}) number(0xc1, static_cast<int16_t>(value));
  for (const int value : {32'768, INT32_MAX, INT32_MIN}) number(0xc2, value);
  // Each form of a length, and its edges; all bytes; more than one read takes.
  std::mt19937 rng(1);
  for (const size_t bytes : {0, 1, 63, 64, 16'383, 16'384, 65'535, 65'536, 65'537, 300'000}) {
    std::string value(bytes, '\0');
    for (char& c : value) c = static_cast<char>(rng());
    add(value);
    file.String(value);
    if (bytes < 63) continue;
    for (size_t i = 0; i < bytes / 2; ++i) value[i] = 'a';
    add(value);
    file.Lzf(value);
  }
  add("longer form than needed");
  file.Byte(0x81).Raw(std::string_view("\0\0\0\0\0\0\0\27", 8)).Raw("longer form than needed");
  ExpectEntries(file.End(), expected);
}

TEST(RdbReader, DatabasesAndDeadlines) {
  RdbBuilder file;
  file.Byte(0).String("a").String("1");
  file.Byte(kSelectDb).Length(15);
  file.Byte(kExpireTime).Number(int32_t{1'700'000'000}).Byte(0).String("b").String("2");
  file.Byte(kExpireTimeMs).Number(int64_t{1'700'000'000'001}).Byte(0xf8).Length(1'000);
  file.Byte(0).String("c").String("3");
  file.Byte(0).String("d").String("4");  // a deadline is of one key
  file.Byte(kExpireTimeMs).Number(int64_t{5}).Byte(11).String("e").String(Intset({7}, 2));
  file.Byte(0).String("f").String("6");
  file.Byte(kSelectDb).Length(1'000'000'000'000);
  for (const int64_t passed : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    file.Byte(kExpireTimeMs).Number(passed).Byte(0).String("g").String("7");
  }
  file.Byte(kExpireTime).Number(int32_t{-5}).Byte(0).String("g").String("7");
  const uint64_t far = 1'000'000'000'000;
  ExpectEntries(file.End(), {{0, "string", "a", "1", 0},
                             {15, "string", "b", "2", 1'700'000'000'000},
                             {15, "string", "c", "3", 1'700'000'000'001},
                             {15, "string", "d", "4", 0},
                             {15, "set", "e", "7", 5},
                             {15, "string", "f", "6", 0},
                             {far, "string", "g", "7", 1},
                             {far, "string", "g", "7", 1},
                             {far, "string", "g", "7", 1},
                             {far, "string", "g", "7", 1}});
}

// A value of each type and encoding, and what is read of it.
struct OtherValue {
  unsigned type;
  const char* name;
  std::string bytes;
  std::string text = "";
};

std::string Group(int version) {
  const std::string id(16, 'i');
  RdbBuilder group("");
  group.String("group").Length(1).Length(0);
  if (version >= 2) group.Length(UINT64_MAX);
  group.Length(2).Raw(id).Number(uint64_t{1}).Length(1).Raw(id).Number(uint64_t{2}).Length(300);
  group.Length(1).String("consumer").Number(uint64_t{3});
  if (version >= 3) group.Number(uint64_t{4});
  return group.Length(2).Raw(id).Raw(id).bytes().substr(5);
}

std::string Stream(int version) {
  RdbBuilder stream("");
  stream.Length(2).String(std::string(16, 'i')).Lzf(std::string(100, 'l'));
  stream.String(std::string(16, 'j')).String("listpack");
  stream.Length(3).Length(1'700'000'000'000).Length(7);
  if (version >= 2) stream.Length(1).Length(0).Length(0).Length(0).Length(5);
  return stream.Length(2).Raw(Group(version)).Raw(Group(version)).bytes().substr(5);
}

std::vector<OtherValue> OtherValues() {
  const auto make = [](auto fill) {
    RdbBuilder value("");
    fill(value);
    return value.bytes().substr(5);
  };
  const auto lzf = [&](const std::string& text) {
    return make([&](RdbBuilder& v) { v.Lzf(text); });
  };
  const auto string = [&](const std::string& text) {
    return make([&](RdbBuilder& v) { v.String(text); });
  };
  const std::string a(100, 'a');
  const auto strings = make([](RdbBuilder& v) { v.Length(2).String("a").Byte(0xc2).Raw("1234"); });
  const PackedEntries pairs = {a, "1", "10", "-0.5", "b", "inf"};
  const std::string fields = "10=-0.5 " + a + "=1 b=inf";
  return {
      {1, "list", strings, "a 875770417"},
      {2, "set", strings, "875770417 a"},
      {3, "zset", make([](RdbBuilder& v) {
         v.Length(4).String("a").Byte(3).Raw("1.5").String("b").Byte(254).String("c").Byte(255);
         v.String("d").Byte(2).Raw("-0");
       }),
       "a=1.5 b=inf c=-inf d=0"},
      {4, "hash", make([](RdbBuilder& v) { v.Length(1).String("field").Byte(0xc0).Byte(1); }),
       "field=1"},
      {5, "zset", make([](RdbBuilder& v) { v.Length(1).String("a").Number(1.5); }), "a=1.5"},
      {7, "module", make([](RdbBuilder& v) {
         v.Length(0x1234'5678'9abc'def0).Length(1).Length(5).Length(2).Length(500);
         v.Length(3).Number(1.5f).Length(4).Number(1.5).Length(5).String("part").Length(0);
       })},
      {9, "hash", lzf(Zipmap(pairs, 2)), fields},
      {10, "list", lzf(Ziplist({a, "2", "2"})), a + " 2 2"},
      {11, "set", string(Intset({-2, 70'000}, 4)), "-2 70000"},
      {12, "zset", lzf(Ziplist(pairs)), fields},
      {13, "hash", lzf(Ziplist(pairs)), fields},
      {14, "list",
       make([&](RdbBuilder& v) { v.Length(2).Lzf(Ziplist({a, "z"})).String(Ziplist({"7"})); }),
       a + " z 7"},
      {15, "stream", Stream(1)},
      {16, "hash", lzf(Listpack(pairs)), fields},
      {17, "zset", lzf(Listpack(pairs)), fields},
      {18, "list", make([&](RdbBuilder& v) {
         v.Length(2).Length(1).String("plain").Length(2).Lzf(Listpack({a, "b"}));
       }),
       "plain " + a + " b"},
      {19, "stream", Stream(2)},
      {20, "set", lzf(Listpack({"b", a})), a + " b"},
      {21, "stream", Stream(3)},
      {22, "hash", make([](RdbBuilder& v) { v.Length(1).Length(9).String("f").String("v"); }),
       "f=v@9"},
      {23, "hash", string(Listpack({"f", "v", "0", "g", "w", "1800000000000"})),
       "f=v g=w@1800000000000"},
      {23, "hash", string(Listpack({"g", "w", "0", "f", "v", "0"})), "f=v g=w"},
      {24, "hash", make([](RdbBuilder& v) {
         v.Number(uint64_t{1'800'000'000'000}).Length(2).Length(9).String("f").String("v");
         v.Length(0).String("g").String("w");
       }),
       "f=v@1800000000008 g=w"},
      {25, "hash", std::string(8, 'm') + string(Listpack({"f", "v", "1800000000000"})),
       "f=v@1800000000000"},
      {25, "hash", std::string(8, 'm') + string(Listpack({"f", "v", "0"})), "f=v"},
  };
}

// Goal: collections are read in all encodings; what is neither they nor strings is skipped to its
// very end, and named.
TEST(RdbReader, OtherTypes) {
  for (const OtherValue& value : OtherValues()) {
    SCOPED_TRACE(testing::Message() << "type " << value.type);
    RdbBuilder file("0012");
    file.Byte(kExpireTimeMs).Number(int64_t{5}).Byte(value.type).String("other").Raw(value.bytes);
    file.Byte(0).String("next").String("value");
    const uint64_t deadline_ms = value.text.empty() ? 0 : 5;  // of what is skipped none is shown
    ExpectEntries(file.End(), {{0, value.name, "other", value.text, deadline_ms},
                               {0, "string", "next", "value", 0}});
  }
}

// Goal: values that end too early are never taken for whole.
TEST(RdbReader, OtherTypesCutOff) {
  for (const OtherValue& value : OtherValues()) {
    for (size_t left = 0; left < value.bytes.size(); ++left) {
      RdbBuilder file("0012");
      file.Byte(value.type).String("other").Raw(value.bytes.substr(0, left));
      const RdbContents read = ReadRdbBytes(file.bytes());
      EXPECT_EQ(read.status.code(), Code::kCorrupt) << value.type;
      EXPECT_LE(read.status.detail(), file.bytes().size());
      EXPECT_TRUE(read.entries.empty());
    }
  }
}

// Goal: what is no collection of its type is refused, and an empty one is nothing.
TEST(RdbReader, MalformedCollections) {
  const auto file = [](unsigned type, const std::string& bytes) {
    return RdbBuilder("0012").Byte(type).String("key").Raw(bytes).End();
  };
  const auto packed = [&](unsigned type, const std::string& bytes) {
    return file(type, RdbBuilder("").String(bytes).bytes().substr(5));
  };
  const std::string twice = RdbBuilder("").Length(2).String("a").String("a").bytes().substr(5);
  const std::vector<std::string> wrong = {
      file(2, twice),  // a member twice
      packed(16, Listpack({"f", "1", "f", "2"})),
      packed(20, Listpack({"a", "b", "a"})),
      packed(11, Intset({7, 7}, 2)),
      packed(17, Listpack({"a", "1", "a", "2"})),
      packed(16, Listpack({"f"})),  // a field without a value
      packed(9, std::string("\1\1f\xff", 4)),
      packed(25, Listpack({"f", "v"})),
      packed(12, Ziplist({"a", "nan"})),  // no score
      packed(12, Ziplist({"a", ""})),
      packed(17, Listpack({"a", "1x"})),
      file(3, std::string("\1\1a\xfd", 4)),
      file(3, std::string("\1\1a\1x", 5)),
      file(5, "\1\1a" + std::string(6, '\0') + "\xf8\x7f"),
      packed(16, "junk"),
      packed(11, Listpack({"1"})),
      file(18, "\1\3\1a"),  // of no known kind
  };
  for (size_t i = 0; i < wrong.size(); ++i) {
    const RdbContents read = ReadRdbBytes(wrong[i]);
    EXPECT_EQ(read.status.code(), Code::kCorrupt) << i;
    EXPECT_TRUE(read.entries.empty()) << i;
  }
  for (const unsigned type : {1, 2, 3, 4, 5, 14, 18}) ExpectEntries(file(type, {"\0", 1}), {});
  for (const unsigned type : {16, 17, 20}) ExpectEntries(packed(type, Listpack({})), {});
}

// Goal: a collection of any size comes in pieces of about kRdbMembersBytes, with all its members.
// Method: lists and hashes of some MiB of members of many sizes, one of them longer than a piece.
TEST(RdbReader, CollectionsComeInPieces) {
  std::mt19937 rng(1);
  RdbBuilder list;
  RdbBuilder hash;
  std::string elements;
  std::vector<std::string> fields;
  constexpr uint64_t kMembers = 3000;
  list.Byte(1).String("key").Length(kMembers);
  hash.Byte(4).String("key").Length(kMembers);
  for (uint64_t i = 0; i < kMembers; ++i) {
    const std::string text = std::to_string(i) + std::string(i == 7 ? 3 << 20 : rng() % 2000, 'x');
    list.String(text);
    hash.String(text).String("v");
    elements += (i == 0 ? "" : " ") + text;
    fields.push_back(text + "=v");
  }
  const RdbContents read_list = ReadRdbBytes(list.End());
  const RdbContents read_hash = ReadRdbBytes(hash.End());
  ASSERT_TRUE(read_list.status.ok() && read_hash.status.ok());
  EXPECT_EQ(read_list.summary.collections, 1u);
  std::string joined;
  std::vector<std::string> found;
  for (const RdbContents* read : {&read_list, &read_hash}) {
    EXPECT_TRUE(read->was_last);
    EXPECT_GE(read->entries.size(), 4u);
    for (const RdbEntry& entry : read->entries) {
      EXPECT_LE(entry.value.size(), kRdbMembersBytes + (size_t{4} << 20));
      if (read == &read_list) joined += (joined.empty() ? "" : " ") + entry.value;
      std::string_view rest = entry.value;
      while (read == &read_hash && !rest.empty()) {
        found.emplace_back(rest.substr(0, rest.find(' ')));
        rest.remove_prefix(std::min(found.back().size() + 1, rest.size()));
      }
    }
  }
  EXPECT_TRUE(joined == elements);
  std::ranges::sort(found);
  std::ranges::sort(fields);
  EXPECT_TRUE(found == fields);
}

TEST(RdbReader, OtherEntries) {
  RdbBuilder file("0012");
  file.Byte(0xf4).Length(16'383).Length(5).Length(1);
  file.Byte(0xf7).Length(0x1234'5678'9abc'def0).Length(2).Length(1).Length(5).String("x").Length(0);
  file.Byte(0xfa).String("aux").Byte(0xc0).Byte(64).Byte(0).String("key").String("value");
  ExpectEntries(file.End(), {{0, "string", "key", "value", 0}});
}

TEST(RdbReader, Versions) {
  for (int version = 1; version <= 12; ++version) {
    RdbBuilder file((version < 10 ? "000" : "00") + std::to_string(version));
    file.Byte(0).String("key").String("value");
    // Before version 5 there was no checksum.
    const std::string bytes = version < 5 ? file.Byte(0xff).bytes() : file.End();
    ExpectEntries(bytes, {{0, "string", "key", "value", 0}});
    EXPECT_EQ(ReadRdbBytes(bytes).summary.is_checked, version >= 5);
  }
  ExpectError(RdbBuilder("0000").End(), Code::kCorrupt, 0);
  ExpectError(RdbBuilder("0013").End(), Code::kNotSupported, 13);
  EXPECT_EQ(ReadRdbBytes(RdbBuilder("0080").End()).status.ToString(),
            "not supported: RDB files are read up to version 12, the file's is (80)");
  ExpectError(RdbBuilder("00x1").End(), Code::kCorrupt, 5);
  ExpectError("", Code::kCorrupt, 0);
  ExpectError("REDIS", Code::kCorrupt, 5);
  ExpectError("SKEPSNAP and more", Code::kCorrupt, 5);
  ExpectError("redis0010\xff" + std::string(8, '\0'), Code::kCorrupt, 0);
}

TEST(RdbReader, Checksum) {
  RdbBuilder file;
  file.Byte(0).String("key").String("value");
  RdbBuilder copy = file;
  EXPECT_FALSE(ReadRdbBytes(copy.EndUnchecked()).summary.is_checked);
  ExpectEntries(copy.bytes(), {{0, "string", "key", "value", 0}});
  ExpectError(copy.bytes() + "x", Code::kCorrupt, copy.bytes().size());
  std::string wrong = file.End();
  wrong.back() = static_cast<char>(~wrong.back());
  ExpectError(wrong, Code::kCorrupt, wrong.size() - 8);
}

// Goal: errors are where they are said to be. The first entry begins at 9.
TEST(RdbReader, Errors) {
  const std::string_view end = "\xff";
  ExpectError(RdbBuilder().Byte(8).Raw(end).bytes(), Code::kCorrupt, 9);     // no type
  ExpectError(RdbBuilder().Byte(26).Raw(end).bytes(), Code::kCorrupt, 9);    // nor this
  ExpectError(RdbBuilder().Byte(0xf3).Raw(end).bytes(), Code::kCorrupt, 9);  // no opcode
  ExpectError(RdbBuilder().Byte(0xf6).Raw(end).bytes(), Code::kNotSupported, 9);
  ExpectError(RdbBuilder().Byte(6).String("key").Raw(end).bytes(), Code::kNotSupported, 9);
  ExpectError(RdbBuilder().Byte(7).String("key").Length(1).Length(6).Raw(end).bytes(),
              Code::kCorrupt, 15);
  ExpectError(RdbBuilder().Byte(0).Byte(0x82).Raw(end).bytes(), Code::kCorrupt, 10);  // no length
  ExpectError(RdbBuilder().Byte(0).Byte(0xc4).Raw(end).bytes(), Code::kCorrupt, 10);  // no encoding
  ExpectError(RdbBuilder().Byte(kSelectDb).Byte(0xc0).Raw(end).bytes(), Code::kCorrupt, 10);
  ExpectError(RdbBuilder().Byte(0).String("key").bytes(), Code::kCorrupt, 14);  // no value
  ExpectError(RdbBuilder().bytes(), Code::kCorrupt, 9);                         // no end
}

// Goal: lengths that are not true cost nothing.
TEST(RdbReader, LengthsThatAreNotTrue) {
  for (const uint64_t length : {uint64_t{10}, uint64_t{1} << 31, uint64_t{1} << 40, UINT64_MAX}) {
    ExpectError(RdbBuilder().Byte(0).Length(length).Raw("too few").bytes(), Code::kCorrupt, 10);
    // A list of so many elements has one.
    const std::string list = RdbBuilder().Byte(1).String("").Length(length).String("x").bytes();
    ExpectError(list, Code::kCorrupt, list.size());
    ExpectError(RdbBuilder().Byte(0).Byte(0xc3).Length(length).Length(5).Raw("few").bytes(),
                Code::kCorrupt, 10);
  }
  const auto lzf = [](uint64_t bytes, uint64_t unpacked, std::string_view packed) {
    return RdbBuilder().Byte(0).Byte(0xc3).Length(bytes).Length(unpacked).Raw(packed).bytes();
  };
  ExpectError(lzf(3, 3 * 88 + 1, "\xe0\xff\x01"), Code::kCorrupt, 10);
  ExpectError(lzf(3, UINT64_MAX, "abc"), Code::kCorrupt, 10);
  ExpectError(lzf(0, 1, "abc"), Code::kCorrupt, 10);
  ExpectError(lzf(1, 0, "abc"), Code::kCorrupt, 10);
  ExpectError(lzf(3, 3, "\2ab"), Code::kCorrupt, 10);  // three literals, two there
  ExpectError(lzf(3, 1, "\1ab"), Code::kCorrupt, 10);  // two literals for one
  ExpectError(lzf(3, 3, "\1ab"), Code::kCorrupt, 10);  // and for three
  ExpectError(lzf(4, 5, std::string_view("\0a\x20\5", 4)), Code::kCorrupt, 10);  // from before
}

TEST(RdbReader, TooLong) {
  // Strings of the greatest length, and of one byte more; the file ends behind their heads.
  const uint64_t most = kRdbStringBytesMax;
  const std::string packed(8 * 1024 * 1024, 'x');
  ExpectError(
      RdbBuilder().Byte(0).Byte(0xc3).Length(packed.size()).Length(most + 1).Raw(packed).bytes(),
      Code::kTooLarge, most);
  ExpectError(
      RdbBuilder().Byte(0xfa).Byte(0xc3).Length(packed.size()).Length(most).Raw(packed).bytes(),
      Code::kCorrupt, 9 + 1 + 1 + 5 + 5 + packed.size());
}

// Goal: no flipped byte goes unnoticed.
TEST(RdbReader, EveryFlippedByteIsFound) {
  const std::string bytes = SmallFile();
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0xff, 1, 2, 4, 8, 16, 32, 64, 128}) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ flip);
      const RdbContents read = ReadRdbBytes(flipped);
      EXPECT_FALSE(read.status.ok()) << "byte " << at << " ^ " << flip;
      if (read.status.code() == Code::kCorrupt) {
        EXPECT_LE(read.status.detail(), bytes.size());
      }
    }
  }
}

TEST(RdbReader, EveryTruncationIsFound) {
  const std::string bytes = SmallFile();
  const std::vector<RdbEntry> all = ReadRdbBytes(bytes).entries;
  for (size_t left = 0; left < bytes.size(); ++left) {
    const RdbContents read = ReadRdbBytes(bytes.substr(0, left));
    EXPECT_EQ(read.status.code(), Code::kCorrupt);
    EXPECT_LE(read.status.detail(), left);
    ASSERT_LE(read.entries.size(), all.size());
    EXPECT_TRUE(std::equal(read.entries.begin(), read.entries.end(), all.begin()));
  }
}

TEST(RdbReader, FailingReads) {
  Trace trace;
  SimFileSystem files(1, trace, {.short_reads_ppm = 0});
  {
    auto file = files.Open("dump", FileSystem::Mode::kCreate);
    ASSERT_TRUE(
        (*file)
            ->Append(RdbBuilder().Byte(0).String("k").String(std::string(200'000, 'v')).End())
            .ok());
  }
  RdbContents contents;
  for (uint64_t successes = 0; successes < 4; ++successes) {
    files.FailOnce(SimFileSystem::Operation::kRead, successes, EIO);
    EXPECT_EQ(ReadRdb(files, "dump", contents).error(), Status(Code::kIo, "", EIO));
  }
  EXPECT_TRUE(contents.entries.empty());
  EXPECT_TRUE(ReadRdb(files, "dump", contents));
  EXPECT_EQ(ReadRdb(files, "none", contents).error(), Status(Code::kIo, "", ENOENT));
}

// Refuses the first thing it is shown.
struct Refusing final : RdbVisitor {
  Status OnString(uint64_t, std::string_view, std::string_view, uint64_t) override {
    return Status(Code::kOutOfMemory, "full", 7);
  }
  Status OnMembers(uint64_t, std::string_view, const RdbMembers&, uint64_t) override {
    return Status(Code::kAborted, "no members");
  }
  Status OnSkipped(uint64_t, std::string_view, std::string_view) override {
    return Status(Code::kAborted, "no");
  }
};

TEST(RdbReader, VisitorEndsTheReading) {
  Trace trace;
  SimFileSystem files(1, trace);
  const auto error_of = [&](const std::string& bytes) {
    auto file = files.Open("dump", FileSystem::Mode::kCreate);
    EXPECT_TRUE((*file)->Append(bytes).ok());
    Refusing visitor;
    return ReadRdb(files, "dump", visitor).error();
  };
  EXPECT_EQ(error_of(SmallFile()), Status(Code::kOutOfMemory, "", 7));
  EXPECT_EQ(error_of(RdbBuilder().Byte(2).String("set").Length(1).String("x").End()),
            Status(Code::kAborted, "no members"));
  EXPECT_EQ(error_of(RdbBuilder().Byte(15).String("stream").Raw(Stream(1)).End()),
            Status(Code::kAborted, "no"));
}

}  // namespace
}  // namespace skep::durable
