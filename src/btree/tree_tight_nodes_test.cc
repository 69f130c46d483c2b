// Tests nodes that are as full as possible, where a change makes a separator or a fence longer.
//
// Such trees are rare, so the tests build them node by node, from a plan. The plans count the bytes
// of the paper's layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "btree/paper/paper_layout.h"
#include "btree/structure_change.h"
#include "btree/testing/tree_test_tree.h"
#include "btree/testing/tree_test_within.h"

namespace skep::btree {
namespace {

constexpr uint32_t kNodeBytes = 2048;
constexpr Geometry kGeometry{.node_bytes = kNodeBytes};

// A node with children, or a leaf. The lower fence of a first child is its parent's.
struct Plan {
  std::string lower;
  std::vector<Plan> children = {};
  State items = {};
};

// Builds the tree of a plan in an empty one. Owner: one tree, which no other thread uses meanwhile.
class TreeBuilder {
 public:
  explicit TreeBuilder(TestTree& tree) : core_(tree.core()), thread_(core_.threads.Take()) {}

  // Requires that the root has children. Returns the tree's content.
  State CreateRoot(const Plan& root) {
    core_.versions.BeginWrites(thread_);
    core_.versions.BeginOperation(thread_);
    {
      StructureChange<PaperLayout> change(core_, thread_, Arena::Limit::kObey);
      NodeHeader* const old = core_.Head(core_.root);
      EXPECT_TRUE(change.Lock(old, old->word.load()));
      const Inside inside = MakeInside(change, root, std::nullopt);
      EXPECT_TRUE(
          change.ReplaceByInner(core_.root, old, inside.level, inside.leftmost, inside.items, {}));
      EXPECT_TRUE(change.Draw());
      change.Publish();
    }
    thread_.AddItems(static_cast<int64_t>(state_.size()), 0);
    core_.versions.EndWrites(thread_);
    core_.gate.Release(core_.versions.Complete());
    core_.threads.Give(thread_);
    return state_;
  }

 private:
  struct Inside {
    uint8_t level;
    Link leftmost;
    std::vector<PaperLayout::InnerItem> items;
  };
  struct Planted {
    Link link;
    uint8_t level;
  };
  using Upper = std::optional<std::string_view>;

  StoredKey Stored(StructureChange<PaperLayout>& change, std::string_view key) {
    StoredKey stored;
    EXPECT_TRUE(change.storing().Key(key, &stored));
    return stored;
  }

  Inside MakeInside(StructureChange<PaperLayout>& change, const Plan& plan, Upper upper) {
    Inside inside = {};
    for (size_t i = 0; i < plan.children.size(); ++i) {
      const bool is_last = i + 1 == plan.children.size();
      const Plan& child = plan.children[i];
      const Planted planted =
          MakeNode(change, child, is_last ? upper : Upper(plan.children[i + 1].lower));
      inside.level = static_cast<uint8_t>(planted.level + 1);
      if (i == 0) {
        inside.leftmost = planted.link;
      } else {
        inside.items.push_back({.separator = Stored(change, child.lower), .child = planted.link});
      }
    }
    return inside;
  }

  Planted MakeNode(StructureChange<PaperLayout>& change, const Plan& plan, Upper upper) {
    PaperLayout::Fences fences = {.lower = Stored(change, plan.lower), .unbounded = !upper};
    if (upper) fences.upper = Stored(change, *upper);
    if (!plan.children.empty()) {
      const Inside inside = MakeInside(change, plan, upper);
      return {.link = change.NewInner(inside.level, inside.leftmost, inside.items, fences),
              .level = inside.level};
    }
    std::vector<PaperLayout::LeafItem> items;
    for (const auto& [key, value] : plan.items) {
      items.push_back({.key = Stored(change, key), .value = {.bytes = value}});
      state_[key] = value;
    }
    return {.link = change.NewLeaf(items, fences), .level = 0};
  }

  Core& core_;
  ThreadState& thread_;
  State state_;
};

std::string Short(uint32_t number) {
  char text[16];
  std::snprintf(text, sizeof text, "%03u", number);
  return text;
}
// A key as long as a node can have, between Short(number) and the next; ascending by `part`.
std::string Long(uint32_t number, uint32_t part) {
  const std::string tail = Short(part);
  return Short(number) + std::string(kGeometry.key_inline_max() - 3 - tail.size(), 'x') + tail;
}
const std::string kLargestValue(kGeometry.value_inline_max(), 'v');

Plan SmallLeaf(const std::string& lower, const std::string& key) {
  return {.lower = lower, .items = {{key, "v"}}};
}
Plan SmallNode(const std::string& lower, const std::string& key, uint32_t level) {
  if (level == 0) return SmallLeaf(lower, key);
  return {.lower = lower, .children = {SmallNode(lower, key, level - 1)}};
}
// The number of separators of 3 bytes that an inner node with fences of up to 3 bytes has room for.
constexpr uint32_t kShortSeparators = (kNodeBytes - kNodeBytes / 16 - 2 * 5) / (2 + 3 + 8);

// A node of level 0 or 1 that is too full to be joined with anything, of the largest keys.
Plan FullOfLongKeys(uint32_t number, uint32_t level) {
  Plan plan = level == 0 ? Plan{.lower = Short(number)}
                         : Plan{.lower = Short(number),
                                .children = {SmallLeaf(Short(number), Short(number))}};
  const uint32_t keys = level == 0 ? 9 : 18;
  for (uint32_t part = 0; part < keys; ++part) {
    if (level == 0) {
      plan.items[Long(number, part)] = kLargestValue;
    } else {
      plan.children.push_back(SmallLeaf(Long(number, part), Long(number, part)));
    }
  }
  return plan;
}

class JoinsUnderAFullNode : public testing::TestWithParam<uint32_t> {
 private:
  const LayoutOfTest layout_{NodeLayout::kPaper};
};

// Goal: two siblings that are evened out may need a longer separator than before; a parent that has
// no room for it is split.
// Method: a root full of short separators, above pairs of a nearly empty node and one that is full
// of the largest keys; each pair is made uneven by one delete. Leaves, and inner nodes.
TEST_P(JoinsUnderAFullNode, SplitItFirst) {
  const uint32_t level = GetParam();
  Plan root;
  for (uint32_t i = 0; i <= kShortSeparators; ++i) {
    root.children.push_back(i % 2 == 0 ? SmallNode(i == 0 ? "" : Short(i), Short(i), level)
                                       : FullOfLongKeys(i, level));
  }
  TestTree tree;
  State state = TreeBuilder(tree).CreateRoot(root);
  tree.ExpectHolds(state);
  ASSERT_EQ(tree.Statistics().height, level + 2);
  uint32_t height_max = 0;
  for (uint32_t i = 0; i <= kShortSeparators; i += 2) {
    ASSERT_EQ(tree.Delete(Short(i)).verdict, Verdict::kDone);
    state.erase(Short(i));
    if (i % 20 == 0) {
      ASSERT_STREQ(tree.engine().Verify(), nullptr);
    }
    height_max = std::max(height_max, tree.core().Head(tree.core().root)->level + 1u);
  }
  EXPECT_EQ(height_max, level + 3);
  tree.ExpectHolds(state);
  tree.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(All, JoinsUnderAFullNode, testing::Values(0u, 1u), [](const auto& param) {
  return std::string(param.param == 0 ? "Leaves" : "InnerNodes");
});

// A leaf of the largest keys, with fences of 3 bytes: full to the last byte, without a log, or half
// full.
Plan LargeLeaf(uint32_t number, bool is_full) {
  Plan leaf = {.lower = Short(number)};
  const auto item_bytes = [](size_t value_bytes) {
    return 2 + kGeometry.key_inline_max() + 2 + value_bytes;
  };
  const size_t largest = item_bytes(kLargestValue.size());
  size_t left = (kNodeBytes - kGeometry.body_begin() - 2 * 5) / (is_full ? 1 : 2);
  uint32_t part = 0;
  for (; left >= largest; left -= largest) leaf.items[Long(number, part++)] = kLargestValue;
  leaf.items[Long(number, part)] = std::string(left - item_bytes(0), 'v');
  return leaf;
}

// An inner node of level 1 with as many children as it has room for. Its first or its last one is
// `leaf`, the others are small; fences of 3 bytes.
Plan FullNode(uint32_t number, const Plan& leaf, bool leaf_is_last) {
  Plan node = {.lower = Short(number)};
  if (!leaf_is_last) node.children.push_back(leaf);
  for (uint32_t i = leaf_is_last ? 0 : 1; i < kShortSeparators + (leaf_is_last ? 0 : 1); ++i) {
    node.children.push_back(SmallLeaf(Short(number + i), Short(number + i)));
  }
  if (leaf_is_last) node.children.push_back(leaf);
  return node;
}

struct LongerFence {
  bool of_full_leaf;  // false: the leaves are half full, under full inner nodes
  bool is_outside;
};

std::string NameOf(const LongerFence& fence) {
  return std::string(fence.of_full_leaf ? "Leaves" : "InnerNodes") +
         (fence.is_outside ? "Outside" : "Inline");
}
void PrintTo(const LongerFence& fence, std::ostream* os) { *os << NameOf(fence); }

class RangeDeletesAtFullNodes : public testing::TestWithParam<LongerFence> {
 protected:
  // From the left: a path of full nodes down to their last children, the keys to be deleted, a path
  // down to the first leaf of a full node. Fences are short, but for the separator.
  static Plan Tree() {
    const bool is_full = GetParam().of_full_leaf;
    const std::string separator = Long(510, 0) + std::string(GetParam().is_outside ? 500 : 0, 'y');
    constexpr uint32_t kLast = kShortSeparators;
    Plan left = {.lower = ""};
    for (uint32_t i = 0; i < kLast; ++i) {
      left.children.push_back(SmallNode(i == 0 ? "" : Short(i), Short(i), 1));
    }
    left.children.push_back(FullNode(kLast, LargeLeaf(2 * kLast, is_full), true));
    const Plan right = {
        .lower = separator,
        .children = {SmallNode(separator, separator + "z", 1),
                     FullNode(600, LargeLeaf(600, is_full), false), SmallNode("900", "900", 1)}};
    return {.lower = "", .children = {left, SmallNode("500", "500", 2), right}};
  }

 private:
  const LayoutOfTest layout_{NodeLayout::kPaper};
};

// Goal: a range delete gives the nodes at its two ends a fence that may be longer than the one they
// had; nodes that have no room for it are split first.
// Method: on the way to both ends nodes are full and have short fences; the separator that becomes
// the new one is as long as possible, or outside. The nodes are counted when the keys are gone.
TEST_P(RangeDeletesAtFullNodes, SplitThemForALongerFence) {
  TestTree tree(BtreeOptions{.node_bytes = kNodeBytes, .log_bytes = 0});
  Core& core = tree.core();
  State state = TreeBuilder(tree).CreateRoot(Tree());
  tree.ExpectHolds(state);
  const uint64_t leaves = core.leaves.load();
  const uint64_t inner_nodes = core.inner_nodes.load();
  const std::string begin = std::prev(state.lower_bound("500"))->first + "z";
  const std::string end = Long(600, 0);
  Batch batch;
  batch.DeleteRange(Range::Between(begin, end));
  RunWithin(tree, batch, SyncPoint::kDetachMapped, [&] {
    EXPECT_EQ(core.leaves.load(), leaves + (GetParam().of_full_leaf ? 2 : 0));
    EXPECT_EQ(core.inner_nodes.load(), inner_nodes + 3);
  });
  EXPECT_EQ(batch.outcome(0).integer, 2);
  state.erase(state.lower_bound(begin), state.lower_bound(end));
  tree.ExpectHolds(state);
  tree.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(All, RangeDeletesAtFullNodes,
                         testing::Values(LongerFence{true, false}, LongerFence{true, true},
                                         LongerFence{false, false}, LongerFence{false, true}),
                         [](const auto& param) { return NameOf(param.param); });

// Goal: the last leaf of a tree takes the root's place if it fits. Its content may be longer than a
// node if it were built anew: its log has room that its shortcuts have made, and then other keys
// may become shortcuts.
// Method: in the leaf, a long key is the shortcut; with one item more it would be a short key. That
// item comes while a range delete, which leaves this leaf alone, counts.
TEST(RootCollapse, WaitsForALeafThatFits) {
  const LayoutOfTest layout(NodeLayout::kPaper);
  Plan leaf = {.lower = ""};
  const auto largest = [](size_t bytes) { return kLargestValue.substr(0, bytes); };
  leaf.items[Long(100, 0)] = largest(45);
  for (uint32_t i = 101; i < 107; ++i) leaf.items[Long(i, 0)] = kLargestValue;
  leaf.items[Short(107)] = kLargestValue;
  for (uint32_t i = 108; i < 110; ++i) leaf.items[Long(i, 0)] = kLargestValue;
  TestTree tree(BtreeOptions{.node_bytes = kNodeBytes, .log_bytes = 320});
  Core& core = tree.core();
  State state =
      TreeBuilder(tree).CreateRoot({.lower = "", .children = {leaf, SmallLeaf("900", "900")}});
  const auto put = [&](const std::string& key, const std::string& value) {
    ASSERT_EQ(tree.Put(key, value).verdict, Verdict::kDone);
    state[key] = value;
  };
  put(Long(110, 0), kLargestValue);
  put(Long(111, 0), largest(59));
  tree.ExpectHolds(state);
  ASSERT_EQ(core.leaves.load(), 2u);

  bool detached = false;
  std::function<void()> meanwhile = [&] { put(Long(112, 0), largest(30)); };
  std::function<void(SyncPoint)> reach = [&](SyncPoint point) {
    if (point == SyncPoint::kDetachMapped) detached = true;
    if (detached && point == SyncPoint::kReaderAtRoot && meanwhile) {
      std::exchange(meanwhile, nullptr)();
    }
  };
  core.hook = {.call =
                   [](void* context, SyncPoint point) {
                     (*static_cast<std::function<void(SyncPoint)>*>(context))(point);
                   },
               .context = &reach};
  EXPECT_EQ(tree.DeleteRange(Range::From("8")).integer, 1);
  core.hook = {};
  state.erase("900");
  EXPECT_EQ(core.leaves.load(), 1u);
  EXPECT_EQ(tree.Statistics().height, 2u);
  tree.ExpectHolds(state);
  for (uint32_t i = 113; i < 120; ++i) put(Long(i, 0), kLargestValue);
  tree.ExpectHolds(state);
  tree.DeleteRange(Range::All());
  tree.ExpectHolds({});
  EXPECT_EQ(tree.Statistics().height, 1u);
  tree.ExpectNothingLeaked();
}

}  // namespace
}  // namespace skep::btree
