#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/file_descriptor.h"

namespace skep {
namespace {

// Only the files' owner may read what a store holds.
constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

Status IoError(const char* what) { return Status(Code::kIo, what, static_cast<uint64_t>(errno)); }

// Repeats a system call while a signal interrupts it.
template <typename Call>
auto Uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class PosixFile final : public File {
 public:
  PosixFile(FileDescriptor fd, uint64_t size) : fd_(std::move(fd)), end_(size) {}

  Result<size_t> ReadAt(uint64_t offset, char* to, size_t bytes) override {
    const ssize_t got =
        Uninterrupted([&] { return pread(fd_.get(), to, bytes, static_cast<off_t>(offset)); });
    if (got < 0) return Fail(IoError("cannot read a file"));
    return static_cast<size_t>(got);
  }

  // The file is not opened with O_APPEND: with it Linux appends in pwrite(2) too, whatever the
  // offset.
  Status Append(std::string_view bytes) override {
    const uint64_t end = end_.load(std::memory_order_relaxed);
    const Status status = WriteAll(end, bytes);
    if (status.ok()) {
      end_.store(end + bytes.size(), std::memory_order_relaxed);
    } else {
      // Half a record at the end would stand before the next Append's bytes, so it is taken back if
      // that is possible.
      static_cast<void>(Uninterrupted([&] { return ftruncate(fd_.get(), Offset(end)); }));
    }
    return status;
  }

  Status WriteAt(uint64_t offset, std::string_view bytes) override {
    const Status status = WriteAll(offset, bytes);
    // A write inside the file leaves end_ alone: other threads may write elsewhere at the same
    // time.
    if (status.ok() && !bytes.empty()) RaiseEnd(offset + bytes.size());
    return status;
  }

  // fdatasync(2) is enough: it writes the size too whenever it has changed.
  Status Sync() override {
    if (Uninterrupted([&] { return fdatasync(fd_.get()); }) < 0) {
      return IoError("cannot sync a file");
    }
    return {};
  }

  Status Truncate(uint64_t bytes) override {
    if (Uninterrupted([&] { return ftruncate(fd_.get(), Offset(bytes)); }) < 0) {
      return IoError("cannot truncate a file");
    }
    end_.store(bytes, std::memory_order_relaxed);
    return {};
  }

  Status Allocate(uint64_t bytes) override {
    const int error = posix_fallocate(fd_.get(), 0, Offset(bytes));
    if (error != 0) {
      return {Code::kIo, "cannot allocate a file's space", static_cast<uint64_t>(error)};
    }
    RaiseEnd(bytes);
    return {};
  }

  Result<uint64_t> Size() override {
    struct stat about;
    if (fstat(fd_.get(), &about) < 0) return Fail(IoError("cannot read a file's size"));
    return static_cast<uint64_t>(about.st_size);
  }

 private:
  void RaiseEnd(uint64_t end) {
    if (end > end_.load(std::memory_order_relaxed)) end_.store(end, std::memory_order_relaxed);
  }
  static off_t Offset(uint64_t bytes) { return static_cast<off_t>(bytes); }

  Status WriteAll(uint64_t offset, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t wrote = Uninterrupted(
          [&] { return pwrite(fd_.get(), bytes.data(), bytes.size(), Offset(offset)); });
      if (wrote < 0) return IoError("cannot write a file");
      if (wrote == 0) return Status(Code::kIo, "cannot write a file", ENOSPC);
      bytes.remove_prefix(static_cast<size_t>(wrote));
      offset += static_cast<uint64_t>(wrote);
    }
    return {};
  }

  FileDescriptor fd_;
  // Where the next Append writes. Relaxed: its owner alone changes it, and a WriteAt inside the
  // file, which may run beside Allocate, only looks at it.
  std::atomic<uint64_t> end_;
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(FileDescriptor fd) : fd_(std::move(fd)) {}

 private:
  FileDescriptor fd_;
};

int OpenFlags(FileSystem::Mode mode) {
  switch (mode) {
    case FileSystem::Mode::kRead:
      return O_RDONLY;
    case FileSystem::Mode::kReadWrite:
      return O_RDWR | O_CREAT;
    case FileSystem::Mode::kCreate:
      return O_RDWR | O_CREAT | O_TRUNC;
  }
  return O_RDONLY;
}

class PosixFiles final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    constexpr Status kNotRegular(Code::kInvalidArgument, "not a regular file");
    // O_NONBLOCK means nothing to a regular file; without it, open(2) of a FIFO waits for the other
    // end.
    const int flags = OpenFlags(mode) | O_CLOEXEC | O_NONBLOCK;
    FileDescriptor fd(Uninterrupted([&] { return open(path.c_str(), flags, kFileMode); }));
    // open(2) refuses to open a directory for writing, and a socket at all.
    if (!fd.valid() && (errno == EISDIR || errno == ENXIO)) return Fail(kNotRegular);
    struct stat about;
    if (!fd.valid() || fstat(fd.get(), &about) < 0) return Fail(IoError("cannot open a file"));
    if (!S_ISREG(about.st_mode)) return Fail(kNotRegular);
    return std::make_unique<PosixFile>(std::move(fd), static_cast<uint64_t>(about.st_size));
  }

  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    const auto open_with = [&](int flags) {
      return FileDescriptor(
          Uninterrupted([&] { return open(path.c_str(), flags | O_CLOEXEC, kFileMode); }));
    };
    FileDescriptor fd = open_with(O_RDWR | O_CREAT);
    const bool is_directory = !fd.valid() && errno == EISDIR;
    if (is_directory) fd = open_with(O_RDONLY | O_DIRECTORY);
    if (!fd.valid()) return Fail(IoError("cannot open a file"));
    if (Uninterrupted([&] { return flock(fd.get(), LOCK_EX | LOCK_NB); }) == 0) {
      return std::make_unique<PosixLock>(std::move(fd));
    }
    if (errno == EWOULDBLOCK) return Fail(Code::kUnavailable, "a file is locked by another");
    // NFS locks only a descriptor that is open for writing, which a directory's never is.
    if (is_directory && (errno == EBADF || errno == EINVAL || errno == EOPNOTSUPP)) {
      return Fail(Code::kNotSupported, "a directory cannot be locked here");
    }
    return Fail(IoError("cannot lock a file"));
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) < 0) return IoError("cannot rename a file");
    return {};
  }

  Status Remove(const std::string& path) override {
    if (remove(path.c_str()) < 0) return IoError("cannot remove a file");
    return {};
  }

  Status CreateDirectory(const std::string& path) override {
    if (mkdir(path.c_str(), kDirectoryMode) == 0) return {};
    const Status failed = IoError("cannot create a directory");
    struct stat about;
    const bool is_there = failed.detail() == EEXIST && stat(path.c_str(), &about) == 0;
    return is_there && S_ISDIR(about.st_mode) ? Status() : failed;
  }

  Result<std::vector<std::string>> List(const std::string& path) override {
    DIR* const directory = opendir(path.c_str());
    if (directory == nullptr) return Fail(IoError("cannot list a directory"));
    std::vector<std::string> names;
    errno = 0;  // readdir(3) tells its end from an error by errno alone
    while (const dirent* entry = readdir(directory)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const Status status = errno == 0 ? Status() : IoError("cannot list a directory");
    closedir(directory);
    if (!status.ok()) return Fail(status);
    std::ranges::sort(names);
    return names;
  }

  Status SyncDirectory(const std::string& path) override {
    const FileDescriptor fd(
        Uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!fd.valid() || Uninterrupted([&] { return fsync(fd.get()); }) < 0) {
      return IoError("cannot sync a directory");
    }
    return {};
  }

  uint64_t FreeBytes(const std::string& path) override {
    struct statvfs about;
    if (Uninterrupted([&] { return statvfs(path.c_str(), &about); }) < 0) return UINT64_MAX;
    return uint64_t{about.f_bavail} * about.f_frsize;
  }
};

}  // namespace

Result<std::string> FileSystem::ReadAll(const std::string& path) {
  Result<std::unique_ptr<File>> file = Open(path, Mode::kRead);
  if (!file) return Fail(file.error());
  Result<uint64_t> size = (*file)->Size();
  if (!size) return Fail(size.error());

  // One byte more than the size, so that one read finds the end too; the file may have grown.
  std::string bytes(*size + 1, '\0');
  size_t filled = 0;
  while (true) {
    if (filled == bytes.size()) bytes.resize(2 * bytes.size());
    Result<size_t> got = (*file)->ReadAt(filled, bytes.data() + filled, bytes.size() - filled);
    if (!got) return Fail(got.error());
    if (*got == 0) break;
    filled += *got;
  }
  bytes.resize(filled);
  return bytes;
}

FileSystem& PosixFileSystem() {
  static PosixFiles files;
  return files;
}

}  // namespace skep
