// snapshot_test.h: snapshots as plain data, and their files.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "durable/snapshot_format.h"
#include "durable/snapshot_reader.h"
#include "durable/snapshot_writer.h"

namespace skep::durable {

struct TestItem {
  uint32_t keyspace;
  std::string key;
  std::string value;
  uint64_t deadline_ms = 0;
  uint8_t type = kPlainType;

  auto operator<=>(const TestItem&) const = default;
};

struct TestSnapshot {
  uint64_t created_ms = 1'700'000'000'000;
  std::vector<SnapshotKeyspace> keyspaces;  // ascending by index, the number of items right
  std::vector<TestItem> items;

  bool operator==(const TestSnapshot&) const = default;
};

// Sets how many items each keyspace has.
inline TestSnapshot Counted(TestSnapshot snapshot) {
  for (SnapshotKeyspace& keyspace : snapshot.keyspaces) {
    keyspace.items = static_cast<uint64_t>(
        std::ranges::count(snapshot.items, keyspace.index, &TestItem::keyspace));
  }
  return snapshot;
}

// Two keyspaces, three blocks, a few hundred bytes: one for each kind of byte there is.
inline TestSnapshot SmallSnapshot() {
  return Counted({.keyspaces = {{.index = 0,
                                 .engine = "btree",
                                 .version = 77,
                                 .now_ms = 1'700'000'000'123,
                                 .log_position = 4'096},
                                {.index = 3, .engine = "hash", .version = 5, .now_ms = 9}},
                  .items = {{0, "user:1", "Ada", 0},
                            {0, "user:12", std::string(200, 'x'), 1'800'000'000'000},
                            {3, std::string("\0\xff\r\n", 4), "", 1, 200},
                            {0, "", std::string(1, '\0'), UINT64_MAX}}});
}

inline Status WriteSnapshot(FileSystem& files, const std::string& path,
                            const TestSnapshot& snapshot) {
  auto writer = SnapshotWriter::Create(files, path, snapshot.created_ms);
  if (!writer) return writer.error();
  for (const TestItem& item : snapshot.items) {
    const Status status =
        (*writer)->Add(item.keyspace, item.key, item.value, item.deadline_ms, item.type);
    if (!status.ok()) return status;
  }
  return (*writer)->Finish(snapshot.keyspaces);
}

inline Result<TestSnapshot> ReadSnapshot(FileSystem& files, const std::string& path) {
  auto reader = SnapshotReader::Open(files, path);
  if (!reader) return Fail(reader.error());
  TestSnapshot snapshot = {
      .created_ms = (*reader)->created_ms(), .keyspaces = (*reader)->keyspaces(), .items = {}};
  for (size_t i = 0; i < (*reader)->block_count(); ++i) {
    const uint32_t keyspace = (*reader)->block(i).keyspace;
    const Status status = (*reader)->ReadBlock(i, [&](const SnapshotItem& item) {
      snapshot.items.push_back(
          {keyspace, std::string(item.key), std::string(item.value), item.deadline_ms, item.type});
      return Status();
    });
    if (!status.ok()) return Fail(status);
  }
  return snapshot;
}

inline void StoreBytes(FileSystem& files, const std::string& path, std::string_view bytes) {
  auto file = files.Open(path, FileSystem::Mode::kCreate);
  SKEP_CHECK(file && (*file)->Append(bytes).ok());
}

// Puts right, where there is room for them, all CRCs of bytes that are meant to be a snapshot.
inline void Reseal(std::string& bytes) {
  const auto load = [&]<typename T>(size_t at, T) {
    T number;
    memcpy(&number, &bytes[at], sizeof(T));
    return number;
  };
  const auto seal = [&](size_t at, uint64_t offset, size_t covered) {
    const uint32_t crc = CrcAt(offset, std::string_view(bytes).substr(offset, covered));
    memcpy(&bytes[at], &crc, sizeof(crc));
    return crc;
  };
  if (bytes.size() < sizeof(SnapshotHeader) + sizeof(SnapshotTrailer)) return;
  const uint32_t header_crc = Crc32c(std::string_view(bytes).substr(0, 20));
  memcpy(&bytes[20], &header_crc, sizeof(header_crc));

  const size_t end = bytes.size() - sizeof(SnapshotTrailer);
  const uint64_t footer = load(end, uint64_t{});
  if (footer > end) return;
  const size_t in_footer = end - footer;
  const uint64_t blocks = in_footer < sizeof(SnapshotFooterHead) ? 0 : load(footer + 8, uint64_t{});
  const bool has_index = blocks <= in_footer / sizeof(SnapshotIndexEntry);
  uint64_t offset = sizeof(SnapshotHeader);
  for (uint64_t i = 0; i < blocks && has_index; ++i) {
    if (offset > footer || footer - offset < sizeof(SnapshotBlockHeader)) break;
    const uint64_t payload = offset + sizeof(SnapshotBlockHeader);
    const uint64_t stored = std::min<uint64_t>(load(offset + 4, uint32_t{}), footer - payload);
    const uint32_t payload_crc = Crc32c(std::string_view(bytes).substr(payload, stored));
    memcpy(&bytes[offset + 24], &payload_crc, sizeof(payload_crc));
    const uint32_t crc = seal(offset + 28, offset, 28);
    memcpy(&bytes[end - (blocks - i) * sizeof(SnapshotIndexEntry) + 28], &crc, sizeof(crc));
    offset = payload + stored;
  }
  seal(end + 8, footer, in_footer);
  seal(end + 12, end, 12);
}

}  // namespace skep::durable
