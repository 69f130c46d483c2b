// A snapshot under a name that is not its own, and a log that does not reach a snapshot.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "durable/directory.h"
#include "durable/directory_check.h"
#include "durable/log_test.h"
#include "durable/rehearsal.h"
#include "durable/repair_directory.h"

namespace skep::durable {
namespace {

class SnapshotNames : public testing::Test {
 protected:
  SnapshotNames() {
    TestStore store({}, LogSync::kAlways, kTestSegmentBytes);
    Put(store, 20);
    EXPECT_TRUE(store.persistence().saver().Save().ok());
    at_snapshot_ = store.States();
    killed_ = TakeImage(store.disk());
    Put(store, 30);
    states_ = store.States();
    EXPECT_TRUE(store.persistence().Close().ok());
    closed_ = TakeImage(store.disk());
    position_ = ListStoreFiles(store.disk(), kTestDirectory)->snapshots.back();
  }

  static void Put(TestStore& store, int keys) {
    for (int i = 0; i < keys; ++i) {
      const std::string key = "key" + std::to_string(i);
      const std::string value = std::to_string(keys);
      Batch batch;
      batch.Put(key, value);
      Engine& engine = store.engine(static_cast<uint32_t>(i % 2));
      engine.WantSync(engine.Execute(batch), false);
      store.log().Step();
    }
  }
  Image WithSnapshotAt(uint64_t position, bool stays) const {
    Image image = closed_;
    image[SnapshotName(position)] = image.at(SnapshotName(position_));
    if (!stays) image.erase(SnapshotName(position_));
    return image;
  }
  static std::string PathOf(const std::string& name) {
    return std::string(kTestDirectory) + "/" + name;
  }
  static Options Configured() {
    return {.engine = "model",
            .keyspaces = TestStore::kKeyspaces,
            .directory = kTestDirectory,
            .log_segment_bytes = kTestSegmentBytes};
  }

  Image closed_;
  Image killed_;  // at the end of the snapshot
  std::vector<State> states_, at_snapshot_;
  uint64_t position_ = 0;
};

// Goal: a start, a rehearsal and a check report a snapshot whose name has another position than its
// contents, with its path; a repair goes by the contents, and nothing is lost.
TEST_F(SnapshotNames, OfAnotherPosition) {
  struct Case {
    uint64_t position;
    bool stays;  // under its own name, too
  };
  constexpr uint64_t kFar = uint64_t{1} << 40;
  for (const Case& c : {Case{position_ + 1, false}, Case{position_ - 1, false},
                        Case{position_ + kFar, false}, Case{position_ + kFar, true}}) {
    const Image image = WithSnapshotAt(c.position, c.stays);
    const std::string path = PathOf(SnapshotName(c.position));
    SCOPED_TRACE(path);
    TestStore store(image, LogSync::kAlways, kTestSegmentBytes);
    EXPECT_EQ(store.status().code(), Code::kCorrupt);
    EXPECT_TRUE(store.problem().starts_with(path + ": corrupt")) << store.problem();

    Trace trace;
    SimFileSystem disk(1, trace, {.short_reads_ppm = 0});
    StoreImage(disk, image);
    SimClock clock;
    std::string problem;
    EXPECT_FALSE(RehearseStart(disk, clock, Configured(), &problem));
    EXPECT_TRUE(problem.starts_with(path + ": corrupt")) << problem;
    const auto file = CheckSnapshot(disk, path, nullptr);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->damage.size(), 1u);
    auto check = CheckDirectory(disk, kTestDirectory, nullptr, &problem);
    ASSERT_TRUE(check) << problem;
    ASSERT_EQ(check->damage.size(), 1u);
    EXPECT_EQ(check->damage[0].file, path);

    const auto report = RepairDirectory(disk, clock, Configured(), &problem);
    ASSERT_TRUE(report) << problem;
    EXPECT_TRUE(report->repair.lost.empty());
    EXPECT_EQ(report->repair.put_aside, std::vector{path + kDamagedSuffix});
    check = CheckDirectory(disk, kTestDirectory, nullptr, &problem);
    EXPECT_TRUE(check && check->damage.empty()) << problem;
    TestStore repaired(TakeImage(disk), LogSync::kAlways, kTestSegmentBytes);
    ASSERT_TRUE(repaired.status().ok()) << repaired.problem();
    EXPECT_EQ(repaired.States(), states_);
  }
}

// Goal: an older snapshot with a wrong name, which no start needs, is reported by a check alone.
TEST_F(SnapshotNames, OfAnotherPositionBeforeTheNewest) {
  const Image image = WithSnapshotAt(position_ - 1, true);
  TestStore store(image, LogSync::kAlways, kTestSegmentBytes);
  ASSERT_TRUE(store.status().ok()) << store.problem();
  EXPECT_EQ(store.States(), states_);
  Trace trace;
  SimFileSystem disk(1, trace, {.short_reads_ppm = 0});
  StoreImage(disk, image);
  std::string problem;
  const auto check = CheckDirectory(disk, kTestDirectory, nullptr, &problem);
  ASSERT_TRUE(check) << problem;
  EXPECT_TRUE(check->damage.empty());
  EXPECT_EQ(check->not_needed.size(), 1u);
}

// Goal: a start, once, a rehearsal and a check report that the log does not reach to the snapshot,
// whatever has become of its segment; it is no damage. A log that ends there is well.
TEST_F(SnapshotNames, BehindTheEndOfTheLog) {
  const std::string segment = SegmentName({.begin = 0, .epoch = 1});
  ASSERT_TRUE(closed_.contains(segment));
  const std::string whole = closed_.at(segment);
  struct Case {
    const char* what;
    Image image;
    bool lacks_log;
  };
  std::vector<Case> cases = {{"killed", killed_, false}, {"closed", closed_, false}};
  for (const auto& [what, bytes] : {std::pair{"emptied", std::string()},
                                    {"zeroed", std::string(whole.size(), '\0')},
                                    {"cut", whole.substr(0, position_ - 1)},
                                    {"cut far before", whole.substr(0, 100)}}) {
    cases.push_back({what, closed_, true});
    cases.back().image[segment] = bytes;
  }
  cases.push_back({"removed", closed_, true});
  cases.back().image.erase(segment);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Trace trace;
    SimFileSystem disk(1, trace, {.short_reads_ppm = 0});
    StoreImage(disk, c.image);
    SimClock clock;
    std::string problem;
    const auto check = CheckDirectory(disk, kTestDirectory, nullptr, &problem);
    ASSERT_TRUE(check) << problem;
    EXPECT_TRUE(check->damage.empty());
    EXPECT_EQ(check->log.ends_early, c.lacks_log);
    const auto rehearsal = RehearseStart(disk, clock, Configured(), &problem);
    ASSERT_TRUE(rehearsal) << problem;
    EXPECT_EQ(rehearsal->report.lacks_log, c.lacks_log);

    TestStore store(c.image, LogSync::kAlways, kTestSegmentBytes);
    ASSERT_TRUE(store.status().ok()) << store.problem();
    EXPECT_EQ(store.report().lacks_log, c.lacks_log);
    if (c.lacks_log) {
      EXPECT_EQ(store.States(), at_snapshot_);
    }
    TestStore next(TakeImage(store.disk()), LogSync::kAlways, kTestSegmentBytes);
    EXPECT_EQ(next.States(), store.States());
    EXPECT_FALSE(next.report().lacks_log);
  }
}

}  // namespace
}  // namespace skep::durable
