// disk_reserve.h: space of the disk that is kept for the way out of a full one.
//
// A log only grows; what gives its space back is a snapshot, which needs space itself. So some is
// held in a file of which nothing is ever read, and given back to the file system when a snapshot
// is to be written and there is little else: then one of a store that is small, or out of which
// enough was deleted, can always be written, and the log before it goes.
//
// The file stays when the process ends, so that the space is there at the next start, too.
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

  // `files` must outlive it. As much as a segment of the log, but not more than kBytesMax.
  DiskReserve(FileSystem& files, const std::string& directory, uint64_t segment_bytes)
      : files_(files),
        path_(directory + "/" + kReserveFile),
        bytes_(std::min(segment_bytes, kBytesMax)) {}

  // Takes the space from the disk, if it is not held. False: there is none.
  bool Hold();
  // Whether the file is there: held, or left by a process before this one. Hold() then costs no
  // space.
  bool IsThere();
  // Gives it back.
  void LetGo();

  // Bytes, when it is held; and now.
  uint64_t bytes() const { return bytes_; }
  uint64_t held() const { return is_held_.load(std::memory_order_relaxed) ? bytes_ : 0; }

 private:
  FileSystem& files_;
  const std::string path_;
  const uint64_t bytes_;
  std::atomic<bool> is_held_{false};  // relaxed: for people and estimates
};

}  // namespace skep::durable
