// The format stays what it is: files of old versions, and what docs/formats/snapshot.md shows.
#include "durable/snapshot_format.h"

#include <gtest/gtest.h>

#include "durable/page_test.h"
#include "durable/snapshot_test.h"
#include "sim/sim_file.h"

namespace skep::durable {
namespace {

// The contents of src/durable/golden/snapshot_v1: a block as it is, a compressed one, and one that
// is padded because it compresses too well. In snapshot_v2 and snapshot_v3 some items have types.
TestSnapshot GoldenSnapshot(bool has_types) {
  TestSnapshot snapshot = {
      .created_ms = 1'764'000'000'000,
      .keyspaces = {{.index = 0,
                     .engine = "btree",
                     .version = 123'456'789'012,
                     .now_ms = 1'764'000'000'001,
                     .log_position = 9'876'543'210},
                    {.index = 2, .engine = "model"},
                    {.index = 7, .engine = "hash", .version = 1, .now_ms = 1'764'000'000'002}},
      .items = {{7, std::string("\0\x01\xff", 3), "raw", 1'764'000'060'000}}};
  for (int i = 100; i < 400; ++i) {
    snapshot.items.push_back({0, "bee:" + std::to_string(i), "honey of bee " + std::to_string(i)});
  }
  snapshot.items.push_back({7, "", std::string(100'000, '\0')});
  if (has_types) {
    snapshot.items[0].type = 1;
    for (size_t i = 1; i < snapshot.items.size(); i += 3) {
      snapshot.items[i].type = static_cast<uint8_t>(1 + i % 255);
    }
  }
  return Counted(std::move(snapshot));
}

// Goal: whatever version comes next, files of those before open.
TEST(SnapshotFormat, GoldenVersionsOpen) {
  for (uint32_t version = 1; version <= kSnapshotVersion; ++version) {
    const Result<TestSnapshot> read =
        ReadSnapshot(PosixFileSystem(), SKEP_GOLDEN "/snapshot_v" + std::to_string(version));
    ASSERT_TRUE(read) << version << ": " << read.error().ToString();
    EXPECT_TRUE(*read == GoldenSnapshot(version >= 2)) << version;
  }
}

// Goal: the page's example is a file, and the one that is written for these items.
TEST(SnapshotFormat, WorkedExample) {
  const TestSnapshot example = Counted(
      {.created_ms = 1'764'000'000'000,
       .keyspaces = {{.index = 0,
                      .engine = "btree",
                      .version = 42,
                      .now_ms = 1'764'000'000'000,
                      .log_position = 4'096}},
       .items = {{0, "bee", "honey"}, {0, "beehive", std::string(1, '\xff'), 1'764'000'060'000}}});
  const std::string bytes = BytesOfPage(SKEP_DOCS "/formats/snapshot.md");
  Trace trace;
  SimFileSystem files(1, trace);
  StoreBytes(files, "example", bytes);
  const Result<TestSnapshot> read = ReadSnapshot(files, "example");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_TRUE(*read == example);
  ASSERT_TRUE(WriteSnapshot(files, "written", example).ok());
  const std::string written = *files.ReadAll("written");
  EXPECT_TRUE(written == bytes) << testing::PrintToString(written);
}

}  // namespace
}  // namespace skep::durable
