// snapshot_reader.h: reads a snapshot file, snapshot_format.h. snapshot_salvage.h reads damaged
// ones.
//
// No byte is believed before its CRC is checked, and no length before it is compared with the bytes
// that there are. Whatever the file has, Open takes memory for its footer, at most ten times the
// file's size; reading a block takes its size in the file and at most 1024 times as much, never
// more than the largest item (64 MiB).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "durable/snapshot_block.h"
#include "durable/snapshot_format.h"
#include "skep/status.h"

namespace skep::durable {

struct SnapshotBlockInfo {
  uint64_t offset;
  uint64_t bytes;  // in the file
  uint32_t raw_bytes;
  uint32_t items;
  uint32_t keyspace;  // the index; one of keyspaces()
};

// Thread safety: everything const may run on any threads at once, as far as File::ReadAt may.
class SnapshotReader {
 public:
  // Reads and checks header and footer. `files` outlives the reader.
  //   kCorrupt       it is no snapshot, not a whole one, or damaged; `detail` is the offset, in the
  //                  file, of what fails its check
  //   kNotSupported  a newer Skep wrote it; `detail` is the file's version
  //   kIo            the file cannot be opened or read
  static Result<std::unique_ptr<SnapshotReader>> Open(FileSystem& files, const std::string& path);

  uint64_t file_bytes() const { return file_bytes_; }
  uint32_t version() const { return version_; }
  uint64_t created_ms() const { return created_ms_; }
  // The keyspaces, ascending by index.
  const std::vector<SnapshotKeyspace>& keyspaces() const { return keyspaces_; }
  // The number of items of all keyspaces.
  uint64_t items() const { return items_; }
  uint64_t raw_bytes() const { return raw_bytes_; }

  size_t block_count() const { return index_.size(); }
  // Required: i < block_count().
  SnapshotBlockInfo block(size_t i) const;

  // Reads block `i` and calls visit for each of its items, in the order in which they were added.
  // Required: i < block_count(). Blocks may be read in any order, and by several threads.
  //   kCorrupt  the block is damaged; the detail is its offset. No item has been visited, unless
  //             the writer of the block was wrong already.
  //   kIo       the file cannot be read
  //   others    of visit, which ended it
  Status ReadBlock(size_t i, const SnapshotVisit& visit) const;

 private:
  friend class SnapshotSalvager;

  explicit SnapshotReader(std::unique_ptr<File> file) : file_(std::move(file)) {}

  Status ReadHeader();
  // Does not need the header.
  Status ReadFooter();
  Status ParseFooter(uint64_t offset, std::string_view footer);
  Status CheckIndex(uint64_t footer_offset) const;

  std::unique_ptr<File> file_;
  uint64_t file_bytes_ = 0;
  uint32_t version_ = 0;
  uint64_t created_ms_ = 0;
  std::vector<SnapshotKeyspace> keyspaces_;
  uint64_t items_ = 0;
  uint64_t raw_bytes_ = 0;
  std::vector<SnapshotIndexEntry> index_;
};

}  // namespace skep::durable
