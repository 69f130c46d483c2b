// Fixed interleavings: one thread stands at a sync point (sync_point.h) while others run.
//
// Tested is every pair of a read and a change, and of two changes, at every sync point that either
// reaches. All operations are replayed in the order of versions (tree_test_history.h): a read at a
// version must have seen exactly the state of that version, a write the one before its own.
#include <gtest/gtest.h>

#include <deque>

#include "btree/testing/tree_test_changes.h"

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
// Reads keys of the middle's leaf and, by the same hint, keys of other leaves, which are found from
// the root.
void GetSomeHinted(Batch& batch, Hint hint) {
  for (const uint32_t key : {kMiddle, 10u, kMiddle, kMiddle + 2, 300u}) {
    batch.Add({.op = Op::kGet, .key = changes::Kept(batch, TestKey(key)), .hint = hint});
  }
}
void GetSome(Batch& batch, Hint) {
  for (const uint32_t key : {10u, 90u, 101u, 198u, kMiddle, 300u, 360u}) {
    batch.Get(changes::Kept(batch, TestKey(key)));
  }
}
void ScanAll(Batch& batch, Hint) { batch.Scan(Range::All()); }
void ScanAllReverse(Batch& batch, Hint) { batch.Scan(Range::All(), {.reverse = true}); }
void ScanSome(Batch& batch, Hint) {
  batch.Scan(Range::From(changes::Kept(batch, TestKey(kMiddle))), {.limit = 3});
}
void CountAll(Batch& batch, Hint) { batch.Count(Range::All()); }
void CountInside(Batch& batch, Hint) {
  batch.Count(Range::Between(changes::Kept(batch, TestKey(3)), changes::Kept(batch, TestKey(381))));
}

constexpr TreeRead kReads[] = {
    {"GetPresent", Batch::Kind::kUnordered, false, GetPresent},
    {"GetAbsent", Batch::Kind::kUnordered, false, GetAbsent},
    {"GetHinted", Batch::Kind::kUnordered, false, GetHinted},
    {"GetSomeHinted", Batch::Kind::kUnordered, false, GetSomeHinted},
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

// Single reads, which the directory of leaves leads.
constexpr TreeRead kLed[] = {
    {"GetPresent", Batch::Kind::kUnordered, false, GetPresent},
    {"GetAbsent", Batch::Kind::kUnordered, false, GetAbsent},
    {"ScanSome", Batch::Kind::kUnordered, false, ScanSome},
};

// Under a sanitizer, where everything takes ten times as long, fewer visits of a point are tested,
// and a change meets only one in so many others, each time other ones; SKEP_TREE_TEST_ROUNDS=2 is
// for all of them. ThreadSanitizer has little to find while threads wait for each other.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint32_t kNthMax = 2;
constexpr size_t kOneIn = 6;
#else
constexpr uint32_t kNthMax = UINT32_MAX;
constexpr size_t kOneIn = 1;
#endif

// Calls meet(other) for those of `others` that the change is to meet, until a test has failed.
template <typename Others, typename Meet>
void ForEachMet(const Others& others, const TreeChange& change, Meet meet) {
  const bool is_second = LayoutOfTest::current() == NodeLayout::kPaper;
  const size_t one_in = RoundsOfTests() > 1 || kOneIn == 1 ? 1 : kOneIn * (is_second ? 2 : 1);
  const auto number = static_cast<size_t>(
      std::ranges::find(changes::kAll, change.name, &TreeChange::name) - changes::kAll);
  for (size_t i = 0; i < std::size(others); ++i) {
    if ((i + number) % one_in != 0 || testing::Test::HasFailure()) continue;
    SCOPED_TRACE(others[i].name);
    meet(others[i]);
  }
}

// Calls stop_at(point, nth) for each point, for its first, second, fourth visit and so on, until
// the answer is that there are not so many visits. Returns how many there were.
template <typename StopAt>
uint32_t AtEach(std::span<const SyncPoint> points, uint32_t nth_max, StopAt stop_at) {
  uint32_t stops = 0;
  for (const SyncPoint point : points) {
    for (uint32_t nth = 1; nth <= nth_max; nth *= 2) {
      SCOPED_TRACE(testing::Message() << "point " << static_cast<int>(point) << " nth " << nth);
      if (!stop_at(point, nth) || testing::Test::HasFailure()) break;
      ++stops;
    }
    if (testing::Test::HasFailure()) break;
  }
  return stops;
}

Hint HintOfMiddle(TestTree& tree) {
  const std::string key = TestKey(kMiddle);
  return tree.Do({.op = Op::kGet, .flags = Request::kWantHint, .key = key}).hint;
}

// Executes a batch in a thread of its own.
class Performer {
 public:
  Performer(TestTree& tree, Batch batch) : tree_(tree), batch_(std::move(batch)) {}

  void Start() { StartTo(SyncPoint::kReaderAtRoot, 0); }
  // False: the batch has come to its end.
  bool StartAndStop(SyncPoint point, uint32_t nth) {
    StartTo(point, nth);
    return actor_->WaitUntilStopped();
  }
  void LetRun() { actor_->LetRun(); }
  void Finish(History& history) {
    actor_->Finish();
    history.Note(batch_, ticket_, released_);
  }

 private:
  void StartTo(SyncPoint point, uint32_t nth) {
    released_ = tree_.engine().gate().released();
    actor_.emplace(point, nth, [this] { ticket_ = tree_.Execute(batch_); });
  }

  TestTree& tree_;
  Batch batch_;
  Version released_ = 0;
  Version ticket_ = 0;
  std::optional<Actor> actor_;
};

// Executes every read in the calling thread.
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

class Interleavings : public OnEachLayoutWith<TreeChange> {
 protected:
  // `is_led`: the tree has a directory, from before the change. False: the read does not visit the
  // point so often.
  static bool StopRead(const TreeRead& read, SyncPoint point, uint32_t nth, bool is_led = false) {
    Scene scene(GetCase());
    if (is_led) scene.tree().MakeDirectory();
    SnapshotRef snapshot;
    if (read.at_snapshot) snapshot = scene.tree().OpenSnapshot();
    Batch batch(read.kind);
    read.fill(batch, HintOfMiddle(scene.tree()));
    batch.set_snapshot(snapshot);
    Performer reader(scene.tree(), std::move(batch));
    const bool stopped = reader.StartAndStop(point, nth);
    if (stopped) {
      EXPECT_TRUE(GetCase().happened(scene.Step()));
      scene.ReuseMemory();
    }
    reader.Finish(scene.history());
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

  // Calls meanwhile(scene, others) while the change stands at each of its points. `others` are
  // threads that may have to wait for the change; they are finished after it.
  template <typename Meanwhile>
  static void StopChange(Meanwhile meanwhile, bool is_led = false) {
    const uint32_t stops = AtEach(kWriterPoints, kNthMax, [&](SyncPoint point, uint32_t nth) {
      Scene scene(GetCase());
      if (is_led) scene.tree().MakeDirectory();
      Performer writer(scene.tree(), scene.NextBatch());
      std::deque<Performer> others;
      const bool stopped = writer.StartAndStop(point, nth);
      if (stopped) meanwhile(scene, others);
      writer.Finish(scene.history());
      for (Performer& other : others) other.Finish(scene.history());
      scene.End();
      return stopped;
    });
    EXPECT_GT(stops, 2u);
  }

  // A reader begins after the freer has unlinked the buffers that the change replaced, and is
  // stopped while they are freed and their memory is allocated again. False: the reader does not
  // visit the point so often.
  static bool StopFreerAndRead(const TreeRead& read, SyncPoint point, uint32_t nth,
                               bool is_led = false) {
    Scene scene(GetCase());
    if (is_led) scene.tree().MakeDirectory();
    Batch batch(read.kind);
    read.fill(batch, HintOfMiddle(scene.tree()));
    {
      // Nothing that the change replaces can be freed until this reader ends.
      Batch scan;
      scan.Scan(Range::All());
      Performer early(scene.tree(), std::move(scan));
      early.StartAndStop(SyncPoint::kReaderAtRoot, 1);
      scene.Step();
      early.Finish(scene.history());
    }
    SnapshotRef snapshot;
    if (read.at_snapshot) snapshot = scene.tree().OpenSnapshot();
    batch.set_snapshot(snapshot);
    Performer reader(scene.tree(), std::move(batch));
    Actor freer(SyncPoint::kReclaimUnlinked, 1, [&] { scene.tree().MaintainAll(); });
    freer.WaitUntilStopped();
    const bool stopped = reader.StartAndStop(point, nth);
    ReadAll(scene);
    freer.Finish();
    scene.ReuseMemory();
    reader.Finish(scene.history());
    if (read.at_snapshot) scene.tree().CloseSnapshot(snapshot);
    scene.End();
    return stopped;
  }

  static constexpr SyncPoint kReaderPoints[] = {
      SyncPoint::kReaderAtRoot,    SyncPoint::kReaderAtChild, SyncPoint::kReaderInLeaf,
      SyncPoint::kReaderAtSibling, SyncPoint::kReaderAtHint,
  };

 private:
  static constexpr SyncPoint kWriterPoints[] = {
      SyncPoint::kReaderAtChild,  // on the way down
      SyncPoint::kWriterFoundLeaf, SyncPoint::kWriterAppended, SyncPoint::kWriterDrew,
      SyncPoint::kWriterPublished, SyncPoint::kMergeBuilt,     SyncPoint::kMergeMapped,
      SyncPoint::kStructureLocked, SyncPoint::kStructureBuilt, SyncPoint::kStructureMapped,
      SyncPoint::kDetachStopped,   SyncPoint::kDetachMapped,
  };
};

// Goal: whatever happens between two steps of a read, it sees one state: that of its version or,
// for a point read of the newest state, one between its beginning and its end.
// Method: the read is stopped; the change happens, its garbage is freed as far as a reader lets it,
// and the memory is allocated again (freed memory is poisoned under AddressSanitizer).
TEST_P(Interleavings, AReadSeesTheStateOfItsVersion) {
  ForEachMet(kReads, GetCase(), [](const TreeRead& read) {
    const uint32_t stops = AtEach(kReaderPoints, kNthMax, [&](SyncPoint point, uint32_t nth) {
      return StopRead(read, point, nth);
    });
    EXPECT_GT(stops, 0u);
  });
}

// Goal: a reader that begins while memory is on its way to be freed does not find that memory.
TEST_P(Interleavings, AReadDoesNotFindWhatIsBeingFreed) {
  ForEachMet(kReads, GetCase(), [](const TreeRead& read) {
    AtEach(kReaderPoints, 1,
           [&](SyncPoint point, uint32_t nth) { return StopFreerAndRead(read, point, nth); });
  });
}

// Goal: the same of single reads that a directory leads, which the change makes stale.
TEST_P(Interleavings, AReadThatIsLedSeesTheStateOfItsVersion) {
  ForEachMet(kLed, GetCase(), [](const TreeRead& read) {
    const uint32_t stops = AtEach(kReaderPoints, kNthMax, [&](SyncPoint point, uint32_t nth) {
      return StopRead(read, point, nth, true);
    });
    EXPECT_GT(stops, 0u);
    AtEach(kReaderPoints, 1,
           [&](SyncPoint point, uint32_t nth) { return StopFreerAndRead(read, point, nth, true); });
  });
}

// Goal: a reader never waits for a writer, wherever the writer stands, and sees all of its write or
// nothing.
// Method: all reads, of the newest state and at a snapshot taken meanwhile, twice; between the two
// all that may be freed is freed.
TEST_P(Interleavings, ReadsPassAStoppedWriter) {
  StopChange([](Scene& scene, std::deque<Performer>&) {
    ReadAll(scene);
    scene.tree().MaintainAll();
    ReadAll(scene);
  });
}

// A write of another thread at the same place.
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

// Goal: two writers at one place act one after the other, in the order of their versions; a writer
// that has to wait goes on when the other one does; readers see neither write in half.
// Method: the second writer is started while the first is stopped, and runs as far as it can: to
// its end, or to where the first one stands in its way.
TEST_P(Interleavings, TwoWritersActOneAfterTheOther) {
  ForEachMet(kWrites, GetCase(), [](const TreeWrite& write) {
    StopChange([&](Scene& scene, std::deque<Performer>& others) {
      Batch batch(write.kind);
      write.fill(batch, 0);
      Performer& other = others.emplace_back(scene.tree(), std::move(batch));
      other.Start();
      other.LetRun();
      ReadAll(scene);
    });
  });
}

// Goal: the same of a write that a directory leads to the leaf that the change is about to replace.
TEST_P(Interleavings, AWriteThatIsLedActsBeforeOrAfterTheOther) {
  StopChange(
      [](Scene& scene, std::deque<Performer>& others) {
        Batch batch;
        changes::PutMiddle(batch, 0);
        Performer& other = others.emplace_back(scene.tree(), std::move(batch));
        other.Start();
        other.LetRun();
        ReadAll(scene);
      },
      true);
}

INSTANTIATE_TEST_SUITE_P(All, Interleavings, EachLayoutWith(changes::kAll),
                         LayoutAndCaseName<TreeChange>);

}  // namespace
}  // namespace skep::btree
