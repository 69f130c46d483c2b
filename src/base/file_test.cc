// Tests of what only the machine's files do; sim/file_conformance_test.cc tests every FileSystem.
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file_descriptor.h"
#include "base/temporary_directory_test.h"

namespace skep {
namespace {

class PosixFileTest : public testing::Test {
 protected:
  std::string path() const { return directory_.path() + "/file"; }
  std::unique_ptr<File> Create() {
    return std::move(*PosixFileSystem().Open(path(), FileSystem::Mode::kCreate));
  }

  TemporaryDirectory directory_;
};

// While it lives, the size a file may have is limited, so that a write is cut short and then
// refused.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_;
  sighandler_t old_handler_;
};

// Goal: an Append that the kernel cuts short and then refuses is an error, and leaves no partial
// record.
// Method: a limit of 1000 bytes lets the second Append write 400 of its 600.
TEST_F(PosixFileTest, FailedAppendIsTakenBack) {
  const std::unique_ptr<File> file = Create();
  {
    const FileSizeLimit limit(1'000);
    ASSERT_TRUE(file->Append(std::string(600, 'a')).ok());
    const Status status = file->Append(std::string(600, 'b'));
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_EQ(status.detail(), EFBIG);
    EXPECT_EQ(*file->Size(), 600);
  }
  ASSERT_TRUE(file->Append("end").ok());
  EXPECT_EQ(*PosixFileSystem().ReadAll(path()), std::string(600, 'a') + "end");
}

// Goal: a path that is not a regular file's is refused, and opening a FIFO does not wait for its
// other end.
TEST_F(PosixFileTest, OnlyRegularFilesAreOpened) {
  const std::string fifo = directory_.path() + "/fifo";
  const std::string link = directory_.path() + "/link";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_EQ(symlink("/dev/full", link.c_str()), 0);
  using Mode = FileSystem::Mode;
  for (const std::string& what : {fifo, link, directory_.path(), std::string("/dev/null")}) {
    for (const Mode mode : {Mode::kRead, Mode::kReadWrite, Mode::kCreate}) {
      const auto file = PosixFileSystem().Open(what, mode);
      ASSERT_FALSE(file) << what;
      EXPECT_EQ(file.error().code(), Code::kInvalidArgument) << what;
    }
  }
}

// Goal: ReadAll trusts the bytes that it reads, not the size that it is told.
// Method: files in /proc have bytes and a size of 0.
TEST_F(PosixFileTest, ReadAllOfAFileThatHidesItsSize) {
  const Result<std::string> status = PosixFileSystem().ReadAll("/proc/self/status");
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->starts_with("Name:"));
  EXPECT_TRUE(status->ends_with("\n"));
}

TEST_F(PosixFileTest, OnlyTheOwnerMayReadAndChildrenDoNotInherit) {
  const std::unique_ptr<File> file = Create();
  struct stat about;
  ASSERT_EQ(stat(path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600);

  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != path()) continue;
    ++found;
    const int flags = fcntl(std::stoi(entry.path().filename()), F_GETFD);
    EXPECT_NE(flags & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(found, 1);
}

TEST(FileDescriptor, HasOneOwner) {
  FileDescriptor first(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(first.valid());
  const int fd = first.get();
  {
    const FileDescriptor second(std::move(first));
    EXPECT_EQ(second.get(), fd);
    EXPECT_NE(fcntl(fd, F_GETFD), -1);
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace skep
