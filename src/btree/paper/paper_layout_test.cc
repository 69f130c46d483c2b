// Tests the sizes, shortcuts and segments of built nodes, and the order hints of the log.

#include "btree/paper/paper_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "btree/testing/layout_test_node.h"

namespace skep::btree {
namespace {

using TestNode = LayoutTestNode<PaperLayout>;
using testing::ElementsAre;

// The shortcut block and the segments of a node, read from its bytes.
struct Segments {
  std::vector<std::string> shortcuts;
  std::vector<uint32_t> bytes;  // of each segment
  uint32_t shortcut_bytes = 0;
};

Segments SegmentsOf(const Codec& codec, const NodeHeader* node) {
  Segments segments;
  uint32_t begin = paper::SortedBegin(codec.geometry, node);
  for (uint32_t at = paper::kShortcutBegin; at != node->shortcut_end;) {
    segments.shortcuts.emplace_back(paper::KeyAt(node, at).bytes);
    at = paper::AfterField(node, at);
    const auto segment = paper::Load<uint16_t>(node, at);
    segments.bytes.push_back(segment - begin);
    begin = segment;
    at += paper::kOffsetBytes;
  }
  segments.bytes.push_back(node->log_begin - begin);
  segments.shortcut_bytes = node->shortcut_end - paper::kShortcutBegin;
  return segments;
}

// Makes items with consecutive numbers as keys.
std::vector<PaperLayout::LeafItem> NumberedItems(TestStore& store, uint32_t count, size_t key_bytes,
                                                 size_t value_bytes) {
  std::vector<PaperLayout::LeafItem> items;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(1'000'000 + i);
    std::string key(key_bytes - number.size(), 'k');
    key += number;
    items.push_back({store.Key(key), store.Value({.bytes = std::string(value_bytes, 'v')})});
  }
  return items;
}

// Goal: the layout has the sizes of the paper.
// Method: bytes of items written by hand from section 3.1: 2-byte lengths; a log item has 8 bytes
// more; a largest key with its length and offset fills the shortcut block.
TEST(PaperLayout, HasTheSizesOfThePaper) {
  const Geometry geometry;
  EXPECT_EQ(sizeof(NodeHeader), 48);
  EXPECT_EQ(sizeof(NodeHeader) + geometry.shortcut_bytes(), 512);
  EXPECT_EQ(geometry.key_inline_max() + paper::kLengthBytes + paper::kOffsetBytes,
            geometry.shortcut_bytes());
  const std::string bytes(16, 'x');
  const StoredKey key = {.bytes = bytes};
  const StoredValue value = {.bytes = bytes};
  EXPECT_EQ(PaperLayout::LeafItemBytes({key, value}), 2 + 16 + 2 + 16);
  EXPECT_EQ(PaperLayout::InnerItemBytes({key, {}}), 2 + 16 + 8);
  EXPECT_EQ(PaperLayout::LogItemBytes(key, &value), 8 + 2 + 16 + 2 + 16);
  EXPECT_EQ(PaperLayout::LogItemBytes(key, nullptr), 8 + 2 + 16);
  EXPECT_EQ(PaperLayout::FenceBytes({}), 2 + 2);
  EXPECT_EQ(PaperLayout::FenceBytes({.lower = key, .upper = key, .unbounded = false}), 18 + 18);
}

// Goal: a full node of 16-byte keys and values has 23 shortcuts and 24 segments of about 300 bytes,
// so that a search reads at most 1.5 KB of its 8.
TEST(PaperLayout, SmallKeysHaveTwentyFourSegments) {
  TestStore store({});
  TestNode node(store.codec());
  const auto items = NumberedItems(store, (8192 - 512 - 4) / 36, 16, 16);
  node.BuildLeaf(items);
  ASSERT_EQ(node.Check(), nullptr);
  const Segments segments = SegmentsOf(store.codec(), node.node());
  EXPECT_EQ(segments.shortcuts.size(), 23);
  EXPECT_THAT(segments.bytes, testing::Each(testing::AllOf(testing::Ge(256), testing::Le(324))));
  const uint32_t longest = *std::ranges::max_element(segments.bytes);
  EXPECT_LE(512 + longest + store.geometry().log_bytes_max, 1536);
}

// Goal: a search reads only header and shortcuts, the fences, one segment and the log: 1.5 KB.
// Method: for each key a copy of the node in which only these lines have their bytes.
TEST(PaperLayout, ASearchReadsAtMostOneAndAHalfKilobytes) {
  TestStore store({});
  TestNode node(store.codec());
  const auto items = NumberedItems(store, 195, 16, 16);
  node.BuildLeaf(items);
  const Segments segments = SegmentsOf(store.codec(), node.node());
  const std::string late = "kkkkkkkkk2000000";
  const StoredValue value = store.Value({.bytes = "late"});
  for (uint64_t delta = 1; delta <= 8; ++delta) node.Append(late, store.Key(late), &value, delta);
  const uint32_t sorted_begin = paper::SortedBegin(store.geometry(), node.node());
  const uint32_t log_bytes = node.used() - node.node()->log_begin;
  const auto copy = std::unique_ptr<std::byte, decltype(&std::free)>(
      static_cast<std::byte*>(std::aligned_alloc(64, 8192)), &std::free);
  for (const auto& item : items) {
    const auto above = std::ranges::upper_bound(segments.shortcuts, item.key.bytes);
    const auto segment = static_cast<size_t>(above - segments.shortcuts.begin());
    uint32_t begin = sorted_begin;
    for (size_t i = 0; i < segment; ++i) begin += segments.bytes[i];
    const uint32_t bytes = segments.bytes[segment];
    ASSERT_LE(sorted_begin + bytes + log_bytes, 1536u);
    std::memset(copy.get(), 0xa5, 8192);
    const std::byte* const whole = node.node()->bytes();
    std::memcpy(copy.get(), whole, sorted_begin);
    std::memcpy(copy.get() + begin, whole + begin, bytes);
    std::memcpy(copy.get() + node.node()->log_begin, whole + node.node()->log_begin, log_bytes);
    const PaperLayout::Leaf leaf(store.codec(), NodeIn(copy.get(), PaperLayout::kFrontBytes),
                                 node.used());
    const auto found = leaf.Find(item.key.bytes);
    ASSERT_TRUE(found.present);
    ASSERT_EQ(found.value.bytes, item.value.bytes);
    ASSERT_EQ(leaf.Find(late).value.bytes, "late");
  }
}

// Goal: the rules of shortcuts hold for any items: no segment below the minimum unless it is the
// only one, the shortcut block does not overflow, and it is used: if another shortcut of average
// size would fit, then segments are already near the minimum.
// Method: random counts and sizes in several geometries, printed seed.
TEST(PaperLayout, SegmentsKeepTheirRules) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (int round = 0; round < 300; ++round) {
    const Geometry geometry = {.node_bytes = 2048u << random.Below(5),
                               .segment_bytes_min = 16u << random.Below(6)};
    TestStore store(geometry);
    TestNode node(store.codec());
    const uint64_t key_bytes = 8 + random.Below(random.Chance(1, 2) ? 16 : 100);
    const uint64_t value_bytes = random.Below(random.Chance(1, 2) ? 16 : 100);
    const uint64_t room = PaperLayout::LeafBytesMax(geometry) - geometry.body_begin() - 4;
    const auto count = static_cast<uint32_t>(random.Below(room / (4 + key_bytes + value_bytes)));
    node.BuildLeaf(NumberedItems(store, count, key_bytes, value_bytes));
    ASSERT_EQ(node.Check(), nullptr);
    const Segments segments = SegmentsOf(store.codec(), node.node());
    ASSERT_LE(segments.shortcut_bytes, geometry.shortcut_bytes());
    if (segments.bytes.size() == 1) continue;
    const uint64_t item_bytes = 4 + key_bytes + value_bytes;
    const bool has_room = segments.shortcut_bytes + key_bytes + 4 <= geometry.shortcut_bytes();
    for (const uint32_t bytes : segments.bytes) {
      ASSERT_GE(bytes, geometry.segment_bytes_min);
      // Another shortcut would make two segments of about half the size.
      if (has_room) {
        ASSERT_LT(bytes, 2 * (geometry.segment_bytes_min + 2 * item_bytes));
      }
    }
  }
}

// Goal: keys whose sizes differ much neither overflow the shortcut block nor lose items.
// Method: largest keys among tiny ones: a largest one fills the shortcut block, and the tiny ones
// after it make a segment of hundreds of items, which a cursor must walk both ways.
TEST(PaperLayout, OneSegmentMayHoldHundredsOfTinyItems) {
  TestStore store({.node_bytes = 32768, .log_bytes_max = 0});
  std::vector<PaperLayout::LeafItem> items;
  for (char c = 1; c < 8; ++c) {
    items.push_back({store.Key(std::string(store.geometry().key_inline_max(), c)), {}});
  }
  for (int i = 0; i < 2500; ++i) {
    const char key[] = {static_cast<char>(0x40 + i / 256), static_cast<char>(i % 256)};
    items.push_back({store.Key({key, 2}), {}});
  }
  TestNode node(store.codec());
  node.BuildLeaf(items);
  ASSERT_EQ(node.Check(), nullptr);
  EXPECT_GT(std::ranges::max(SegmentsOf(store.codec(), node.node()).bytes), 2000 * 6);

  const auto leaf = node.leaf();
  PaperLayout::LeafCursor cursor(leaf);
  cursor.SeekLast();
  for (size_t i = items.size(); i-- > 0; cursor.Prev()) {
    ASSERT_TRUE(cursor.valid());
    ASSERT_EQ(cursor.key().bytes, items[i].key.bytes);
  }
  EXPECT_FALSE(cursor.valid());
  for (const auto& item : items) ASSERT_TRUE(leaf.Find(item.key.bytes).present);
}

// The keys of a leaf in the order that its cursor rebuilds.
std::vector<std::string> KeysOf(const TestNode& node) {
  std::vector<std::string> keys;
  const auto leaf = node.leaf();
  PaperLayout::LeafCursor cursor(leaf);
  for (cursor.SeekFirst(); cursor.valid(); cursor.Next()) keys.emplace_back(cursor.key().bytes);
  return keys;
}

std::vector<uint32_t> HintsOf(const TestNode& node) {
  std::vector<uint32_t> hints;
  for (uint32_t at = node.node()->log_begin; at < node.used();) {
    const paper::LogItem item(node.node(), at);
    hints.push_back(item.order_hint());
    at = item.end();
  }
  return hints;
}

// Goal: the worked example of the paper (figures 7 and 8).
TEST(PaperLayout, OrderHintsOfThePapersExample) {
  TestStore store({});
  TestNode node(store.codec());
  node.BuildLeaf({});
  uint64_t delta = 0;
  for (const char* key : {"90", "60", "30", "45"}) {
    const StoredValue value = {.bytes = "v"};
    node.Append(key, {.bytes = key}, &value, ++delta);
  }
  EXPECT_THAT(HintsOf(node), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(KeysOf(node), ElementsAre("30", "45", "60", "90"));
  EXPECT_EQ(node.Check(), nullptr);
}

// Goal: the order of any log can be rebuilt from its hints, and a hint is the rank at insertion.
// Method: up to kLogItemsMax random keys, many of them twice, against a sorted multiset.
TEST(PaperLayout, OrderHintsRebuildTheOrderOfAnyLog) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (int round = 0; round < 30; ++round) {
    TestStore store({.node_bytes = 32768, .log_bytes_max = 8192});
    TestNode node(store.codec());
    node.BuildLeaf({});
    std::multiset<std::string> keys;
    const uint64_t count = 1 + random.Below(PaperLayout::kLogItemsMax);
    for (uint64_t i = 0; i < count; ++i) {
      const std::string key = RandomBytes(random, random.Below(5));
      const StoredValue value = {.bytes = "v"};
      node.Append(key, store.Key(key), &value, i);
      keys.insert(key);
      ASSERT_EQ(HintsOf(node).back(), std::distance(keys.begin(), keys.upper_bound(key)) - 1);
    }
    const std::set<std::string> distinct(keys.begin(), keys.end());
    ASSERT_EQ(node.Check(), nullptr);
    ASSERT_THAT(KeysOf(node), testing::ElementsAreArray(distinct));
  }
}

}  // namespace
}  // namespace skep::btree
