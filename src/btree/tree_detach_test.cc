// Tests a tree that is deleted at once, while its nodes are still in memory: reads by a snapshot, a
// hint or a sibling link before, during and after the walk through the detached subtrees.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/sanitized.h"
#include "btree/testing/tree_test_changes.h"

namespace skep::btree {
namespace {

using changes::Kept;

constexpr uint32_t kKeys = 6000;
// Under a sanitizer, which takes ten times as long, checks are made less often.
constexpr uint32_t kSlower = kSanitized ? 4 : 1;

class DetachedTree : public OnEachLayout {
 protected:
  DetachedTree() : stage_(tree_.core()) {
    Batch batch;
    for (uint32_t i = 0; i < kKeys; ++i) {
      const std::string key = TestKey(i * 37 % kKeys);
      // Some values are outside the nodes.
      before_[key] = i % 50 == 0 ? std::string(3000, 'o') : TestValue("old" + std::to_string(i));
      batch.Put(Kept(batch, key), before_[key]);
    }
    tree_.Execute(batch);
    tree_.MaintainAll();
    for (const auto& [key, value] : before_) hints_[key] = HintOf(key);
    snapshot_ = tree_.OpenSnapshot();
  }

  Hint HintOf(const std::string& key) {
    return tree_.Do({.op = Op::kGet, .flags = Request::kWantHint, .key = key}).hint;
  }

  // Does one step of the walk and of the freeing after it. True if there is more to do.
  bool WalkOn(uint32_t pieces) {
    Core& core = tree_.core();
    ThreadState& thread = core.threads.Take();
    const bool more = core.reclaimer.Run(thread, pieces);
    core.threads.Give(thread);
    return more;
  }

  // Reads all of the snapshot: by scans both ways, a count, and points with hints from before.
  void ExpectSnapshotHolds() {
    ASSERT_EQ(tree_.Contents(snapshot_), before_);
    ASSERT_EQ(tree_.Contents(snapshot_, true), before_);
    Batch batch;
    batch.set_snapshot(snapshot_);
    batch.Count(Range::All());
    for (const auto& [key, value] : before_) {
      batch.Add({.op = Op::kGet, .key = key, .hint = hints_[key]});
    }
    tree_.Execute(batch);
    EXPECT_EQ(batch.outcome(0).integer, kKeys);
    uint32_t thread = 1;
    for (const auto& [key, value] : before_) {
      ASSERT_EQ(batch.outcome(thread++).value, value) << key;
    }
  }

  // Reads the newest state, by points with old hints.
  void ExpectNewest(const State& state) {
    Batch batch;
    for (const auto& [key, hint] : hints_) batch.Add({.op = Op::kGet, .key = key, .hint = hint});
    tree_.Execute(batch);
    uint32_t thread = 0;
    for (const auto& [key, hint] : hints_) {
      const Outcome& outcome = batch.outcome(thread++);
      const auto expected = state.find(key);
      ASSERT_EQ(outcome.present, expected != state.end()) << key;
      if (outcome.present) {
        ASSERT_EQ(outcome.value, expected->second) << key;
      }
    }
  }

  Outcome PutByHint(const std::string& key, const std::string& value) {
    return tree_.Do({.op = Op::kPut, .key = key, .value = value, .hint = hints_[key]});
  }

  TestTree tree_;
  const Stage stage_;
  State before_;
  std::map<std::string, Hint> hints_;
  SnapshotRef snapshot_;
};

// Goal: when everything is deleted at once, a snapshot keeps all of it, readable in every way, and
// hints that point into detached subtrees mislead no reader.
// Method: reads when the subtrees are detached and the writers still stopped; then after each of
// many small steps of the walk, while keys are put anew by their old hints; and at the end.
TEST_P(DetachedTree, IsWholeAtTheSnapshotAndEmptyOtherwise) {
  ASSERT_GE(tree_.Statistics().height, 4u);
  Batch all;
  all.DeleteAll();
  Actor deleter(SyncPoint::kDetachMapped, 1, [&] { tree_.Execute(all); });
  ASSERT_TRUE(deleter.WaitUntilStopped());
  ASSERT_TRUE(tree_.core().reclaimer.detached());
  ExpectSnapshotHolds();
  ExpectNewest({});
  deleter.Finish();
  EXPECT_EQ(all.outcome(0).integer, kKeys);

  State now;
  uint32_t steps_detached = 0;
  auto next = before_.begin();
  for (bool more = true; more;) {
    SCOPED_TRACE(testing::Message() << now.size() << " keys put anew");
    const bool detached = tree_.core().reclaimer.detached();
    steps_detached += detached ? 1 : 0;
    const std::string value(3000, 'n');  // takes memory that is freed too early
    ASSERT_EQ(PutByHint(next->first, value).verdict, Verdict::kDone);
    now[next->first] = value;
    std::advance(next, 7);
    ExpectNewest(now);
    more = WalkOn((detached ? 4 : 64) * kSlower);
    if (HasFailure()) return;
  }
  EXPECT_GT(steps_detached, 10u);
  ExpectSnapshotHolds();
  tree_.ExpectHolds(now);
  tree_.CloseSnapshot(snapshot_);
  tree_.ExpectHolds(now);
  tree_.ExpectNothingLeaked();
}

// Goal: a scan on its way through subtrees that are being detached goes on to its end at its
// version or, at the newest one, sees everything or nothing.
// Method: scans stop at their first leaf and in the middle, forward and backward; then everything
// is deleted, walked and freed as far as they let it.
TEST_P(DetachedTree, IsWholeForAScanOnItsWay) {
  for (const bool reverse : {false, true}) {
    for (const uint32_t nth : {1u, 100u}) {
      SCOPED_TRACE(testing::Message() << (reverse ? "backward, leaf " : "forward, leaf ") << nth);
      State seen;
      Actor scan(SyncPoint::kReaderAtSibling, nth, [&] { seen = tree_.Contents({}, reverse); });
      ASSERT_TRUE(scan.WaitUntilStopped());
      Batch all;
      all.DeleteAll();
      tree_.Execute(all);
      EXPECT_EQ(all.outcome(0).integer, kKeys);
      tree_.MaintainAll();
      Batch again;
      const std::string big(3000, 'a');
      for (uint32_t i = 0; i < 200; ++i) again.Put(Kept(again, TestKeyBetween(i, 1)), big);
      tree_.Execute(again);
      scan.Finish();
      EXPECT_EQ(seen, before_);
      tree_.DeleteRange(Range::All());
      ExpectSnapshotHolds();
      ExpectNewest({});
      Batch back;
      for (const auto& [key, value] : before_) back.Put(key, value);
      tree_.Execute(back);
      if (HasFailure()) return;
    }
  }
  tree_.ExpectHolds(before_);
  tree_.CloseSnapshot(snapshot_);
  tree_.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Layouts, DetachedTree, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
