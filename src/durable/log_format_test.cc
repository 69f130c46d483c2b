// The format stays what it is: logs of old versions, and what docs/formats/log.md shows.
#include "durable/log_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "durable/log_change.h"
#include "durable/log_test.h"
#include "durable/page_test.h"
#include "types/large_record.h"

namespace skep::durable {
namespace {

constexpr uint64_t kFar = 4'000'000'000'000;

TEST(LogFormat, HeaderRoundTrip) {
  for (const uint64_t position : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40, UINT64_MAX}) {
    char bytes[kRecordHeaderBytes];
    WriteHeader({.payload_crc = 0x12345678, .payload_bytes = kRecordBytesMax, .position = position},
                bytes);
    EXPECT_EQ(PositionIn(bytes), position);
    const auto header = ReadHeader(bytes, position);
    ASSERT_TRUE(header.has_value());
    EXPECT_EQ(header->payload_crc, 0x12345678u);
    EXPECT_EQ(header->payload_bytes, kRecordBytesMax);
    EXPECT_EQ(header->position, position);
    EXPECT_FALSE(ReadHeader(bytes, position + 1));
  }
}

TEST(LogFormat, EveryBitOfAHeaderCounts) {
  char bytes[kRecordHeaderBytes];
  WriteHeader({.payload_crc = 7, .payload_bytes = 1'000, .position = 99}, bytes);
  for (size_t bit = 0; bit < 8 * kRecordHeaderBytes; ++bit) {
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_FALSE(ReadHeader(bytes, 99)) << bit;
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
}

TEST(LogFormat, ZeroesAreNoHeader) {
  const char bytes[kRecordHeaderBytes] = {};
  EXPECT_FALSE(ReadHeader(bytes, 0));
}

TEST(LogFormat, RecordsThatAreTooLarge) {
  char bytes[kRecordHeaderBytes];
  WriteHeader({.payload_bytes = kRecordBytesMax + 1}, bytes);
  EXPECT_FALSE(ReadHeader(bytes, 0));
}

TEST(LogFormat, NamesOfSegments) {
  EXPECT_EQ(SegmentName({.begin = 0x3ffc2d8, .epoch = 0x1f}), "log-0000000003ffc2d8-0000001f.skl");
  EXPECT_EQ(SegmentName(0x3ffc2d8), "log-0000000003ffc2d8.skl") << "version 1";
  for (const uint64_t begin : {uint64_t{0}, uint64_t{0xabcdef}, UINT64_MAX}) {
    for (const uint64_t epoch : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, UINT64_MAX}) {
      const SegmentId segment = {.begin = begin, .epoch = epoch};
      EXPECT_EQ(ReadSegmentName(SegmentName(segment)), segment);
      EXPECT_EQ(PositionOfSegment(SegmentName(segment)), begin);
    }
  }
  for (const char* const name :
       {"", "log-next.tmp", "log-.skl", "log-000000003ffc2d8.skl", "log-00000000003ffc2d8.skl",
        "log-0000000003ffc2g8.skl", "log--000000003ffc2d8.skl", "log-0000000003ffc2d8.sks",
        "xlog-000000003ffc2d8.skl", "log-0000000003ffc2d8.skl.tmp", "log-0000000003FFC2D8.skl",
        "log-0000000003ffc2d8-.skl", "log-0000000003ffc2d8-00000000.skl",
        "log-0000000003ffc2d8-1.skl", "log-0000000003ffc2d8-0000000g.skl",
        "log-0000000003ffc2d8-0000001F.skl", "log-0000000003ffc2d8-00000001.skl.damaged",
        "log-0000000003ffc2d8-000000001.skl"}) {
    EXPECT_FALSE(ReadSegmentName(name)) << name;
  }
}

// Goal: what is superseded is what the rule says.
// Method: the rule as it stands, on random segments; each name at most once.
TEST(LogFormat, Superseded) {
  const auto supersedes = [](const SegmentId& by, const SegmentId& segment) {
    return by.epoch > segment.epoch && by.begin <= segment.begin;
  };
  const auto order = [](const SegmentId& s) { return std::pair(s.begin, s.epoch); };
  for (uint64_t seed = 0; seed < 1'000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 rng(seed);
    std::vector<SegmentId> all;
    for (uint64_t count = rng() % 12; count > 0; --count) {
      const SegmentId segment = {.begin = rng() % 8, .epoch = rng() % 6};
      if (std::ranges::find(all, segment) == all.end()) all.push_back(segment);
    }
    std::vector<SegmentId> superseded;
    std::vector<SegmentId> chain;
    for (const SegmentId& segment : all) {
      const bool is_superseded = std::ranges::any_of(
          all, [&](const SegmentId& other) { return supersedes(other, segment); });
      (is_superseded ? superseded : chain).push_back(segment);
    }
    std::ranges::sort(chain, {}, order);
    std::ranges::sort(superseded, {}, order);
    std::vector<SegmentId> left = all;
    std::vector<SegmentId> taken = TakeSuperseded(left);
    std::ranges::sort(taken, {}, order);
    EXPECT_EQ(left, chain);
    EXPECT_EQ(taken, superseded);
  }
}

// The files of a log that is kept in src/durable/golden.
Image GoldenImage(const std::string& name) {
  FileSystem& files = PosixFileSystem();
  const std::string directory = SKEP_GOLDEN "/" + name;
  const std::vector<std::string> names = files.List(directory).value();
  Image image;
  for (const std::string& file : names) {
    image[file] = files.ReadAll(directory + "/" + file).value();
  }
  return image;
}

// Goal: whatever version comes next, a log of an older one opens.
// Method: src/durable/golden/log_v1 has all kinds of changes and records, in segments that overlap,
// with a change that never was complete and a torn end; log_v2 has the same, and a segment that is
// superseded.
class LogFormatGolden : public testing::TestWithParam<const char*> {};

TEST_P(LogFormatGolden, Opens) {
  const Image image = GoldenImage(GetParam());
  TestStore store(image, LogSync::kNo, kTestSegmentBytes);
  ASSERT_TRUE(store.status().ok()) << store.problem();
  const std::string elements("\2\0\0\0\3\0\0\0", 8);
  const State first = {{"again", {"written", 0}},
                       {"due", {"date", 0}},
                       {"elements", {elements, kFar}},
                       {"moved", {std::string("\0\xff", 2), kFar + 1}},
                       {"text", {std::string(300, 'x') + "y", 0}}};
  EXPECT_EQ(store.States(), (std::vector<State>{first, {{"last", {"one", 0}}}}));
  EXPECT_EQ(store.report().log_dropped, 1u);
  EXPECT_FALSE(store.report().torn_file.empty());
}

INSTANTIATE_TEST_SUITE_P(Versions, LogFormatGolden, testing::Values("log_v1", "log_v2"),
                         [](const auto& version) { return std::string(version.param); });

// Goal: a log of version 3, the first one that has types, opens.
// Method: src/durable/golden/log_v3 has values that were put with types, with and without a
// deadline; a hash that was moved; a large one whose last change the log has as a function; and a
// set made by a function whose operand another one has returned. The process was killed.
TEST(LogFormat, GoldenVersion3Opens) {
  const Image image = GoldenImage("log_v3");
  TestStore store(image, LogSync::kNo, kTestSegmentBytes);
  ASSERT_TRUE(store.status().ok()) << store.problem();
  const struct {
    std::string_view key;
    uint8_t type;
    uint64_t deadline_ms;
    std::string value;
  } items[] = {
      {"large", 1, kFar + 1, "\2\2a\xd9\4" + std::string(600, 'x') + "\2b\0022"},
      {"moved", 1, 0, "\1\6field\6value"},
      {"other", 2, 0, "\1\2a"},
      {"put", 200, 0, "typed"},
      {"set", 2, 0, "\1\2b"},
      {"until", 201, kFar, ""},
  };
  State expected;
  for (const auto& item : items) expected[std::string(item.key)] = {item.value, item.deadline_ms};
  EXPECT_EQ(store.States(), (std::vector<State>{expected, {}}));
  Batch batch;
  for (const auto& item : items) batch.Add({.op = Op::kGet, .type = item.type, .key = item.key});
  store.engine(0).Execute(batch);
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    EXPECT_EQ(batch.outcome(slot).type, items[slot].type) << items[slot].key;
  }
}

// Goal: a log of version 4, the first one with deadlines of fields and levels of counts, opens.
// Method: src/durable/golden/log_v4 has a hash, one field of which a function has given a deadline,
// and the record of a large hash that a function has changed. The process was killed.
TEST(LogFormat, GoldenVersion4Opens) {
  const Image image = GoldenImage("log_v4");
  TestStore store(image, LogSync::kNo, kTestSegmentBytes);
  ASSERT_TRUE(store.status().ok()) << store.problem();
  const std::string deadline(reinterpret_cast<const char*>(&kFar), sizeof kFar);
  const types::LargeRecord record = {
      .id = 7, .members = 3, .bytes = 15, .writes = 2, .first = 1, .last = 1};
  const State expected = {{"fields", {std::string("\0\2\2a\0021\0", 7) + deadline + "\2b\0022", 0}},
                          {"large", {std::string(types::BytesOf(record)), 0}}};
  EXPECT_EQ(store.States(), (std::vector<State>{expected, {}}));
}

// Goal: a log of a newer version is refused, and the error names both versions.
// Method: a log of a start record of each version up to the next one.
TEST(LogFormat, NewerVersion) {
  for (uint32_t version = 1; version <= kLogVersion + 1; ++version) {
    std::string bytes;
    AppendRecord(bytes, 0, std::string("\2") + static_cast<char>(version));
    TestStore store({{SegmentName({.begin = 0, .epoch = 1}), bytes}}, LogSync::kNo,
                    kTestSegmentBytes);
    EXPECT_EQ(store.status().ok(), version <= kLogVersion) << store.problem();
    if (version <= kLogVersion) continue;
    EXPECT_NE(store.problem().find("the log is of format 5, this version reads up to 4"),
              std::string::npos)
        << store.problem();
  }
}

// Goal: the page's example is a log, and the one that is written for these changes.
TEST(LogFormat, WorkedExample) {
  const std::string bytes = BytesOfPage(SKEP_DOCS "/formats/log.md");
  TestStore store({{SegmentName({.begin = 0, .epoch = 1}), bytes}}, LogSync::kNo,
                  kTestSegmentBytes);
  ASSERT_TRUE(store.status().ok()) << store.problem();
  EXPECT_EQ(
      store.States(),
      (std::vector<State>{{{"bee", {"honey", 0}}, {"skep", {"straw", 1'764'000'060'000}}}, {}}));
  EXPECT_EQ(store.report().log_records, 4u);

  std::string written;
  const auto append = [&](std::string_view payload) {
    AppendRecord(written, written.size(), payload);
  };
  append(std::string("\x02\x04", 2));
  std::string changes;
  ChangeEncoder encoder(changes, 0, 1'764'000'000'000, 7);
  encoder.Add({.version = 7, .key = "bee", .value = "honey"});
  encoder.Add({.kind = LogChange::Kind::kPutUntil,
               .version = 8,
               .key = "skep",
               .value = "straw",
               .deadline_ms = 1'764'000'060'000});
  append(changes);
  append(std::string("\x03\x1a\x01\x00\x08", 5));
  append("\x04");
  EXPECT_TRUE(written == bytes) << testing::PrintToString(written);
}

}  // namespace
}  // namespace skep::durable
