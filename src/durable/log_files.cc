#include "durable/log_files.h"

#include <algorithm>
#include <utility>

#include "durable/directory.h"
#include "durable/log_format.h"

namespace skep::durable {

Status LogFiles::Begin(uint64_t position, std::string_view bytes) {
  if (const Status s = Prepare(); !s.ok()) return s;
  if (const Status s = next_->WriteAt(0, bytes); !s.ok()) return s;
  if (const Status s = next_->Sync(); !s.ok()) return s;
  {
    std::lock_guard lock(mutex_);
    unsynced_.clear();
    current_.file = nullptr;
  }
  if (const Status s = TakeNext(position, position + bytes.size()); !s.ok()) return s;
  const auto synced = Sync();
  return synced ? Status() : synced.error();
}

// It becomes the current one, and begins at `begin`.
Status LogFiles::TakeNext(uint64_t begin, uint64_t position) {
  const std::string name = PathOf(SegmentName(begin));
  if (const Status s = files_.Rename(NextPath(), name); !s.ok()) return s;
  std::lock_guard lock(mutex_);
  if (current_.file != nullptr) unsynced_.push_back(current_.file);
  current_ = {.file = std::exchange(next_, nullptr), .begin = begin};
  position_ = position;
  names_unsynced_ = true;
  return {};
}

// The next piece of the current segment, if what ends at `end` goes into it.
Status LogFiles::FillAhead(uint64_t end) {
  static const std::string zeroes(kFilledAhead, '\0');
  if (end <= current_.filled) return {};
  const uint64_t from = std::max(current_.filled, position_);
  const uint64_t to = std::min(from + kFilledAhead, current_.begin + segment_bytes_);
  if (to <= from) return {};
  current_.filled = to;
  return current_.file->WriteAt(from - current_.begin,
                                std::string_view(zeroes).substr(0, to - from));
}

Status LogFiles::Write(std::string_view bytes) {
  const bool is_full =
      position_ > current_.begin && position_ + bytes.size() > current_.begin + segment_bytes_;
  // Without a next one the segment grows.
  if (is_full && is_prepared()) {
    if (const Status s = TakeNext(position_, position_); !s.ok()) return s;
  }
  if (const Status s = FillAhead(position_ + bytes.size()); !s.ok()) return s;
  if (const Status s = current_.file->WriteAt(position_ - current_.begin, bytes); !s.ok()) return s;
  std::lock_guard lock(mutex_);
  position_ += bytes.size();
  return {};
}

Result<uint64_t> LogFiles::Sync() {
  std::vector<std::shared_ptr<File>> to_sync;
  uint64_t position = 0;
  bool names = false;
  {
    std::lock_guard lock(mutex_);
    to_sync = unsynced_;
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
  std::lock_guard lock(mutex_);
  std::erase_if(unsynced_, [&](const auto& file) {
    return std::ranges::find(to_sync, file) != to_sync.end();
  });
  return position;
}

bool LogFiles::is_prepared() const {
  std::lock_guard lock(mutex_);
  return next_ != nullptr;
}

Status LogFiles::Prepare() {
  if (is_prepared()) return {};
  auto file = files_.Open(NextPath(), FileSystem::Mode::kReadWrite);
  if (!file) return file.error();
  if (const Status s = (*file)->Allocate(segment_bytes_); !s.ok()) {
    static_cast<void>(files_.Remove(NextPath()));  // what it has taken is missed elsewhere
    return s;
  }
  std::lock_guard lock(mutex_);
  next_ = std::move(*file);
  return {};
}

Status LogFiles::DropBefore(uint64_t position) {
  const auto found = ListStoreFiles(files_, directory_);
  if (!found) return found.error();
  const auto& begins = found->segments;
  // A segment ends where the next one begins.
  for (size_t i = 0; i + 1 < begins.size() && begins[i + 1] <= position; ++i) {
    const std::string path = PathOf(SegmentName(begins[i]));
    const Status s = is_prepared() ? files_.Remove(path) : files_.Rename(path, NextPath());
    if (!s.ok()) return s;
    if (const Status prepared = Prepare(); !prepared.ok()) return prepared;
  }
  return {};
}

}  // namespace skep::durable
