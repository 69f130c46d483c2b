// Tests merges that replace values and do nothing else.
#include "btree/heads/replace_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/sanitized.h"
#include "btree/heads/head_layout_search.h"
#include "btree/testing/layout_test_node.h"
#include "btree/testing/node_buffer.h"

namespace skep::btree {
namespace {

constexpr uint32_t kBytesMax = 8192;

// A leaf whose log replaces values of its sorted items, and a model of its content. Its items have
// several forms, or one that is not plain.
class ValuesLeaf {
 public:
  explicit ValuesLeaf(unsigned seed) : random_(seed), store_({}), node_(store_.codec()) {
    const uint64_t count = 2 + random_.Below(60);
    while (model_.size() < count) {
      std::string key = "key:" + std::to_string(100000 + random_.Below(100000));
      if (!is_uniform_) key.resize(7 + random_.Below(4));
      if (!is_uniform_ && random_.Chance(1, 50)) key.append(600, 'k');
      model_[key] = {.key = store_.Key(key), .value = RandomValue()};
    }
    fences_ = {.lower = store_.Key("k"), .upper = store_.Key("l"), .unbounded = false};
    node_.BuildLeaf(Items(), fences_);
    for (uint64_t i = random_.Below(HeadLayout::kLogItemsMax + 1); i > 0; --i) {
      const std::string& key = SomeKey();
      const LeafItem item = {.key = model_[key].key, .value = RandomValue()};
      if (!node_.HasRoomFor(item.key, &item.value)) break;
      node_.Append(key, item.key, &item.value, 100 - i);
      model_[key] = item;
    }
  }

  std::vector<LeafItem> Items() const {
    std::vector<LeafItem> items;
    for (const auto& [key, item] : model_) items.push_back(item);
    return items;
  }
  const std::string& SomeKey() {
    return std::next(model_.begin(), static_cast<ptrdiff_t>(random_.Below(model_.size())))->first;
  }
  StoredValue RandomValue(uint64_t deadline_ms = 0) {
    const uint64_t bytes = is_uniform_ ? 600 : random_.Chance(1, 2) ? random_.Below(60) : 600;
    return store_.Value({.bytes = RandomBytes(random_, bytes), .deadline_ms = deadline_ms});
  }
  // Edits of some keys, ascending, which the model has afterwards.
  std::vector<LeafEdit> RandomEdits() {
    std::set<std::string> keys;
    for (uint64_t i = random_.Below(8); i > 0; --i) keys.insert(SomeKey());
    std::vector<LeafEdit> edits;
    for (const std::string& key : keys) {
      LeafItem& item = model_.find(key)->second;
      item.value = RandomValue();
      edits.push_back(
          {.key = model_.find(key)->first, .stored_key = item.key, .value = item.value});
    }
    return edits;
  }

  uint32_t Merge(const std::vector<LeafEdit>& edits, uint32_t bytes_max, NodeBuffer& to) {
    return ReplaceValues(store_.codec(), node_.node(), node_.used(), edits, bytes_max, to.node());
  }

  // Returns whether anything was merged.
  bool ExpectMerges() {
    const std::vector<LeafEdit> edits = RandomEdits();
    const std::vector<LeafItem> items = Items();
    NodeBuffer made;
    const uint32_t used = Merge(edits, kBytesMax, made);
    if (used == 0) return false;
    if (used > kBytesMax) {
      EXPECT_FALSE(HeadLayout::FitsLeaf(store_.codec(), items, fences_));
      return false;
    }
    NodeBuffer expected;
    EXPECT_EQ(used, HeadLayout::BuildLeaf(store_.codec(), items, fences_, expected.node()));
    EXPECT_EQ(std::memcmp(reinterpret_cast<std::byte*>(made.node()) - HeadLayout::kFrontBytes,
                          reinterpret_cast<std::byte*>(expected.node()) - HeadLayout::kFrontBytes,
                          HeadLayout::kFrontBytes + used),
              0);
    EXPECT_STREQ(HeadLayout::Check(store_.codec(), made.node(), used), nullptr);
    NodeBuffer untouched;
    EXPECT_EQ(Merge(edits, used - 1, untouched), used);
    EXPECT_EQ(untouched.node()->log_begin, 0);
    return true;
  }

  // An edit that erases, adds a key or has a deadline, and a log item that does so, are left to
  // others.
  void ExpectNothing(uint64_t how) {
    const std::string key = how == 0 ? "key:new" : SomeKey();
    const StoredKey stored = how == 0 ? store_.Key(key) : model_[key].key;
    const StoredValue value = RandomValue(how == 1 ? 1 : 0);
    const LeafEdit edit = {.key = key, .stored_key = stored, .erase = how == 2, .value = value};
    NodeBuffer made;
    EXPECT_EQ(Merge({edit}, kBytesMax, made), 0u) << how;
    const StoredValue* const put = how == 2 ? nullptr : &value;
    if (!node_.HasRoomFor(stored, put)) return;
    node_.Append(key, stored, put, 100);
    EXPECT_EQ(Merge({}, kBytesMax, made), 0u) << how;
  }

 private:
  SeededRandom random_;
  const bool is_uniform_ = random_.Chance(1, 4);  // all items have one form
  TestStore store_;
  LayoutTestNode<HeadLayout> node_;
  Fences fences_;
  std::map<std::string, LeafItem> model_;
};

// Goal: a merge builds, to the byte, what building the leaf's items with the edits builds, or
// nothing; where values are all that changes it does build, if not all items come to have one form.
// Method: random leaves of long and short values, with logs up to the longest, against std::map.
TEST(ReplaceValues, AgreesWithBuilding) {
  const unsigned seed = std::random_device{}();
  unsigned merged = 0;
  const unsigned rounds = Rounds(2000u);
  for (unsigned round = 0; round < rounds; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed + round);
    merged += ValuesLeaf(seed + round).ExpectMerges() ? 1 : 0;
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(merged, rounds / 2);
}

TEST(ReplaceValues, LeavesOtherEditsAlone) {
  const unsigned seed = std::random_device{}();
  for (unsigned round = 0; round < Rounds(300u); ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed + round);
    ValuesLeaf(seed + round).ExpectNothing(round % 3);
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

}  // namespace
}  // namespace skep::btree
