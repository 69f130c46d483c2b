// log_files.h: the files that the log is written to: the current segment, and the next one, ready.
//
// The next segment is taken from the disk before the current one is full. So a full disk is known
// while there is still room for every batch that was begun: the log admits batches only as long as
// their records fit into the space that is taken (log.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "durable/directory.h"
#include "durable/log_format.h"

namespace skep::durable {

// The first write to space that was only allocated is slow: the file system needs a transaction, in
// the next sync too, and has to find a page, which takes 0.1 to 2.5 ms for a MiB. So the thread
// that prepares writes zeroes ahead of the writer (FillAhead). Zeroes are written behind `filled`
// only, under filling_; the writer writes before `filled` or, where it gets there first, under
// filling_, too. No reader of the log needs the zeroes.
//
// Thread safety: one thread at a time writes, one at a time syncs, and one prepares, fills and
// drops; the three side by side. Begin() is for the thread that prepares, while none writes or
// syncs. It has 27 methods: all of them together keep the chain of segments (D1 to D3 in log.h).
class LogFiles {
 public:
  // `files` must outlive it.
  LogFiles(FileSystem& files, std::string directory, uint64_t segment_bytes)
      : files_(files), directory_(std::move(directory)), segment_bytes_(segment_bytes) {}

  // Begins a segment of a new epoch at the position, with these bytes, which are then synced;
  // writes go on behind them. The segment supersedes all that begin there or behind: those count
  // until its name is there, and are removed when its name is synced. To be called before the first
  // write, and after a write or sync has failed. If it fails it may have begun the segment or not,
  // and has to be called again before anything is written.
  Status Begin(uint64_t position, std::string_view bytes);
  // Writes at the end. If it fails the log has to be begun anew, at the last synced position.
  Status Write(std::string_view bytes);
  // The position behind the last byte written.
  uint64_t position() const {
    const MutexLock lock(mutex_);
    return position_;
  }

  // Syncs all that was written before the call. Returns the position up to which the log is synced.
  Result<uint64_t> Sync();

  // Makes the next segment, if there is none: empty, of its full size, and synced. So the bytes of
  // an earlier file of that name are gone before anything is written, also after a power loss. If
  // the next segment has less room than `bytes`, it gets more.
  //   kIo  with ENOSPC: also if less than kept_free would be left for others
  Status Prepare(uint64_t bytes = 0);
  bool is_prepared() const;
  // Bytes that Prepare leaves free in the file system. Thread-safe.
  void set_kept_free(uint64_t bytes) { kept_free_.store(bytes, std::memory_order_relaxed); }

  // Space that is taken from the disk and not written yet.
  struct Room {
    uint64_t position = 0;  // where it begins
    uint64_t current = 0;   // in the current segment
    uint64_t next = 0;      // in the next one
    // Any number of writes with so many bytes together fit: into the current segment or, if one of
    // them does not, that one and those behind it into the next.
    uint64_t bytes() const { return std::max(current, next); }
  };
  Room room() const;
  uint64_t segment_bytes() const { return segment_bytes_; }

  // Whether the current segment is found under its name, and the next one could take its place when
  // it had to. If not the directory is gone, and all that is written from now on is lost with it.
  Status Check();

  // Writes zeroes ahead of the writer, until there are kFilledAhead. A failure is not told: the
  // writer finds out.
  void FillAhead();
  // Whether so few zeroes are left that FillAhead() should be called. Thread-safe.
  bool wants_filling() const { return !IsFilled(kFilledAhead / 2); }

  // Removes the segments that have nothing from the position on, and those that are superseded, but
  // not more than so many. The current one stays. Returns whether these were all.
  Result<bool> DropBefore(uint64_t position, size_t segments_max);
  // Removes those segments of the chain that have nothing from the position on, also while the log
  // has failed. Returns whether there was one.
  bool DropChainBefore(uint64_t position);
  // Whether Begin() has left superseded segments, which the next DropBefore() removes.
  bool has_superseded() const { return has_superseded_; }

 private:
  static constexpr uint64_t kFilledAhead = uint64_t{4} << 20;

  struct Segment {
    std::shared_ptr<File> file;
    uint64_t begin = 0;
    uint64_t bytes = 0;   // taken from the disk
    uint64_t filled = 0;  // zeroes or records are written up to this position
    uint64_t end() const { return begin + bytes; }
  };

  std::string PathOf(std::string_view name) const { return directory_ + "/" + std::string(name); }
  std::string NextPath() const { return PathOf(kNextSegmentFile); }
  Status FindEpoch();
  Status WriteNext(std::string_view bytes);
  Status TakeNext(uint64_t begin, uint64_t position);
  void LeaveNext();
  Status WriteAtEnd(std::string_view bytes);
  static std::vector<SegmentId> WithoutAnythingFrom(uint64_t position,
                                                    const std::vector<SegmentId>& chain);
  Status MakeNext(uint64_t wanted, bool leaves_free);
  Status LeavesFree(uint64_t bytes);
  bool IsFilled(uint64_t ahead) const;  // ahead, or to the segment's end

  FileSystem& files_;
  const std::string directory_;
  const uint64_t segment_bytes_;
  // The epoch of the last Begin(), or the highest of the segments that were there before; nothing
  // if it is not known yet.
  std::optional<uint64_t> epoch_;
  std::optional<uint64_t> failed_begin_;  // position of a Begin() that has not succeeded yet
  bool has_superseded_ = false;
  std::atomic<uint64_t> kept_free_{0};  // relaxed: exactness is not needed

  Mutex filling_;  // held while zeroes are written; taken before mutex_
  // Not held during input and output, except where a growth that has failed is taken back.
  mutable Mutex mutex_;
  Segment current_ SKEP_GUARDED_BY(mutex_);
  uint64_t position_ SKEP_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<File> next_ SKEP_GUARDED_BY(mutex_);
  uint64_t next_bytes_ SKEP_GUARDED_BY(mutex_) = 0;  // taken from the disk
  // The directory has lost the next segment, so the current one grows.
  Status lost_ SKEP_GUARDED_BY(mutex_);
  // Segments before the current one that are not synced yet.
  std::vector<std::shared_ptr<File>> unsynced_ SKEP_GUARDED_BY(mutex_);
  bool names_unsynced_ SKEP_GUARDED_BY(mutex_) = false;
};

}  // namespace skep::durable
