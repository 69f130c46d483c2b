// Snapshots that were asked for: what the statistics say from the request on.
#include "durable/saver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/temporary_directory_test.h"
#include "durable/open_keyspaces.h"

namespace skep::durable {
namespace {

// The machine's files, which call a hook when they are asked how much space is left.
class AskedFiles final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    return files_.Open(path, mode);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return files_.Rename(from, to);
  }
  Status Remove(const std::string& path) override { return files_.Remove(path); }
  Status CreateDirectory(const std::string& path) override { return files_.CreateDirectory(path); }
  Result<std::vector<std::string>> List(const std::string& path) override {
    return files_.List(path);
  }
  Status SyncDirectory(const std::string& path) override { return files_.SyncDirectory(path); }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    return files_.Lock(path);
  }
  uint64_t FreeBytes(const std::string& path) override {
    if (const auto hook = std::exchange(on_free_bytes, nullptr)) hook();
    return files_.FreeBytes(path);
  }

  std::function<void()> on_free_bytes;  // called once

 private:
  FileSystem& files_ = PosixFileSystem();
};

// Goal: from the request of a snapshot until it is written the statistics say that it is being
// written, also before its thread has begun. Method: that thread's steps by hand.
TEST(Saver, IsSavingFromTheAskingOn) {
  const TemporaryDirectory directory;
  const Options options{.directory = directory.path(), .log_segment_bytes = uint64_t{1} << 20};
  std::string problem;
  const auto opened = OpenKeyspaces(PosixFileSystem(), SystemClock(), options, &problem);
  ASSERT_TRUE(opened.has_value()) << problem;
  Saver& saver = opened->persistence->saver();

  EXPECT_FALSE(saver.statistics().is_saving);
  EXPECT_TRUE(saver.Request());
  EXPECT_TRUE(saver.statistics().is_saving);
  EXPECT_EQ(saver.statistics().saving_ms, 0u);
  EXPECT_FALSE(saver.Request());
  EXPECT_TRUE(saver.Step());
  EXPECT_FALSE(saver.statistics().is_saving);
  EXPECT_EQ(saver.statistics().finished, 1u);
  EXPECT_TRUE(saver.statistics().last_status.ok());
  EXPECT_TRUE(saver.Request());
  EXPECT_TRUE(saver.Step());
  EXPECT_TRUE(opened->persistence->Close().ok());
}

// Goal: a snapshot that is wanted while the saver's thread looks after the disk's space is written
// once that is done; it is not refused as if another one were being written. Method: the saver's
// step by hand; in the middle of it another thread begins to save, and the step goes on when that
// thread has got as far as it can.
TEST(Saver, LookingAfterSpaceDoesNotRefuseASnapshot) {
  const TemporaryDirectory directory;
  const Options options{.directory = directory.path(), .log_segment_bytes = uint64_t{1} << 20};
  AskedFiles files;
  std::string problem;
  const auto opened = OpenKeyspaces(files, SystemClock(), options, &problem);
  ASSERT_TRUE(opened.has_value()) << problem;
  Saver& saver = opened->persistence->saver();

  std::atomic<bool> has_ended = false;
  Status saved;
  std::thread other;
  files.on_free_bytes = [&] {
    other = std::thread([&] {
      saved = saver.Save();
      has_ended = true;
    });
    while (!has_ended && !saver.statistics().is_saving) std::this_thread::yield();
  };
  static_cast<void>(saver.Step());
  ASSERT_TRUE(other.joinable());
  other.join();
  EXPECT_TRUE(saved.ok()) << saved.ToString();
  EXPECT_EQ(saver.statistics().finished, 1u);
  EXPECT_TRUE(opened->persistence->Close().ok());
}

}  // namespace
}  // namespace skep::durable
