// Tests the freeing of outside blocks when whole nodes leave at once.
#include <gtest/gtest.h>

#include "btree/testing/tree_test_tree.h"

namespace skep::btree {
namespace {

class OutsideBlocks : public OnEachLayout {};

// Goal: an outside block that a leaf names more than once is freed once when the leaf is detached.
// Method: keys too long for a node, each written twice, so that the sorted item or log item and a
// later log item name the same rest of the key; then all leaves but the outermost go by one range
// delete.
TEST_P(OutsideBlocks, NamedTwiceInADetachedLeafAreFreedOnce) {
  TestTree tree;
  State expected;
  for (const char* const value : {"first", "second"}) {
    for (uint32_t i = 100; i < 200; ++i) {
      const std::string key = std::to_string(i) + std::string(100, 'k');
      tree.Put(key, value);
      expected[key] = value;
    }
  }
  ASSERT_GT(tree.Statistics().leaves, 5u);
  tree.ExpectHolds(expected);
  tree.DeleteRange(Range::All());
  tree.ExpectHolds({});
  tree.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Layouts, OutsideBlocks, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
