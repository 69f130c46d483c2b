// log_files.h: the files the log is written to: a segment at a time, and the next one, ready.
//
// The next segment is taken from the disk before the current one is full. So a full disk is known
// while there is still room for all that was begun: the log admits what fits into what is taken
// (log.h).
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

// Space that was only allocated becomes written space when it is first written. That takes the file
// system a transaction, in the next sync too, and a page that it has to find: 0.1 to 2.5 ms for a
// MiB. So zeroes are written ahead of the writer, by the thread that prepares (FillAhead). Zeroes
// are written behind `filled` only, under filling_; the writer writes before it, or, where it comes
// first, under filling_, too. Nothing that reads the log needs the zeroes.
//
// Thread safety: one thread at a time writes, one at a time syncs, and one prepares, fills and
// drops; the three side by side. Begin() is for the last, while nobody writes or syncs.
class LogFiles {
 public:
  // `files` must outlive it.
  LogFiles(FileSystem& files, std::string directory, uint64_t segment_bytes)
      : files_(files), directory_(std::move(directory)), segment_bytes_(segment_bytes) {}

  // Begins a segment of a new epoch at the position, with these bytes, which are then synced, and
  // goes on behind them. It supersedes all segments that begin there or behind; they count until
  // its name is there, and are removed when its name is synced. To be called before the first
  // write, and after one has failed, or a sync. If it fails it may have begun the segment or not,
  // and has to be called again before anything is written.
  Status Begin(uint64_t position, std::string_view bytes);
  // At the end. If it fails the log has to be begun anew, from what is not synced on.
  Status Write(std::string_view bytes);
  // Behind the last byte written.
  uint64_t position() const {
    const MutexLock lock(mutex_);
    return position_;
  }

  // All that was written before the call. Returns the position up to which it is synced.
  Result<uint64_t> Sync();

  // Makes the next segment, if there is none: empty, of its full size, and synced. So what an
  // earlier file of that name held is gone before anything is written, also after a power loss.
  // If it has less room than so many bytes, it gets more.
  //   kIo  with ENOSPC: also if less than kept_free would be left for others
  Status Prepare(uint64_t bytes = 0);
  bool is_prepared() const;
  // Bytes that Prepare leaves free in the file system. Thread-safe.
  void set_kept_free(uint64_t bytes) { kept_free_.store(bytes, std::memory_order_relaxed); }

  // What is taken from the disk and not written yet.
  struct Room {
    uint64_t position = 0;  // from here on
    uint64_t current = 0;   // in the current segment
    uint64_t next = 0;      // in the next one
    // Any number of writes fit that have so many bytes together: into the current segment, or, if
    // one does not, it and those behind it into the next.
    uint64_t bytes() const { return std::max(current, next); }
  };
  Room room() const;
  uint64_t segment_bytes() const { return segment_bytes_; }

  // Whether the current segment can be found under its name, and the next one could take its place
  // when it was to. If not the directory is gone, and what is written from now on is lost with it.
  Status Check();

  // Writes zeroes over what comes next, until there are kFilledAhead. Not told if it fails: the
  // writer then finds out.
  void FillAhead();
  // Whether there are so few that it should be called. Thread-safe.
  bool wants_filling() const { return !IsFilled(kFilledAhead / 2); }

  // Drops the segments that have nothing from the position on, and those that are superseded, but
  // not more than so many. The current one stays. Whether that was all.
  Result<bool> DropBefore(uint64_t position, size_t segments_max);
  // Of the segments that a reader takes, drops those that have nothing from the position on, also
  // while the log has failed. Whether there was one.
  bool DropChainBefore(uint64_t position);
  // Whether Begin() has left superseded segments, which the next DropBefore() removes.
  bool has_superseded() const { return has_superseded_; }

 private:
  static constexpr uint64_t kFilledAhead = uint64_t{4} << 20;

  struct Segment {
    std::shared_ptr<File> file;
    uint64_t begin = 0;
    uint64_t bytes = 0;   // taken from the disk
    uint64_t filled = 0;  // up to this position, or written
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
  bool IsFilled(uint64_t ahead) const;  // so many bytes, or to the segment's end

  FileSystem& files_;
  const std::string directory_;
  const uint64_t segment_bytes_;
  // Of the last Begin(), or of a segment that was there before; nothing: it is not known yet.
  std::optional<uint64_t> epoch_;
  std::optional<uint64_t> failed_begin_;  // the position, until it succeeds
  bool has_superseded_ = false;
  std::atomic<uint64_t> kept_free_{0};  // relaxed: a wish

  Mutex filling_;  // held while zeroes are written; taken before mutex_
  // Not held during input and output, but for the way back of a growth that has failed.
  mutable Mutex mutex_;
  Segment current_ SKEP_GUARDED_BY(mutex_);
  uint64_t position_ SKEP_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<File> next_ SKEP_GUARDED_BY(mutex_);
  uint64_t next_bytes_ SKEP_GUARDED_BY(mutex_) = 0;  // taken from the disk
  // The directory has lost the next segment, so the current one grows.
  Status lost_ SKEP_GUARDED_BY(mutex_);
  // Segments before the current one.
  std::vector<std::shared_ptr<File>> unsynced_ SKEP_GUARDED_BY(mutex_);
  bool names_unsynced_ SKEP_GUARDED_BY(mutex_) = false;
};

}  // namespace skep::durable
