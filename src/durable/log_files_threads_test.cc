// Segments with a writer and a filler, each a thread.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>

#include "base/temporary_directory_test.h"
#include "durable/directory.h"
#include "durable/log_files.h"
#include "durable/log_format.h"

namespace skep::durable {
namespace {

// Goal: one thread may fill, and take more and more space for the next segment, while another
// writes, and takes segments in turn.
TEST(LogFiles, FillsBesideTheWriter) {
  const TemporaryDirectory directory;
  std::string expected;
  {
    LogFiles files(PosixFileSystem(), directory.path(), 300'000);
    ASSERT_TRUE(files.Begin(0, "").ok());
    const std::jthread filler([&](const std::stop_token& stop) {
      for (uint64_t round = 0; !stop.stop_requested(); ++round) {
        EXPECT_TRUE(files.Prepare(300'000 + round % 8 * 10'000).ok());
        files.FillAhead();
      }
    });
    std::mt19937_64 rng(1);
    while (expected.size() < 8'000'000) {
      // The first segments are taken for sure. Behind them the writer waits for nobody: where the
      // filler is late, a segment grows.
      while (expected.size() < 2'000'000 && !files.is_prepared()) std::this_thread::yield();
      const std::string bytes(1 + rng() % 20'000, static_cast<char>('a' + rng() % 26));
      ASSERT_TRUE(files.Write(bytes).ok());
      expected += bytes;
    }
  }
  std::string log;
  const auto found = ListStoreFiles(PosixFileSystem(), directory.path());
  ASSERT_TRUE(found.has_value());
  EXPECT_GT(found->segments.size(), 3u);
  for (const SegmentId& segment : found->segments) {
    log.resize(segment.begin);
    const auto bytes = PosixFileSystem().ReadAll(directory.path() + "/" + SegmentName(segment));
    ASSERT_TRUE(bytes.has_value());
    log += *bytes;
  }
  ASSERT_TRUE(log.starts_with(expected));
  EXPECT_EQ(log.find_first_not_of('\0', expected.size()), std::string::npos);
}

}  // namespace
}  // namespace skep::durable
