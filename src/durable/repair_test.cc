// Damage at each place of small stores on a simulated disk: what is recovered is what was not
// touched, and every loss is reported.
#include "durable/repair.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/sanitized.h"
#include "durable/directory.h"
#include "durable/directory_check.h"
#include "durable/disk_reserve.h"
#include "durable/keyspace_file.h"
#include "durable/open_keyspaces.h"
#include "durable/rehearsal.h"
#include "durable/repair_directory.h"
#include "durable/snapshot_reader.h"
#include "engine/testing/random_batch.h"
#include "sim/seeds.h"
#include "sim/sim_clock.h"
#include "sim/sim_file.h"

namespace skep::durable {
namespace {

constexpr const char* kDirectory = "data";
Options Small(Options options = {}) {
  options.directory = kDirectory;
  options.log_segment_bytes = 4096;
  return options;
}

// The distance from one damaged byte of a snapshot to the next.
constexpr size_t kStep = kSanitized ? 7 : 1;

// All pairs of all keyspaces.
using State = std::map<std::pair<uint32_t, std::string>, std::string>;
// The bytes of all files.
using Files = std::map<std::string, std::string>;

std::string PathOf(const std::string& name) { return std::string(kDirectory) + "/" + name; }

class Disk {
 public:
  explicit Disk(const Files& contents = {}) {
    if (contents.empty()) return;
    EXPECT_TRUE(files.CreateDirectory(kDirectory).ok());
    for (const auto& [name, bytes] : contents) {
      const auto file = files.Open(PathOf(name), FileSystem::Mode::kCreate);
      EXPECT_TRUE((*file)->Append(bytes).ok() && (*file)->Sync().ok());
    }
    EXPECT_TRUE(files.SyncDirectory(kDirectory).ok() && files.SyncDirectory(".").ok());
  }

  Files Contents() {
    Files contents;
    const auto names = *files.List(kDirectory);
    for (const std::string& name : names) {
      contents[name] = *files.ReadAll(PathOf(name));
    }
    return contents;
  }

  Trace trace;
  SimFileSystem files{1, trace, {}};
};

// A store that is open.
class Open {
 public:
  Open(SimFileSystem& files, uint64_t segment_bytes, Options options = {.keyspaces = 2}) {
    std::string problem;
    options.directory = kDirectory;
    options.log_sync = LogSync::kAlways;
    options.log_segment_bytes = segment_bytes;
    auto opened = OpenKeyspaces(files, clock, options, &problem);
    EXPECT_TRUE(opened.has_value()) << problem;
    persistence = std::move(opened->persistence);
    keyspaces = std::move(opened->keyspaces);
    report = opened->report;
  }

  void Execute(uint32_t keyspace, Batch& batch) {
    Engine& engine = keyspaces->at(keyspace);
    engine.WantSync(engine.Execute(batch), false);
    persistence->log().Step();
  }
  State Dump() {
    State state;
    for (uint32_t keyspace = 0; keyspace < keyspaces->count(); ++keyspace) {
      EXPECT_EQ(keyspaces->at(keyspace).Verify(), nullptr);
      const auto walk = *keyspaces->at(keyspace).OpenPairIterator(clock.WallMs());
      for (auto pairs = walk->Next(); !pairs->empty(); pairs = walk->Next()) {
        for (const Pair& pair : *pairs) {
          if (pair.deadline_ms != 0 && pair.deadline_ms <= walk->now_ms()) continue;
          state[{keyspace, std::string(pair.key)}] = pair.value;
        }
      }
    }
    return state;
  }

  SimClock clock;
  std::unique_ptr<Persistence> persistence;
  std::unique_ptr<Keyspaces> keyspaces;
  Status status;
  RecoveryReport report;
};

struct LogChange {
  uint32_t keyspace;
  std::string key;
  std::optional<std::string> value;  // none: erased
};

void Apply(const LogChange& change, State* state) {
  if (change.value) {
    (*state)[{change.keyspace, change.key}] = *change.value;
  } else {
    state->erase({change.keyspace, change.key});
  }
}

// A store that was closed: changes, a snapshot, changes.
struct Built {
  std::vector<LogChange> changes;  // one a record of the log
  size_t in_snapshot = 0;          // so many of them
  Files files;
  uint64_t snapshot = 0;  // its position

  State After(std::set<size_t> lost) const {
    State state;
    for (size_t i = 0; i < changes.size(); ++i) {
      if (!lost.contains(i)) Apply(changes[i], &state);
    }
    return state;
  }
};

Built Build(uint64_t segment_bytes) {
  Built built;
  for (uint32_t i = 0; i < 60; ++i) {
    const std::string key = "key" + std::to_string(i % 25);
    built.changes.push_back({i % 2, key, std::to_string(i) + std::string(i % 40, 'v')});
    // A delete of an absent key is not logged: these keys are there.
    if (i >= 50 && i % 3 == 0) built.changes.back().value.reset();
  }
  built.in_snapshot = 40;
  Disk disk;
  Open store(disk.files, segment_bytes);
  for (size_t i = 0; i < built.changes.size(); ++i) {
    if (i == built.in_snapshot) {
      EXPECT_TRUE(store.persistence->saver().Save().ok());
      store.persistence->log().Step();
    }
    const LogChange& change = built.changes[i];
    Batch batch;
    if (change.value) {
      batch.Put(change.key, *change.value);
    } else {
      batch.Delete(change.key);
    }
    store.Execute(change.keyspace, batch);
  }
  EXPECT_TRUE(store.persistence->Close().ok());
  built.files = disk.Contents();
  built.snapshot = ListStoreFiles(disk.files, kDirectory)->snapshots.back();
  return built;
}

// The place of a record, and the change that it has; none if it is another record.
struct Place {
  std::string file;
  uint64_t offset;
  uint64_t bytes;
  uint64_t position;
  RecordType type;
  std::optional<size_t> change;
};

std::vector<Place> RecordsOf(const Built& built) {
  Disk disk(built.files);
  const auto segments = ListStoreFiles(disk.files, kDirectory)->segments;
  const auto reader = LogReader::Open(disk.files, kDirectory, segments.front().begin);
  std::vector<Place> places;
  while (const auto record = *(*reader)->Next()) {
    const std::string name = (*reader)->file().substr(PathOf("").size());
    Place& place = places.emplace_back();
    place = {.file = name,
             .offset = record->position - *PositionOfSegment(name),
             .bytes = kRecordHeaderBytes + record->payload.size(),
             .position = record->position,
             .type = record->type,
             .change = {}};
  }
  // The last change is in the last record of changes, and so on.
  size_t change = built.changes.size();
  for (size_t i = places.size(); i-- > 0;) {
    if (places[i].type == RecordType::kChanges) places[i].change = --change;
  }
  return places;
}

Place PlaceOf(const Built& built, size_t change) {
  const std::vector<Place> records = RecordsOf(built);
  const auto at = std::ranges::find(records, std::optional(change), &Place::change);
  EXPECT_NE(at, records.end());
  return *at;
}

struct Repaired {
  RepairReport report;
  State state;
  Files files;
};

// Also expects that the repaired directory is sound, and that nothing is lost on the way.
Repaired Repair(SimFileSystem& files, const Options& options = {.keyspaces = 2}) {
  Repaired repaired;
  SimClock clock;
  std::string problem;
  const auto report = RepairDirectory(files, clock, Small(options), &problem);
  EXPECT_TRUE(report) << problem;
  if (!report) return repaired;
  repaired.report = report->repair;
  const auto check = CheckDirectory(files, kDirectory, nullptr, &problem);
  EXPECT_TRUE(check) << problem;
  EXPECT_TRUE(check && check->damage.empty() && check->log.is_ended);
  Open store(files, 4096, options);
  EXPECT_TRUE(store.status.ok()) << store.status.ToString();
  if (store.status.ok()) repaired.state = store.Dump();
  return repaired;
}

bool IsReported(const std::vector<Damage>& damages, const std::string& file, uint64_t at) {
  return std::ranges::any_of(damages, [&](const Damage& damage) {
    return damage.file == PathOf(file) && damage.offset <= at && at < damage.offset + damage.bytes;
  });
}

Files Flip(Files files, const std::string& name, uint64_t at) {
  files[name][at] = static_cast<char>(~files[name][at]);
  return files;
}

void DamageEachRecord(const Built& built) {
  const std::vector<Place> records = RecordsOf(built);
  for (const Place& place : records) {
    for (const uint64_t in_record : {uint64_t{0}, uint64_t{17}, uint64_t{24}, place.bytes - 1}) {
      SCOPED_TRACE(testing::Message()
                   << place.file << ", record at " << place.position << ", of type "
                   << static_cast<int>(place.type) << ", byte " << in_record);
      const uint64_t at = place.offset + in_record;
      Disk disk(Flip(built.files, place.file, at));
      const Repaired repaired = Repair(disk.files);
      const bool is_needed = place.position >= built.snapshot;
      // No record behind these says that they were synced.
      const bool is_end =
          place.type == RecordType::kEnd || place.position == records.back().position;
      if (!is_needed || is_end) {
        EXPECT_FALSE(repaired.report.has_damage());
        EXPECT_EQ(repaired.state, built.After({}));
        continue;
      }
      EXPECT_TRUE(IsReported(repaired.report.lost, place.file, at));
      EXPECT_EQ(repaired.report.lost.size(), 1u);
      EXPECT_EQ(repaired.report.lost[0].bytes, place.bytes);
      EXPECT_EQ(repaired.report.refused, 0u);
      std::set<size_t> lost;
      if (place.change) lost.insert(*place.change);
      EXPECT_EQ(repaired.state, built.After(lost));
      ASSERT_EQ(repaired.report.put_aside.size(), 1u);
      EXPECT_EQ(repaired.report.put_aside[0], PathOf(place.file) + kDamagedSuffix);
      EXPECT_EQ(*disk.files.ReadAll(repaired.report.put_aside[0]),
                Flip(built.files, place.file, at)[place.file]);
    }
  }
}

// Goal: one wrong byte in the log costs the record it is in; before the snapshot, nothing.
// Method: four bytes of each record are made wrong, one at a time; the state must be that of all
// changes but the one of the record.
TEST(Repair, OneWrongByteOfTheLog) { DamageEachRecord(Build(16 * 1024)); }
TEST(Repair, OneWrongByteOfTheLogInManySegments) { DamageEachRecord(Build(600)); }

// Goal: damage in a snapshot costs nothing while the log is there from its beginning on.
TEST(Repair, TheLogMakesASnapshotGood) {
  const Built built = Build(16 * 1024);
  const std::string name = SnapshotName(built.snapshot);
  for (size_t at = 0; at < built.files.at(name).size(); at += kStep) {
    SCOPED_TRACE(testing::Message() << "byte " << at);
    Disk disk(Flip(built.files, name, at));
    const Repaired repaired = Repair(disk.files);
    EXPECT_TRUE(repaired.report.lost.empty());
    EXPECT_TRUE(IsReported(repaired.report.made_good, name, at));
    EXPECT_EQ(repaired.state, built.After({}));
    EXPECT_EQ(repaired.report.put_aside, std::vector{PathOf(name) + kDamagedSuffix});
  }
}

// Goal: an older snapshot makes a newer one good, if the log reaches back to it.
// Method: the power goes before the older one is removed; the log before it is not there any more.
TEST(Repair, AnOlderSnapshotMakesANewerOneGood) {
  Disk disk;
  Files files;
  State expected;
  {
    Open store(disk.files, 600);
    for (int i = 0; i < 60; ++i) {
      const LogChange change{0, "key" + std::to_string(i % 25), std::to_string(i)};
      Batch batch;
      batch.Put(change.key, *change.value);
      store.Execute(0, batch);
      Apply(change, &expected);
      if (i != 20) continue;
      ASSERT_TRUE(store.persistence->saver().Save().ok());
      store.persistence->log().Step();
      files = disk.Contents();
    }
    ASSERT_TRUE(store.persistence->saver().Save().ok() && store.persistence->Close().ok());
  }
  const auto older = *std::ranges::find_if(
      files, [](const auto& file) { return PositionOfSnapshot(file.first).has_value(); });
  Disk both(disk.Contents());
  files = both.Contents();
  const uint64_t newest = ListStoreFiles(both.files, kDirectory)->snapshots.back();
  files.insert(older);
  EXPECT_GT(ListStoreFiles(both.files, kDirectory)->segments.front().begin, 0u);
  Disk damaged(Flip(files, SnapshotName(newest), 60));
  const Repaired repaired = Repair(damaged.files);
  EXPECT_TRUE(repaired.report.lost.empty());
  EXPECT_TRUE(IsReported(repaired.report.made_good, SnapshotName(newest), 60));
  EXPECT_EQ(repaired.state, expected);
}

// Goal: without that log, damage in a snapshot costs the block it is in, and what was written
// behind the snapshot is there.
TEST(Repair, OneWrongByteOfASnapshotCostsABlock) {
  const Built built = Build(600);
  const std::string name = SnapshotName(built.snapshot);
  Disk sound(built.files);
  const auto reader = SnapshotReader::Open(sound.files, PathOf(name));
  ASSERT_EQ((*reader)->block_count(), 2u);  // one a keyspace
  for (size_t at = 0; at < built.files.at(name).size(); at += kStep) {
    SCOPED_TRACE(testing::Message() << "byte " << at);
    State expected;
    for (size_t i = 0; i < built.changes.size(); ++i) {
      if (i == built.in_snapshot) {
        std::erase_if(expected, [&](const auto& pair) {
          const SnapshotBlockInfo block = (*reader)->block(pair.first.first);
          return at >= block.offset && at < block.offset + block.bytes;
        });
      }
      Apply(built.changes[i], &expected);
    }
    Disk disk(Flip(built.files, name, at));
    const Repaired repaired = Repair(disk.files);
    EXPECT_TRUE(IsReported(repaired.report.lost, name, at));
    EXPECT_TRUE(repaired.report.made_good.empty());
    EXPECT_EQ(repaired.state, expected);
  }
}

// Goal: a file that is gone costs what it had, and is reported.
TEST(Repair, MissingFiles) {
  const Built built = Build(600);
  const std::vector<Place> records = RecordsOf(built);
  for (const auto& [name, bytes] : built.files) {
    SCOPED_TRACE(name);
    Files files = built.files;
    files.erase(name);
    Disk disk(files);
    const Repaired repaired = Repair(disk.files);
    const auto segment = PositionOfSegment(name);
    if (name == SnapshotName(built.snapshot)) {
      // The log alone: the changes that it still has.
      std::set<size_t> lost;
      for (size_t i = 0; i < *records.front().change; ++i) lost.insert(i);
      EXPECT_EQ(repaired.state, built.After(lost));
      EXPECT_EQ(repaired.report.lost.size(), 1u);
    } else if (segment && name != records.back().file) {
      std::set<size_t> lost;
      for (const Place& place : records) {
        if (place.file == name && place.change && *place.change >= built.in_snapshot) {
          lost.insert(*place.change);
        }
      }
      EXPECT_EQ(repaired.state, built.After(lost));
      EXPECT_EQ(repaired.report.lost.empty(), lost.empty());
    } else if (!segment) {
      EXPECT_FALSE(repaired.report.has_damage());
      EXPECT_EQ(repaired.state, built.After({}));
    }
  }
}

// Goal: a damaged list of keyspaces is made good by what the snapshot says of their engines.
TEST(Repair, TheListOfKeyspaces) {
  Disk disk;
  Options options{.keyspaces = 2, .keyspace_engines = {{1, "hash"}}};
  {
    Open store(disk.files, 4096, options);
    for (const uint32_t keyspace : {0u, 1u}) {
      Batch batch;
      batch.Put("key", "value");
      store.Execute(keyspace, batch);
    }
    ASSERT_TRUE(store.persistence->saver().Save().ok() && store.persistence->Close().ok());
  }
  const Files files = disk.Contents();
  for (size_t at = 0; at < files.at(kKeyspaceFile).size(); ++at) {
    SCOPED_TRACE(testing::Message() << "byte " << at);
    Disk damaged(Flip(files, kKeyspaceFile, at));
    SimClock clock;
    std::string problem;
    const auto report = RepairDirectory(damaged.files, clock, Small(), &problem);
    ASSERT_TRUE(report) << problem;
    EXPECT_TRUE(IsReported(report->repair.made_good, kKeyspaceFile, at));
    EXPECT_TRUE(report->repair.lost.empty());
    EXPECT_EQ(*ReadKeyspaceFile(damaged.files, kDirectory),
              (KeyspaceEngines{{0, "btree"}, {1, "hash"}}));
  }
}

// Goal: whatever was damaged, a repair ends, what it makes is sound, and it says that something was
// wrong if recovery says so.
// Method: random batches of all kinds, ranges and functions too, several runs and snapshots; then
// bytes are made wrong, files cut or removed.
TEST(Repair, AnyDamage) {
  uint64_t lossy = 0;
  uint64_t good = 0;
  const SeedRange seeds = Seeds(150);
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    std::mt19937_64 rng(seed);
    const Options options{.engine = seed % 2 == 0 ? "btree" : "hash", .keyspaces = 2};
    RandomBatch batches(seed);
    Disk disk;
    for (int run = 0; run < 3; ++run) {
      Open store(disk.files, 2048, options);
      ASSERT_TRUE(store.status.ok());
      for (int step = 0; step < 60; ++step) {
        store.clock.Advance(rng() % 3 * 1'000'000);
        Batch batch(rng() % 2 == 0 ? Batch::Kind::kUnordered : Batch::Kind::kAtomic);
        batch.set_now_ms(store.clock.WallMs());
        batches.Fill(batch);
        store.Execute(rng() % 2, batch);
        if (rng() % 40 != 0) continue;
        EXPECT_TRUE(store.persistence->saver().Save().ok());
      }
      const bool is_closed = rng() % 2 == 0;
      EXPECT_TRUE(!is_closed || store.persistence->Close().ok());
    }
    Files files = disk.Contents();
    files.erase(kLockFile);
    for (uint64_t damages = 1 + rng() % 3; damages > 0; --damages) {
      auto at = files.begin();
      std::advance(at, static_cast<long>(rng() % files.size()));
      const uint64_t lot = rng() % 10;
      if (lot == 0 && files.size() > 1) {
        files.erase(at);
      } else if (lot == 1) {
        at->second.clear();
      } else if (lot == 2) {
        at->second.resize(rng() % (at->second.size() + 1));
      } else if (!at->second.empty()) {
        at->second[rng() % at->second.size()] ^= static_cast<char>(1 + rng() % 255);
      }
    }
    bool is_damaged = false;
    {
      Disk trial(files);
      SimClock clock;
      std::string problem;
      is_damaged = !OpenKeyspaces(trial.files, clock, Small(options), &problem);
    }
    Disk damaged(files);
    std::string problem;
    const auto check = CheckDirectory(damaged.files, kDirectory, nullptr, &problem);
    if (!check) {
      // Only files are left that every start makes anew.
      ASSERT_EQ(check.error().code(), Code::kInvalidArgument) << problem;
      EXPECT_FALSE(is_damaged);
      continue;
    }
    EXPECT_EQ(!check->damage.empty(), is_damaged);
    const Repaired repaired = Repair(damaged.files, options);
    EXPECT_EQ(repaired.report.has_damage(), is_damaged);
    lossy += repaired.report.lost.empty() ? 0 : 1;
    good += repaired.report.made_good.empty() ? 0 : 1;
    ASSERT_FALSE(HasFailure());
  }
  std::printf("%llu repairs with losses, %llu where something was made good\n",
              static_cast<unsigned long long>(lossy), static_cast<unsigned long long>(good));
  EXPECT_TRUE(lossy > 0 || !AreMany(seeds));
}

// Goal: a repair that ends before it is done, or loses power, costs nothing: the next one finds
// what it would have found.
// Method: each operation on the disk fails once, one after the other, and the power goes then.
TEST(Repair, AnotherOneAfterAFailure) {
  const Built built = Build(600);
  Files files = built.files;
  const Place hit = PlaceOf(built, built.in_snapshot + 5);
  files = Flip(files, hit.file, hit.offset + 30);
  files = Flip(files, SnapshotName(built.snapshot), 60);
  State expected;
  {
    Disk disk(files);
    const Repaired repaired = Repair(disk.files);
    EXPECT_EQ(repaired.report.lost.size(), 2u);
    expected = repaired.state;
  }
  using Operation = SimFileSystem::Operation;
  for (const auto operation : {Operation::kWrite, Operation::kSync, Operation::kDirectory}) {
    bool has_failed = true;
    for (uint64_t successes = 0; has_failed; ++successes) {
      SCOPED_TRACE(testing::Message()
                   << "operation " << static_cast<int>(operation) << " after " << successes);
      Disk disk(files);
      disk.files.FailOnce(operation, successes, EIO);
      SimClock clock;
      std::string problem;
      has_failed =
          !RepairDirectory(disk.files, clock, Small({.keyspaces = 2}), &problem).has_value();
      if (!has_failed) break;
      disk.files.Crash();
      const Repaired repaired = Repair(disk.files);
      EXPECT_EQ(repaired.state, expected);
      ASSERT_LT(successes, 200u);
    }
  }
}

// Goal: a function whose value was lost is left out and counted; the rest goes on.
TEST(Repair, WhatCannotBeAppliedIsCounted) {
  Disk disk;
  {
    Open store(disk.files, 16 * 1024);
    const std::string zeroes(1000, '\0');
    Batch first;
    first.Put("vector", zeroes);
    store.Execute(0, first);
    // Logged as it is: the value is much longer than its operand.
    Batch second;
    const Function* add = FindFunction(FunctionKind::kUpdate, "add", Element::kU8);
    second.UpdateElements("vector", add, "\1");
    second.Put("other", "1");
    second.Expire("vector", 1'900'000'000'000);
    store.Execute(0, second);
    Batch third(Batch::Kind::kAtomic);
    third.Move("vector", "matrix");
    store.Execute(0, third);
    ASSERT_TRUE(store.persistence->Close().ok());
  }
  const Built built{.changes = std::vector<LogChange>(3), .files = disk.Contents()};
  const Place hit = PlaceOf(built, 0);
  Disk damaged(Flip(built.files, hit.file, hit.offset + 30));
  const Repaired repaired = Repair(damaged.files);
  EXPECT_EQ(repaired.report.lost.size(), 1u);
  EXPECT_EQ(repaired.report.refused, 3u);
  EXPECT_EQ(repaired.state, (State{{{0, "other"}, "1"}}));
}

// Goal: changes that only a lost record said to be complete are taken, and counted.
// Method: two keyspaces are written one after the other, and the process dies; the progress record
// of the first one is damaged.
TEST(Repair, WhatAHoleHasLeftOpenIsTaken) {
  Disk disk;
  {
    Open store(disk.files, 16 * 1024);
    for (const uint32_t keyspace : {0u, 1u, 1u}) {
      Batch batch;
      batch.Put("key", "value");
      store.Execute(keyspace, batch);
    }
  }
  const Built built{.changes = std::vector<LogChange>(3), .files = disk.Contents()};
  const std::vector<Place> records = RecordsOf(built);
  const auto hit = std::ranges::find(records, RecordType::kProgress, &Place::type);
  Disk damaged(Flip(built.files, hit->file, hit->offset));
  const Repaired repaired = Repair(damaged.files);
  EXPECT_EQ(repaired.report.lost.size(), 1u);
  EXPECT_EQ(repaired.report.unconfirmed, 1u);
  EXPECT_EQ(repaired.state, (State{{{0, "key"}, "value"}, {{1, "key"}, "value"}}));
}

TEST(Repair, ASoundDirectory) {
  const Built built = Build(600);
  Disk disk(built.files);
  const Repaired repaired = Repair(disk.files);
  EXPECT_FALSE(repaired.report.has_damage());
  EXPECT_EQ(repaired.state, built.After({}));
  EXPECT_EQ(ListStoreFiles(disk.files, kDirectory)->snapshots, std::vector{built.snapshot});
}

TEST(Repair, ADirectoryThatIsInUse) {
  Disk disk;
  Open store(disk.files, 4096);
  SimClock clock;
  std::string problem;
  const auto report = RepairDirectory(disk.files, clock, Small(), &problem);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), Code::kUnavailable);
  EXPECT_EQ(problem, "data: a server has it open: end it first");
}

// Goal: a start, a rehearsal, a check and a repair name the path of something that has the name of
// a store's file and is no file.
TEST(Repair, WhatIsNoFile) {
  const Built built = Build(600);
  Options options = Small({.keyspaces = 2});
  for (const std::string& name :
       {std::string(kKeyspaceFile), RecordsOf(built).back().file, SnapshotName(built.snapshot),
        std::string(kReserveFile), std::string("log-next.tmp"), std::string("keyspaces.tmp")}) {
    SCOPED_TRACE(name);
    Files contents = built.files;
    contents.erase(name);
    Disk disk(contents);
    ASSERT_TRUE(disk.files.CreateDirectory(PathOf(name)).ok());
    SimClock clock;
    const auto expect = [&](const auto& result, std::string& problem) {
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code(), Code::kInvalidArgument);
      EXPECT_EQ(problem, PathOf(name) + ": invalid argument: not a regular file");
      problem.clear();
    };
    std::string problem;
    expect(OpenKeyspaces(disk.files, clock, options, &problem), problem);
    expect(RehearseStart(disk.files, clock, options, &problem), problem);
    expect(CheckDirectory(disk.files, kDirectory, nullptr, &problem), problem);
    expect(RepairDirectory(disk.files, clock, options, &problem), problem);
  }
}

// Goal: a directory stays its process's own when the file that is locked in it is deleted.
TEST(Repair, ADirectoryThatIsInUseAndHasLostItsLockFile) {
  Disk disk;
  Open store(disk.files, 4096);
  ASSERT_TRUE(store.status.ok() && disk.files.Remove(PathOf(kLockFile)).ok());
  SimClock clock;
  std::string problem;
  EXPECT_EQ(RepairDirectory(disk.files, clock, Small(), &problem).error().code(),
            Code::kUnavailable);
  EXPECT_EQ(OpenKeyspaces(disk.files, clock, Small(), &problem).error().code(), Code::kUnavailable);
  EXPECT_EQ(problem, "data: a server has it open: end it first");
  EXPECT_EQ(CheckDirectory(disk.files, kDirectory, nullptr, &problem).error().code(),
            Code::kUnavailable);
}

// Goal: a version of Skep that locks the file alone keeps others out.
TEST(Repair, ADirectoryThatAnOlderVersionHasOpen) {
  Disk disk(Build(600).files);
  const auto lock = disk.files.Lock(PathOf(kLockFile));
  SimClock clock;
  std::string problem;
  EXPECT_EQ(OpenKeyspaces(disk.files, clock, Small(), &problem).error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace skep::durable
