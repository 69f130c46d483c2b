#include "durable/log_files.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/mutex.h"
#include "durable/directory.h"

namespace skep::durable {
namespace {

// Bytes of zeroes that the next segment has before it becomes the current one.
constexpr uint64_t kFilledAtFirst = uint64_t{1} << 20;
// Zeroes are written in pieces of so many bytes, as a write keeps other writes out of the file.
constexpr uint64_t kPiece = uint64_t{32} << 10;

// So many zeroes, but not more than kFilledAtFirst.
std::string_view Zeroes(uint64_t count) {
  static const std::string zeroes(kFilledAtFirst, '\0');
  return std::string_view(zeroes).substr(0, count);
}

}  // namespace

Status LogFiles::Begin(uint64_t position, std::string_view bytes) {
  {
    const MutexLock lock(mutex_);
    lost_ = {};
  }
  if (const Status s = FindEpoch(); !s.ok()) return s;
  if (const Status s = WriteNext(bytes); !s.ok()) return s;
  {
    const MutexLock lock(mutex_);
    unsynced_.clear();
    current_.file = nullptr;
  }
  // An attempt after a failed one uses the same name, which may be there already: so it replaces
  // the segment of the failed one, and attempts do not fill the disk.
  if (failed_begin_ != position) ++*epoch_;
  failed_begin_ = position;
  if (const Status s = TakeNext(position, position + bytes.size()); !s.ok()) return s;
  if (const auto synced = Sync(); !synced) return synced.error();
  failed_begin_.reset();
  has_superseded_ = true;
  static_cast<void>(DropBefore(0, SIZE_MAX));  // if it fails a later call does it
  return {};
}

Status LogFiles::FindEpoch() {
  if (epoch_) return {};
  const auto found = ListStoreFiles(files_, directory_);
  if (!found) return found.error();
  uint64_t epoch = 0;
  for (const auto* segments : {&found->segments, &found->superseded}) {
    for (const SegmentId& segment : *segments) epoch = std::max(epoch, segment.epoch);
  }
  epoch_ = epoch;
  return {};
}

// Makes the next segment, with these bytes, and syncs them. It may take the space that is kept free
// for a snapshot: no batch is let in before it has succeeded.
Status LogFiles::WriteNext(std::string_view bytes) {
  if (!is_prepared()) {
    if (const Status s = MakeNext(segment_bytes_, false); !s.ok()) return s;
  }
  std::shared_ptr<File> next;
  {
    const MutexLock lock(mutex_);
    next = next_;
  }
  Status s = next->WriteAt(0, bytes);
  if (s.ok()) s = next->Sync();
  if (!s.ok()) LeaveNext();
  return s;
}

// Gives the next segment up, as its contents are not known any more: another one will be made.
void LogFiles::LeaveNext() {
  const MutexLock lock(mutex_);
  next_ = nullptr;
  next_bytes_ = 0;
}

// The next segment becomes the current one, which begins at `begin` and is written at `position`.
Status LogFiles::TakeNext(uint64_t begin, uint64_t position) {
  const std::string name = PathOf(SegmentName({.begin = begin, .epoch = *epoch_}));
  {
    const MutexLock lock(mutex_);
    unsynced_.reserve(unsynced_.size() + 1);  // nothing behind the renaming may fail
  }
  if (const Status s = files_.Rename(NextPath(), name); !s.ok()) {
    LeaveNext();  // it may have the new name nevertheless
    return s;
  }
  const MutexLock lock(mutex_);
  if (current_.file != nullptr) unsynced_.push_back(current_.file);
  const uint64_t filled = begin + std::min(kFilledAtFirst, segment_bytes_);  // zeroes
  current_ = {.file = std::exchange(next_, nullptr),
              .begin = begin,
              .bytes = std::exchange(next_bytes_, 0),
              .filled = std::max(filled, position)};
  position_ = position;
  names_unsynced_ = true;
  return {};
}

bool LogFiles::IsFilled(uint64_t ahead) const {
  const MutexLock lock(mutex_);
  const uint64_t to = std::min(position_ + ahead, current_.end());
  return current_.file == nullptr || current_.filled >= to;
}

void LogFiles::FillAhead() {
  while (!IsFilled(kFilledAhead)) {
    const MutexLock filling(filling_);
    Segment segment;
    {
      const MutexLock lock(mutex_);
      segment = current_;
    }
    const uint64_t end = segment.end();
    if (segment.filled >= end) continue;  // the writer has been there
    const std::string_view zeroes = Zeroes(std::min(kPiece, end - segment.filled));
    const Status s = segment.file->WriteAt(segment.filled - segment.begin, zeroes);
    if (!s.ok()) return;
    const MutexLock lock(mutex_);
    if (current_.file == segment.file) current_.filled = segment.filled + zeroes.size();
  }
}

Status LogFiles::Write(std::string_view bytes) {
  uint64_t position = 0;
  bool is_full = false;
  {
    const MutexLock lock(mutex_);
    position = position_;
    is_full = position > current_.begin && position + bytes.size() > current_.end();
  }
  // Without a next segment, or if the directory is gone, the current one grows, so that batches
  // that have begun can be logged.
  if (is_full && is_prepared()) {
    const Status s = TakeNext(position, position);
    if (!s.ok() && s.detail() != ENOENT) return s;
    const MutexLock lock(mutex_);
    lost_ = s;
  }
  if (IsFilled(bytes.size())) return WriteAtEnd(bytes);
  const MutexLock filling(filling_);
  return WriteAtEnd(bytes);
}

Status LogFiles::WriteAtEnd(std::string_view bytes) {
  std::shared_ptr<File> file;
  uint64_t offset = 0;
  {
    const MutexLock lock(mutex_);
    file = current_.file;
    offset = position_ - current_.begin;
  }
  if (const Status s = file->WriteAt(offset, bytes); !s.ok()) return s;
  const MutexLock lock(mutex_);
  position_ += bytes.size();
  current_.filled = std::max(current_.filled, position_);
  return {};
}

Result<uint64_t> LogFiles::Sync() {
  std::vector<std::shared_ptr<File>> to_sync;
  ptrdiff_t ended = 0;  // segments that nothing more is written to
  uint64_t position = 0;
  bool names = false;
  {
    const MutexLock lock(mutex_);
    to_sync = unsynced_;
    ended = std::ssize(unsynced_);
    if (current_.file != nullptr) to_sync.push_back(current_.file);
    position = position_;
    names = std::exchange(names_unsynced_, false);
  }
  for (const auto& file : to_sync) {
    if (const Status s = file->Sync(); !s.ok()) return Fail(s);
  }
  if (names) {
    if (const Status s = files_.SyncDirectory(directory_); !s.ok()) return Fail(s);
  }
  // A segment that was current may have ended since, with more bytes: it stays in the list.
  const MutexLock lock(mutex_);
  unsynced_.erase(unsynced_.begin(), unsynced_.begin() + ended);
  return position;
}

bool LogFiles::is_prepared() const {
  const MutexLock lock(mutex_);
  return next_ != nullptr;
}

// Whether so many bytes can be taken without touching the space that is kept free.
Status LogFiles::LeavesFree(uint64_t bytes) {
  const uint64_t kept_free = kept_free_.load(std::memory_order_relaxed);
  if (kept_free == 0 || bytes == 0) return {};
  const uint64_t free = files_.FreeBytes(directory_);
  if (free >= kept_free && free - kept_free >= bytes) return {};
  return {Code::kIo, "the last space of the disk is kept for a snapshot", ENOSPC};
}

Status LogFiles::Prepare(uint64_t bytes) {
  const uint64_t wanted = std::max(bytes, segment_bytes_);
  std::shared_ptr<File> next;
  uint64_t has = 0;
  {
    const MutexLock lock(mutex_);
    if (!lost_.ok()) return lost_;
    next = next_;
    has = next_bytes_;
  }
  if (next == nullptr) return MakeNext(wanted, true);
  if (has >= wanted) return {};
  Status s = LeavesFree(wanted - has);
  if (!s.ok()) return s;
  s = next->Allocate(wanted);
  const MutexLock lock(mutex_);
  if (!s.ok()) {
    // Space that was taken in part is given back, unless the writer has taken the segment
    // meanwhile.
    if (next_ == next) static_cast<void>(next->Truncate(has));
    return s;
  }
  if (next_ == next) next_bytes_ = wanted;
  if (current_.file == next) current_.bytes = wanted;
  return {};
}

Status LogFiles::MakeNext(uint64_t wanted, bool leaves_free) {
  auto file = files_.Open(NextPath(), FileSystem::Mode::kCreate);
  if (!file) return file.error();
  Status s = leaves_free ? LeavesFree(wanted) : Status();
  if (s.ok()) s = (*file)->Allocate(wanted);
  if (s.ok()) s = (*file)->WriteAt(0, Zeroes(segment_bytes_));
  if (s.ok()) s = (*file)->Sync();
  if (!s.ok()) {
    static_cast<void>(files_.Remove(NextPath()));  // gives back space that was taken in part
    return s;
  }
  const MutexLock lock(mutex_);
  next_ = std::move(*file);
  next_bytes_ = wanted;
  return {};
}

LogFiles::Room LogFiles::room() const {
  const MutexLock lock(mutex_);
  if (current_.file == nullptr) return {};
  return {.position = position_,
          .current = current_.end() - std::min(current_.end(), position_),
          .next = lost_.ok() ? next_bytes_ : 0};
}

Status LogFiles::Check() {
  std::string path;
  {
    const MutexLock lock(mutex_);
    if (current_.file == nullptr) return {};
    path = PathOf(SegmentName({.begin = current_.begin, .epoch = *epoch_}));
  }
  const auto file = files_.Open(path, FileSystem::Mode::kRead);
  const MutexLock lock(mutex_);
  // If the current segment is there only the next one was gone, and another one can be made.
  if (file) lost_ = {};
  if (!lost_.ok()) return lost_;
  return file ? Status() : file.error();
}

// The segments of the chain before the position: a segment ends where the next one begins.
std::vector<SegmentId> LogFiles::WithoutAnythingFrom(uint64_t position,
                                                     const std::vector<SegmentId>& chain) {
  std::vector<SegmentId> segments;
  for (size_t i = 0; i + 1 < chain.size() && chain[i + 1].begin <= position; ++i) {
    segments.push_back(chain[i]);
  }
  return segments;
}

Result<bool> LogFiles::DropBefore(uint64_t position, size_t segments_max) {
  const auto found = ListStoreFiles(files_, directory_);
  if (!found) return Fail(found.error());
  std::vector<SegmentId> dropped = found->superseded;
  const auto before = WithoutAnythingFrom(position, found->segments);
  dropped.insert(dropped.end(), before.begin(), before.end());
  const bool is_all = dropped.size() <= segments_max;
  if (!is_all) dropped.resize(segments_max);
  for (const SegmentId& segment : dropped) {
    if (const Status s = files_.Remove(PathOf(SegmentName(segment))); !s.ok()) return Fail(s);
  }
  if (is_all) has_superseded_ = false;
  return is_all;
}

// The name of a segment that Begin() has made may not be synced, and until it is, the segments that
// it supersedes count. Here it is synced before the first removal, and none of those is removed.
bool LogFiles::DropChainBefore(uint64_t position) {
  const auto found = ListStoreFiles(files_, directory_);
  if (!found) return false;
  const auto before = WithoutAnythingFrom(position, found->segments);
  if (before.empty() || !files_.SyncDirectory(directory_).ok()) return false;
  return std::ranges::all_of(before, [&](const SegmentId& segment) {
    return files_.Remove(PathOf(SegmentName(segment))).ok();
  });
}

}  // namespace skep::durable
