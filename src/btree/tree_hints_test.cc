// Tests hints to leaves that have changed since or are gone.
#include <gtest/gtest.h>

#include "btree/testing/tree_test_tree.h"

namespace skep::btree {
namespace {

constexpr uint32_t kKeys = 60;

// A key too long for a node; all of them have the same bytes in the node.
std::string LongKey(uint32_t number) {
  return std::string(200, 'k') + std::to_string(1000 + number);
}

Hint HintOf(TestTree& tree, std::string_view key) {
  return tree.Do({.op = Op::kGet, .flags = Request::kWantHint, .key = key}).hint;
}

// Gets all keys with the hint, in one batch, so that the batch also looks ahead.
void ExpectAllWithHint(TestTree& tree, const State& state, Hint hint) {
  Batch batch;
  for (uint32_t i = 0; i < kKeys; ++i) {
    batch.Add({.op = Op::kGet, .key = batch.scratch().Copy(LongKey(i)), .hint = hint});
  }
  tree.Execute(batch);
  for (uint32_t i = 0; i < batch.size(); ++i) {
    const auto expected = state.find(batch.requests()[i].key);
    ASSERT_EQ(batch.outcome(i).present, expected != state.end()) << i;
    if (expected != state.end()) {
      ASSERT_EQ(batch.outcome(i).value, expected->second);
    }
  }
}

class Hints : public OnEachLayout {};

// Goal: no reader follows the stubs of a leaf that has left the tree, though its LID is kept for a
// snapshot: blocks that no snapshot can see are freed before the leaf.
// Method: keys that come, after a snapshot, to a leaf that is then split; the keys are deleted, so
// that their blocks are freed, while the snapshot keeps the leaf.
TEST_P(Hints, ToALeafThatIsKeptForASnapshot) {
  TestTree tree({.node_bytes = 2048, .log_bytes = 0});
  State state;
  const auto put = [&](uint32_t number) {
    tree.Put(LongKey(number), "value");
    state[LongKey(number)] = "value";
  };
  // At least two leaves, since the root keeps its LID whatever happens.
  for (uint32_t i = 0; i < kKeys; i += 2) put(i);
  ASSERT_GT(tree.Statistics().leaves, 1u);
  const Hint hint = HintOf(tree, LongKey(0));
  const SnapshotRef snapshot = tree.OpenSnapshot();
  const State before = state;
  for (uint32_t i = 1; i < kKeys; i += 2) put(i);
  ASSERT_NE(HintOf(tree, LongKey(0)).bits, hint.bits) << "the leaf was not split";
  ExpectAllWithHint(tree, state, hint);
  for (uint32_t i = 0; i < kKeys; ++i) tree.Delete(LongKey(i));
  state.clear();
  tree.MaintainAll();
  ExpectAllWithHint(tree, state, hint);
  EXPECT_EQ(tree.Contents(snapshot), before);
  tree.CloseSnapshot(snapshot);
  tree.ExpectHolds(state);
  tree.ExpectNothingLeaked();
}

// Goal: a hint to a leaf that was detached, freed, or whose LID names another leaf now, costs time
// and nothing else.
// Method: one hint, before a range delete, after it, once the subtrees are freed, and after their
// LIDs were given to other leaves.
TEST_P(Hints, ToALeafThatWasDetached) {
  TestTree tree({.node_bytes = 2048, .log_bytes = 64});
  State state;
  const auto put_all = [&](std::string_view value) {
    for (uint32_t i = 0; i < kKeys; ++i) {
      tree.Put(LongKey(i), value);
      state.insert_or_assign(LongKey(i), std::string(value));
    }
  };
  put_all("first");
  const Hint hint = HintOf(tree, LongKey(kKeys / 2));
  ExpectAllWithHint(tree, state, hint);
  tree.DeleteRange(Range::All());
  state.clear();
  ExpectAllWithHint(tree, state, hint);
  tree.MaintainAll();
  ExpectAllWithHint(tree, state, hint);
  for (int round = 0; round < 3; ++round) {
    put_all(std::to_string(round));
    ExpectAllWithHint(tree, state, hint);
    tree.DeleteRange(Range::All());
    state.clear();
    tree.MaintainAll();
    ExpectAllWithHint(tree, state, hint);
  }
  tree.ExpectHolds(state);
  tree.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Layouts, Hints, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
