// Tests building nodes of each layout: fences, inner nodes, and the sizes that nodes are said to
// have.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/sanitized.h"
#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/testing/layout_test_node.h"

namespace skep::btree {
namespace {

template <class Layout>
class LayoutBuild : public testing::Test {};
using Layouts = testing::Types<PaperLayout, HeadLayout>;
TYPED_TEST_SUITE(LayoutBuild, Layouts);

// Fences around all keys that begin with `common` and have at most `bytes_max` more.
Fences FencesAround(TestStore& store, const std::string& common, uint64_t bytes_max) {
  return {.lower = store.Key(common),
          .upper = store.Key(common + std::string(bytes_max + 1, '\xff')),
          .unbounded = false};
}

// Goal: a node covers its lower fence and the keys between, not its upper fence; long fences too.
TYPED_TEST(LayoutBuild, CoversWhatIsBetweenItsFences) {
  TestStore store({});
  LayoutTestNode<TypeParam> all(store.codec());
  all.BuildLeaf({});
  EXPECT_TRUE(TypeParam::FencesOf(store.codec(), all.node()).unbounded);
  EXPECT_TRUE(TypeParam::Covers(store.codec(), all.node(), ""));
  EXPECT_TRUE(TypeParam::Covers(store.codec(), all.node(), std::string(70000, '\xff')));

  const std::string lower = std::string(1000, 'm') + "b";
  const std::string upper = std::string(1000, 'm') + "d";
  LayoutTestNode<TypeParam> node(store.codec());
  node.BuildLeaf({}, {.lower = store.Key(lower), .upper = store.Key(upper), .unbounded = false});
  ASSERT_STREQ(node.Check(), nullptr);
  const auto fences = TypeParam::FencesOf(store.codec(), node.node());
  EXPECT_EQ(store.Whole(fences.lower), lower);
  EXPECT_EQ(store.Whole(fences.upper), upper);
  const auto covers = [&](std::string_view key) {
    return TypeParam::Covers(store.codec(), node.node(), key);
  };
  EXPECT_TRUE(covers(lower));
  EXPECT_TRUE(covers(std::string(1000, 'm') + "c"));
  EXPECT_FALSE(covers(upper));
  EXPECT_FALSE(covers(std::string(1000, 'm') + "a"));
  EXPECT_FALSE(covers("m"));
  EXPECT_FALSE(covers("n"));
}

// A random inner node and its model.
template <class Layout>
class InnerScenario {
 public:
  explicit InnerScenario(unsigned seed)
      : random_(seed),
        store_({.node_bytes = 2048u << random_.Below(5), .segment_bytes_min = 64}),
        node_(store_.codec()) {}

  void Run() {
    Build();
    ASSERT_STREQ(node_.Check(), nullptr);
    ASSERT_EQ(node_.inner().count(), model_.size());
    ASSERT_EQ(node_.inner().leftmost(), kLeftmost);
    ASSERT_EQ(node_.inner().rightmost(), model_.empty() ? kLeftmost : model_.rbegin()->second);
    for (const auto& [key, link] : model_) ASSERT_NO_FATAL_FAILURE(ExpectLeads(key));
    ASSERT_NO_FATAL_FAILURE(ExpectLeads(common_));
    for (int i = 0; i < 200; ++i) ASSERT_NO_FATAL_FAILURE(ExpectLeads(RandomKey()));
    ExpectCopies();
  }

 private:
  static constexpr Link kLeftmost = {.bits = uint64_t{1} << 48 | 99999};

  std::string RandomKey() { return common_ + RandomBytes(random_, random_.Below(size_max_) + 1); }

  // Counts at which the heads fill segments, and at which samples lie further apart.
  uint64_t RandomCount() {
    static constexpr uint64_t kEdges[] = {0,   1,    2,    31,   32,   33,   64,   255,
                                          256, 1024, 1025, 1055, 1056, 1057, 1088, 1120};
    return random_.Chance(1, 2) ? kEdges[random_.Below(std::size(kEdges))] : random_.Below(400);
  }

  void Build() {
    static constexpr uint64_t kCommonBytes[] = {0, 0, 5, 40, 300};
    common_.assign(kCommonBytes[random_.Below(std::size(kCommonBytes))], 'c');
    size_max_ = random_.Chance(1, 4) ? 2500 : 4 + random_.Below(20);
    if (random_.Chance(1, 2)) fences_ = FencesAround(store_, common_, size_max_);
    uint32_t bytes = Layout::FixedBytes(store_.geometry()) + Layout::FenceBytes(fences_);
    const uint64_t wanted = RandomCount();
    for (uint64_t i = 3 * wanted; i > 0 && model_.size() < wanted; --i) {
      const std::string key = RandomKey();
      bytes += Layout::InnerItemBytes({store_.Key(key), {}});
      if (bytes > store_.geometry().node_bytes) break;
      model_[key] = Link::Of(i + 1, 7);
    }
    std::vector<InnerItem> items;
    for (const auto& [key, link] : model_) items.push_back({store_.Key(key), link});
    node_.BuildInner(kLeftmost, items, fences_);
  }

  void ExpectChild(std::map<std::string, Link>::const_iterator next, Link child, uint32_t index) {
    ASSERT_EQ(child, next == model_.begin() ? kLeftmost : std::prev(next)->second);
    ASSERT_EQ(index, std::distance(model_.cbegin(), next));
  }
  void ExpectLeads(const std::string& key) {
    uint32_t index = 0;
    const Link of = node_.inner().ChildOf(key, &index);
    ASSERT_NO_FATAL_FAILURE(ExpectChild(model_.upper_bound(key), of, index));
    ASSERT_EQ(node_.inner().ChildOf(key), of);
    const Link below = node_.inner().ChildBelow(key, &index);
    ASSERT_NO_FATAL_FAILURE(ExpectChild(model_.lower_bound(key), below, index));
  }

  void ExpectCopies() {
    std::vector<InnerItem> copy = {{}};
    node_.inner().CopyTo(&copy);
    LayoutTestNode<Layout> again(store_.codec());
    again.BuildInner(node_.inner().leftmost(), copy, fences_);
    ASSERT_EQ(again.used(), node_.used());
    ASSERT_EQ(std::memcmp(again.node(), node_.node(), node_.used()), 0);
  }

  SeededRandom random_;
  TestStore store_;
  LayoutTestNode<Layout> node_;
  std::string common_;
  uint64_t size_max_ = 0;
  Fences fences_;
  std::map<std::string, Link> model_;
};

// Goal: an inner node leads every key to its child, and a copy of its items builds it again.
// Method: random separators, long ones among them, with and without fences, up to more than a
// thousand, against std::map.
TYPED_TEST(LayoutBuild, InnerNodeAgreesWithModel) {
  const unsigned seed = std::random_device{}();
  for (unsigned round = 0; round < Rounds(60u); ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed + round);
    InnerScenario<TypeParam> scenario(seed + round);
    ASSERT_NO_FATAL_FAILURE(scenario.Run());
  }
}

// Keys in ascending order, for a node: all of `size` bytes, or of up to `size`.
std::vector<std::string> SomeKeys(Random& random, const std::string& common, bool one_size,
                                  uint64_t size) {
  std::vector<std::string> keys;
  for (uint64_t i = random.Below(120); i > 0; --i) {
    keys.push_back(common + RandomBytes(random, one_size ? size : 1 + random.Below(size)));
  }
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  return keys;
}

// Goal: the size that is computed for a leaf is enough: LeafBytes() of the whole, and no less the
// sum of its items' sizes.
// Method: random items, half of the time all of one size, with and without fences; a full node is
// never needed.
TYPED_TEST(LayoutBuild, LeafBytesAreEnough) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (int round = 0; round < 200; ++round) {
    TestStore store({.node_bytes = 32768});
    const std::string common(random.Below(20), 'c');
    const bool one_size = random.Chance(1, 2);
    const uint64_t value_bytes = random.Below(60);
    std::vector<LeafItem> items;
    for (const std::string& key : SomeKeys(random, common, one_size, 12)) {
      const uint64_t bytes = one_size ? value_bytes : random.Below(value_bytes + 1);
      items.push_back({store.Key(key), store.Value({.bytes = RandomBytes(random, bytes)})});
    }
    const Fences fences = random.Chance(1, 2) ? FencesAround(store, common, 12) : Fences{};
    const uint32_t bytes = TypeParam::LeafBytes(store.codec(), items, fences);
    LayoutTestNode<TypeParam> node(store.codec());
    node.BuildLeaf(items, fences);
    ASSERT_LE(node.used(), bytes);
    if constexpr (std::is_same_v<TypeParam, HeadLayout>) {
      ASSERT_EQ(node.used(), bytes);
    }
    uint32_t sum = TypeParam::FixedBytes(store.geometry()) + TypeParam::FenceBytes(fences);
    for (const LeafItem& item : items) sum += TypeParam::LeafItemBytes(item);
    ASSERT_LE(bytes, sum);
    ASSERT_GE(TypeParam::LeafBufferBytes(store.codec(), node.node(), node.used()), node.used());
  }
}

// Goal: InnerBytes() is enough, too; and one more separator adds at most SeparatorBytesMax().
// Method: nodes that grow by one separator, of the largest size now and then.
TYPED_TEST(LayoutBuild, InnerBytesAreEnough) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (int round = 0; round < 10; ++round) {
    TestStore store({.node_bytes = 32768});
    const uint32_t largest = store.geometry().key_inline_max();
    const Fences fences =
        random.Chance(1, 2) ? FencesAround(store, std::string(3, 'c'), largest) : Fences{};
    std::vector<InnerItem> items;
    uint32_t bytes = TypeParam::InnerBytes(store.codec(), items, fences);
    uint32_t sum = TypeParam::FixedBytes(store.geometry()) + TypeParam::FenceBytes(fences);
    for (uint16_t i = 1; i < 70; ++i) {
      const std::string number = {static_cast<char>(i >> 8), static_cast<char>(i & 0xff)};
      std::string key = "ccc" + number;
      if (random.Chance(1, 8)) key.resize(largest, '.');
      items.push_back({store.Key(key), Link::Of(i, 1)});
      const uint32_t next = TypeParam::InnerBytes(store.codec(), items, fences);
      ASSERT_LE(next - bytes, TypeParam::SeparatorBytesMax(store.geometry()));
      bytes = next;
      sum += TypeParam::InnerItemBytes(items.back());
      ASSERT_LE(bytes, sum);
      if (bytes > store.geometry().node_bytes) break;
      LayoutTestNode<TypeParam> node(store.codec());
      node.BuildInner(Link::Of(1000, 1), items, fences);
      ASSERT_STREQ(node.Check(), nullptr);
      ASSERT_LE(node.used(), bytes);
      if constexpr (std::is_same_v<TypeParam, HeadLayout>) {
        ASSERT_EQ(node.used(), bytes);
      }
    }
  }
}

}  // namespace
}  // namespace skep::btree
