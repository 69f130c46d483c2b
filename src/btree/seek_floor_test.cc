// Tests the search for the largest key at or below a bound, where whole leaves hold no key.
#include <gtest/gtest.h>

#include "btree/testing/tree_test_within.h"

namespace skep::btree {
namespace {

std::string Key(uint32_t i) { return "key" + std::to_string(1000 + i); }

// The first key of a scan from the floor of `key`; empty if there is none.
std::string FloorOf(TestTree& tree, const std::string& key) {
  Batch batch;
  batch.Scan(Range::From(key), {.limit = 1, .keys_only = true, .seek_floor = true});
  tree.Execute(batch);
  return batch.items(0).empty() ? "" : std::string(batch.items(0).front().key);
}

class SeekFloor : public OnEachLayout {};

// Goal: the floor is found across leaves that are in the tree and hold no key, down to none at all.
// Method: an atomic delete empties leaves in the middle, or at the beginning; before any of them is
// joined, the same thread looks. A put far away releases the delete's version.
TEST_P(SeekFloor, IsFoundAcrossEmptyLeaves) {
  for (const uint32_t first : {60u, 0u}) {
    SCOPED_TRACE(first);
    TestTree tree;
    for (uint32_t i = 0; i < 400; ++i) tree.Put(Key(i), std::string(40, 'v'));
    const uint64_t leaves = tree.core().leaves.load();
    ASSERT_GT(leaves, 15u);
    Batch erase(Batch::Kind::kAtomic);
    for (uint32_t i = first; i < 200; ++i) erase.Delete(erase.scratch().Copy(Key(i)));
    const auto expect_floors = [&] {
      const std::string below = first == 0 ? "" : Key(first - 1);
      for (uint32_t i = first; i < 200; i += 7) {
        EXPECT_EQ(FloorOf(tree, Key(i)), below.empty() ? Key(200) : below) << i;
      }
      EXPECT_EQ(FloorOf(tree, Key(200)), Key(200));
    };
    RunWithin(tree, erase, SyncPoint::kStructureLocked, [&] {
      tree.Put("z", "");
      EXPECT_EQ(tree.core().leaves.load(), leaves);
      expect_floors();
    });
    EXPECT_LT(tree.core().leaves.load(), leaves - 5);
    expect_floors();
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, SeekFloor, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
