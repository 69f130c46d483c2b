// The format stays what it is: logs of old versions, and what docs/formats/log.md shows.
#include "durable/log_format.h"

#include <gtest/gtest.h>

#include <string>

#include "durable/change.h"
#include "durable/log_test.h"
#include "durable/page_test.h"

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
  EXPECT_EQ(SegmentName(0x3ffc2d8), "log-0000000003ffc2d8.skl");
  for (const uint64_t position : {uint64_t{0}, uint64_t{0xabcdef}, UINT64_MAX}) {
    EXPECT_EQ(PositionOfSegment(SegmentName(position)), position);
  }
  for (const char* const name :
       {"", "log-next.tmp", "log-.skl", "log-000000003ffc2d8.skl", "log-00000000003ffc2d8.skl",
        "log-0000000003ffc2g8.skl", "log--000000003ffc2d8.skl", "log-0000000003ffc2d8.sks",
        "xlog-000000003ffc2d8.skl", "log-0000000003ffc2d8.skl.tmp", "log-0000000003FFC2D8.skl"}) {
    EXPECT_FALSE(PositionOfSegment(name)) << name;
  }
  EXPECT_LT(SegmentName(0x9), SegmentName(0xa));
  EXPECT_LT(SegmentName(0xff), SegmentName(0x100));
}

// Goal: whatever version comes next, a log of version 1 opens.
// Method: src/durable/golden/log_v1 has all kinds of changes and records, in segments that overlap,
// with a change that never was complete and a torn end.
TEST(LogFormat, GoldenVersion1Opens) {
  FileSystem& files = PosixFileSystem();
  const std::string directory = SKEP_GOLDEN "/log_v1";
  Image image;
  const auto names = files.List(directory);
  ASSERT_TRUE(names.has_value());
  for (const std::string& name : *names) {
    image[name] = *files.ReadAll(directory + "/" + name);
  }
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

// Goal: the page's example is a log, and the one that is written for these changes.
TEST(LogFormat, WorkedExample) {
  const std::string bytes = BytesOfPage(SKEP_DOCS "/formats/log.md");
  TestStore store({{SegmentName(0), bytes}}, LogSync::kNo, kTestSegmentBytes);
  ASSERT_TRUE(store.status().ok()) << store.problem();
  EXPECT_EQ(
      store.States(),
      (std::vector<State>{{{"bee", {"honey", 0}}, {"skep", {"straw", 1'764'000'060'000}}}, {}}));
  EXPECT_EQ(store.report().log_records, 4u);

  std::string written;
  const auto append = [&](std::string_view payload) {
    AppendRecord(written, written.size(), payload);
  };
  append(std::string("\x02\x01", 2));
  std::string changes;
  ChangeEncoder encoder(changes, 0, 1'764'000'000'000, 7);
  encoder.Add({.version = 7, .key = "bee", .value = "honey"});
  encoder.Add({.kind = Change::Kind::kPutUntil,
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
