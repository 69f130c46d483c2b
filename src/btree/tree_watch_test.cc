// Tests watches: a read after a watch is not older than what the watch has seen.
#include <gtest/gtest.h>

#include <string>

#include "btree/testing/tree_test_tree.h"
#include "btree/testing/tree_test_within.h"

namespace skep::btree {
namespace {

constexpr auto kAtomic = Batch::Kind::kAtomic;

class Watches : public OnEachLayout {};

// Goal: a caller can wait for the write that a watch has seen, so that no later read is older.
// Method: a key is watched when a write of it is visible and not released. A read of the released
// state is older; the ticket of a read of the newest value says how long to wait.
TEST_P(Watches, TheTicketOfAReadCoversWhatAWatchHasSeen) {
  TestTree tree;
  tree.Put("key", "old");
  const auto released_value = [&] {
    Batch batch(kAtomic);
    batch.Get("key");
    tree.Execute(batch);
    return std::string(batch.outcome(0).value);
  };
  uint64_t watch = 0;
  Version ticket = 0;
  Batch write;
  write.Put("key", "new");
  RunWithin(tree, write, SyncPoint::kWriterPublished, [&] {
    watch = tree.engine().Watch("key", TestTree::kNowMs).value();
    EXPECT_EQ(released_value(), "old");
    Batch read;
    read.Get("key");
    ticket = tree.Execute(read);
    EXPECT_FALSE(tree.engine().gate().IsReleased(ticket));
  });
  EXPECT_TRUE(tree.engine().gate().IsReleased(ticket));
  EXPECT_EQ(released_value(), "new");
  Batch batch(kAtomic);
  batch.RequireUnchanged("key", watch);
  tree.Execute(batch);
  EXPECT_TRUE(batch.applied());
  tree.engine().Unwatch(watch);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Watches, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
