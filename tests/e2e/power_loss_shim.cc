// Records what a process makes durable in a directory: preloaded (LD_PRELOAD), it stands between
// the process and its files. power_loss.py describes the records, and makes of them what a power
// loss leaves.
//
//   SKEP_POWER_DIRECTORY   absolute; its files are recorded, not those of folders in it
//   SKEP_POWER_SHADOW      folder of the records; empty: there are none, and syncs are real
//   SKEP_POWER_DELAY_US    writes and syncs take up to so much longer, to find work done too early
//   SKEP_POWER_SEED        decides which writes become durable at once, and which part of them
//   SKEP_POWER_LIES        log, names: syncs of the log's files, of the directory, do nothing, and
//                          return success
//
// With records nothing is synced for real. It intercepts the calls that Skep makes
// (src/base/file.cc), and no others.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr off_t kSectorBytes = 512;

template <typename Function>
Function* Real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define REAL(name) (Real(&name, #name))

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void Check(bool is_right, const char* what) {
  if (is_right) return;
  std::perror(what);
  std::abort();
}

class Account {
 public:
  // Returns the name of a file in the directory; "" is the directory itself.
  std::optional<std::string> NameOf(const char* path) const {
    const std::string_view all = path;
    if (directory_.empty() || !all.starts_with(directory_)) return std::nullopt;
    if (all.size() == directory_.size()) return "";
    if (all[directory_.size()] != '/') return std::nullopt;
    const std::string_view name = all.substr(directory_.size() + 1);
    if (name.find('/') != name.npos) return std::nullopt;
    return std::string(name);
  }

  int Open(const char* path, const std::string& name, int flags, mode_t mode) {
    std::lock_guard lock(mutex_);
    struct stat before{};
    const bool was_there = stat(path, &before) == 0;
    const int fd = REAL(open)(path, flags, mode);
    if (fd < 0) return fd;
    const ino_t inode = InodeOf(fd);
    open_[fd] = name.empty() ? 0 : inode;
    if (name.starts_with("log-")) log_.insert(inode);
    if (shadow_.empty()) return fd;
    if (!was_there) {
      const std::string other = shadow_ + "/real/" + std::to_string(inode);
      Check(link(path, other.c_str()) == 0, "link");
      Tell("create " + std::to_string(inode) + " " + name);
    } else if ((flags & O_TRUNC) != 0) {
      written_[inode].emplace_back(0, before.st_size);
    }
    return fd;
  }

  int Close(int fd) {
    std::lock_guard lock(mutex_);
    open_.erase(fd);
    return REAL(close)(fd);
  }

  ssize_t Write(int fd, const void* from, size_t bytes, off_t offset) {
    Delay(fd);
    std::lock_guard lock(mutex_);
    const ssize_t wrote = REAL(pwrite)(fd, from, bytes, offset);
    const auto at = open_.find(fd);
    if (at == open_.end() || wrote <= 0 || shadow_.empty()) return wrote;
    written_[at->second].emplace_back(offset, offset + wrote);
    if (lies_.empty() && random_() % 8 == 0) {
      const off_t sectors = wrote / kSectorBytes + 1;
      const off_t begin =
          offset - offset % kSectorBytes +
          static_cast<off_t>(random_() % static_cast<uint64_t>(sectors)) * kSectorBytes;
      Copy(fd, at->second, std::max(begin, offset), std::min(begin + kSectorBytes, offset + wrote));
    }
    return wrote;
  }

  int Truncate(int fd, off_t bytes) {
    std::lock_guard lock(mutex_);
    struct stat before{};
    fstat(fd, &before);
    const auto at = open_.find(fd);
    if (at != open_.end() && bytes < before.st_size) {
      written_[at->second].emplace_back(bytes, before.st_size);
    }
    return REAL(ftruncate)(fd, bytes);
  }

  // Returns nothing if the file is not recorded.
  std::optional<int> Sync(int fd) {
    Delay(fd);
    std::lock_guard lock(mutex_);
    const auto at = open_.find(fd);
    if (at == open_.end() || shadow_.empty()) return std::nullopt;
    if (at->second == 0) {
      if (lies_ != "names") Tell("sync");
      return 0;
    }
    if (lies_ == "log" && log_.contains(at->second)) return 0;
    for (const auto& [begin, end] : std::exchange(written_[at->second], {})) {
      Copy(fd, at->second, begin, end);
    }
    struct stat now{};
    fstat(fd, &now);
    const int durable = OpenDurable(at->second);
    Check(REAL(ftruncate)(durable, now.st_size) == 0, "ftruncate");
    REAL(close)(durable);
    return 0;
  }

  int Rename(const char* from, const char* to, const std::string& what) {
    std::lock_guard lock(mutex_);
    const int result = REAL(rename)(from, to);
    if (result == 0 && !shadow_.empty()) Tell(what);
    return result;
  }

  int Remove(const char* path, const std::string& name) {
    std::lock_guard lock(mutex_);
    const int result = REAL(remove)(path);
    if (result == 0 && !shadow_.empty()) Tell("remove " + name);
    return result;
  }

 private:
  void Delay(int fd) {
    uint64_t us = 0;
    {
      std::lock_guard lock(mutex_);
      if (delay_us_ > 0 && open_.contains(fd)) us = random_() % delay_us_;
    }
    if (us > 0) usleep(static_cast<useconds_t>(us));
  }

  static ino_t InodeOf(int fd) {
    struct stat about{};
    Check(fstat(fd, &about) == 0, "fstat");
    return about.st_ino;
  }

  int OpenDurable(ino_t inode) const {
    const std::string path = shadow_ + "/durable/" + std::to_string(inode);
    const int fd = REAL(open)(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    Check(fd >= 0, "open");
    return fd;
  }

  // Copies written bytes to the durable file.
  void Copy(int fd, ino_t inode, off_t begin, off_t end) const {
    const int durable = OpenDurable(inode);
    std::vector<char> buffer(static_cast<size_t>(std::min<off_t>(end - begin, 1 << 20)));
    while (begin < end) {
      const size_t want = std::min(buffer.size(), static_cast<size_t>(end - begin));
      const ssize_t got = pread(fd, buffer.data(), want, begin);
      Check(got >= 0, "pread");
      if (got == 0) break;  // the file is shorter now
      Check(REAL(pwrite)(durable, buffer.data(), static_cast<size_t>(got), begin) == got, "pwrite");
      begin += got;
    }
    REAL(close)(durable);
  }

  void Tell(const std::string& what) const {
    const std::string path = shadow_ + "/names";
    const std::string line = what + "\n";
    const int fd = REAL(open)(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    Check(fd >= 0, "open");
    Check(write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()), "write");
    REAL(close)(fd);
  }

  const std::string directory_ = Environment("SKEP_POWER_DIRECTORY");
  const std::string shadow_ = Environment("SKEP_POWER_SHADOW");
  const std::string lies_ = Environment("SKEP_POWER_LIES");
  const uint64_t delay_us_ = std::strtoull(Environment("SKEP_POWER_DELAY_US").c_str(), nullptr, 10);
  std::mutex mutex_;  // guards the fields below
  std::mt19937_64 random_{std::strtoull(Environment("SKEP_POWER_SEED").c_str(), nullptr, 10)};
  std::map<int, ino_t> open_;                                      // 0: the directory
  std::set<ino_t> log_;                                            // files that the log has opened
  std::map<ino_t, std::vector<std::pair<off_t, off_t>>> written_;  // since the last sync
};

// Never destroyed: threads may write until the process ends.
Account& TheAccount() {
  static Account& account = *new Account;
  return account;
}

int OpenAny(const char* path, int flags, mode_t mode) {
  const auto name = TheAccount().NameOf(path);
  return name ? TheAccount().Open(path, *name, flags, mode) : REAL(open)(path, flags, mode);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : mode_t{0};
  va_end(arguments);
  return OpenAny(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : mode_t{0};
  va_end(arguments);
  return OpenAny(path, flags, mode);
}

int close(int fd) { return TheAccount().Close(fd); }

ssize_t pwrite(int fd, const void* from, size_t bytes, off_t offset) {
  return TheAccount().Write(fd, from, bytes, offset);
}

ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t offset) {
  return TheAccount().Write(fd, from, bytes, offset);
}

int ftruncate(int fd, off_t bytes) noexcept { return TheAccount().Truncate(fd, bytes); }

int ftruncate64(int fd, off64_t bytes) noexcept { return TheAccount().Truncate(fd, bytes); }

int fdatasync(int fd) {
  const auto result = TheAccount().Sync(fd);
  return result ? *result : REAL(fdatasync)(fd);
}

int fsync(int fd) {
  const auto result = TheAccount().Sync(fd);
  return result ? *result : REAL(fsync)(fd);
}

int rename(const char* from, const char* to) noexcept {
  const auto old_name = TheAccount().NameOf(from);
  const auto new_name = TheAccount().NameOf(to);
  if (!old_name || !new_name) return REAL(rename)(from, to);
  return TheAccount().Rename(from, to, "rename " + *old_name + " " + *new_name);
}

int remove(const char* path) noexcept {
  const auto name = TheAccount().NameOf(path);
  return name ? TheAccount().Remove(path, *name) : REAL(remove)(path);
}

}  // extern "C"
