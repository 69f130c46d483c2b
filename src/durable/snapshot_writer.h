// snapshot_writer.h: writes a snapshot file, snapshot_format.h.
//
// The file grows under its name with ".tmp" behind it, and gets its own name when all of it is on
// the disk: a file of that name is a whole snapshot, whenever the power goes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "durable/snapshot_block.h"
#include "durable/snapshot_format.h"
#include "skep/status.h"

namespace skep::durable {

// Thread safety: one owner. Memory: two blocks, 32 bytes for each block written, and about 600 KiB
// for zstd. A block is as large as the largest item, 256 KiB at least.
class SnapshotWriter {
 public:
  // Begins the file, in place of one that an earlier writer of this path has left unfinished.
  // `files` must outlive the writer.
  //   kIo  the file cannot be created or written
  static Result<std::unique_ptr<SnapshotWriter>> Create(FileSystem& files, const std::string& path,
                                                        uint64_t created_ms);
  ~SnapshotWriter();  // Abandon(), unless Finish() has been called
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // Adds an item. Items of a keyspace may come in several pieces; each piece begins a new block, so
  // pieces should be long. A key that has much in common with the one before costs less.
  //   kTooLarge  the key or value is longer than the format allows; `detail` is the limit
  //   kIo        a block cannot be written
  // After an error nothing more is written, the unfinished file is removed, and every call returns
  // that error.
  Status Add(uint32_t keyspace, std::string_view key, std::string_view value, uint64_t deadline_ms,
             uint8_t type = kPlainType);

  // Completes the file and gives it its name. Call it once, last. `keyspaces` describes every
  // keyspace, in any order; the writer sets the numbers of items.
  //   kInvalidArgument  an item's keyspace is missing, one is there twice, or an engine's name has
  //                     more than 255 bytes
  //   kIo               the file cannot be written, synced or renamed: there is no file of the
  //                     final name but one that was there before. Or the directory cannot be
  //                     synced: it is there, whole, but a power loss may undo the renaming.
  Status Finish(std::vector<SnapshotKeyspace> keyspaces);

  // Removes the unfinished file. No items can be added then.
  void Abandon();

  uint64_t bytes_written() const { return bytes_; }

 private:
  SnapshotWriter(FileSystem& files, const std::string& path, std::unique_ptr<File> file);

  Status Append(std::string_view bytes);
  Status FlushBlock();
  Status WriteFooter(std::vector<SnapshotKeyspace>& keyspaces);
  Status Publish();
  // Ends the writing after an error: keeps the first one, and removes the file.
  Status Ended(Status status);

  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<File> file_;  // null: finished, abandoned or failed
  Status status_;
  uint64_t bytes_ = 0;
  uint64_t synced_ = 0;    // of them
  uint32_t keyspace_ = 0;  // of the items in builder_
  SnapshotBlockBuilder builder_;
  SnapshotBlockEncoder encoder_;
  std::string block_;
  std::vector<SnapshotIndexEntry> index_;
};

}  // namespace skep::durable
