// Tests the links of leaves that a tree gives, and its counts of sampled operations.
#include "btree/tree_top.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "btree/heads/head_layout_search.h"
#include "btree/testing/tree_test_changes.h"

namespace skep::btree {
namespace {

constexpr size_t kNoBytesMax = SIZE_MAX;

class TreeTop : public OnEachLayout {
 protected:
  uint64_t LeafOf(std::string_view key) {
    return tree_.Do({.op = Op::kGet, .flags = Request::kWantHint, .key = key}).hint.bits;
  }
  // All links, from pages of at most so many.
  std::vector<std::pair<std::string, uint64_t>> Links(uint32_t links_max, size_t bytes_max) {
    std::vector<std::pair<std::string, uint64_t>> all;
    std::string from;
    do {
      const LeafLinks page = tree_.engine().LinksFrom(from, links_max, bytes_max);
      if (page.links.empty()) {
        ADD_FAILURE() << "a page without a link";
        break;
      }
      EXPECT_LE(page.links.size(), links_max);
      for (const LeafLink& link : page.links) {
        all.emplace_back(std::string(link.lower), link.hint.bits);
      }
      from = page.next;
    } while (!from.empty());
    return all;
  }

  TestTree tree_;
};

// Goal: the links are those of all leaves, in the order of keys, each with its lower fence, however
// they are cut into pages.
TEST_P(TreeTop, HasEachLeafOnce) {
  for (uint32_t i = 0; i < 1000; ++i) tree_.Put(TestKey(i), TestValue("v"));
  ASSERT_GT(tree_.core().Head(tree_.core().root)->level, 1);
  const auto all = Links(UINT32_MAX, kNoBytesMax);
  EXPECT_EQ(all.size(), tree_.Statistics().leaves);
  EXPECT_EQ(all[0].first, "");
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(LeafOf(all[i].first), all[i].second) << i;
    if (i > 0) {
      ASSERT_LT(all[i - 1].first, all[i].first);
    }
  }
  for (const uint32_t links_max : {1u, 2u, 7u, 50u}) {
    EXPECT_EQ(Links(links_max, kNoBytesMax), all) << links_max;
  }
  EXPECT_EQ(Links(UINT32_MAX, 0), all) << "pages of one leaf";
  EXPECT_EQ(Links(UINT32_MAX, 500), all);
}

// Goal: a page begins with the leaf of the key that is asked for, wherever in the leaf that lies.
TEST_P(TreeTop, BeginsWithTheLeafOfTheKey) {
  for (uint32_t i = 0; i < 1000; ++i) tree_.Put(TestKey(i), TestValue("v"));
  for (uint32_t i = 0; i < 1000; i += 7) {
    const LeafLinks page = tree_.engine().LinksFrom(TestKey(i), 1, kNoBytesMax);
    ASSERT_EQ(page.links.size(), 1u);
    ASSERT_EQ(page.links[0].hint.bits, LeafOf(TestKey(i))) << i;
    ASSERT_LE(page.links[0].lower, TestKey(i));
  }
  EXPECT_EQ(tree_.engine().LinksFrom("z", 5, kNoBytesMax).next, "");
}

// Goal: a tree that is a leaf has one link, that of its root.
TEST_P(TreeTop, OfATreeOfOneLeafIsTheRoot) {
  const LeafLinks page = tree_.engine().LinksFrom("k", 10, kNoBytesMax);
  ASSERT_EQ(page.links.size(), 1u);
  EXPECT_EQ(page.links[0].hint.bits, tree_.core().root.bits);
  EXPECT_EQ(page.links[0].lower, "");
  EXPECT_EQ(page.next, "");
}

// Goal: fences that are too long for a node are given whole.
TEST_P(TreeTop, HasLongFencesWhole) {
  const std::string common(700, 'k');
  for (uint32_t i = 0; i < 300; ++i) tree_.Put(common + std::to_string(1000 + i), TestValue("v"));
  const auto all = Links(UINT32_MAX, kNoBytesMax);
  ASSERT_GT(all.size(), 2u);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_GT(all[i].first.size(), common.size());
}

// Goal: one operation in 64 is counted, at its leaf, whether it is alone, in a window, a read or a
// write; a node that takes over a LID begins with none.
TEST_P(TreeTop, CountsOneOperationInSixtyFour) {
  for (uint32_t i = 0; i < 1000; ++i) tree_.Put(TestKey(i), TestValue("v"));
  const auto hits = [&](const std::string& key) {
    return tree_.engine().LinksFrom(key, 1, kNoBytesMax).links[0].hits;
  };
  const std::string key = TestKey(500);
  const uint64_t before = hits(key);
  for (int i = 0; i < 640; ++i) tree_.Get(key);
  EXPECT_EQ(hits(key), before + 10);
  Batch batch;
  for (int i = 0; i < 64; ++i) batch.Get(key);
  for (int i = 0; i < 10; ++i) tree_.Execute(batch);
  EXPECT_EQ(hits(key), before + 20);
  for (int i = 0; i < 640; ++i) tree_.Do({.op = Op::kUpdate, .key = "absent", .value = "v"});
  EXPECT_EQ(hits(key), before + 20);
  EXPECT_GE(hits("absent"), 10u);
  tree_.DeleteRange(Range::All());
  tree_.MaintainAll();
  for (uint32_t i = 0; i < 1000; ++i) tree_.Put(TestKey(i), TestValue("v"));
  uint64_t sum = 0;
  for (const LeafLink& link : tree_.engine().LinksFrom("", UINT32_MAX, kNoBytesMax).links) {
    sum += link.hits;
  }
  EXPECT_LE(sum, 1000 / 64 + 1);
}

INSTANTIATE_TEST_SUITE_P(Layouts, TreeTop, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
