// Fixed interleavings: one thread stands at a sync point (core.h) while others run.
//
// Every pair of a read and a change, and of two changes, at every sync point that either reaches.
// What was executed is replayed in the order of versions (tree_test_history.h): a read at a version
// must have seen exactly the state of that version, a write the one before its own.
#include <gtest/gtest.h>

#include <deque>

#include "btree/tree_test_changes.h"

namespace skep::btree {
namespace {

struct TreeRead {
  const char* name;
  Batch::Kind kind;
  bool at_snapshot;
  void (*fill)(Batch& batch, Hint hint);
};

void GetPresent(Batch& batch, Hint) { batch.Get(changes::Kept(batch, TestKey(kMiddle))); }
void GetAbsent(Batch& batch, Hint) { batch.Get(changes::Kept(batch, TestKeyBetween(kMiddle, 0))); }
void GetHinted(Batch& batch, Hint hint) {
  batch.Add({.op = Op::kGet, .key = changes::Kept(batch, TestKey(kMiddle)), .hint = hint});
}
void GetSome(Batch& batch, Hint) {
  for (const uint32_t key : {10u, 90u, 101u, 198u, kMiddle, 300u, 360u}) {
    batch.Get(changes::Kept(batch, TestKey(key)));
  }
}
void ScanAll(Batch& batch, Hint) { batch.Scan(Range::All()); }
void ScanAllReverse(Batch& batch, Hint) { batch.Scan(Range::All(), {.reverse = true}); }
void CountAll(Batch& batch, Hint) { batch.Count(Range::All()); }
void CountInside(Batch& batch, Hint) {
  batch.Count(Range::Between(changes::Kept(batch, TestKey(3)), changes::Kept(batch, TestKey(381))));
}

constexpr TreeRead kReads[] = {
    {"GetPresent", Batch::Kind::kUnordered, false, GetPresent},
    {"GetAbsent", Batch::Kind::kUnordered, false, GetAbsent},
    {"GetHinted", Batch::Kind::kUnordered, false, GetHinted},
    {"GetSome", Batch::Kind::kUnordered, false, GetSome},
    {"GetSomeAtOnce", Batch::Kind::kAtomic, false, GetSome},
    {"GetSomeOfSnapshot", Batch::Kind::kUnordered, true, GetSome},
    {"Scan", Batch::Kind::kUnordered, false, ScanAll},
    {"ScanReverse", Batch::Kind::kUnordered, false, ScanAllReverse},
    {"ScanOfSnapshot", Batch::Kind::kUnordered, true, ScanAll},
    {"ScanReverseOfSnapshot", Batch::Kind::kUnordered, true, ScanAllReverse},
    {"Count", Batch::Kind::kUnordered, false, CountAll},
    {"CountInside", Batch::Kind::kUnordered, false, CountInside},
};

void PrintTo(const TreeRead& read, std::ostream* os) { *os << read.name; }

// How often a point may have been reached, thinned out.
uint32_t NextNth(uint32_t nth) { return nth < 4 ? nth + 1 : nth * 2; }

Hint HintOfMiddle(TestTree& tree) {
  const std::string key = TestKey(kMiddle);
  return tree.Do({.op = Op::kGet, .flags = Request::kWantHint, .key = key}).hint;
}

using ReadAndChange = std::tuple<TreeRead, TreeChange>;

class ReadsAgainstChanges : public testing::TestWithParam<ReadAndChange> {
 protected:
  // False: the read does not come to the point so often.
  bool StopReadAt(SyncPoint point, uint32_t nth) {
    const auto& [read, change] = GetParam();
    Scene scene(change);
    SnapshotRef snapshot;
    if (read.at_snapshot) snapshot = scene.tree().OpenSnapshot();
    Batch batch(read.kind);
    read.fill(batch, HintOfMiddle(scene.tree()));
    batch.set_snapshot(snapshot);
    Version ticket = 0;
    Actor reader(point, nth, [&] { ticket = scene.tree().Execute(batch); });
    const bool stopped = reader.WaitUntilStopped();
    if (stopped) {
      EXPECT_TRUE(change.happened(scene.Step()));
      scene.ReuseMemory();
    }
    reader.Finish();
    scene.history().Note(batch, ticket);
    if (read.at_snapshot) {
      Batch again(read.kind);
      read.fill(again, {});
      again.set_snapshot(snapshot);
      scene.Run(again);
      scene.tree().CloseSnapshot(snapshot);
    }
    scene.End();
    return stopped;
  }
};

// Goal: whatever happens between two steps of a read, it sees one state: of its version, or, a
// point read of the newest state, one between its beginning and its end.
// Method: the read is stopped; the change happens, what it frees is freed as far as a reader lets
// it, and the memory is taken again (freed memory is poisoned under AddressSanitizer).
TEST_P(ReadsAgainstChanges, SeeTheStateOfTheirVersion) {
  for (const SyncPoint point : {SyncPoint::kReaderAtRoot, SyncPoint::kReaderAtChild,
                                SyncPoint::kReaderInLeaf, SyncPoint::kReaderAtSibling}) {
    for (uint32_t nth = 1;; nth = NextNth(nth)) {
      SCOPED_TRACE(testing::Message() << "point " << static_cast<int>(point) << " nth " << nth);
      if (!StopReadAt(point, nth) || HasFailure()) break;
    }
    if (HasFailure()) break;
  }
}

std::string ReadAndChangeName(const testing::TestParamInfo<ReadAndChange>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(All, ReadsAgainstChanges,
                         testing::Combine(testing::ValuesIn(kReads),
                                          testing::ValuesIn(changes::kAll)),
                         ReadAndChangeName);

constexpr SyncPoint kWriterPoints[] = {
    SyncPoint::kWriterFoundLeaf, SyncPoint::kWriterAppended, SyncPoint::kWriterDrew,
    SyncPoint::kWriterPublished, SyncPoint::kMergeBuilt,     SyncPoint::kMergeMapped,
    SyncPoint::kStructureLocked, SyncPoint::kStructureBuilt, SyncPoint::kStructureMapped,
    SyncPoint::kDetachStopped,   SyncPoint::kDetachMapped,
};

// A batch of a thread of its own.
class Performer {
 public:
  Performer(TestTree& tree, Batch batch) : tree_(tree), batch_(std::move(batch)) {}

  void Start() {
    actor_.emplace([this] { ticket_ = tree_.Execute(batch_); });
  }
  // False: it has come to its end.
  bool StartAndStop(SyncPoint point, uint32_t nth) {
    actor_.emplace(point, nth, [this] { ticket_ = tree_.Execute(batch_); });
    return actor_->WaitUntilStopped();
  }
  void LetRun() { actor_->LetRun(); }
  void Finish(History& history) {
    actor_->Finish();
    history.Note(batch_, ticket_);
  }

 private:
  TestTree& tree_;
  Batch batch_;
  Version ticket_ = 0;
  std::optional<Actor> actor_;
};

// Runs every read, here and now.
void ReadAll(Scene& scene) {
  const SnapshotRef snapshot = scene.tree().OpenSnapshot();
  const Hint hint = HintOfMiddle(scene.tree());
  for (const TreeRead& read : kReads) {
    Batch batch(read.kind);
    read.fill(batch, hint);
    if (read.at_snapshot) batch.set_snapshot(snapshot);
    scene.Run(batch);
  }
  scene.tree().CloseSnapshot(snapshot);
}

// Calls meanwhile(scene) while the change stands at each of its points. What that returns, threads
// that may have to wait for the change, is finished after it.
template <typename Meanwhile>
void StopChangeEverywhere(const TreeChange& change, Meanwhile meanwhile) {
  uint32_t stops = 0;
  const auto stop_at = [&](SyncPoint point, uint32_t nth) {
    SCOPED_TRACE(testing::Message() << "point " << static_cast<int>(point) << " nth " << nth);
    Scene scene(change);
    Performer writer(scene.tree(), scene.NextBatch());
    std::deque<Performer> others;
    const bool stopped = writer.StartAndStop(point, nth);
    if (stopped) meanwhile(scene, others);
    writer.Finish(scene.history());
    for (Performer& other : others) other.Finish(scene.history());
    scene.End();
    stops += stopped ? 1 : 0;
    return stopped && !testing::Test::HasFailure();
  };
  for (const SyncPoint point : kWriterPoints) {
    for (uint32_t nth = 1; stop_at(point, nth);) nth = NextNth(nth);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(stops, 1u);
}

using ReadsPassChanges = testing::TestWithParam<TreeChange>;

// Goal: a reader never waits for a writer, wherever that stands, and sees all of its write or
// nothing.
// Method: all reads, at the newest state and at a snapshot taken meanwhile, twice; what may be
// freed is freed in between.
TEST_P(ReadsPassChanges, AndSeeTheStateOfTheirVersion) {
  StopChangeEverywhere(GetParam(), [](Scene& scene, std::deque<Performer>&) {
    ReadAll(scene);
    scene.tree().MaintainAll();
    ReadAll(scene);
  });
}

INSTANTIATE_TEST_SUITE_P(All, ReadsPassChanges, testing::ValuesIn(changes::kAll),
                         [](const auto& param) { return std::string(param.param.name); });

// What another writer does at the same place.
struct TreeWrite {
  const char* name;
  Batch::Kind kind;
  void (*fill)(Batch& batch, uint32_t step);
};

void PutFarAway(Batch& batch, uint32_t) {
  batch.Put(changes::Kept(batch, TestKey(9)), changes::Kept(batch, TestValue("far")));
}
void SplitMiddle(Batch& batch, uint32_t) {
  for (uint32_t part = 0; part < 20; ++part) {
    batch.Put(changes::Kept(batch, TestKeyBetween(kMiddle, part)),
              changes::Kept(batch, TestValue("split")), Request::kReturnPrevious);
  }
}
void JoinMiddle(Batch& batch, uint32_t) {
  for (uint32_t step = 0; step < 60; ++step) changes::DeleteFromMiddle(batch, step);
}

constexpr TreeWrite kWrites[] = {
    {"PutFarAway", Batch::Kind::kUnordered, PutFarAway},
    {"Put", Batch::Kind::kUnordered, changes::PutMiddle},
    {"Split", Batch::Kind::kUnordered, SplitMiddle},
    {"Join", Batch::Kind::kUnordered, JoinMiddle},
    {"DeleteRange", Batch::Kind::kUnordered, changes::DeleteMiddle},
    {"DeleteEverything", Batch::Kind::kUnordered, changes::DeleteEverything},
    {"Atomic", Batch::Kind::kAtomic, changes::WriteFarApart},
    {"AtomicSplit", Batch::Kind::kAtomic, changes::InsertManyInMiddle},
    {"AtomicRange", Batch::Kind::kAtomic, changes::DeleteRangeAndPut},
};

void PrintTo(const TreeWrite& write, std::ostream* os) { *os << write.name; }

using WriteAndChange = std::tuple<TreeWrite, TreeChange>;
using WritesMeetChanges = testing::TestWithParam<WriteAndChange>;

// Goal: two writers at one place act one after the other, in the order of their versions; whoever
// has to wait goes on when the other does; readers see neither half.
// Method: the second one is started while the first is stopped, and runs as far as it can. It may
// end before the first one goes on, or not; where it stands in its way it must not.
TEST_P(WritesMeetChanges, ActOneAfterTheOther) {
  const auto& [write, change] = GetParam();
  StopChangeEverywhere(change, [&](Scene& scene, std::deque<Performer>& others) {
    Batch batch(write.kind);
    write.fill(batch, 0);
    Performer& other = others.emplace_back(scene.tree(), std::move(batch));
    other.Start();
    other.LetRun();
    ReadAll(scene);
  });
}

INSTANTIATE_TEST_SUITE_P(All, WritesMeetChanges,
                         testing::Combine(testing::ValuesIn(kWrites),
                                          testing::ValuesIn(changes::kAll)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param).name) + "_" +
                                  std::get<1>(param.param).name;
                         });

}  // namespace
}  // namespace skep::btree
