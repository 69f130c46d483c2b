// The disk fails, or the power: what then lies under the final name is a whole snapshot.
#include "durable/snapshot_writer.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "durable/snapshot_test.h"
#include "sim/sim_file.h"

namespace skep::durable {
namespace {

using Operation = SimFileSystem::Operation;

constexpr const char* kDirectory = "data";
const std::string kPath = "data/dump.skep";

struct Disk {
  explicit Disk(uint64_t seed) : files(seed, trace) {
    if (!files.CreateDirectory(kDirectory).ok() || !files.SyncDirectory(".").ok()) abort();
  }
  std::vector<std::string> Names() { return *files.List(kDirectory); }

  Trace trace;
  SimFileSystem files;
};

TestSnapshot OldSnapshot() {
  TestSnapshot snapshot = SmallSnapshot();
  snapshot.created_ms = 1;
  return snapshot;
}

// Goal: each operation of the disk fails once. The error surfaces, no unfinished file stays, and
// the final name has what it had before or, if only the directory was not synced, all of the new.
TEST(SnapshotWriter, EveryFailureSurfaces) {
  for (const Operation operation : {Operation::kWrite, Operation::kSync, Operation::kDirectory}) {
    for (const bool had_one : {false, true}) {
      int failures = 0;
      for (uint64_t successes = 0;; ++successes) {
        SCOPED_TRACE(testing::Message() << "operation " << static_cast<int>(operation) << " number "
                                        << successes << " fails");
        Disk disk(successes);
        if (had_one) {
          ASSERT_TRUE(WriteSnapshot(disk.files, kPath, OldSnapshot()).ok());
        }
        disk.files.FailOnce(operation, successes, ENOSPC);
        const Status status = WriteSnapshot(disk.files, kPath, SmallSnapshot());
        const bool is_final = operation == Operation::kSync && successes == 1;
        if (status.ok()) break;
        ++failures;
        EXPECT_EQ(status, Status(Code::kIo, "", ENOSPC)) << status.ToString();
        const auto names = disk.Names();
        if (!had_one && !is_final) {
          EXPECT_TRUE(names.empty());
          continue;
        }
        EXPECT_EQ(names.size(), 1u);
        const Result<TestSnapshot> there = ReadSnapshot(disk.files, kPath);
        ASSERT_TRUE(there) << there.error().ToString();
        EXPECT_TRUE(*there == (is_final ? SmallSnapshot() : OldSnapshot()));
      }
      // Header, three blocks, footer; file, directory; open, rename.
      EXPECT_EQ(failures, operation == Operation::kWrite ? 5 : 2);
    }
  }
}

// Goal: after an error nothing more is written, and each call says what it was.
TEST(SnapshotWriter, AnErrorIsTheLastThing) {
  Disk disk(1);
  auto writer = SnapshotWriter::Create(disk.files, kPath, 0);
  ASSERT_TRUE(writer);
  disk.files.FailOnce(Operation::kWrite, 0, EIO);
  ASSERT_TRUE((*writer)->Add(0, "a", "1", 0).ok());
  const Status error(Code::kIo, "", EIO);
  EXPECT_EQ((*writer)->Add(1, "b", "2", 0), error);  // writes the block of keyspace 0
  EXPECT_TRUE(disk.Names().empty());
  EXPECT_EQ((*writer)->Add(1, "b", "2", 0), error);
  EXPECT_EQ((*writer)->Finish({}), error);
  EXPECT_TRUE(disk.Names().empty());
}

// Goal: a disk that is full in the middle is left as it was.
TEST(SnapshotWriter, FullDisk) {
  Disk disk(1);
  disk.files.set_options({.capacity_bytes = 150});
  EXPECT_EQ(WriteSnapshot(disk.files, kPath, SmallSnapshot()), Status(Code::kIo, "", ENOSPC));
  EXPECT_TRUE(disk.Names().empty());
}

TEST(SnapshotWriter, NothingStaysOfWhatIsAbandoned) {
  Disk disk(1);
  {
    auto writer = SnapshotWriter::Create(disk.files, kPath, 0);
    ASSERT_TRUE((*writer)->Add(0, "a", "1", 0).ok());
    EXPECT_EQ(disk.Names(), std::vector<std::string>{"dump.skep.tmp"});
  }
  EXPECT_TRUE(disk.Names().empty());
  auto writer = SnapshotWriter::Create(disk.files, kPath, 0);
  (*writer)->Abandon();
  EXPECT_TRUE(disk.Names().empty());
}

// Goal: a long file that a killed process left unfinished does not get into the next one.
TEST(SnapshotWriter, ReplacesAnUnfinishedFile) {
  Disk disk(1);
  StoreBytes(disk.files, kPath + ".tmp", std::string(10'000, 'x'));
  ASSERT_TRUE(WriteSnapshot(disk.files, kPath, SmallSnapshot()).ok());
  EXPECT_TRUE(*ReadSnapshot(disk.files, kPath) == SmallSnapshot());
  EXPECT_EQ(disk.Names(), std::vector<std::string>{"dump.skep"});
}

TEST(SnapshotWriter, RefusesWrongKeyspaces) {
  const SnapshotKeyspace keyspace = {.index = 1, .engine = "btree"};
  SnapshotKeyspace long_name = keyspace;
  long_name.engine = std::string(256, 'e');
  for (const std::vector<SnapshotKeyspace>& wrong :
       {std::vector<SnapshotKeyspace>{}, {keyspace, keyspace}, {long_name}}) {
    Disk disk(1);
    auto writer = SnapshotWriter::Create(disk.files, kPath, 0);
    ASSERT_TRUE((*writer)->Add(1, "a", "1", 0).ok());
    EXPECT_EQ((*writer)->Finish(wrong).code(), Code::kInvalidArgument);
    EXPECT_TRUE(disk.Names().empty());
  }
}

// Stops before the `steps`-th operation that changes the disk, as a power loss does.
class CountdownFiles final : public FileSystem {
 public:
  CountdownFiles(FileSystem& files, int steps) : files_(files), steps_(steps) {}
  bool stopped() const { return steps_ < 0; }

  Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    if (!Step()) return Fail(Stopped());
    auto file = files_.Open(path, mode);
    if (!file) return file;
    return std::make_unique<CountdownFile>(*this, std::move(*file));
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return Step() ? files_.Rename(from, to) : Stopped();
  }
  Status Remove(const std::string& path) override {
    return Step() ? files_.Remove(path) : Stopped();
  }
  Status CreateDirectory(const std::string& path) override { return files_.CreateDirectory(path); }
  Result<std::vector<std::string>> List(const std::string& path) override {
    return files_.List(path);
  }
  Status SyncDirectory(const std::string& path) override {
    return Step() ? files_.SyncDirectory(path) : Stopped();
  }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    return files_.Lock(path);
  }

 private:
  class CountdownFile final : public File {
   public:
    CountdownFile(CountdownFiles& files, std::unique_ptr<File> file)
        : files_(files), file_(std::move(file)) {}
    Result<size_t> ReadAt(uint64_t offset, char* to, size_t bytes) override {
      return file_->ReadAt(offset, to, bytes);
    }
    Status Append(std::string_view bytes) override {
      return files_.Step() ? file_->Append(bytes) : Stopped();
    }
    Status WriteAt(uint64_t offset, std::string_view bytes) override {
      return files_.Step() ? file_->WriteAt(offset, bytes) : Stopped();
    }
    Status Sync() override { return files_.Step() ? file_->Sync() : Stopped(); }
    Status Truncate(uint64_t bytes) override {
      return files_.Step() ? file_->Truncate(bytes) : Stopped();
    }
    Status Allocate(uint64_t bytes) override {
      return files_.Step() ? file_->Allocate(bytes) : Stopped();
    }
    Result<uint64_t> Size() override { return file_->Size(); }

   private:
    CountdownFiles& files_;
    std::unique_ptr<File> file_;
  };

  static Status Stopped() { return Status(Code::kIo, "no power", EIO); }
  bool Step() { return steps_-- > 0; }

  FileSystem& files_;
  int steps_;
};

// Goal: the power goes before each step, on many disks. What then lies under the final name is all
// of the old snapshot or all of the new one; after Finish() it is the new one.
TEST(SnapshotWriter, PowerLossAtEveryStep) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (unsigned round = 0; round < 100; ++round) {
    const bool had_one = round % 2 == 0;
    bool is_done = false;
    for (int steps = 0; !is_done; ++steps) {
      SCOPED_TRACE(testing::Message() << "round " << round << ", " << steps << " steps");
      Disk disk(seed + round);
      if (had_one) {
        ASSERT_TRUE(WriteSnapshot(disk.files, kPath, OldSnapshot()).ok());
      }
      {
        CountdownFiles files(disk.files, steps);
        is_done = WriteSnapshot(files, kPath, SmallSnapshot()).ok();
        ASSERT_EQ(is_done, !files.stopped());
      }
      disk.files.Crash();
      const auto names = disk.Names();
      const bool is_there = std::ranges::count(names, "dump.skep") == 1;
      ASSERT_TRUE(is_there || !(is_done || had_one));
      if (!is_there) continue;
      const Result<TestSnapshot> there = ReadSnapshot(disk.files, kPath);
      ASSERT_TRUE(there) << there.error().ToString();
      const bool is_new = *there == SmallSnapshot();
      ASSERT_TRUE(is_new || (had_one && !is_done && *there == OldSnapshot()));
    }
  }
}

}  // namespace
}  // namespace skep::durable
