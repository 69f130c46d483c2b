// disk_reserve.h: disk space that is held back, so that a store finds its way out of a full disk.
//
// A log only grows; a snapshot gives the log's space back, but needs space itself. So some space is
// held by a file of which nothing is ever read. It is given back to the file system when a snapshot
// is to be written and there is little other space. So a snapshot of a store that is small, or out
// of which enough was deleted, can always be written, and the log before it is dropped.
//
// The file stays when the process ends, so that the next start has the space, too.
//
// Thread safety: one thread at a time, but for held().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/file.h"

namespace skep::durable {

inline constexpr const char* kReserveFile = "reserve.tmp";

class DiskReserve {
 public:
  static constexpr uint64_t kBytesMax = uint64_t{16} << 20;

  // The reserve is as large as a segment of the log, but not larger than kBytesMax. `files` must
  // outlive it.
  DiskReserve(FileSystem& files, const std::string& directory, uint64_t segment_bytes)
      : files_(files),
        path_(directory + "/" + kReserveFile),
        bytes_(std::min(segment_bytes, kBytesMax)) {}

  // Takes the space from the disk, unless it is held already. False: the disk has none.
  bool Hold();
  // Whether the file is there: this process holds it, or an earlier one has left it. Hold() then
  // takes no further space.
  bool IsThere();
  // Gives the space back to the file system.
  void LetGo();

  // The size of the reserve, and how much of it is held now: all or 0.
  uint64_t bytes() const { return bytes_; }
  uint64_t held() const { return is_held_.load(std::memory_order_relaxed) ? bytes_ : 0; }

 private:
  FileSystem& files_;
  const std::string path_;
  const uint64_t bytes_;
  std::atomic<bool> is_held_{false};  // relaxed: for people and estimates
};

}  // namespace skep::durable
