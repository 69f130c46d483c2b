// Tests the freeing of outside blocks when whole nodes leave at once.
#include <gtest/gtest.h>

#include <random>
#include <string>

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

// Goal: when an atomic batch merges a leaf, the blocks that the leaf no longer names are freed
// once: those of values that were replaced, and those of keys that are gone.
// Method: atomic batches put and erase keys of a leaf or two at random, so that leaves are merged
// often; the keys, the values, both or neither are too long for a node. Then the arena has what the
// tree names, and no more.
TEST_P(OutsideBlocks, AreFreedWhenAnAtomicBatchMergesALeaf) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (const size_t key_bytes : {3, 103}) {
    for (const size_t value_bytes : {10, 500}) {
      TestTree tree;
      State expected;
      for (int step = 0; step < 300; ++step) {
        Batch batch(Batch::Kind::kAtomic);
        for (size_t edits = rng() % 4 + 1; edits > 0; --edits) {
          std::string key = std::to_string(100 + rng() % 30);
          key.resize(key_bytes, 'k');
          if (rng() % 3 == 0) {
            batch.Delete(batch.scratch().Copy(key));
            expected.erase(key);
          } else {
            const std::string value(value_bytes, static_cast<char>('a' + rng() % 26));
            batch.Put(batch.scratch().Copy(key), batch.scratch().Copy(value));
            expected[key] = value;
          }
        }
        tree.Execute(batch);
        ASSERT_TRUE(batch.applied());
      }
      tree.ExpectHolds(expected);
      tree.ExpectNothingLeaked();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, OutsideBlocks, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
