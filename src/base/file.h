// file.h: files, injected. The real ones are POSIX; the simulated disk (sim/sim_file.h) loses what
// was not synced, and fails on request.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skep/status.h"

namespace skep {

// An open file. Thread safety: one owner, but ReadAt and Sync may run beside any call, and WriteAt
// inside the file beside WriteAt of other bytes, and beside Allocate.
// Errors: kIo with the errno. A short write is continued; if it cannot finish it ends in kIo.
class File {
 public:
  virtual ~File() = default;
  // Reads up to `bytes` at `offset` into `to`; returns how many bytes there were (0: end of file).
  virtual Result<size_t> ReadAt(uint64_t offset, char* to, size_t bytes) = 0;
  // Appends all of `bytes` at the end of the file.
  virtual Status Append(std::string_view bytes) = 0;
  virtual Status WriteAt(uint64_t offset, std::string_view bytes) = 0;
  // After it returns ok, everything written before survives a power loss. After it fails, nothing
  // may be assumed of any byte written since the last Sync that succeeded.
  virtual Status Sync() = 0;
  virtual Status Truncate(uint64_t bytes) = 0;
  // Takes the space of the first `bytes` of the file from the system, so that writes there do not
  // fail for lack of it; bytes not yet written read as zeroes. The file is then at least so long.
  virtual Status Allocate(uint64_t bytes) = 0;
  virtual Result<uint64_t> Size() = 0;
};

// A lock on a file or a directory, held until the object is destroyed or the process ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  enum class Mode {
    kRead,       // must exist
    kReadWrite,  // created if absent, kept if present
    kCreate,     // created empty, or emptied
  };

  virtual ~FileSystem() = default;
  // Opens a file. Never waits for another process.
  //   kInvalidArgument  the path is not a regular file's (a directory, a device, a FIFO)
  virtual Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) = 0;
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status Remove(const std::string& path) = 0;
  virtual Status CreateDirectory(const std::string& path) = 0;  // ok if it is there already
  virtual Result<std::vector<std::string>> List(const std::string& path) = 0;  // of names, sorted
  // Makes creations, renames and removals in the directory `path` survive a power loss.
  virtual Status SyncDirectory(const std::string& path) = 0;
  // Returns about how many bytes files in this directory can still take from the system.
  // UINT64_MAX: that is not known.
  virtual uint64_t FreeBytes([[maybe_unused]] const std::string& path) { return UINT64_MAX; }

  // Locks a directory, or a file, which is created if it is not there. The lock stays on what has
  // the path now, also if that is renamed or removed.
  //   kUnavailable   another process, or another lock of this process, holds it
  //   kNotSupported  the file system cannot lock a directory
  virtual Result<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;

  // Returns the whole file as bytes.
  Result<std::string> ReadAll(const std::string& path);
};

// The files of this machine. Thread-safe; lives as long as the process.
FileSystem& PosixFileSystem();

}  // namespace skep
