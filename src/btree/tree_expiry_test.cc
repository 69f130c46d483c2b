// Where deadlines meet what else happens to a tree. Each test holds one place still.
#include <gtest/gtest.h>

#include <string>

#include "btree/tree_test_changes.h"
#include "btree/tree_test_within.h"

namespace skep::btree {
namespace {

using changes::Kept;

constexpr uint64_t kNow = TestTree::kNowMs;
constexpr uint64_t kDeadline = kNow + 1000;

Request PutUntil(Batch& batch, uint32_t number, uint64_t deadline_ms) {
  return {.op = Op::kPut,
          .key = Kept(batch, TestKey(number)),
          .value = Kept(batch, TestValue("v")),
          .other = {},
          .deadline_ms = deadline_ms};
}
void PutUntil(TestTree& tree, uint32_t number, uint64_t deadline_ms) {
  Batch batch;
  batch.Add(PutUntil(batch, number, deadline_ms));
  tree.Execute(batch);
}

// Keys are put in order, until the next one would split a leaf; its number.
uint32_t FillUntilSplit(TestTree& tree, uint32_t leaves, uint64_t deadline_ms) {
  TestTree trial;
  uint32_t next = 0;
  for (; trial.core().leaves.load() <= leaves; ++next) PutUntil(trial, next, deadline_ms);
  for (uint32_t i = 0; i + 1 < next; ++i) PutUntil(tree, i, deadline_ms);
  return next - 1;
}

void MaintainAllAt(TestTree& tree, uint64_t now_ms) {
  while (tree.engine().Maintain(now_ms)) {
  }
}

// Goal: no leaf loses its place in the expiry queue, so that its memory comes back, also if its
// entry is looked at before the tree leads to it.
// Method: the root, or a leaf below it, is split while all its keys are due; upkeep runs when the
// first half is mapped.
TEST(Expiry, UpkeepInTheMiddleOfASplitForgetsNoLeaf) {
  for (const uint32_t leaves : {1u, 4u}) {
    SCOPED_TRACE(testing::Message() << leaves << " leaves");
    TestTree tree;
    Batch batch;
    batch.Add(PutUntil(batch, FillUntilSplit(tree, leaves, kDeadline), kDeadline));
    RunWithin(tree, batch, SyncPoint::kMergeMapped, [&] { tree.engine().Maintain(kDeadline); });
    EXPECT_GT(tree.core().leaves.load(), leaves);
    EXPECT_STREQ(tree.engine().Verify(), nullptr);
    MaintainAllAt(tree, kDeadline);
    EXPECT_EQ(tree.engine().Statistics().items, 0u);
  }
}

}  // namespace
}  // namespace skep::btree
