#include "sim/sim_file.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace skep {

namespace {

Status IoError(const char* what, int error) {
  return error == 0 ? Status() : Status(Code::kIo, what, static_cast<uint64_t>(error));
}

}  // namespace

class SimFile final : public File {
 public:
  SimFile(SimFileSystem& disk, std::shared_ptr<SimInode> inode, bool writable)
      : disk_(disk), inode_(std::move(inode)), writable_(writable), crashes_(disk.crashes_) {}

  Result<size_t> ReadAt(uint64_t offset, char* to, size_t bytes) override {
    if (const int error = Begin(SimFileSystem::Operation::kRead)) {
      return Fail(IoError("cannot read a file", error));
    }
    const std::string& content = inode_->content();
    if (offset >= content.size()) return 0;
    size_t count = std::min<size_t>(bytes, content.size() - offset);
    if (count > 1 && disk_.random_.Chance(disk_.options_.short_reads_ppm, 1'000'000)) {
      count = 1 + disk_.random_.Below(count - 1);
    }
    memcpy(to, content.data() + offset, count);
    disk_.trace_.Note(Trace::Event::kFileRead, offset, Trace::Of({to, count}));
    return count;
  }

  Status Append(std::string_view bytes) override { return Write(inode_->content().size(), bytes); }
  Status WriteAt(uint64_t offset, std::string_view bytes) override { return Write(offset, bytes); }

  Status Sync() override {
    const int error = Begin(SimFileSystem::Operation::kSync);
    if (error == 0) {
      inode_->Sync();
    } else if (IsAlive()) {
      inode_->FailSync(disk_.random_);
    }
    disk_.trace_.Note(Trace::Event::kFileSync, static_cast<uint64_t>(error));
    if (const auto meanwhile = disk_.options_.during_sync) meanwhile();
    return IoError("cannot sync a file", error);
  }

  Status Truncate(uint64_t bytes) override {
    const int error = BeginWrite(bytes);
    if (error == 0) inode_->Truncate(bytes);
    disk_.trace_.Note(Trace::Event::kFileTruncate, bytes, static_cast<uint64_t>(error));
    return IoError("cannot truncate a file", error);
  }

  Status Allocate(uint64_t bytes) override {
    const uint64_t now = inode_->content().size();
    return bytes <= now ? Status() : Write(now, std::string(bytes - now, '\0'));
  }

  Result<uint64_t> Size() override {
    if (!IsAlive()) return Fail(IoError("cannot read a file's size", EIO));
    return inode_->content().size();
  }

 private:
  bool IsAlive() const { return crashes_ == disk_.crashes_; }

  int Begin(SimFileSystem::Operation operation) {
    return IsAlive() ? disk_.DrawFault(operation) : EIO;
  }

  // For a change after which the file has at least `size` bytes.
  int BeginWrite(uint64_t size) {
    if (!writable_) return EBADF;
    if (const int error = Begin(SimFileSystem::Operation::kWrite)) return error;
    const uint64_t now = inode_->content().size();
    return size <= now || disk_.HasRoom(size - now) ? 0 : ENOSPC;
  }

  Status Write(uint64_t offset, std::string_view bytes) {
    const int error = BeginWrite(bytes.empty() ? 0 : offset + bytes.size());
    if (error == 0) {
      inode_->Write(offset, bytes);
    } else if (writable_ && IsAlive() && offset == inode_->content().size()) {
      LeaveTornAppend(bytes);
    }
    disk_.trace_.Note(Trace::Event::kFileWrite, offset, Trace::Of(bytes));
    return IoError("cannot write a file", error);
  }

  // What a failed append has written is taken back, but a power loss may come between the two.
  void LeaveTornAppend(std::string_view bytes) {
    const uint64_t end = inode_->content().size();
    inode_->Write(end, bytes.substr(0, disk_.random_.Below(bytes.size() + 1)));
    inode_->Truncate(end);
  }

  SimFileSystem& disk_;
  std::shared_ptr<SimInode> inode_;
  bool writable_;
  uint64_t crashes_;  // of the disk, when it was opened
};

class SimFileSystem::HeldLock final : public FileLock {
 public:
  HeldLock(SimFileSystem& disk, const std::string& path)
      : disk_(disk), path_(path), crashes_(disk.crashes_) {}
  ~HeldLock() override {
    if (crashes_ == disk_.crashes_) disk_.locks_.erase(path_);
  }

 private:
  SimFileSystem& disk_;
  const std::string path_;
  const uint64_t crashes_;  // of the disk: a power loss has let go of it
};

SimFileSystem::SimFileSystem(uint64_t seed, Trace& trace, Options options)
    : trace_(trace), options_(options), random_(seed) {}

void SimFileSystem::Crash() {
  ++crashes_;
  locks_.clear();
  names_.LosePower(random_);
  trace_.Note(Trace::Event::kCrash, crashes_, names_.TotalBytes());
}

void SimFileSystem::FailOnce(Operation operation, uint64_t successes, int error) {
  plans_.push_back({operation, successes, error});
}

int SimFileSystem::DrawFault(Operation operation) {
  int error = PlannedFault(operation);
  if (error == 0 && random_.Chance(ErrorsPpm(operation), 1'000'000)) error = EIO;
  if (error != 0) {
    trace_.Note(Trace::Event::kFault, static_cast<uint64_t>(operation),
                static_cast<uint64_t>(error));
  }
  return error;
}

int SimFileSystem::PlannedFault(Operation operation) {
  int error = 0;
  std::erase_if(plans_, [&](Plan& plan) {
    if (plan.operation != operation || error != 0) return false;
    if (plan.successes_left > 0) {
      --plan.successes_left;
      return false;
    }
    error = plan.error;
    return true;
  });
  return error;
}

uint32_t SimFileSystem::ErrorsPpm(Operation operation) const {
  switch (operation) {
    case Operation::kRead:
      return options_.read_errors_ppm;
    case Operation::kWrite:
      return options_.write_errors_ppm;
    case Operation::kSync:
      return options_.sync_errors_ppm;
    case Operation::kDirectory:
      return 0;
  }
  return 0;
}

bool SimFileSystem::HasRoom(uint64_t more_bytes) const {
  const uint64_t used = names_.TotalBytes();
  return used <= options_.capacity_bytes && more_bytes <= options_.capacity_bytes - used;
}

Result<std::unique_ptr<File>> SimFileSystem::Open(const std::string& path, Mode mode) {
  constexpr const char* kWhat = "cannot open a file";
  if (const int error = DrawFault(Operation::kDirectory)) return Fail(IoError(kWhat, error));
  const SimNames::Node* node = names_.Find(path);
  if (node == nullptr) {
    if (mode == Mode::kRead || !names_.IsDirectory(SimNames::DirectoryOf(path))) {
      return Fail(IoError(kWhat, ENOENT));
    }
    names_.Set(path, SimNames::Node{.file = std::make_shared<SimInode>()});
    node = names_.Find(path);
  } else if (node->is_directory()) {
    return Fail(IoError(kWhat, EISDIR));
  } else if (mode == Mode::kCreate) {
    node->file->Truncate(0);
  }
  trace_.Note(Trace::Event::kFileOpen, Trace::Of(path), static_cast<uint64_t>(mode));
  return std::make_unique<SimFile>(*this, node->file, mode != Mode::kRead);
}

Result<std::unique_ptr<FileLock>> SimFileSystem::Lock(const std::string& path) {
  if (const auto file = Open(path, Mode::kReadWrite); !file) return Fail(file.error());
  if (!locks_.insert(path).second) return Fail(Code::kUnavailable, "a file is locked by another");
  return std::make_unique<HeldLock>(*this, path);
}

Status SimFileSystem::Rename(const std::string& from, const std::string& to) {
  constexpr const char* kWhat = "cannot rename a file";
  if (const int error = DrawFault(Operation::kDirectory)) return IoError(kWhat, error);
  const SimNames::Node* const node = names_.Find(from);
  if (node == nullptr || !names_.IsDirectory(SimNames::DirectoryOf(to))) {
    return IoError(kWhat, ENOENT);
  }
  if (node->is_directory()) return IoError(kWhat, ENOTSUP);
  if (names_.IsDirectory(to)) return IoError(kWhat, EISDIR);
  names_.Rename(from, to);
  trace_.Note(Trace::Event::kDirectory, Trace::Of(from), Trace::Of(to));
  return {};
}

Status SimFileSystem::Remove(const std::string& path) {
  constexpr const char* kWhat = "cannot remove a file";
  if (const int error = DrawFault(Operation::kDirectory)) return IoError(kWhat, error);
  const SimNames::Node* const node = names_.Find(path);
  if (node == nullptr) return IoError(kWhat, ENOENT);
  if (node->is_directory() && !names_.List(path).empty()) return IoError(kWhat, ENOTEMPTY);
  names_.Set(path, std::nullopt);
  trace_.Note(Trace::Event::kDirectory, Trace::Of(path));
  return {};
}

Status SimFileSystem::CreateDirectory(const std::string& path) {
  constexpr const char* kWhat = "cannot create a directory";
  if (const int error = DrawFault(Operation::kDirectory)) return IoError(kWhat, error);
  if (names_.IsDirectory(path)) return {};
  if (names_.Find(path) != nullptr) return IoError(kWhat, EEXIST);
  if (!names_.IsDirectory(SimNames::DirectoryOf(path))) return IoError(kWhat, ENOENT);
  names_.Set(path, SimNames::Node());
  trace_.Note(Trace::Event::kDirectory, Trace::Of(path));
  return {};
}

Result<std::vector<std::string>> SimFileSystem::List(const std::string& path) {
  constexpr const char* kWhat = "cannot list a directory";
  if (const int error = DrawFault(Operation::kDirectory)) return Fail(IoError(kWhat, error));
  const SimNames::Node* const node = names_.Find(path);
  if (node == nullptr) return Fail(IoError(kWhat, ENOENT));
  if (!node->is_directory()) return Fail(IoError(kWhat, ENOTDIR));
  return names_.List(path);
}

Status SimFileSystem::SyncDirectory(const std::string& path) {
  constexpr const char* kWhat = "cannot sync a directory";
  if (const int error = DrawFault(Operation::kSync)) return IoError(kWhat, error);
  if (!names_.IsDirectory(path)) return IoError(kWhat, ENOENT);
  names_.SyncDirectory(path);
  trace_.Note(Trace::Event::kFileSync, Trace::Of(path));
  return {};
}

}  // namespace skep
