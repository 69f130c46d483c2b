// Goal: Check() finds each invariant broken, and names it.
// Method: one sound leaf, damaged by hand at one place in each test.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "btree/paper/paper_layout.h"
#include "btree/testing/layout_test_node.h"

namespace skep::btree {
namespace {

using TestNode = LayoutTestNode<PaperLayout>;
using testing::StartsWith;

// A leaf of 60 items between fences, of 4 KB so that it has a few segments; its log replaces a
// sorted item, then that item's replacement, and adds a key.
class PaperLayoutCheck : public testing::Test {
 protected:
  PaperLayoutCheck() {
    std::vector<PaperLayout::LeafItem> items;
    for (int i = 0; i < 60; ++i) {
      std::string key = "k";
      key += std::to_string(100 + i);
      items.push_back({store_.Key(key), {.bytes = "some value"}});
    }
    node_.BuildLeaf(items, {.lower = {.bytes = "k"}, .upper = {.bytes = "l"}, .unbounded = false});
    for (const char* key : {"k130", "k130", "kx"}) {
      const StoredValue value = {.bytes = "log"};
      node_.Append(key, {.bytes = key}, &value, ++delta_);
      log_.push_back(node_.used() - PaperLayout::LogItemBytes({.bytes = key}, &value));
    }
  }

  NodeHeader* node() { return node_.node(); }
  uint32_t log_item(int index) const { return log_[static_cast<size_t>(index)]; }
  template <class T>
  void Set(uint32_t at, T value) {
    paper::Store(node(), at, value);
  }
  void ExpectBroken(const char* invariant) {
    const char* const broken = node_.Check();
    ASSERT_NE(broken, nullptr);
    EXPECT_THAT(broken, StartsWith(invariant));
  }
  // Set the back pointer, the order hint and the key flags of a log item.
  void SetPlace(int index, uint32_t back_pointer) {
    Set(log_item(index), static_cast<uint16_t>(back_pointer));
  }
  void SetHint(int index, uint8_t hint) { Set(log_item(index) + 2, hint); }
  void SetKeyFlags(int index, uint32_t flags) {
    const uint32_t at = log_item(index) + paper::kLogItemHeaderBytes;
    const uint32_t length = paper::Load<uint16_t>(node(), at) & paper::kLengthMask;
    Set(at, static_cast<uint16_t>(length | flags));
  }

  TestStore store_{{.node_bytes = 4096}};
  TestNode node_{store_.codec()};
  uint64_t delta_ = 0;
  std::vector<uint32_t> log_;
};

TEST_F(PaperLayoutCheck, ASoundNodeHasNothingBroken) { EXPECT_EQ(node_.Check(), nullptr); }

TEST_F(PaperLayoutCheck, Sizes) {
  node()->shortcut_end = 47;
  ExpectBroken("P1");
  node()->shortcut_end = 257;
  ExpectBroken("P1");
}

TEST_F(PaperLayoutCheck, EndOfTheSortedBlock) {
  node()->log_begin = static_cast<uint16_t>(node_.used() + 1);
  ExpectBroken("P1");
  node()->log_begin = 256;
  ExpectBroken("P1");
}

TEST_F(PaperLayoutCheck, AnInnerNodeHasNoLog) {
  node()->level = 1;
  ExpectBroken("P1");
}

TEST_F(PaperLayoutCheck, BytesInUse) {
  EXPECT_THAT(PaperLayout::Check(store_.codec(), node(), 47), StartsWith("P1"));
  EXPECT_THAT(PaperLayout::Check(store_.codec(), node(), 4097), StartsWith("P1"));
  EXPECT_THAT(PaperLayout::Check(store_.codec(), node(), node_.used() - 1), StartsWith("P2"));
}

TEST_F(PaperLayoutCheck, FlagsOfASortedKey) {
  const uint32_t first = paper::SortedBegin(store_.geometry(), node());
  Set<uint16_t>(first, 4 | paper::kDeleted);
  ExpectBroken("P2");
  Set<uint16_t>(first, 4 | paper::kOutside);  // too short for a stub
  ExpectBroken("P2");
  Set<uint16_t>(first, 0x0fff);
  ExpectBroken("P2");
}

TEST_F(PaperLayoutCheck, MetadataIsADeadline) {
  const uint32_t first = paper::SortedBegin(store_.geometry(), node());
  const uint32_t value = paper::AfterField(node(), first);
  const auto length = paper::Load<uint16_t>(node(), value);
  ASSERT_GE(length, 8);
  Set<uint16_t>(value, length | paper::kMetadata);
  Set<uint64_t>(store_.geometry().body_begin(), 1000);
  Set<uint64_t>(value + 2, 7 | uint64_t{1000} << 8);
  EXPECT_EQ(node_.Check(), nullptr);
  Set<uint64_t>(value + 2, 7 | uint64_t{999} << 8);
  ExpectBroken("P2, P9");
  Set<uint64_t>(value + 2, 7);
  ExpectBroken("P2, P9");
  Set<uint64_t>(value + 2, 6 | uint64_t{1000} << 8);
  ExpectBroken("P2, P9");
  Set<uint64_t>(value + 2, 7 | uint64_t{1000} << 8);
  EXPECT_EQ(node_.Check(), nullptr);
  Set<uint16_t>(value, 7 | paper::kMetadata);
  ExpectBroken("P2, P9");
}

TEST_F(PaperLayoutCheck, ShortcutsLeadToItems) {
  const uint32_t offset = paper::AfterField(node(), paper::kShortcutBegin);
  const auto segment = paper::Load<uint16_t>(node(), offset);
  Set<uint16_t>(offset, 0);
  ExpectBroken("P3");
  // An item that still has its key is taken for a payload, or never met.
  Set<uint16_t>(offset, static_cast<uint16_t>(segment + 1));
  EXPECT_NE(node_.Check(), nullptr);
}

TEST_F(PaperLayoutCheck, NumberAndOrderOfItems) {
  node()->sorted_count = 59;
  ExpectBroken("P4");
  node()->sorted_count = 60;
  const uint32_t first = paper::SortedBegin(store_.geometry(), node());
  Set<char>(first + 2 + 3, '9');  // makes k109 of k100, which is above k101
  ExpectBroken("P4");
}

TEST_F(PaperLayoutCheck, Fences) {
  const uint32_t lower = store_.geometry().fences_begin();
  Set<char>(lower + 2, 'm');
  ExpectBroken("P5: fences");
  Set<char>(lower + 2, 'k');
  Set<char>(lower + 3 + 2, 'k');
  ExpectBroken("P5: fences");
}

TEST_F(PaperLayoutCheck, KeysInsideTheFences) {
  const uint32_t first = paper::SortedBegin(store_.geometry(), node());
  Set<char>(first + 2, 'a');
  ExpectBroken("P5: a key below");
}

TEST_F(PaperLayoutCheck, LogKeysInsideTheFences) {
  const uint32_t key = log_item(2) + paper::kLogItemHeaderBytes + 2;
  Set<char>(key, 'l');
  ExpectBroken("P5: a log item above");
  Set<char>(key, 'a');
  ExpectBroken("P5: a log item below");
}

TEST_F(PaperLayoutCheck, VersionsRise) {
  PaperLayout::SetLogVersion(node(), log_item(2), delta_ - 1);
  EXPECT_EQ(node_.Check(), nullptr);  // equal deltas: items of one batch
  PaperLayout::SetLogVersion(node(), log_item(1), delta_ + 1);
  ExpectBroken("P6");
}

TEST_F(PaperLayoutCheck, BackPointersLeadToItems) {
  SetPlace(0, node()->log_begin);  // replaces itself
  ExpectBroken("P7");
  SetPlace(0, 3);
  ExpectBroken("P7");
}

TEST_F(PaperLayoutCheck, HintsAreBelowTheNumberOfItems) {
  SetHint(0, 1);
  ExpectBroken("P7");
}

TEST_F(PaperLayoutCheck, BackPointersLeadToTheNewestOfTheKey) {
  SetPlace(1, paper::SortedBegin(store_.geometry(), node()));
  ExpectBroken("P8");
}

TEST_F(PaperLayoutCheck, OnlyAKnownKeyIsReplaced) {
  SetKeyFlags(0, 0);
  ExpectBroken("P8");
}

TEST_F(PaperLayoutCheck, HintsAreRanks) {
  SetHint(2, 0);  // kx is the third
  ExpectBroken("P8");
}

}  // namespace
}  // namespace skep::btree
