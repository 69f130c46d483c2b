// Files that no writer makes: their CRCs are right, what they say is not.
#include "durable/snapshot_reader.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zstd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/mutex.h"
#include "durable/snapshot_test.h"
#include "sim/sim_file.h"

namespace skep::durable {
namespace {

struct Disk {
  Trace trace;
  SimFileSystem files{1, trace};
};

// The error that opening or reading a file of these bytes ends with, ok if there is none.
Status ErrorOf(std::string_view bytes) {
  Disk disk;
  StoreBytes(disk.files, "file", bytes);
  const Result<TestSnapshot> read = ReadSnapshot(disk.files, "file");
  return read ? Status() : read.error();
}

void ExpectCorrupt(const std::string& bytes) {
  const Status status = ErrorOf(bytes);
  EXPECT_EQ(status.code(), Code::kCorrupt) << status.ToString();
  EXPECT_LE(status.detail(), bytes.size());
}

std::string SmallFile() {
  Disk disk;
  EXPECT_TRUE(WriteSnapshot(disk.files, "file", SmallSnapshot()).ok());
  return *disk.files.ReadAll("file");
}

// What a file claims of its only block.
struct Claims {
  uint32_t raw_bytes;
  uint32_t items = 1;
  // Most items here are as version 1 had them, without types.
  SnapshotEncoding encoding = SnapshotEncoding::kRawUntyped;
};

// A file of one block with this payload.
std::string FileOf(std::string_view payload, const Claims& claims) {
  const SnapshotBlockHeader block = {.magic = kSnapshotBlockMagic,
                                     .stored_bytes = static_cast<uint32_t>(payload.size()),
                                     .raw_bytes = claims.raw_bytes,
                                     .items = claims.items,
                                     .keyspace = 0,
                                     .encoding = claims.encoding};
  const uint64_t bytes = sizeof(block) + payload.size();
  std::string file(BytesOf(SnapshotHeader{.magic = kSnapshotMagic, .version = kSnapshotVersion}));
  file.append(BytesOf(block)).append(payload);
  file += BytesOf(SnapshotFooterHead{.magic = kSnapshotFooterMagic,
                                     .keyspaces = 1,
                                     .blocks = 1,
                                     .items = claims.items,
                                     .raw_bytes = claims.raw_bytes});
  file += BytesOf(SnapshotKeyspaceEntry{.index = 0, .items = claims.items});
  file += BytesOf(SnapshotIndexEntry{.offset = sizeof(SnapshotHeader),
                                     .bytes = bytes,
                                     .raw_bytes = claims.raw_bytes,
                                     .items = claims.items});
  file += BytesOf(SnapshotTrailer{.footer_offset = sizeof(SnapshotHeader) + bytes,
                                  .magic = kSnapshotTrailerMagic});
  Reseal(file);
  return file;
}
std::string FileOfItems(std::string_view raw, uint32_t items) {
  return FileOf(raw, {.raw_bytes = static_cast<uint32_t>(raw.size()), .items = items});
}

std::string Zstd(std::string_view bytes) {
  std::string to(ZSTD_compressBound(bytes.size()), '\0');
  to.resize(ZSTD_compress(to.data(), to.size(), bytes.data(), bytes.size(), 1));
  return to;
}

using namespace std::literals;

// Goal: files made by hand are files, so that those below are refused for what is wrong with them.
TEST(SnapshotReader, ReadsWhatIsMadeByHand) {
  const std::string items = "\0\1\1\0ab\1\1\1\xff\1cd"s;
  EXPECT_TRUE(ErrorOf(FileOfItems(items, 2)).ok());
  EXPECT_TRUE(ErrorOf(FileOf(Zstd(items), {.raw_bytes = static_cast<uint32_t>(items.size()),
                                           .items = 2,
                                           .encoding = SnapshotEncoding::kZstdUntyped}))
                  .ok());
}

TEST(SnapshotReader, MalformedItems) {
  const std::string_view long_varint = "\0\1\1\x80\x80\x80\x80\x80\x80\x80\x80\x80\2ab"sv;
  const std::string_view endless_varint = "\0\1\1\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\1ab"sv;
  const std::pair<std::string_view, uint32_t> malformed[] = {
      {"\0\1\1\0a"sv, 1},             // too few bytes
      {"\0\1\1\0abc"sv, 1},           // too many
      {"\0\1\1\0ab"sv, 2},            // too few items
      {"\0\1\1\0ab\0\1\1\0ab"sv, 1},  // too many
      {"\1\1\1\0ab"sv, 1},            // shares with no key
      {"\0\1\0\0a\2\0\0\0"sv, 2},     // shares more than there is
      {"\0\1"sv, 1},                  // no lengths
      {"\0\x80"sv, 1},                // half a length
      {long_varint, 1},               // more than 64 bits
      {endless_varint, 1},
      {"\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\1\0ab"sv, 1},
      {"\0\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0ab"sv, 1},
  };
  for (const auto& [raw, items] : malformed) {
    SCOPED_TRACE(testing::PrintToString(raw));
    const Status status = ErrorOf(FileOfItems(raw, items));
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_EQ(status.detail(), sizeof(SnapshotHeader));
  }
  // Keys beyond the limit: in one piece, and of two.
  const std::string too_long(kSnapshotKeyBytesMax + 1, 'k');
  ExpectCorrupt(FileOfItems("\0\x81\x80\4\0\0"s + too_long, 1));
  const std::string longest = too_long.substr(1);
  EXPECT_TRUE(ErrorOf(FileOfItems("\0\x80\x80\4\0\0"s + longest, 1)).ok());
  ExpectCorrupt(FileOfItems("\0\x80\x80\4\0\0"s + longest + "\x80\x80\4\1\0\0k"s, 2));
}

// Goal: items with types are read, and refused where the type is missing or none.
TEST(SnapshotReader, ItemsWithTypes) {
  const auto error_of = [](std::string_view raw) {
    return ErrorOf(FileOf(raw, {.raw_bytes = static_cast<uint32_t>(raw.size()),
                                .encoding = SnapshotEncoding::kRaw}))
        .code();
  };
  EXPECT_EQ(error_of("\0\1\2\0ab"sv), Code::kOk);
  EXPECT_EQ(error_of("\0\1\3\0\7ab"sv), Code::kOk);
  EXPECT_EQ(error_of("\0\1\3\0\0ab"sv), Code::kCorrupt);  // the type is 0
  EXPECT_EQ(error_of("\0\1\3\0ab"sv), Code::kCorrupt);    // there is no type
  EXPECT_EQ(error_of("\0\0\1\0"sv), Code::kCorrupt);
}

TEST(SnapshotReader, BlocksThatClaimTooMuch) {
  const std::string item = "\0\1\1\0ab"s;
  const auto zstd = SnapshotEncoding::kZstdUntyped;
  // A bomb: it is larger than it says, however large it says it is.
  const std::string bomb = Zstd("\0\1\x80\xa4\xe8\3\0a"s + std::string(8'000'000, '\0'));
  for (const uint32_t raw_bytes :
       {uint32_t{6}, static_cast<uint32_t>(bomb.size() * 1024), uint32_t{8'000'008}, UINT32_MAX}) {
    ExpectCorrupt(FileOf(bomb, {.raw_bytes = raw_bytes, .encoding = zstd}));
  }
  ExpectCorrupt(FileOf(Zstd(item), {.raw_bytes = 7, .encoding = zstd}));
  ExpectCorrupt(FileOf(Zstd(item), {.raw_bytes = 5, .encoding = zstd}));
  ExpectCorrupt(FileOf(item, {.raw_bytes = 6, .encoding = zstd}));
  ExpectCorrupt(FileOf(item, {.raw_bytes = 7}));
  ExpectCorrupt(FileOf(item, {.raw_bytes = 6, .encoding = SnapshotEncoding{4}}));
  ExpectCorrupt(FileOf("", {.raw_bytes = 0, .items = 0}));
  ExpectCorrupt(FileOf(item, {.raw_bytes = 6, .items = UINT32_MAX}));
}

// Goal: what is longer than the format allows is refused although all of it is there.
TEST(SnapshotReader, ItemsAndBlocksBeyondTheLimits) {
  const std::string longest(kSnapshotValueBytesMax, 'v');
  EXPECT_TRUE(ErrorOf(FileOfItems("\0\0\x80\x80\x80\x20\0"s + longest, 1)).ok());
  ExpectCorrupt(FileOfItems("\0\0\x81\x80\x80\x20\0"s + longest + "v", 1));
  const std::string half = "\0\0\x80\x80\x80\x14\0"s + longest.substr(0, 40 * 1024 * 1024);
  EXPECT_TRUE(ErrorOf(FileOfItems(half, 1)).ok());
  ExpectCorrupt(FileOfItems(half + half, 2));
}

TEST(SnapshotReader, KeyspacesOutOfOrder) {
  Disk disk;
  ASSERT_TRUE(WriteSnapshot(disk.files, "file", {.keyspaces = {{.index = 1}, {.index = 2}}}).ok());
  const std::string bytes = *disk.files.ReadAll("file");
  const size_t first = sizeof(SnapshotHeader) + sizeof(SnapshotFooterHead);
  for (const int index : {0, 2, 3}) {
    std::string changed = bytes;
    changed[first] = static_cast<char>(index);
    Reseal(changed);
    if (index == 0) {
      EXPECT_TRUE(ErrorOf(changed).ok());
    } else {
      ExpectCorrupt(changed);
    }
  }
}

// Goal: no number of the footer is believed.
// Method: each of the small file's is replaced by others; the file is sealed again.
TEST(SnapshotReader, WrongFooters) {
  const std::string bytes = SmallFile();
  uint64_t footer;
  memcpy(&footer, &bytes[bytes.size() - sizeof(SnapshotTrailer)], sizeof(footer));
  const size_t keyspaces = footer + sizeof(SnapshotFooterHead);
  const size_t second = keyspaces + sizeof(SnapshotKeyspaceEntry) + 5;
  const size_t index = second + sizeof(SnapshotKeyspaceEntry) + 4;
  const size_t end = bytes.size() - sizeof(SnapshotTrailer);
  ASSERT_EQ(index + 3 * sizeof(SnapshotIndexEntry), end);
  struct Field {
    size_t at;
    size_t bytes;
  };
  const Field fields[] = {
      {footer, 4},      {footer + 4, 4},    {footer + 8, 8},     {footer + 16, 8}, {footer + 24, 8},
      {keyspaces, 4},   {keyspaces + 4, 4}, {keyspaces + 32, 8}, {second, 4},      {second + 4, 4},
      {second + 32, 8}, {index, 8},         {index + 8, 8},      {index + 16, 4},  {index + 20, 4},
      {index + 24, 4},  {index + 32, 8},    {index + 40, 8},     {end, 8},
  };
  for (const Field& field : fields) {
    for (const uint64_t add : {uint64_t{1}, ~uint64_t{0}, uint64_t{1} << 31, uint64_t{1} << 63}) {
      SCOPED_TRACE(testing::Message() << "at " << field.at << " added " << add);
      std::string wrong = bytes;
      uint64_t number = 0;
      memcpy(&number, &wrong[field.at], field.bytes);
      number += add;
      memcpy(&wrong[field.at], &number, field.bytes);
      if (wrong == bytes) continue;  // the field has no such bit
      Reseal(wrong);
      ExpectCorrupt(wrong);
    }
  }
}

// Goal: a newer file is refused for that, and the error names both versions.
TEST(SnapshotReader, NewerVersion) {
  std::string bytes = SmallFile();
  bytes[offsetof(SnapshotHeader, version)] = kSnapshotVersion + 1;
  Reseal(bytes);
  const Status status = ErrorOf(bytes);
  EXPECT_EQ(status.code(), Code::kNotSupported);
  EXPECT_EQ(status.detail(), 4u);
  EXPECT_NE(status.ToString().find("up to version 3, the file's is (4)"), std::string::npos)
      << status.ToString();
  bytes[offsetof(SnapshotHeader, version)] = 0;
  Reseal(bytes);
  ExpectCorrupt(bytes);
}

TEST(SnapshotReader, OtherFiles) {
  ExpectCorrupt("");
  ExpectCorrupt("REDIS0011");
  ExpectCorrupt(std::string(1'000, '\0'));
  Disk disk;
  EXPECT_EQ(SnapshotReader::Open(disk.files, "none").error(), Status(Code::kIo, "", ENOENT));
}

// Goal: every read fails once, and that is said.
TEST(SnapshotReader, FailingReads) {
  int failures = 0;
  for (uint64_t successes = 0;; ++successes) {
    Disk disk;
    ASSERT_TRUE(WriteSnapshot(disk.files, "file", SmallSnapshot()).ok());
    disk.files.set_options({.short_reads_ppm = 0});
    disk.files.FailOnce(SimFileSystem::Operation::kRead, successes, EIO);
    const Result<TestSnapshot> read = ReadSnapshot(disk.files, "file");
    if (read) break;
    EXPECT_EQ(read.error(), Status(Code::kIo, "", EIO));
    ++failures;
  }
  EXPECT_EQ(failures, 3 + 3 * 2);  // header, trailer, footer; header and payload of each block
}

TEST(SnapshotReader, VisitorEndsTheVisit) {
  Disk disk;
  ASSERT_TRUE(WriteSnapshot(disk.files, "file", SmallSnapshot()).ok());
  const auto reader = SnapshotReader::Open(disk.files, "file");
  int visited = 0;
  const Status full(Code::kOutOfMemory, "full", 7);
  EXPECT_EQ((*reader)->ReadBlock(0,
                                 [&](const SnapshotItem&) {
                                   ++visited;
                                   return full;
                                 }),
            full);
  EXPECT_EQ(visited, 1);
}

// Goal: threads read blocks of one reader side by side.
TEST(SnapshotReader, BlocksInAnyOrderByThreads) {
  const std::string path = testing::TempDir() + "skep-snapshot-threads-" + std::to_string(getpid());
  TestSnapshot snapshot = {.keyspaces = {{.index = 0}}, .items = {}};
  for (int i = 0; i < 20'000; ++i) {
    snapshot.items.push_back({0, std::to_string(1'000'000 + i), std::string(100, 'v')});
  }
  ASSERT_TRUE(WriteSnapshot(PosixFileSystem(), path, Counted(snapshot)).ok());
  const auto reader = SnapshotReader::Open(PosixFileSystem(), path);
  ASSERT_TRUE(reader) << reader.error().ToString();
  std::filesystem::remove(path);
  ASSERT_GT((*reader)->block_count(), 5u);

  std::atomic<size_t> next = 0;
  Mutex mutex;
  std::vector<TestItem> items;
  const auto work = [&] {
    for (size_t i = next++; i < (*reader)->block_count(); i = next++) {
      EXPECT_TRUE((*reader)
                      ->ReadBlock(i,
                                  [&](const SnapshotItem& item) {
                                    const MutexLock lock(mutex);
                                    items.push_back(
                                        {0, std::string(item.key), std::string(item.value)});
                                    return Status();
                                  })
                      .ok());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  }
  std::ranges::sort(items);
  EXPECT_TRUE(items == snapshot.items);
}

}  // namespace
}  // namespace skep::durable
