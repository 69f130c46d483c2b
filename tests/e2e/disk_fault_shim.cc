// Makes system calls on the files of a directory fail: preloaded (LD_PRELOAD), it stands between a
// process and its disk. disk_fault_test.py says which call.
//
//   SKEP_FAULT_DIRECTORY  absolute; calls on other files are not counted
//   SKEP_FAULT_CALL       open, pread, pwrite, fdatasync, fsync, fallocate, ftruncate, rename,
//                         remove, opendir or mkdir
//   SKEP_FAULT_AT         number of the first call of that kind that fails, from 1 on
//   SKEP_FAULT_ERRNO      its error
//   SKEP_FAULT_COUNT      how many calls fail from that one on
//   SKEP_FAULT_PARTLY     not empty: the first pwrite that fails has written the first half
//
// At the first fault it writes a line to standard error. It intercepts the calls that Skep makes
// (src/base/file.cc), and no others.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

template <typename Function>
Function* Real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define REAL(name) (Real(&name, #name))

std::string Text(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

uint64_t Number(const char* name) { return std::strtoull(Text(name).c_str(), nullptr, 10); }

class Faults {
 public:
  // Returns whether this call is to fail; errno is set then.
  bool Hits(std::string_view call, std::string_view path) {
    if (call != call_ || directory_.empty() || !path.starts_with(directory_)) return false;
    const uint64_t number = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (number < at_ || number - at_ >= count_) return false;
    if (number == at_)
      std::fprintf(stderr, "fault: %s %s\n", call_.c_str(), std::string(path).c_str());
    is_first_ = number == at_;
    errno = error_;
    return true;
  }
  bool Hits(std::string_view call, int fd) {
    if (call != call_) return false;
    char path[PATH_MAX];
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t bytes = readlink(link.c_str(), path, sizeof(path));
    return bytes > 0 && Hits(call, std::string_view(path, static_cast<size_t>(bytes)));
  }
  // Both tell how the call fails that Hits() has just named to this thread.
  bool writes_half() const { return is_partly_ && is_first_; }
  int error() const { return error_; }

 private:
  const std::string directory_ = Text("SKEP_FAULT_DIRECTORY");
  const std::string call_ = Text("SKEP_FAULT_CALL");
  const uint64_t at_ = Number("SKEP_FAULT_AT");
  const uint64_t count_ = Number("SKEP_FAULT_COUNT");
  const int error_ = static_cast<int>(Number("SKEP_FAULT_ERRNO"));
  const bool is_partly_ = !Text("SKEP_FAULT_PARTLY").empty();
  std::atomic<uint64_t> calls_{0};
  static thread_local bool is_first_;
};
thread_local bool Faults::is_first_ = false;

// Never destroyed: threads may write until the process ends.
Faults& TheFaults() {
  static Faults& faults = *new Faults;
  return faults;
}

ssize_t Write(int fd, const void* from, size_t bytes, off_t offset) {
  if (!TheFaults().Hits("pwrite", fd)) return REAL(pwrite)(fd, from, bytes, offset);
  if (TheFaults().writes_half()) static_cast<void>(REAL(pwrite)(fd, from, bytes / 2, offset));
  errno = TheFaults().error();
  return -1;
}

int OpenAny(const char* path, int flags, mode_t mode) {
  return TheFaults().Hits("open", path) ? -1 : REAL(open)(path, flags, mode);
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : mode_t{0};
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAny(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAny(path, flags, mode);
}

ssize_t pread(int fd, void* to, size_t bytes, off_t offset) {
  return TheFaults().Hits("pread", fd) ? -1 : REAL(pread)(fd, to, bytes, offset);
}
ssize_t pread64(int fd, void* to, size_t bytes, off64_t offset) {
  return pread(fd, to, bytes, offset);
}

ssize_t pwrite(int fd, const void* from, size_t bytes, off_t offset) {
  return Write(fd, from, bytes, offset);
}
ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t offset) {
  return Write(fd, from, bytes, offset);
}

int fdatasync(int fd) { return TheFaults().Hits("fdatasync", fd) ? -1 : REAL(fdatasync)(fd); }

int fsync(int fd) { return TheFaults().Hits("fsync", fd) ? -1 : REAL(fsync)(fd); }

int posix_fallocate(int fd, off_t offset, off_t bytes) {
  if (TheFaults().Hits("fallocate", fd)) return TheFaults().error();
  return REAL(posix_fallocate)(fd, offset, bytes);
}
int posix_fallocate64(int fd, off64_t offset, off64_t bytes) {
  return posix_fallocate(fd, offset, bytes);
}

int ftruncate(int fd, off_t bytes) noexcept {
  return TheFaults().Hits("ftruncate", fd) ? -1 : REAL(ftruncate)(fd, bytes);
}
int ftruncate64(int fd, off64_t bytes) noexcept { return ftruncate(fd, bytes); }

int rename(const char* from, const char* to) noexcept {
  return TheFaults().Hits("rename", from) ? -1 : REAL(rename)(from, to);
}

int remove(const char* path) noexcept {
  return TheFaults().Hits("remove", path) ? -1 : REAL(remove)(path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  return TheFaults().Hits("mkdir", path) ? -1 : REAL(mkdir)(path, mode);
}

DIR* opendir(const char* path) {
  return TheFaults().Hits("opendir", path) ? nullptr : REAL(opendir)(path);
}

}  // extern "C"
