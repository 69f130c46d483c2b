// The engines that a start takes, and the list that it writes, when the list of keyspaces is
// missing, wrong, or cannot be written.
#include "durable/directory_engines.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "durable/directory.h"
#include "durable/directory_check.h"
#include "durable/log_test.h"
#include "durable/rehearsal.h"
#include "durable/repair_directory.h"

namespace skep::durable {
namespace {

const KeyspaceEngines kThreeEngines = {{0, "btree"}, {1, "hash"}, {2, "hashleaf,key=8,value=8"}};

Options Configured(const KeyspaceEngines& engines) {
  return {.keyspaces = 4,
          .keyspace_engines = engines,
          .directory = kTestDirectory,
          .log_segment_bytes = kTestSegmentBytes};
}

// A start of a server, its clients' writes, and its end.
class StartedStore {
 public:
  StartedStore(FileSystem& files, const KeyspaceEngines& engines) : options_(Configured(engines)) {
    auto opened = OpenKeyspaces(files, clock_, options_, &problem);
    if (!opened) {
      status = opened.error();
      return;
    }
    persistence = std::move(opened->persistence);
    keyspaces = std::move(opened->keyspaces);
  }

  void Put(uint32_t keyspace, std::string_view key, std::string_view value) {
    Batch batch;
    batch.Put(key, value);
    Engine& engine = keyspaces->at(keyspace);
    engine.WantSync(engine.Execute(batch), false);
    persistence->log().Step();
  }

  Status status;
  std::string problem;
  std::unique_ptr<Persistence> persistence;
  std::unique_ptr<Keyspaces> keyspaces;

 private:
  SimClock clock_;
  const Options options_;
};

class DirectoryEnginesTest : public testing::Test {
 protected:
  static constexpr const char* kList = "data/keyspaces";

  // A closed store with a snapshot of three engines and changes behind it. The keys are so many
  // that a table gives them in another order than that of a tree.
  void Fill() {
    StartedStore run(disk_, kThreeEngines);
    ASSERT_TRUE(run.status.ok()) << run.problem;
    for (int i = 100; i < 150; ++i) {
      const std::string key = "key-" + std::to_string(i) + "!";
      for (const auto& [index, engine] : kThreeEngines)
        run.Put(index, key, "value-" + key.substr(5, 2));
    }
    ASSERT_TRUE(run.persistence->saver().Save().ok());
    run.Put(1, "behind", "it");
    ASSERT_TRUE(run.persistence->Close().ok());
  }
  void WriteList(const KeyspaceEngines& engines) {
    ASSERT_TRUE(WriteKeyspaceFile(disk_, kTestDirectory, engines).ok());
  }
  KeyspaceEngines List() { return *ReadKeyspaceFile(disk_, kTestDirectory); }
  bool HasList() { return disk_.Open(kList, FileSystem::Mode::kRead).has_value(); }
  DirectoryCheck Check() {
    std::string problem;
    auto check = CheckDirectory(disk_, kTestDirectory, nullptr, &problem);
    EXPECT_TRUE(check) << problem;
    return std::move(*check);
  }
  Result<Rehearsal> Rehearse(std::string* problem) {
    SimClock clock;
    return RehearseStart(disk_, clock, Configured({}), problem);
  }
  void ExpectAll(StartedStore& run) {
    ASSERT_TRUE(run.status.ok()) << run.problem;
    for (const auto& [index, engine] : kThreeEngines) {
      EXPECT_EQ(run.keyspaces->at(index).Statistics().items, index == 1 ? 51u : 50u);
    }
  }

  Trace trace_;
  SimFileSystem disk_{1, trace_, {.short_reads_ppm = 0}};
};

// Goal: without the list the engines are those of the newest snapshot, for a start, a rehearsal, a
// check and a repair; a start with another engine is refused, names it, and writes nothing.
TEST_F(DirectoryEnginesTest, AMissingListIsMadeGoodByTheSnapshot) {
  Fill();
  ASSERT_TRUE(disk_.Remove(kList).ok());
  {
    const StartedStore wrong(disk_, {});
    EXPECT_EQ(wrong.status.code(), Code::kInvalidArgument);
    EXPECT_EQ(wrong.problem,
              "data: keyspace 1 is of the engine hash, the configuration says btree");
    EXPECT_FALSE(HasList());
  }
  const DirectoryCheck check = Check();
  EXPECT_TRUE(check.damage.empty());
  EXPECT_EQ(check.keyspaces, kThreeEngines);
  std::string problem;
  const auto rehearsal = Rehearse(&problem);
  ASSERT_TRUE(rehearsal) << problem;
  EXPECT_EQ(rehearsal->items.at(1), 51u);
  EXPECT_FALSE(HasList());

  StartedStore right(disk_, kThreeEngines);
  ExpectAll(right);
  EXPECT_EQ(List(), kThreeEngines);
}

// Goal: a start, a rehearsal and a check report a list that contradicts the snapshot, and a repair
// goes by the snapshot.
TEST_F(DirectoryEnginesTest, AListThatContradictsTheSnapshot) {
  Fill();
  const KeyspaceEngines poisoned = {{0, "btree"}, {1, "btree"}, {2, "btree"}, {3, "hash"}};
  WriteList(poisoned);
  for (const KeyspaceEngines& engines : {kThreeEngines, poisoned}) {
    const StartedStore run(disk_, engines);
    EXPECT_EQ(run.status.code(), Code::kCorrupt);
    EXPECT_TRUE(
        run.problem.starts_with("data/keyspaces: keyspace 1 is of the engine btree, "
                                "data/snapshot-"))
        << run.problem;
    EXPECT_TRUE(run.problem.contains("says hash")) << run.problem;
  }
  std::string problem;
  EXPECT_FALSE(Rehearse(&problem));
  EXPECT_TRUE(problem.starts_with("data/keyspaces: keyspace 1 is")) << problem;
  const DirectoryCheck check = Check();
  ASSERT_EQ(check.damage.size(), 1u);
  EXPECT_EQ(check.damage[0].file, kList);
  EXPECT_EQ(List(), poisoned);

  SimClock clock;
  const auto report = RepairDirectory(disk_, clock, Configured({}), &problem);
  ASSERT_TRUE(report) << problem;
  EXPECT_TRUE(report->repair.lost.empty());
  ASSERT_EQ(report->repair.made_good.size(), 1u);
  EXPECT_EQ(report->repair.put_aside, std::vector<std::string>{"data/keyspaces.damaged"});
  EXPECT_TRUE(Check().damage.empty());
  KeyspaceEngines repaired = kThreeEngines;
  repaired[3] = "hash";
  EXPECT_EQ(List(), repaired);
  StartedStore right(disk_, repaired);
  ExpectAll(right);
}

// Goal: a start that fails writes no list.
// Method: the list is gone and a byte of the snapshot's first item is turned, so the load fails.
TEST_F(DirectoryEnginesTest, AFailedStartWritesNoList) {
  Fill();
  ASSERT_TRUE(disk_.Remove(kList).ok());
  const uint64_t position = ListStoreFiles(disk_, kTestDirectory)->snapshots.back();
  const auto snapshot = *disk_.Open("data/" + SnapshotName(position), FileSystem::Mode::kReadWrite);
  ASSERT_TRUE(snapshot->WriteAt(sizeof(SnapshotHeader) + sizeof(SnapshotBlockHeader), "?").ok());
  const StartedStore run(disk_, kThreeEngines);
  EXPECT_EQ(run.status.code(), Code::kCorrupt);
  EXPECT_FALSE(HasList());
}

// Goal: a list that cannot be written ends the start, which says so, but for want of space: then it
// is written later, as it is when a keyspace is first used.
TEST_F(DirectoryEnginesTest, AListThatCannotBeWritten) {
  Fill();
  ASSERT_TRUE(disk_.Remove(kList).ok());
  using Call = SimFileSystem::Call;
  disk_.Plan({.call = Call::kRename, .error = EIO});
  {
    const StartedStore run(disk_, kThreeEngines);
    EXPECT_EQ(run.status.code(), Code::kIo);
    EXPECT_TRUE(run.problem.starts_with("data/keyspaces: ")) << run.problem;
    EXPECT_FALSE(HasList());
  }
  disk_.Plan({.call = Call::kRename, .error = ENOSPC});
  StartedStore run(disk_, kThreeEngines);
  ExpectAll(run);
  EXPECT_FALSE(HasList());
  run.persistence->saver().Step();
  EXPECT_EQ(List(), kThreeEngines);

  disk_.Plan({.call = Call::kRename, .error = EIO});
  run.Put(3, "key", "value");
  EXPECT_EQ(List(), kThreeEngines);
  run.persistence->saver().Step();
  KeyspaceEngines more = kThreeEngines;
  more[3] = "btree";
  EXPECT_EQ(List(), more);
}

}  // namespace
}  // namespace skep::durable
