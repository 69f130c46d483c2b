// A store on a disk that fills, on one that is full at the start, and on one that loses the
// directory: which writes are refused, which calls go on, and that the store recovers by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "durable/log_test.h"

namespace skep::durable {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kAWhileNs = 1'000'000'000;

uint64_t BytesOf(const Image& image) {
  uint64_t bytes = 0;
  for (const auto& [name, content] : image) bytes += content.size();
  return bytes;
}

class FullDiskTest : public testing::Test {
 protected:
  explicit FullDiskTest(LogSync sync = LogSync::kEverySecond)
      : store_({}, sync, kTestSegmentBytes, "model") {}

  Log& log() { return store_.log(); }
  Engine& engine() { return store_.engine(0); }
  SimFileSystem& disk() { return store_.disk(); }

  // The disk has room for so many bytes more.
  void LeaveFree(uint64_t bytes) {
    disk().set_options(
        {.short_reads_ppm = 0, .capacity_bytes = BytesOf(TakeImage(disk())) + bytes});
  }
  void MakeRoom() { disk().set_options({.short_reads_ppm = 0}); }

  // The status of one write.
  Status Put(const std::string& key, size_t bytes) {
    Batch batch;
    const std::string value(bytes, 'v');
    batch.Put(key, value);
    return Execute(batch);
  }
  Status Delete(const std::string& key) {
    Batch batch;
    batch.Delete(key);
    return Execute(batch);
  }
  Status Execute(Batch& batch) {
    const Version ticket = engine().Execute(batch);
    engine().Release();
    if (batch.outcome(0).verdict == Verdict::kRefused) return batch.outcome(0).status;
    EXPECT_TRUE(engine().gate().IsReleased(ticket)) << "it was let in, and is never answered";
    return {};
  }
  // How many writes were let in before one was refused for lack of space.
  int Fill(size_t bytes) {
    for (int i = 0; i < 10'000; ++i) {
      const Status s = Put("key" + std::to_string(i % 100), bytes);
      if (s.ok()) continue;
      EXPECT_EQ(s.code(), Code::kIo);
      EXPECT_EQ(s.detail(), static_cast<uint64_t>(ENOSPC)) << s.ToString();
      return i;
    }
    ADD_FAILURE() << "nothing was refused";
    return 0;
  }
  // Whether what sees everything can be answered.
  bool CanReadAll() {
    Batch batch;
    batch.Scan(Range::All(), {});
    const Version ticket = engine().Execute(batch);
    engine().Release();
    return batch.outcome(0).verdict == Verdict::kDone && engine().gate().IsReleased(ticket);
  }
  void Step() {
    store_.clock().Advance(kAWhileNs);
    log().Step();
  }

  TestStore store_;
};

// Goal: no segment grows beyond what was taken from the disk for it, also if the log's thread never
// runs. Method: it does not.
TEST_F(FullDiskTest, SpaceIsTakenAhead) {
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(Put("key", 4 * kKiB).ok());
  const Image image = TakeImage(disk());
  size_t segments = 0;
  for (const auto& [name, bytes] : image) {
    if (!name.ends_with(".skl")) continue;
    ++segments;
    EXPECT_LE(bytes.size(), kTestSegmentBytes) << name;
  }
  EXPECT_GT(segments, 30u);
}

// Goal: a record that is larger than a segment has its space before it is begun, or is refused.
TEST_F(FullDiskTest, ALargeRecord) {
  LeaveFree(3 * kTestSegmentBytes);
  EXPECT_EQ(Put("large", 4 * kTestSegmentBytes).detail(), static_cast<uint64_t>(ENOSPC));
  EXPECT_TRUE(Put("small", 100).ok());
  EXPECT_TRUE(CanReadAll());
  MakeRoom();
  EXPECT_TRUE(Put("large", 4 * kTestSegmentBytes).ok());
}

// Goal: batches that have begun on a disk that fills are answered; then writes are refused, reads
// of all keys go on, and the store recovers by itself. Method: sizes that fill the disk at any
// place of a segment.
TEST_F(FullDiskTest, Fills) {
  for (const size_t bytes : {size_t{100}, size_t{5'000}, size_t{20'000}}) {
    SCOPED_TRACE(bytes);
    LeaveFree(3 * kTestSegmentBytes + bytes);
    EXPECT_GT(Fill(bytes), 0);
    EXPECT_TRUE(CanReadAll());
    Step();
    EXPECT_FALSE(log().admits());
    EXPECT_FALSE(log().has_space());
    EXPECT_FALSE(Put("key", bytes).ok());
    EXPECT_TRUE(CanReadAll());
    MakeRoom();
    Step();
    EXPECT_TRUE(log().admits());
    EXPECT_TRUE(Put("key", bytes).ok());
  }
}

// Goal: deletes are let in when writes that store are not, alone and in a batch with those.
TEST_F(FullDiskTest, Deletes) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Put("key" + std::to_string(i), 10).ok());
  LeaveFree(kTestSegmentBytes + 10);
  Fill(1'000);
  ASSERT_FALSE(Put("key0", 1'000).ok());
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Delete("key" + std::to_string(i)).ok()) << i;
  Batch batch;
  const std::string value(1'000, 'v');
  const uint32_t put = batch.Put("more", value);
  const uint32_t erase = batch.Delete("key50");
  const uint32_t get = batch.Get("key51");
  engine().Execute(batch);
  EXPECT_EQ(batch.outcome(put).verdict, Verdict::kRefused);
  EXPECT_EQ(batch.outcome(erase).verdict, Verdict::kDone);
  EXPECT_EQ(batch.outcome(get).verdict, Verdict::kDone);
  EXPECT_TRUE(CanReadAll());
  const Image image = TakeImage(disk());
  TestStore again(image, LogSync::kEverySecond, kTestSegmentBytes);
  ASSERT_TRUE(again.status().ok()) << again.problem();
  EXPECT_EQ(again.States()[0].count("key50"), 0u);
  EXPECT_EQ(again.States()[0].count("key51"), 1u);
}

// Goal: a snapshot that nobody asked for makes room for ever, as long as the live data are few;
// what is refused meanwhile is let in again after it. Method: 20 times the disk's size is written.
TEST_F(FullDiskTest, OverwritesForEver) {
  constexpr uint64_t kDisk = 16 * kTestSegmentBytes;
  LeaveFree(kDisk);
  uint64_t written = 0;
  for (int i = 0; written < 20 * kDisk; ++i) {
    const Status s = Put("key" + std::to_string(i % 50), kKiB);
    if (s.ok()) written += kKiB;
    if (i % 16 == 0) log().Step();
    store_.persistence().saver().Step();
    ASSERT_TRUE(s.ok()) << written << " " << s.ToString();
  }
  EXPECT_GT(store_.persistence().saver().statistics().for_space, 10u);
  TestStore again(TakeImage(disk()), LogSync::kEverySecond, kTestSegmentBytes);
  ASSERT_TRUE(again.status().ok()) << again.problem();
  EXPECT_EQ(again.States()[0].size(), 50u);
}

// Goal: snapshots make room for ever, also when other files have taken the rest of the disk: the
// reserve is enough.
TEST_F(FullDiskTest, OverwritesFromTheReserve) {
  store_.persistence().saver().Step();
  ASSERT_TRUE(TakeImage(disk()).contains(kReserveFile));
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Put("key" + std::to_string(i % 20), kKiB).ok());
  LeaveFree(0);
  int refused = 0;
  for (int i = 0; i < 5'000; ++i) {
    if (!Put("key" + std::to_string(i % 20), kKiB).ok()) {
      ++refused;
      Step();
      store_.persistence().saver().Step();
      Step();
    }
  }
  EXPECT_GT(store_.persistence().saver().statistics().for_space, 5u);
  EXPECT_LT(refused, 500);
  EXPECT_TRUE(Put("key0", kKiB).ok());
}

// Goal: deletes go on without end on a full disk, and in the end there is room again.
TEST_F(FullDiskTest, DeletesWithoutEnd) {
  store_.persistence().saver().Step();
  LeaveFree(14 * kTestSegmentBytes);
  int keys = 0;
  while (Put("a key with a long name " + std::to_string(keys), kKiB).ok()) ++keys;
  ASSERT_GT(keys, 500);
  for (int i = 0; i < keys; ++i) {
    ASSERT_TRUE(Delete("a key with a long name " + std::to_string(i)).ok()) << i << " of " << keys;
    if (i % 16 != 0) continue;
    store_.persistence().saver().Step();
    Step();
  }
  store_.persistence().saver().Step();
  Step();
  EXPECT_TRUE(Put("key", kKiB).ok());
}

// Goal: a store whose disk is full at the start has its data, refuses writes as one that becomes
// full does, and goes on when there is room. Method: an end of the log that was not synced, too.
TEST_F(FullDiskTest, Starts) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Put("key" + std::to_string(i), 100).ok());
  const State state = store_.States()[0];
  Image image = TakeImage(disk());
  image.erase("log-next.tmp");
  image.erase(kReserveFile);
  for (const LogSync sync : {LogSync::kEverySecond, LogSync::kAlways, LogSync::kNo}) {
    TestStore again(image, sync, kTestSegmentBytes, "model",
                    {.short_reads_ppm = 0, .capacity_bytes = BytesOf(image)});
    ASSERT_TRUE(again.status().ok()) << again.problem();
    EXPECT_EQ(again.States()[0], state);
    Engine& engine = again.engine(0);
    for (int i = 0; i < 3; ++i) {
      Batch batch;
      const uint32_t put = batch.Put("more", "v");
      const uint32_t get = batch.Get("key1");
      batch.Scan(Range::All(), {});
      const Version ticket = engine.Execute(batch);
      EXPECT_EQ(batch.outcome(put).status.detail(), static_cast<uint64_t>(ENOSPC));
      EXPECT_EQ(batch.outcome(get).verdict, Verdict::kDone);
      EXPECT_TRUE(engine.gate().IsReleased(ticket));
      again.clock().Advance(kAWhileNs);
      again.log().Step();
      again.persistence().saver().Step();
    }
    again.disk().set_options({.short_reads_ppm = 0});
    again.clock().Advance(kAWhileNs);
    again.log().Step();
    Batch batch;
    batch.Put("more", "v");
    const Version ticket = engine.Execute(batch);
    EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone);
    engine.WantSync(ticket, false);
    again.log().Step();
    EXPECT_TRUE(engine.gate().IsReleased(ticket));
    again.disk().Crash();
    TestStore last(TakeImage(again.disk()), sync, kTestSegmentBytes);
    ASSERT_TRUE(last.status().ok()) << last.problem();
    State wanted = state;
    wanted["more"] = {"v", 0};
    EXPECT_EQ(last.States()[0], wanted);
  }
}

// Goal: a transaction that stores and deletes is refused as a whole; one that deletes is let in.
TEST_F(FullDiskTest, ATransactionIsNotHalved) {
  ASSERT_TRUE(Put("old", 10).ok());
  LeaveFree(kTestSegmentBytes + 10);
  Fill(1'000);
  for (const bool stores : {true, false}) {
    Batch batch(Batch::Kind::kAtomic);
    const std::string value(1'000, 'v');
    if (stores) batch.Put("new", value);
    batch.BeginPart();
    const uint32_t erase = batch.Delete("old");
    engine().Execute(batch);
    EXPECT_EQ(batch.outcome(erase).verdict == Verdict::kDone, !stores);
    EXPECT_EQ(store_.States()[0].count("old"), stores ? 1u : 0u);
  }
}

// Goal: a store that starts on a disk that its own log has filled finds the way out by itself: the
// reserve that is there holds a snapshot, and the log before it goes although the log has failed.
TEST_F(FullDiskTest, StartsBehindItsOwnLog) {
  store_.persistence().saver().Step();
  for (int i = 0; i < 2'000; ++i) {
    ASSERT_TRUE(Put("key" + std::to_string(i % 20), kKiB).ok());
    if (i % 50 == 0) Step();
  }
  const State state = store_.States()[0];
  Image image = TakeImage(disk());
  ASSERT_TRUE(image.contains(kReserveFile));
  image.erase("log-next.tmp");
  TestStore again(image, LogSync::kEverySecond, kTestSegmentBytes, "model",
                  {.short_reads_ppm = 0, .capacity_bytes = BytesOf(image)});
  ASSERT_TRUE(again.status().ok()) << again.problem();
  EXPECT_FALSE(again.log().admits());
  for (int i = 0; i < 4; ++i) {
    again.clock().Advance(kAWhileNs);
    again.log().Step();
    again.persistence().saver().Step();
  }
  again.clock().Advance(kAWhileNs);
  again.log().Step();
  EXPECT_TRUE(again.log().admits()) << again.log().status().ToString();
  EXPECT_EQ(again.States()[0], state);
  while (again.log().Step() <= 1) {
  }
  EXPECT_LT(BytesOf(TakeImage(again.disk())), BytesOf(image) / 4);
}

// Goal: a store starts on a full disk, also where an earlier process has written the snapshot and
// not dropped the log.
TEST_F(FullDiskTest, StartsBehindALogThatWasNotDropped) {
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(Put("key" + std::to_string(i % 20), kKiB).ok());
  ASSERT_TRUE(
      store_.persistence().saver().Save().ok());  // which the log's next step would drop it for
  Image image = TakeImage(disk());
  image.erase("log-next.tmp");
  TestStore again(image, LogSync::kEverySecond, kTestSegmentBytes, "model",
                  {.short_reads_ppm = 0, .capacity_bytes = BytesOf(image)});
  ASSERT_TRUE(again.status().ok()) << again.problem();
  again.clock().Advance(kAWhileNs);
  again.log().Step();
  EXPECT_TRUE(again.log().admits()) << again.log().status().ToString();
}

// Goal: a key that expires while nothing can be logged makes no reader wait.
TEST_F(FullDiskTest, AKeyExpiresWhereNothingIsLogged) {
  for (const char* const name : {"model", "btree", "hash"}) {
    SCOPED_TRACE(name);
    TestStore before({}, LogSync::kEverySecond, kTestSegmentBytes, name);
    Batch batch;
    batch.set_now_ms(before.now_ms());
    batch.Put("key", "value");
    batch.Add({.op = Op::kPut, .key = "soon", .value = "v", .deadline_ms = before.now_ms() + 500});
    before.engine(0).Execute(batch);
    before.log().Publish();
    Image image = TakeImage(before.disk());
    image.erase("log-next.tmp");
    TestStore again(image, LogSync::kEverySecond, kTestSegmentBytes, name,
                    {.short_reads_ppm = 0, .capacity_bytes = BytesOf(image)});
    ASSERT_TRUE(again.status().ok()) << again.problem();
    ASSERT_FALSE(again.log().admits());
    for (int i = 0; i < 3; ++i) {
      again.clock().Advance(kAWhileNs);
      Engine& engine = again.engine(0);
      engine.Maintain(again.now_ms());
      again.log().Step();
      Batch reads;
      reads.set_now_ms(again.now_ms());
      reads.Get("key");
      const uint32_t gone = reads.Get("soon");
      reads.Count(Range::All());
      const Version ticket = engine.Execute(reads);
      EXPECT_EQ(reads.outcome(gone).verdict, Verdict::kAbsent);
      EXPECT_TRUE(engine.gate().IsReleased(ticket));
    }
  }
}

// Goal: a disk on which a sync hangs is not asked for space by whoever wants to write.
// Method: the writer comes while the sync goes on.
TEST_F(FullDiskTest, NobodyTakesSpaceWhileASyncHangs) {
  Status while_it_hangs;
  uint64_t bytes_before = 0, bytes_behind = 0;
  ASSERT_TRUE(Put("key", 100).ok());
  log().set_policy(LogSync::kAlways);
  disk().set_options({.short_reads_ppm = 0, .during_sync = [&] {
                        if (bytes_before != 0) return;
                        store_.clock().Advance(kAWhileNs);
                        bytes_before = BytesOf(TakeImage(disk()));
                        Batch batch;
                        const std::string value(4 * kTestSegmentBytes, 'v');
                        batch.Put("large", value);
                        engine().Execute(batch);
                        while_it_hangs = batch.outcome(0).status;
                        bytes_behind = BytesOf(TakeImage(disk()));
                      }});
  log().Step();
  ASSERT_NE(bytes_before, 0u);
  EXPECT_EQ(while_it_hangs.detail(), static_cast<uint64_t>(EBUSY)) << while_it_hangs.ToString();
  EXPECT_EQ(bytes_behind, bytes_before);
}

// Goal: what a snapshot has made superfluous is removed a few segments at a time, so that a sync
// that is due waits for no more.
TEST_F(FullDiskTest, TheLogIsDroppedInPieces) {
  const auto segments = [&] {
    const Image image = TakeImage(disk());
    return std::ranges::count_if(image,
                                 [](const auto& file) { return file.first.ends_with(".skl"); });
  };
  for (int i = 0; i < 800; ++i) ASSERT_TRUE(Put("key" + std::to_string(i % 5), 2 * kKiB).ok());
  ASSERT_GT(segments(), 20);
  ASSERT_TRUE(store_.persistence().saver().Save().ok());
  int steps = 0;
  while (segments() > 1) {
    const auto before = segments();
    const int wait_ms = log().Step();
    EXPECT_LE(before - segments(), 4);
    if (segments() > 1) {
      EXPECT_LE(wait_ms, 1);
    }
    ASSERT_LT(++steps, 100);
  }
}

// Goal: what was written under `no` is not held against the first writes of `everysec`.
TEST_F(FullDiskTest, APolicyBeginsWithItsOwnTime) {
  log().set_policy(LogSync::kNo);
  ASSERT_TRUE(Put("key", 100).ok());
  store_.clock().Advance(20 * kAWhileNs);
  log().set_policy(LogSync::kEverySecond);
  EXPECT_TRUE(Put("key", 100).ok());
}

// Goal: a snapshot of a position that the log has not written yet, as it has failed, is not
// followed by another one for that.
TEST_F(FullDiskTest, ASnapshotAheadOfTheLogIsEnough) {
  const auto floor = log().Enter(0, {.bytes = 100, .stores = true});
  ASSERT_TRUE(floor.has_value());
  disk().Plan({.call = SimFileSystem::Call::kWrite, .is_for_ever = true});
  Batch batch;
  batch.Put("key", "value");
  engine().Execute(batch);
  log().Publish();
  ASSERT_FALSE(log().admits());
  log().Leave(0, *floor, {.payload = "never written", .changes = 1, .last = engine().Latest()});
  disk().ClearFaults();
  ASSERT_TRUE(store_.persistence().saver().Save().ok());
  ASSERT_GT(store_.persistence().saver().statistics().log_position, log().statistics().position);
  EXPECT_FALSE(store_.persistence().saver().Step());
}

// Goal: when the directory is gone writes get an error and nothing hangs: not what was begun, and
// no read. Method: its files and itself are removed; segments end in between, or not.
TEST_F(FullDiskTest, TheDirectoryGoes) {
  ASSERT_TRUE(Put("key", 100).ok());
  log().Step();
  for (const auto& [name, bytes] : TakeImage(disk())) {
    ASSERT_TRUE(disk().Remove(std::string(kTestDirectory) + "/" + name).ok());
  }
  ASSERT_TRUE(disk().Remove(kTestDirectory).ok());
  Status s;
  int done = 0;
  for (; s.ok() && done < 1'000; ++done) s = Put("key", kKiB);
  EXPECT_EQ(s.detail(), static_cast<uint64_t>(ENOENT)) << s.ToString();
  EXPECT_LT(done, 200) << "two segments' worth";
  EXPECT_TRUE(CanReadAll());
  for (int i = 0; i < 3; ++i) {
    Step();
    EXPECT_EQ(log().status().detail(), static_cast<uint64_t>(ENOENT));
    EXPECT_TRUE(CanReadAll());
  }
}

// Goal: that the directory is gone is noticed before a segment ends.
TEST_F(FullDiskTest, TheDirectoryGoesUnnoticed) {
  ASSERT_TRUE(Put("key", 100).ok());
  log().Step();
  for (const auto& [name, bytes] : TakeImage(disk())) {
    ASSERT_TRUE(disk().Remove(std::string(kTestDirectory) + "/" + name).ok());
  }
  ASSERT_TRUE(disk().Remove(kTestDirectory).ok());
  Step();
  EXPECT_EQ(Put("key", 100).detail(), static_cast<uint64_t>(ENOENT));
  EXPECT_EQ(Delete("key").detail(), static_cast<uint64_t>(ENOENT));
  EXPECT_TRUE(CanReadAll());
}

// Goal: the options say when a snapshot is due by the length of the log.
TEST_F(FullDiskTest, SnapshotsByTheLengthOfTheLog) {
  Persistence& persistence = store_.persistence();
  persistence.saver().SetAutoSnapshot({.percentage = 100, .log_bytes_min = 40 * kKiB});
  const auto puts_to_the_next = [&] {
    for (int i = 1; i < 1'000; ++i) {
      EXPECT_TRUE(Put("key" + std::to_string(i % 100), kKiB).ok());
      if (persistence.saver().Step()) return i;
    }
    return 0;
  };
  const int first = puts_to_the_next();
  EXPECT_GE(first, 35);
  EXPECT_LE(first, 40);
  const uint64_t bytes = persistence.saver().statistics().last_bytes;
  persistence.saver().SetAutoSnapshot({.percentage = 10'000, .log_bytes_min = 0});
  const auto by_percentage = static_cast<uint64_t>(puts_to_the_next());
  EXPECT_GE(by_percentage * (kKiB + 200), 100 * bytes);
  EXPECT_LE(by_percentage * kKiB, 100 * bytes);
  persistence.saver().SetAutoSnapshot({.percentage = 0, .log_bytes_min = 0});
  EXPECT_EQ(puts_to_the_next(), 0);
}

}  // namespace
}  // namespace skep::durable
