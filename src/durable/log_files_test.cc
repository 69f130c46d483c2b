#include "durable/log_files.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "durable/directory.h"
#include "durable/log_format.h"
#include "durable/log_test.h"

namespace skep::durable {
namespace {

using Operation = SimFileSystem::Operation;

constexpr uint64_t kSegmentBytes = 100;
constexpr const char* kNext = "log-next.tmp";

class LogFilesTest : public testing::Test {
 protected:
  LogFilesTest() : disk_(1, trace_, {.short_reads_ppm = 0}) {
    EXPECT_TRUE(disk_.CreateDirectory(kTestDirectory).ok());
  }

  // So many bytes, each of which follows from its position in the log.
  std::string Bytes(size_t count) {
    std::string bytes(count, '\0');
    for (size_t i = 0; i < count; ++i) bytes[i] = ByteAt(files_.position() + i);
    return bytes;
  }
  static char ByteAt(uint64_t position) { return static_cast<char>(1 + position % 100); }

  static std::string Name(uint64_t begin, uint64_t epoch = 1) {
    return SegmentName({.begin = begin, .epoch = epoch});
  }

  void Write(size_t count) { ASSERT_TRUE(files_.Write(Bytes(count)).ok()); }
  void Begin(uint64_t position, size_t count) {
    std::string bytes(count, '\0');
    for (size_t i = 0; i < count; ++i) bytes[i] = ByteAt(position + i);
    ASSERT_TRUE(files_.Begin(position, bytes).ok());
  }

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : TakeImage(disk_)) names.push_back(name);
    return names;
  }

  // The bytes of the log from a position on, as its segments have them, until they are others.
  uint64_t GoodUpTo(uint64_t position) {
    std::map<uint64_t, std::string> segments;
    const Image image = TakeImage(disk_);
    const StoreFiles found = *ListStoreFiles(disk_, kTestDirectory);
    for (const SegmentId& segment : found.segments) {
      segments[segment.begin] = image.at(SegmentName(segment));
    }
    while (true) {
      auto at = segments.upper_bound(position);
      if (at == segments.begin()) return position;
      --at;
      const uint64_t offset = position - at->first;
      if (offset >= at->second.size() || at->second[offset] != ByteAt(position)) return position;
      ++position;
    }
  }

  Trace trace_;
  SimFileSystem disk_;
  LogFiles files_{disk_, kTestDirectory, kSegmentBytes};
};

// Goal: what was written is in segments that are named by where they begin, and were taken whole.
TEST_F(LogFilesTest, Rotates) {
  Begin(1'000, 30);
  EXPECT_EQ(files_.position(), 1'030u);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(files_.Prepare().ok());
    Write(40);
  }
  EXPECT_EQ(GoodUpTo(1'000), files_.position());
  EXPECT_EQ(Names(), (std::vector<std::string>{Name(1'000), Name(1'070), Name(1'150), Name(1'230),
                                               Name(1'310)}));
  for (const auto& [name, bytes] : TakeImage(disk_)) EXPECT_EQ(bytes.size(), kSegmentBytes) << name;
}

// Goal: a segment that ends exactly where its bytes do is used to its end.
TEST_F(LogFilesTest, FillsASegmentToItsEnd) {
  Begin(0, 0);
  ASSERT_TRUE(files_.Prepare().ok());
  Write(60);
  Write(40);
  EXPECT_TRUE(files_.is_prepared());
  Write(1);
  EXPECT_FALSE(files_.is_prepared());
  EXPECT_EQ(GoodUpTo(0), 101u);
}

// Goal: without a next segment, and for a write larger than one, the current one grows.
TEST_F(LogFilesTest, Grows) {
  Begin(0, 10);
  EXPECT_FALSE(files_.is_prepared());
  Write(95);
  Write(300);
  EXPECT_EQ(Names(), std::vector<std::string>{Name(0)});
  ASSERT_TRUE(files_.Prepare().ok());
  Write(250);
  Write(5);
  EXPECT_EQ(Names(), (std::vector<std::string>{Name(0), Name(405)}));
  EXPECT_EQ(GoodUpTo(0), 660u);
}

// Goal: what Sync() says is there after a power loss, names included.
// Method: writes and syncs in all orders, over several segments, on disks that lose other parts.
TEST_F(LogFilesTest, SyncedSurvives) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 rng(seed);
    Trace trace;
    SimFileSystem disk(seed, trace, {.short_reads_ppm = 0});
    ASSERT_TRUE(disk.CreateDirectory(kTestDirectory).ok());
    ASSERT_TRUE(disk.SyncDirectory(".").ok());
    LogFiles files(disk, kTestDirectory, kSegmentBytes);
    ASSERT_TRUE(files.Begin(0, "").ok());
    std::string log;
    uint64_t synced = 0;
    for (uint64_t steps = rng() % 40; steps > 0; --steps) {
      ASSERT_TRUE(rng() % 2 == 0 || files.Prepare().ok());
      const std::string bytes(rng() % 60, static_cast<char>(1 + rng() % 100));
      ASSERT_TRUE(files.Write(bytes).ok());
      log += bytes;
      if (rng() % 4 != 0) continue;
      const auto position = files.Sync();
      ASSERT_TRUE(position.has_value());
      ASSERT_EQ(*position, log.size());
      synced = *position;
    }
    disk.Crash();
    std::string left;
    for (const auto& [name, bytes] : TakeImage(disk)) {
      const auto begin = PositionOfSegment(name);
      if (!begin) continue;
      left.resize(*begin, '\0');
      left += bytes;
    }
    ASSERT_EQ(left.substr(0, synced), log.substr(0, synced));
  }
}

// Goal: what is written to a segment while it is synced is synced later, also if the segment ends
// meanwhile.
// Method: all that happens during the first sync of it; the next one is the last before the crash.
TEST_F(LogFilesTest, EndsWhileItIsSynced) {
  ASSERT_TRUE(disk_.SyncDirectory(".").ok());
  Begin(0, 0);
  ASSERT_TRUE(files_.Prepare().ok());
  Write(40);
  disk_.set_options({.short_reads_ppm = 0, .during_sync = [this] {
                       disk_.set_options({.short_reads_ppm = 0});
                       Write(50);
                       Write(30);
                     }});
  EXPECT_EQ(*files_.Sync(), 40u);
  EXPECT_EQ(*files_.Sync(), 120u);
  disk_.Crash();
  EXPECT_EQ(GoodUpTo(0), 120u);
}

// Goal: what is behind Begin() counts no more and is gone, what is before it counts.
TEST_F(LogFilesTest, BeginsAnew) {
  Begin(0, 50);
  ASSERT_TRUE(files_.Prepare().ok());
  Write(60);
  Begin(40, 20);
  EXPECT_EQ(files_.position(), 60u);
  EXPECT_EQ(GoodUpTo(0), 60u);
  EXPECT_EQ(Names(), (std::vector<std::string>{Name(0), Name(40, 2)}));
  Begin(40, 30);
  EXPECT_EQ(GoodUpTo(0), 70u);
  EXPECT_EQ(Names(), (std::vector<std::string>{Name(0), Name(40, 3)}));
}

// Goal: superseded segments that cannot be removed do not count, and go later.
TEST_F(LogFilesTest, SupersededSegmentsStay) {
  Begin(0, 50);
  ASSERT_TRUE(files_.Prepare().ok());
  Write(60);
  ASSERT_TRUE(files_.Prepare().ok());
  disk_.FailOnce(Operation::kDirectory, 2, EIO);  // behind renaming and listing
  Begin(40, 20);
  EXPECT_TRUE(files_.has_superseded());
  EXPECT_EQ(Names(), (std::vector<std::string>{Name(0), Name(40, 2), Name(50)}));
  EXPECT_EQ(GoodUpTo(0), 60u);
  ASSERT_TRUE(files_.Prepare().ok());
  Write(90);
  EXPECT_EQ(GoodUpTo(0), 150u);
  ASSERT_TRUE(*files_.DropBefore(0, SIZE_MAX));
  EXPECT_FALSE(files_.has_superseded());
  EXPECT_EQ(Names(), (std::vector<std::string>{Name(0), Name(40, 2), Name(60, 2)}));
  EXPECT_EQ(GoodUpTo(0), 150u);
}

// Goal: an epoch is never used again, not even that of a segment which does not count any more; and
// attempts that fail leave one segment, not one each.
TEST_F(LogFilesTest, Epochs) {
  for (const std::string& name : {Name(500, 7), Name(0, 3)}) {
    const std::string path = std::string(kTestDirectory) + "/" + name;
    ASSERT_TRUE(disk_.Open(path, FileSystem::Mode::kCreate).has_value());
  }
  for (int attempt = 0; attempt < 3; ++attempt) {
    disk_.FailOnce(Operation::kSync, 3, EIO);  // the directory's
    EXPECT_FALSE(files_.Begin(500, "bytes").ok());
  }
  EXPECT_EQ(Names(), (std::vector<std::string>{Name(0, 3), Name(500, 7), Name(500, 8)}));
  ASSERT_TRUE(files_.Begin(500, "bytes").ok());
  EXPECT_EQ(Names(), (std::vector<std::string>{Name(0, 3), Name(500, 8)}));
  ASSERT_TRUE(files_.Begin(500, "bytes").ok());
  EXPECT_EQ(Names(), (std::vector<std::string>{Name(0, 3), Name(500, 9)}));
}

// Goal: only what has nothing from the position on is dropped.
TEST_F(LogFilesTest, DropsBefore) {
  Begin(0, 0);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(files_.Prepare().ok());
    Write(80);
  }
  const std::vector<std::string> all = Names();
  ASSERT_EQ(all.size(), 5u);
  for (const uint64_t position : {0, 1, 79}) {
    ASSERT_TRUE(*files_.DropBefore(position, SIZE_MAX));
    EXPECT_EQ(Names(), all) << position;
  }
  ASSERT_TRUE(*files_.DropBefore(80, SIZE_MAX));
  EXPECT_EQ(Names().front(), Name(80));
  ASSERT_TRUE(*files_.DropBefore(239, SIZE_MAX));
  EXPECT_EQ(Names().front(), Name(160));
  ASSERT_TRUE(*files_.DropBefore(UINT64_MAX, SIZE_MAX));
  EXPECT_EQ(Names(), std::vector<std::string>{Name(320)}) << "the current one stays";
  EXPECT_EQ(GoodUpTo(320), 400u);
}

// Goal: the next segment is empty, also behind what is zeroed at first, whatever a file of its name
// held; and stays so without power.
// Method: the old one is larger than what is zeroed and full of what could be records of this very
// position; the power is lost when something was written, and not synced.
TEST(LogFiles, TheNextSegmentIsEmpty) {
  constexpr uint64_t kBytes = 3 << 20;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Trace trace;
    SimFileSystem disk(seed, trace, {.short_reads_ppm = 0});
    StoreImage(disk, {{kNext, std::string(kBytes + 100, '#')}});
    const std::string next = std::string(kTestDirectory) + "/" + kNext;
    ASSERT_TRUE((*disk.Open(next, FileSystem::Mode::kReadWrite))->Sync().ok());
    ASSERT_TRUE(disk.SyncDirectory(".").ok());
    ASSERT_TRUE(disk.SyncDirectory(kTestDirectory).ok());
    LogFiles files(disk, kTestDirectory, kBytes);
    ASSERT_TRUE(files.Begin(0, "begin").ok());
    ASSERT_TRUE(files.Prepare().ok());
    ASSERT_TRUE(files.Write(std::string(kBytes - 10, 'y')).ok());
    ASSERT_TRUE(files.Write("in the next segment").ok());
    disk.Crash();
    for (const auto& [name, bytes] : TakeImage(disk)) {
      EXPECT_FALSE(bytes.contains('#')) << name;
    }
  }
}

// Goal: on a full disk there is no next segment, and nothing of it is left lying about.
TEST_F(LogFilesTest, NoRoomForTheNext) {
  Begin(0, 10);
  disk_.set_options({.short_reads_ppm = 0, .capacity_bytes = kSegmentBytes + 50});
  const Status status = files_.Prepare();
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(status.detail(), static_cast<uint64_t>(ENOSPC));
  EXPECT_FALSE(files_.is_prepared());
  EXPECT_EQ(Names(), std::vector<std::string>{Name(0)});
  Write(90);  // its room was taken before
  disk_.set_options({.short_reads_ppm = 0});
  EXPECT_TRUE(files_.Prepare().ok());
  EXPECT_EQ(GoodUpTo(0), 100u);
}

// Goal: after a failure the log is whole again from what was synced on.
// Method: each operation of what goes on afterwards fails once, and it is begun anew.
TEST_F(LogFilesTest, BeginsAnewAfterFailures) {
  uint64_t from = 0;
  for (const Operation operation : {Operation::kWrite, Operation::kSync, Operation::kDirectory}) {
    for (uint64_t successes = 0; successes < 4; ++successes) {
      SCOPED_TRACE(successes);
      Begin(from, 10);
      Write(20);
      disk_.FailOnce(operation, successes, EIO);
      int failures = 0;
      std::string bytes(20, '\0');
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = ByteAt(from + 10 + i);
      while (!files_.Begin(from + 10, bytes).ok() || !files_.Prepare().ok() ||
             !files_.Write(Bytes(90)).ok() || !files_.Sync()) {
        ASSERT_LT(++failures, 2);
      }
      // The listing behind the renaming only tidies up.
      EXPECT_EQ(failures, operation == Operation::kDirectory && successes == 2 ? 0 : 1);
      EXPECT_EQ(GoodUpTo(from), from + 120);
      from += 1'000;
    }
  }
}

// Goal: what comes next was written before, whoever came to it first, and never what is there.
// Method: a file that had other bytes before; the filling is called for, or not.
TEST_F(LogFilesTest, FillsAhead) {
  constexpr size_t kMiB = size_t{1} << 20;
  constexpr size_t kBytes = 11 * kMiB / 2;
  for (const bool in_time : {false, true}) {
    SCOPED_TRACE(in_time);
    const std::string next = std::string(kTestDirectory) + "/" + kNext;
    auto old = disk_.Open(next, FileSystem::Mode::kCreate);
    ASSERT_TRUE((*old)->Append(std::string(kBytes, 'x')).ok());
    LogFiles files(disk_, kTestDirectory, kBytes);
    ASSERT_TRUE(files.Begin(0, "begin").ok());
    std::string expected = "begin";
    for (const size_t bytes : {size_t{10}, kMiB - 20, size_t{100}, kMiB, size_t{7}, 2 * kMiB}) {
      const std::string text(bytes, static_cast<char>('0' + expected.size() % 10));
      ASSERT_TRUE(files.Write(text).ok());
      expected += text;
      if (in_time) {
        files.FillAhead();
        EXPECT_FALSE(files.wants_filling());
      }
      const std::string file = TakeImage(disk_).at(Name(0, in_time ? 2 : 1));
      ASSERT_EQ(file.size(), kBytes);
      ASSERT_TRUE(file.starts_with(expected));
      EXPECT_EQ(file.find_first_not_of('\0', expected.size()), file.npos);
    }
  }
}

// Goal: what cannot be filled is no failure yet: the writer is told when it comes to it.
TEST_F(LogFilesTest, FillingFails) {
  LogFiles files(disk_, kTestDirectory, 8 << 20);
  ASSERT_TRUE(files.Begin(0, "begin").ok());
  disk_.FailOnce(Operation::kWrite, 1, EIO);
  files.FillAhead();
  EXPECT_TRUE(files.wants_filling());
  ASSERT_TRUE(files.Write("more").ok());
  files.FillAhead();
  EXPECT_FALSE(files.wants_filling());
  disk_.FailOnce(Operation::kWrite, 0, EIO);
  EXPECT_FALSE(files.Write("most").ok());
}

}  // namespace
}  // namespace skep::durable
