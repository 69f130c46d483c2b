// tree_test_changes.h: a table of every way in which a tree changes.
//
// A change is a sequence of batches. The one that is meant is the first that has the effect in the
// change's name; those before only lead up to it. Which one that is, is tried on another tree: one
// thread's batches have the same effects every time.
#pragma once

#include <cstdio>
#include <map>
#include <span>
#include <string>

#include "btree/testing/tree_test_history.h"
#include "btree/testing/tree_test_stage.h"
#include "btree/testing/tree_test_tree.h"

namespace skep::btree {

// Keys so long that an inner node has few: they begin alike, so separators are long, too.
inline std::string TestKey(uint32_t number) {
  char text[16];
  std::snprintf(text, sizeof text, "%04u", number);
  return std::string(60, 'k') + text;
}
// Keys between TestKey(number) and the next.
inline std::string TestKeyBetween(uint32_t number, uint32_t part) {
  char text[16];
  std::snprintf(text, sizeof text, ".%03u", part);
  return TestKey(number) + text;
}
inline std::string TestValue(std::string_view name) {
  return std::string(name) + std::string(60 - name.size(), '.');
}

// The effect of one batch on the shape of a tree.
struct Effect {
  int leaves = 0;  // difference, as the next two: after less before
  int inner_nodes = 0;
  int height = 0;
  std::array<uint64_t, kSyncPoints> reached = {};
  bool Reached(SyncPoint point) const { return reached[static_cast<size_t>(point)] > 0; }
};

struct TreeChange {
  const char* name;
  uint32_t keys;  // keys in the tree before: TestKey(0), TestKey(2), ...
  Batch::Kind kind;
  void (*fill)(Batch& batch, uint32_t step);
  bool (*happened)(const Effect& effect);
};

// The middle of the 200 keys that most changes begin with.
inline constexpr uint32_t kMiddle = 200;

namespace changes {

inline std::string_view Kept(Batch& batch, const std::string& bytes) {
  return batch.scratch().Copy(bytes);
}
inline void PutMiddle(Batch& batch, uint32_t step) {
  batch.Put(Kept(batch, TestKey(kMiddle)), Kept(batch, TestValue("put" + std::to_string(step))),
            Request::kReturnPrevious);
}
inline void InsertInMiddle(Batch& batch, uint32_t step) {
  batch.Insert(Kept(batch, TestKeyBetween(kMiddle, step)), Kept(batch, TestValue("inserted")));
}
inline void InsertNearBegin(Batch& batch, uint32_t step) {
  batch.Insert(Kept(batch, TestKeyBetween(4, step)), Kept(batch, TestValue("inserted")));
}
inline void DeleteFromMiddle(Batch& batch, uint32_t step) {
  batch.Delete(Kept(batch, TestKey(kMiddle - 60 + 2 * step)), Request::kReturnPrevious);
}
// Fills the leaves above the middle, then empties those below it, up to the middle.
inline void DeleteBesideFullLeaves(Batch& batch, uint32_t step) {
  constexpr uint32_t kInserts = 20;
  if (step < kInserts) {
    batch.Insert(Kept(batch, TestKey(kMiddle + 2 * step + 1)), Kept(batch, TestValue("inserted")));
  } else {
    batch.Delete(Kept(batch, TestKey(kMiddle - 40 + 2 * (step - kInserts))));
  }
}
inline void DeleteFromBegin(Batch& batch, uint32_t step) {
  batch.Delete(Kept(batch, TestKey(2 * step)));
}
inline void DeleteTwoInMiddle(Batch& batch, uint32_t step) {
  const uint32_t from = kMiddle - 4 * step;
  batch.DeleteRange(Range::Between(Kept(batch, TestKey(from)), Kept(batch, TestKey(from + 3))));
}
inline void DeleteMiddle(Batch& batch, uint32_t) {
  batch.DeleteRange(Range::Between(Kept(batch, TestKey(61)), Kept(batch, TestKey(301))));
}
inline void DeleteTail(Batch& batch, uint32_t) {
  batch.DeleteRange(Range::From(Kept(batch, TestKey(111))));
}
inline void DeleteSomeOfMiddle(Batch& batch, uint32_t) {
  batch.DeleteRange(Range::From(Kept(batch, TestKey(101))), 70);
}
inline void DeleteEverything(Batch& batch, uint32_t) { batch.DeleteAll(); }
// Writes one key in each of five leaves, one of them new and one deleted.
inline void WriteFarApart(Batch& batch, uint32_t step) {
  const std::string value = TestValue("atomic" + std::to_string(step));
  for (const uint32_t key : {10u, 90u, kMiddle, 300u}) {
    batch.Put(Kept(batch, TestKey(key)), Kept(batch, value), Request::kReturnPrevious);
  }
  batch.Put(Kept(batch, TestKeyBetween(kMiddle, step)), Kept(batch, value));
  batch.Delete(Kept(batch, TestKey(360 + 2 * step)));
}
inline void InsertManyInMiddle(Batch& batch, uint32_t) {
  for (uint32_t part = 0; part < 60; ++part) InsertInMiddle(batch, part);
  batch.Delete(Kept(batch, TestKey(kMiddle)));
}
inline void DeleteManyFromMiddle(Batch& batch, uint32_t) {
  for (uint32_t step = 0; step < 60; ++step) DeleteFromMiddle(batch, step);
  batch.Put(Kept(batch, TestKey(1)), Kept(batch, TestValue("atomic")));
}
inline void DeleteRangeAndPut(Batch& batch, uint32_t) {
  batch.DeleteRange(Range::Between(Kept(batch, TestKey(100)), Kept(batch, TestKey(kMiddle))));
  batch.Put(Kept(batch, TestKey(101)), Kept(batch, TestValue("atomic")));
  batch.Put(Kept(batch, TestKey(kMiddle)), Kept(batch, TestValue("atomic")));
}

inline constexpr auto kUnordered = Batch::Kind::kUnordered;
inline constexpr auto kAtomic = Batch::Kind::kAtomic;

inline constexpr TreeChange kAll[] = {
    {"Append", 200, kUnordered, PutMiddle,
     [](const Effect& e) { return e.Reached(SyncPoint::kWriterAppended); }},
    {"AppendNew", 200, kUnordered, InsertInMiddle,
     [](const Effect& e) { return e.Reached(SyncPoint::kWriterAppended); }},
    {"Merge", 200, kUnordered, PutMiddle,
     [](const Effect& e) { return e.Reached(SyncPoint::kMergeBuilt); }},
    {"SplitLeaf", 200, kUnordered, InsertInMiddle,
     [](const Effect& e) { return e.leaves == 1 && e.inner_nodes == 0; }},
    {"SplitInner", 200, kUnordered, InsertInMiddle,
     [](const Effect& e) { return e.inner_nodes == 1 && e.height == 0; }},
    {"GrowRootOfLeaf", 4, kUnordered, InsertNearBegin,
     [](const Effect& e) { return e.height == 1; }},
    {"GrowRootOfInner", 120, kUnordered, InsertNearBegin,
     [](const Effect& e) { return e.height == 1; }},
    {"Delete", 200, kUnordered, DeleteFromMiddle,
     [](const Effect& e) { return e.Reached(SyncPoint::kWriterAppended); }},
    {"JoinLeaves", 200, kUnordered, DeleteFromMiddle,
     [](const Effect& e) { return e.leaves == -1; }},
    {"Redistribute", 200, kUnordered, DeleteBesideFullLeaves,
     [](const Effect& e) { return e.leaves == 0 && e.Reached(SyncPoint::kStructureLocked); }},
    {"JoinInner", 450, kUnordered, DeleteFromBegin,
     [](const Effect& e) { return e.inner_nodes == -1 && e.height == 0; }},
    {"CollapseRootToLeaf", 20, kUnordered, DeleteFromBegin,
     [](const Effect& e) { return e.height == -1; }},
    {"CollapseRootToInner", 240, kUnordered, DeleteFromBegin,
     [](const Effect& e) { return e.height == -1; }},
    {"DeleteRangeInLeaf", 200, kUnordered, DeleteTwoInMiddle,
     [](const Effect& e) { return e.Reached(SyncPoint::kStructureMapped) && e.leaves == 0; }},
    {"DeleteRangeOverLeaves", 200, kUnordered, DeleteMiddle,
     [](const Effect& e) { return e.Reached(SyncPoint::kDetachMapped); }},
    {"DeleteRangeTail", 200, kUnordered, DeleteTail,
     [](const Effect& e) { return e.Reached(SyncPoint::kDetachMapped); }},
    {"DeleteRangeSome", 200, kUnordered, DeleteSomeOfMiddle,
     [](const Effect& e) { return e.Reached(SyncPoint::kDetachMapped); }},
    {"DeleteEverything", 200, kUnordered, DeleteEverything,
     [](const Effect& e) { return e.Reached(SyncPoint::kDetachMapped) && e.height < 0; }},
    {"AtomicAppend", 200, kAtomic, WriteFarApart,
     [](const Effect& e) { return !e.Reached(SyncPoint::kMergeMapped); }},
    {"AtomicMerge", 200, kAtomic, WriteFarApart,
     [](const Effect& e) { return e.Reached(SyncPoint::kMergeMapped); }},
    {"AtomicSplit", 200, kAtomic, InsertManyInMiddle, [](const Effect& e) { return e.leaves > 1; }},
    {"AtomicJoin", 200, kAtomic, DeleteManyFromMiddle,
     [](const Effect& e) { return e.leaves < -1; }},
    {"AtomicRange", 200, kAtomic, DeleteRangeAndPut,
     [](const Effect& e) { return e.Reached(SyncPoint::kStructureMapped); }},
};

}  // namespace changes

inline void PrintTo(const TreeChange& change, std::ostream* os) { *os << change.name; }

// A tree just before a change. Owner: the test's thread; other threads may execute batches.
class Scene {
 public:
  explicit Scene(const TreeChange& change) : change_(change), stage_(tree_.core()) {
    // All at once, so that their leaves are made once.
    Batch batch(Batch::Kind::kAtomic);
    for (uint32_t i = 0; i < change.keys; ++i) {
      batch.Put(changes::Kept(batch, TestKey(2 * i)),
                changes::Kept(batch, TestValue(std::to_string(i))));
    }
    Run(batch);
    tree_.MaintainAll();
    static std::map<std::pair<NodeLayout, std::string>, uint32_t> steps_before;
    const std::pair key(LayoutOfTest::current(), std::string(change.name));
    const auto known = steps_before.find(key);
    if (known == steps_before.end() && !trying_) {
      steps_before[key] = StepsBefore(change);
    }
    if (trying_) return;
    for (uint32_t i = 0; i < steps_before[key]; ++i) Step();
  }

  TestTree& tree() { return tree_; }
  History& history() { return history_; }
  const Stage& stage() const { return stage_; }

  // The next batch of the change; after the constructor, the one that is meant.
  Batch NextBatch() {
    Batch batch(change_.kind);
    change_.fill(batch, step_++);
    return batch;
  }
  Effect Step() {
    const Effect before = Look();
    Batch batch = NextBatch();
    Run(batch);
    const Effect after = Look();
    Effect effect = {.leaves = after.leaves - before.leaves,
                     .inner_nodes = after.inner_nodes - before.inner_nodes,
                     .height = after.height - before.height};
    for (size_t i = 0; i < kSyncPoints; ++i) {
      effect.reached[i] = after.reached[i] - before.reached[i];
    }
    return effect;
  }
  // Executes a batch and notes it in the history.
  void Run(Batch& batch) {
    const Version released = tree_.engine().gate().released();
    history_.Note(batch, tree_.Execute(batch), released);
  }

  // Frees all that can be freed, and allocates the memory again.
  void ReuseMemory() {
    tree_.MaintainAll();
    for (uint32_t i = 0; i < 3; ++i) {
      Batch batch;
      for (uint32_t key = 3; key < 400; key += 12) {
        batch.Put(changes::Kept(batch, TestKey(key)), changes::Kept(batch, TestValue("reuse")));
      }
      Run(batch);
    }
    tree_.MaintainAll();
  }

  // Checks that everything that was noted fits together and is in the tree, and that nothing is
  // left over.
  void End() {
    const State state = history_.Replay();
    if (testing::Test::HasFailure()) return;
    tree_.engine().gate().Wait(tree_.core().versions.last_drawn());
    tree_.ExpectHolds(state);
    tree_.ExpectNothingLeaked();
  }

 private:
  static uint32_t StepsBefore(const TreeChange& change) {
    trying_ = true;
    Scene scene(change);
    trying_ = false;
    uint32_t steps = 0;
    while (!change.happened(scene.Step()) && steps < 500) ++steps;
    EXPECT_LT(steps, 500u) << change.name << " never happens";
    return steps;
  }
  Effect Look() {
    Core& core = tree_.core();
    Effect now = {.leaves = static_cast<int>(core.leaves.load()),
                  .inner_nodes = static_cast<int>(core.inner_nodes.load()),
                  .height = core.Head(core.root)->level + 1};
    for (size_t i = 0; i < kSyncPoints; ++i) {
      now.reached[i] = stage_.reached(static_cast<SyncPoint>(i));
    }
    return now;
  }

  static inline bool trying_ = false;

  const TreeChange& change_;
  TestTree tree_;
  Stage stage_;
  History history_;
  uint32_t step_ = 0;
};

}  // namespace skep::btree
