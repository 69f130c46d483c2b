#include "sim/sim_file.h"

#include <errno.h>

#include <algorithm>
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
    if (const int error = Begin(Call::kRead).error) {
      return Fail(IoError("cannot read a file", error));
    }
    if (offset >= inode_->size()) return 0;
    size_t count = std::min<uint64_t>(bytes, inode_->size() - offset);
    if (count > 1 && disk_.random_.Chance(disk_.options_.short_reads_ppm, 1'000'000)) {
      count = 1 + disk_.random_.Below(count - 1);
    }
    inode_->Read(offset, to, count);
    disk_.trace_.Note(Trace::Event::kFileRead, offset, Trace::Of({to, count}));
    return count;
  }

  Status Append(std::string_view bytes) override { return Write(inode_->size(), bytes); }
  Status WriteAt(uint64_t offset, std::string_view bytes) override { return Write(offset, bytes); }

  Status Sync() override {
    const Failure failure = Begin(Call::kSync);
    if (failure.error == 0 || failure.extent == Extent::kAll) {
      inode_->Sync();
    } else if (IsAlive()) {
      inode_->FailSync(disk_.random_);
    }
    disk_.trace_.Note(Trace::Event::kFileSync, static_cast<uint64_t>(failure.error));
    if (const auto meanwhile = disk_.options_.during_sync) meanwhile();
    return IoError("cannot sync a file", failure.error);
  }

  Status Truncate(uint64_t bytes) override {
    const Failure failure = BeginWrite(Call::kTruncate, bytes);
    Resize(bytes, failure);
    disk_.trace_.Note(Trace::Event::kFileTruncate, bytes, static_cast<uint64_t>(failure.error));
    return IoError("cannot truncate a file", failure.error);
  }

  Status Allocate(uint64_t bytes) override {
    const uint64_t size = std::max(bytes, inode_->size());
    const Failure failure = BeginWrite(Call::kAllocate, size);
    Resize(size, failure);
    disk_.trace_.Note(Trace::Event::kFileTruncate, size, static_cast<uint64_t>(failure.error));
    return IoError("cannot allocate a file's space", failure.error);
  }

  Result<uint64_t> Size() override {
    if (const int error = Begin(Call::kSize).error) {
      return Fail(IoError("cannot read a file's size", error));
    }
    return inode_->size();
  }

 private:
  using Call = SimFileSystem::Call;
  using Extent = SimFileSystem::Extent;
  using Failure = SimFileSystem::Failure;

  bool IsAlive() const { return crashes_ == disk_.crashes_; }

  Failure Begin(Call call) { return IsAlive() ? disk_.DrawFault(call) : Failure{.error = EIO}; }

  // Begins a change after which the file has at least `size` bytes.
  Failure BeginWrite(Call call, uint64_t size) {
    if (!writable_) return {.error = EBADF};
    const Failure failure = Begin(call);
    if (failure.error != 0) return failure;
    const uint64_t now = inode_->size();
    return {.error = size <= now || disk_.HasRoom(size - now) ? 0 : ENOSPC};
  }

  void Resize(uint64_t bytes, const Failure& failure) {
    const uint64_t now = inode_->size();
    if (failure.error == 0 || failure.extent == Extent::kAll) {
      if (bytes != now) inode_->Truncate(bytes);
    } else if (failure.extent == Extent::kPart) {
      inode_->Truncate(std::min(bytes, now) + (std::max(bytes, now) - std::min(bytes, now)) / 2);
    }
  }

  Status Write(uint64_t offset, std::string_view bytes) {
    const Failure failure = BeginWrite(Call::kWrite, bytes.empty() ? 0 : offset + bytes.size());
    if (failure.error == 0) {
      inode_->Write(offset, bytes);
    } else if (writable_ && IsAlive() && offset == inode_->size()) {
      LeaveTornAppend(bytes);
    } else if (failure.extent != Extent::kNone) {
      inode_->Write(offset,
                    bytes.substr(0, bytes.size() / (failure.extent == Extent::kAll ? 1 : 2)));
    }
    disk_.trace_.Note(Trace::Event::kFileWrite, offset, Trace::Of(bytes));
    return IoError("cannot write a file", failure.error);
  }

  // A failed append takes its bytes back, but a power loss may come between the two.
  void LeaveTornAppend(std::string_view bytes) {
    const uint64_t end = inode_->size();
    inode_->Write(end, bytes.substr(0, disk_.random_.Below(bytes.size() + 1)));
    inode_->Truncate(end);
  }

  SimFileSystem& disk_;
  std::shared_ptr<SimInode> inode_;
  bool writable_;
  uint64_t crashes_;  // the disk's, when the file was opened
};

class SimFileSystem::HeldLock final : public FileLock {
 public:
  HeldLock(SimFileSystem& disk, Locked locked)
      : disk_(disk), locked_(std::move(locked)), crashes_(disk.crashes_) {}
  ~HeldLock() override {
    if (crashes_ == disk_.crashes_) disk_.locks_.erase(locked_);
  }

 private:
  SimFileSystem& disk_;
  const Locked locked_;
  const uint64_t crashes_;  // the disk's: a power loss releases the lock
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
  counts_.push_back({operation, successes, error});
}

SimFileSystem::Operation SimFileSystem::OperationOf(Call call) {
  switch (call) {
    case Call::kRead:
      return Operation::kRead;
    case Call::kWrite:
    case Call::kAllocate:
    case Call::kTruncate:
      return Operation::kWrite;
    case Call::kSync:
    case Call::kSyncDirectory:
      return Operation::kSync;
    case Call::kSize:
      return Operation::kOther;
    case Call::kOpen:
    case Call::kRename:
    case Call::kRemove:
    case Call::kCreateDirectory:
    case Call::kList:
    case Call::kLock:
      return Operation::kDirectory;
  }
  return Operation::kOther;
}

SimFileSystem::Failure SimFileSystem::DrawFault(Call call) {
  const Operation operation = OperationOf(call);
  Failure failure = PlannedFault(call);
  if (failure.error == 0) failure.error = CountedFault(operation);
  if (failure.error == 0 && random_.Chance(ErrorsPpm(operation), 1'000'000)) failure.error = EIO;
  if (failure.error != 0) {
    trace_.Note(Trace::Event::kFault, static_cast<uint64_t>(operation),
                static_cast<uint64_t>(failure.error));
  }
  return failure;
}

// Each planned fault counts every call of its kind.
SimFileSystem::Failure SimFileSystem::PlannedFault(Call call) {
  Failure failure;
  std::erase_if(faults_, [&](Fault& fault) {
    if (fault.call != call) return false;
    if (fault.passed > 0) {
      --fault.passed;
      return false;
    }
    failure = {.error = fault.error, .extent = fault.extent};
    return !fault.is_for_ever;
  });
  if (failure.error != 0) ++faults_met_;
  return failure;
}

int SimFileSystem::CountedFault(Operation operation) {
  int error = 0;
  std::erase_if(counts_, [&](Count& count) {
    if (count.operation != operation || error != 0) return false;
    if (count.successes_left > 0) {
      --count.successes_left;
      return false;
    }
    error = count.error;
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
    case Operation::kOther:
      return 0;
  }
  return 0;
}

bool SimFileSystem::HasRoom(uint64_t more_bytes) const {
  const uint64_t used = names_.TotalBytes();
  return used <= options_.capacity_bytes && more_bytes <= options_.capacity_bytes - used;
}

uint64_t SimFileSystem::FreeBytes(const std::string&) {
  const uint64_t used = names_.TotalBytes();
  return options_.capacity_bytes - std::min(used, options_.capacity_bytes);
}

Result<std::unique_ptr<File>> SimFileSystem::Open(const std::string& path, Mode mode) {
  const Failure failure = DrawFault(Call::kOpen);
  if (failure.error != 0 && failure.extent != Extent::kAll) {
    return Fail(IoError("cannot open a file", failure.error));
  }
  auto inode = OpenInode(path, mode);
  if (!inode) return Fail(inode.error());
  trace_.Note(Trace::Event::kFileOpen, Trace::Of(path), static_cast<uint64_t>(mode));
  if (failure.error != 0) return Fail(IoError("cannot open a file", failure.error));
  return std::make_unique<SimFile>(*this, std::move(*inode), mode != Mode::kRead);
}

Result<std::shared_ptr<SimInode>> SimFileSystem::OpenInode(const std::string& path, Mode mode) {
  constexpr const char* kWhat = "cannot open a file";
  const SimNames::Node* node = names_.Find(path);
  if (node == nullptr) {
    if (mode == Mode::kRead || !names_.IsDirectory(SimNames::DirectoryOf(path))) {
      return Fail(IoError(kWhat, ENOENT));
    }
    names_.Set(path, SimNames::Node{.file = std::make_shared<SimInode>()});
    node = names_.Find(path);
  } else if (node->is_directory()) {
    return Fail(Code::kInvalidArgument, "not a regular file");
  } else if (mode == Mode::kCreate) {
    node->file->Truncate(0);
  }
  return node->file;
}

Result<std::unique_ptr<FileLock>> SimFileSystem::Lock(const std::string& path) {
  const Failure failure = DrawFault(Call::kLock);
  if (failure.error != 0) return Fail(IoError("cannot lock a file", failure.error));
  Locked locked;
  if (names_.IsDirectory(path)) {
    locked.second = path;
  } else {
    auto inode = OpenInode(path, Mode::kReadWrite);
    if (!inode) return Fail(inode.error());
    locked.first = std::move(*inode);
  }
  if (!locks_.insert(locked).second) return Fail(Code::kUnavailable, "a file is locked by another");
  return std::make_unique<HeldLock>(*this, std::move(locked));
}

Status SimFileSystem::Rename(const std::string& from, const std::string& to) {
  constexpr const char* kWhat = "cannot rename a file";
  const Failure failure = DrawFault(Call::kRename);
  if (failure.error != 0 && failure.extent != Extent::kAll) return IoError(kWhat, failure.error);
  const SimNames::Node* const node = names_.Find(from);
  if (node == nullptr || !names_.IsDirectory(SimNames::DirectoryOf(to))) {
    return IoError(kWhat, ENOENT);
  }
  if (node->is_directory()) return IoError(kWhat, ENOTSUP);
  if (names_.IsDirectory(to)) return IoError(kWhat, EISDIR);
  names_.Rename(from, to);
  trace_.Note(Trace::Event::kDirectory, Trace::Of(from), Trace::Of(to));
  return IoError(kWhat, failure.error);
}

Status SimFileSystem::Remove(const std::string& path) {
  constexpr const char* kWhat = "cannot remove a file";
  const Failure failure = DrawFault(Call::kRemove);
  if (failure.error != 0 && failure.extent != Extent::kAll) return IoError(kWhat, failure.error);
  const SimNames::Node* const node = names_.Find(path);
  if (node == nullptr) return IoError(kWhat, ENOENT);
  if (node->is_directory() && !names_.List(path).empty()) return IoError(kWhat, ENOTEMPTY);
  names_.Set(path, std::nullopt);
  trace_.Note(Trace::Event::kDirectory, Trace::Of(path));
  return IoError(kWhat, failure.error);
}

Status SimFileSystem::CreateDirectory(const std::string& path) {
  constexpr const char* kWhat = "cannot create a directory";
  const Failure failure = DrawFault(Call::kCreateDirectory);
  if (failure.error != 0 && failure.extent != Extent::kAll) return IoError(kWhat, failure.error);
  if (names_.IsDirectory(path)) return IoError(kWhat, failure.error);
  if (names_.Find(path) != nullptr) return IoError(kWhat, EEXIST);
  if (!names_.IsDirectory(SimNames::DirectoryOf(path))) return IoError(kWhat, ENOENT);
  names_.Set(path, SimNames::Node());
  trace_.Note(Trace::Event::kDirectory, Trace::Of(path));
  return IoError(kWhat, failure.error);
}

Result<std::vector<std::string>> SimFileSystem::List(const std::string& path) {
  constexpr const char* kWhat = "cannot list a directory";
  if (const int error = DrawFault(Call::kList).error) return Fail(IoError(kWhat, error));
  const SimNames::Node* const node = names_.Find(path);
  if (node == nullptr) return Fail(IoError(kWhat, ENOENT));
  if (!node->is_directory()) return Fail(IoError(kWhat, ENOTDIR));
  return names_.List(path);
}

Status SimFileSystem::SyncDirectory(const std::string& path) {
  constexpr const char* kWhat = "cannot sync a directory";
  const Failure failure = DrawFault(Call::kSyncDirectory);
  if (failure.error != 0 && failure.extent != Extent::kAll) return IoError(kWhat, failure.error);
  if (!names_.IsDirectory(path)) return IoError(kWhat, ENOENT);
  names_.SyncDirectory(path);
  trace_.Note(Trace::Event::kFileSync, Trace::Of(path));
  return IoError(kWhat, failure.error);
}

}  // namespace skep
