// Tests a leaf of each layout against a model, at every version.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/sanitized.h"
#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/testing/layout_test_node.h"
#include "btree/testing/tree_test_layouts.h"
#include "skep/items.h"

namespace skep::btree {
namespace {

constexpr unsigned kRounds = kSanitized ? 2 : 6;

constexpr Version kNodeVersion = 1000;

// The content that a leaf should have: of each key its values by version; no value: deleted.
class LeafModel {
 public:
  using Values = std::map<std::string, PlainValue>;

  void Set(const std::string& key, Version version, std::optional<PlainValue> value) {
    history_[key][version] = std::move(value);
  }
  Values At(Version version) const {
    Values values;
    for (const auto& [key, versions] : history_) {
      const auto after = versions.upper_bound(version);
      if (after != versions.begin() && std::prev(after)->second) {
        values[key] = *std::prev(after)->second;
      }
    }
    return values;
  }
  // The version of the newest visible write of the key; none: there is no such write.
  std::optional<Version> VersionOf(const std::string& key, Version version) const {
    const auto found = history_.find(key);
    if (found == history_.end()) return std::nullopt;
    const auto after = found->second.upper_bound(version);
    if (after == found->second.begin()) return std::nullopt;
    return std::prev(after)->first;
  }
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, versions] : history_) keys.push_back(key);
    return keys;
  }

 private:
  std::map<std::string, std::map<Version, std::optional<PlainValue>>> history_;
};

// Keys: `common` bytes that all keys share, then `late` ones that all but a few share, then random
// ones.
struct KeyShape {
  uint64_t common = 0;
  uint64_t late = 0;
  uint64_t bytes_min = 0;
  uint64_t bytes_max;
};

enum class Deadlines { kNone, kSome, kAll };

struct ValueShape {
  uint64_t bytes_min = 0;
  uint64_t bytes_max;
  Deadlines deadlines = Deadlines::kSome;
};

struct Shape {
  std::string name;
  Geometry geometry;
  KeyShape keys;
  ValueShape values;
  uint64_t items_max = 200;
};

void PrintTo(const Shape& shape, std::ostream* os) { *os << shape.name; }

// A random leaf and its model.
template <class Layout>
class LeafScenario {
 public:
  LeafScenario(const Shape& shape, unsigned seed)
      : shape_(shape), random_(seed), store_(shape.geometry), node_(store_.codec(), kNodeVersion) {}

  void Run() {
    BuildRandomBase();
    ASSERT_STREQ(node_.Check(), nullptr);
    ASSERT_NO_FATAL_FAILURE(AppendRandomLog());
    const Version last = writes_.empty() ? kNodeVersion : writes_.back().version;
    for (Version version = kNodeVersion; version < last; version += 1 + random_.Below(16)) {
      ASSERT_NO_FATAL_FAILURE(ExpectAgrees(version, writes_.size()));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAgrees(last, writes_.size()));
    ASSERT_NO_FATAL_FAILURE(ExpectAgrees(Layout::Leaf::kNewest, writes_.size()));
    // Reads as readers that have seen the node's word before the last appends.
    for (int i = 0; i < 3; ++i) {
      const size_t seen = random_.Below(writes_.size() + 1);
      const Version version = kNodeVersion + random_.Below(last - kNodeVersion + 1);
      ASSERT_NO_FATAL_FAILURE(ExpectAgrees(version, seen));
    }
    ExpectNamesItsBlocks();
  }

 private:
  using Cursor = typename Layout::LeafCursor;

  struct Write {
    std::string key;
    Version version;
    std::optional<PlainValue> value;
    uint32_t used;  // of the node after the write
  };

  // A random key that belongs to the leaf.
  std::string RandomKey() {
    const KeyShape& keys = shape_.keys;
    std::string key(keys.common, 'c');
    if (keys.late > 0 && random_.Chance(9, 10)) key.append(keys.late, 'm');
    key +=
        RandomBytes(random_, keys.bytes_min + random_.Below(keys.bytes_max - keys.bytes_min + 1));
    // Makes long keys that differ beyond their heads only.
    if (keys.common == 0 && key.size() > 100 && random_.Chance(2, 3)) {
      std::fill(key.begin(), key.end() - 2, 'h');
    }
    return key;
  }
  // Any key: also below and above the leaf, and keys that leave the common prefix midway.
  std::string StrangeKey() {
    std::string key = RandomKey().substr(0, random_.Below(shape_.keys.common + 2));
    key += RandomBytes(random_, random_.Below(10));
    return key;
  }
  PlainValue RandomValue() {
    const ValueShape& values = shape_.values;
    const uint64_t bytes =
        values.bytes_min + random_.Below(values.bytes_max - values.bytes_min + 1);
    PlainValue value = {.bytes = RandomBytes(random_, bytes)};
    if (values.deadlines == Deadlines::kAll ||
        (values.deadlines == Deadlines::kSome && random_.Chance(1, 3))) {
      value.deadline_ms = 1 + random_.Below(20);
    }
    return value;
  }

  StoredKey Store(const std::string& key) {
    const StoredKey stored = store_.Key(key);
    if (stored.outside) {
      const Stub stub = StubOf(stored.bytes);
      key_blocks_.push_back(
          {.at = stub.block,
           .bytes = static_cast<uint32_t>(key.size() - shape_.geometry.long_key_head_bytes() +
                                          kOutsideHeaderBytes)});
    }
    return stored;
  }
  // Random fences around every RandomKey().
  Fences RandomFences() {
    if (random_.Chance(1, 3)) return {};
    Fences fences = {.lower = Store(std::string(shape_.keys.common, 'c'))};
    fences.unbounded = random_.Chance(1, 4);
    if (fences.unbounded) return fences;
    const KeyShape& keys = shape_.keys;
    fences.upper =
        Store(std::string(keys.common, 'c') + std::string(keys.late + keys.bytes_max + 1, '\xff'));
    return fences;
  }

  // Counts at which the heads fill segments, and at which samples lie further apart.
  uint64_t RandomCount() {
    static constexpr uint64_t kEdges[] = {0,   1,   2,   31,  32,  33,  64,  256, 257,
                                          287, 288, 289, 319, 320, 321, 544, 576, 577};
    const uint64_t edge = kEdges[random_.Below(std::size(kEdges))];
    return edge <= shape_.items_max && random_.Chance(3, 4) ? edge
                                                            : random_.Below(shape_.items_max + 1);
  }

  void BuildRandomBase() {
    const Geometry& geometry = store_.geometry();
    const Fences fences = RandomFences();
    uint32_t bytes = Layout::FixedBytes(geometry) + Layout::FenceBytes(fences);
    const uint64_t wanted = RandomCount();
    for (uint64_t tries = 3 * wanted; tries > 0 && base_.size() < wanted; --tries) {
      const std::string key = RandomKey();
      if (base_.contains(key)) continue;
      const PlainValue value = RandomValue();
      bytes += Layout::LeafItemBytes({store_.Key(key), store_.Value(value)});
      if (bytes > Layout::LeafBytesMax(geometry)) break;
      base_[key] = value;
    }
    std::vector<LeafItem> items;
    for (const auto& [key, value] : base_) {
      items.push_back({Store(key), store_.Value(value)});
      newest_[key] = items.back().value;
    }
    node_.BuildLeaf(items, fences);
    used_at_first_ = node_.used();
  }

  // Appends puts, updates and deletes, also of absent keys; sometimes several of one version.
  void AppendRandomLog() {
    Version version = kNodeVersion;
    std::vector<std::string> known;
    for (const auto& [key, value] : base_) known.push_back(key);
    for (uint64_t wanted = random_.Below(300); wanted > 0; --wanted) {
      const bool old = !known.empty() && random_.Chance(1, 2);
      const std::string key = old ? known[random_.Below(known.size())] : RandomKey();
      std::optional<PlainValue> value;
      if (!random_.Chance(1, 3)) value = RandomValue();
      const StoredValue stored_value = value ? store_.Value(*value) : StoredValue();
      const StoredValue* const stored = value ? &stored_value : nullptr;
      if (!node_.HasRoomFor(store_.Key(key), stored)) break;
      version += random_.Chance(1, 4) ? 0 : 1 + random_.Below(3);
      node_.Append(key, Store(key), stored, version - kNodeVersion);
      writes_.push_back({key, version, value, node_.used()});
      newest_[key] = stored_value;
      known.push_back(key);
      ASSERT_STREQ(node_.Check(), nullptr);
    }
  }

  LeafModel ModelOf(size_t writes) const {
    LeafModel model;
    for (const auto& [key, value] : base_) model.Set(key, kNodeVersion, value);
    for (size_t i = 0; i < writes; ++i) {
      model.Set(writes_[i].key, writes_[i].version, writes_[i].value);
    }
    return model;
  }

  typename Layout::Leaf LeafAt(uint64_t now_ms) const {
    return typename Layout::Leaf(store_.codec(), node_.node(), used_, version_, now_ms);
  }

  void ExpectFound(const std::string& key, const LeafModel::Values& values) {
    const auto found = LeafAt(Layout::Leaf::kNoTime).Find(key);
    const auto expected = values.find(key);
    const auto known = model_.VersionOf(key, version_);
    ASSERT_EQ(found.present, expected != values.end());
    ASSERT_EQ(found.known, known.has_value());
    if (known) {
      ASSERT_EQ(found.version, *known);
      ASSERT_EQ(store_.Whole(found.key), key);
    }
    if (found.present) {
      ASSERT_EQ(store_.Whole(found.value), expected->second);
    }
  }

  // Expects the cursor to be at the given item of the model, or at none.
  void ExpectAt(const Cursor& cursor, const LeafModel::Values& values,
                LeafModel::Values::const_iterator expected) {
    ASSERT_EQ(cursor.valid(), expected != values.end());
    if (!cursor.valid()) return;
    ASSERT_EQ(store_.Whole(cursor.key()), expected->first);
    ASSERT_EQ(store_.Whole(cursor.value()), expected->second);
    ASSERT_EQ(cursor.version(), *model_.VersionOf(expected->first, version_));
  }

  void ExpectWalks(const LeafModel::Values& values) {
    const auto leaf = LeafAt(now_ms_);
    Cursor cursor(leaf);
    ASSERT_FALSE(cursor.valid());
    cursor.SeekFirst();
    for (auto it = values.begin(); it != values.end(); ++it, cursor.Next()) {
      ASSERT_NO_FATAL_FAILURE(ExpectAt(cursor, values, it));
    }
    ASSERT_FALSE(cursor.valid());
    Cursor back(leaf);
    back.SeekLast();
    for (auto it = values.end(); it != values.begin(); back.Prev()) {
      ASSERT_NO_FATAL_FAILURE(ExpectAt(back, values, --it));
    }
    ASSERT_FALSE(back.valid());
    back.SeekFirst();
    ASSERT_NO_FATAL_FAILURE(ExpectAt(back, values, values.begin()));
  }

  // Seeks to the key, then goes back and forth at random.
  void ExpectSeeks(const std::string& key, const LeafModel::Values& values) {
    const auto leaf = LeafAt(now_ms_);
    Cursor cursor(leaf);
    auto it = values.lower_bound(key);
    if (random_.Chance(1, 2)) {
      cursor.SeekAtLeast(key);
    } else {
      cursor.SeekBelow(key);
      it = it == values.begin() ? values.end() : std::prev(it);
    }
    for (int step = 0; step < 20; ++step) {
      ASSERT_NO_FATAL_FAILURE(ExpectAt(cursor, values, it));
      if (!cursor.valid()) return;
      if (random_.Chance(1, 2)) {
        cursor.Next();
        ++it;
      } else {
        cursor.Prev();
        it = it == values.begin() ? values.end() : std::prev(it);
      }
    }
  }

  // Walks a few items from a spot found ahead, as a short scan does. Some of the sorted items on
  // the way may have expired, or be hidden by the log.
  void ExpectShortWalk(const std::string& key, const LeafModel::Values& values) {
    const auto leaf = LeafAt(now_ms_);
    if (!Layout::Covers(store_.codec(), leaf.node(), key)) return;
    const auto items = static_cast<uint32_t>(1 + random_.Below(random_.Chance(1, 2) ? 4 : 100));
    LeafSpot spot = leaf.Prefetch(key);
    leaf.PrefetchItems(items, &spot);
    Cursor cursor(leaf);
    const bool from_key = random_.Chance(3, 4);
    from_key ? cursor.SeekAtLeast(key, spot, items) : cursor.SeekFirst(items);
    auto it = from_key ? values.lower_bound(key) : values.begin();
    for (uint32_t i = 0; i < items; ++i, ++it, cursor.Next()) {
      ASSERT_NO_FATAL_FAILURE(ExpectAt(cursor, values, it));
      if (!cursor.valid()) return;
    }
  }

  // Expects that a walk from the key on that copies plain items sees each item once.
  void ExpectCopies(const std::string& key, const LeafModel::Values& values) {
    const auto leaf = LeafAt(now_ms_);
    Cursor cursor(leaf);
    cursor.SeekAtLeast(key);
    for (auto it = values.lower_bound(key); it != values.end();) {
      ASSERT_NO_FATAL_FAILURE(ExpectAt(cursor, values, it));
      const auto most = static_cast<uint32_t>(1 + random_.Below(random_.Chance(1, 2) ? 4 : 1000));
      const bool keys_only = random_.Chance(1, 4);
      std::vector<Item> taken(std::min<size_t>(most, values.size()));
      const size_t bytes_max = random_.Chance(1, 2) ? SIZE_MAX : random_.Below(60);
      const auto form = cursor.plain_form();
      ItemSpan run;
      if (form) run = {.key_bytes = form->key_bytes, .value_bytes = form->value_bytes};
      if (keys_only) run.value_bytes = 0;
      std::string copies(taken.size() * run.stride(), '\0');
      run.at = copies.data();
      const uint32_t count = form ? cursor.CopyPlain(most, keys_only, copies.data())
                                  : cursor.TakeWhole(taken, keys_only, bytes_max);
      for (size_t i = 0, bytes = 0; i < count; ++i, ++it) {
        const Item item = form ? run[static_cast<uint32_t>(i)] : taken[i];
        ASSERT_TRUE(it != values.end() && item.key == it->first && it->second.deadline_ms == 0);
        ASSERT_EQ(item.value, keys_only ? "" : it->second.bytes);
        ASSERT_TRUE(form || bytes <= bytes_max);
        bytes += item.key.size() + item.value.size();
      }
      if (count > 0) continue;
      cursor.Next();
      ++it;
    }
    ASSERT_FALSE(cursor.valid());
  }

  // Reads at the version, as a reader that has seen the first `writes` writes.
  void ExpectAgrees(Version version, size_t writes) {
    version_ = version;
    model_ = ModelOf(writes);
    used_ = writes == 0 ? used_at_first_ : writes_[writes - 1].used;
    now_ms_ = random_.Chance(1, 4) ? Layout::Leaf::kNoTime : random_.Below(24);
    SCOPED_TRACE(testing::Message() << "read version " << version << " at " << now_ms_ << ", of "
                                    << base_.size() << " items and " << writes << " writes");
    const LeafModel::Values held = model_.At(version);
    LeafModel::Values values = held;
    std::erase_if(values, [&](const auto& item) {
      return item.second.deadline_ms != 0 && item.second.deadline_ms <= now_ms_;
    });
    const auto leaf = LeafAt(now_ms_);
    ASSERT_EQ(leaf.CountPresent(), values.size());
    const auto seen = std::span(writes_).first(writes);
    const auto after = std::ranges::upper_bound(seen, version, {}, &Write::version);
    ASSERT_EQ(leaf.newest_version(),
              after == seen.begin() ? kNodeVersion : std::prev(after)->version);
    ASSERT_EQ(leaf.log_items(), writes);
    ASSERT_NO_FATAL_FAILURE(ExpectWalks(values));
    std::vector<std::string> keys = model_.Keys();
    for (int i = 0; i < 10; ++i) keys.push_back(RandomKey());
    for (const std::string& key : keys) ASSERT_NO_FATAL_FAILURE(ExpectFound(key, held));
    for (int i = 0; i < 60; ++i) {
      const std::string key =
          random_.Chance(2, 3) ? keys[random_.Below(keys.size())] : StrangeKey();
      ASSERT_NO_FATAL_FAILURE(ExpectSeeks(key, values));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectCopies("", values));
    ASSERT_NO_FATAL_FAILURE(ExpectShortWalk("", values));
    for (int i = 0; i < 5; ++i) ASSERT_NO_FATAL_FAILURE(ExpectCopies(StrangeKey(), values));
  }

  // Expects the blocks of all keys, and of the values that no write has replaced.
  void ExpectNamesItsBlocks() {
    std::vector<OutsideBlock> expected = key_blocks_;
    for (const auto& [key, value] : newest_) {
      if (value.outside) expected.push_back(BlockOf(value));
    }
    std::vector<OutsideBlock> blocks;
    Layout::BlocksOf(store_.codec(), node_.node(), node_.used(), &blocks);
    KeepEachOnce(&expected);
    KeepEachOnce(&blocks);
    EXPECT_TRUE(std::ranges::equal(blocks, expected, [](OutsideBlock a, OutsideBlock b) {
      return a.at.bits == b.at.bits && a.bytes == b.bytes;
    }));
  }

  const Shape shape_;
  SeededRandom random_;
  TestStore store_;
  LayoutTestNode<Layout> node_;
  LeafModel::Values base_;
  uint32_t used_at_first_ = 0;
  std::vector<Write> writes_;
  std::vector<OutsideBlock> key_blocks_;
  std::map<std::string, StoredValue> newest_;  // stored values; a delete marker's is empty
  // The view of the reader.
  LeafModel model_;
  uint32_t used_ = 0;
  Version version_ = 0;
  uint64_t now_ms_ = 0;
};

const Shape kShapes[] = {
    {.name = "Small", .keys = {.bytes_max = 16}, .values = {.bytes_max = 16}},
    {.name = "Tiny", .keys = {.bytes_max = 2}, .values = {.bytes_max = 0}},
    {.name = "Long", .keys = {.bytes_max = 700}, .values = {.bytes_max = 700}},
    {.name = "NoLog",
     .geometry = {.log_bytes_max = 0},
     .keys = {.bytes_max = 30},
     .values = {.bytes_max = 100}},
    {.name = "SmallNodes",
     .geometry = {.node_bytes = 2048, .segment_bytes_min = 64},
     .keys = {.bytes_max = 8},
     .values = {.bytes_max = 20}},
    {.name = "LargeNodes",
     .geometry = {.node_bytes = 32768, .log_bytes_max = 8192, .segment_bytes_min = 16},
     .keys = {.bytes_max = 300},
     .values = {.bytes_max = 3000}},
    {.name = "LargeSegments",
     .geometry = {.node_bytes = 4096, .log_bytes_max = 1024, .segment_bytes_min = 1024},
     .keys = {.bytes_max = 5},
     .values = {.bytes_max = 5}},
    {.name = "OneSize",
     .keys = {.bytes_min = 16, .bytes_max = 16},
     .values = {.bytes_min = 16, .bytes_max = 16, .deadlines = Deadlines::kNone}},
    {.name = "OneSizeWithDeadlines",
     .geometry = {.node_bytes = 4096},
     .keys = {.bytes_min = 8, .bytes_max = 8},
     .values = {.bytes_min = 3, .bytes_max = 3, .deadlines = Deadlines::kAll}},
    {.name = "OneSizeOutside",
     .geometry = {.node_bytes = 8192, .log_bytes_max = 2048},
     .keys = {.bytes_min = 500, .bytes_max = 600},
     .values = {.bytes_min = 600, .bytes_max = 900, .deadlines = Deadlines::kNone}},
    {.name = "ManyOfOneSize",
     .geometry = {.node_bytes = 16384},
     .keys = {.bytes_min = 6, .bytes_max = 6},
     .values = {.bytes_min = 1, .bytes_max = 1, .deadlines = Deadlines::kNone},
     .items_max = 600},
    {.name = "ManyKeysWithoutValues",
     .geometry = {.node_bytes = 16384, .log_bytes_max = 1024},
     .keys = {.bytes_min = 4, .bytes_max = 4},
     .values = {.bytes_max = 0, .deadlines = Deadlines::kNone},
     .items_max = 600},
    {.name = "ManyMixed",
     .geometry = {.node_bytes = 32768, .log_bytes_max = 1024},
     .keys = {.bytes_max = 8},
     .values = {.bytes_max = 4},
     .items_max = 600},
    {.name = "CommonPrefix", .keys = {.common = 30, .bytes_max = 9}, .values = {.bytes_max = 9}},
    {.name = "CommonPrefixOfALongKey",  // outside keys with equal bytes in the node
     .geometry = {.node_bytes = 2048},
     .keys = {.common = 90, .bytes_max = 4},
     .values = {.bytes_max = 4}},
    {.name = "CommonPrefixBeyondAByte",
     .geometry = {.node_bytes = 32768, .log_bytes_max = 1024},
     .keys = {.common = 300, .bytes_min = 3, .bytes_max = 3},
     .values = {.bytes_min = 3, .bytes_max = 3, .deadlines = Deadlines::kNone}},
    {.name = "LateDifference",  // most heads are equal
     .keys = {.late = 12, .bytes_min = 4, .bytes_max = 4},
     .values = {.bytes_min = 4, .bytes_max = 4, .deadlines = Deadlines::kNone}},
    {.name = "LateDifferenceOfMany",
     .geometry = {.node_bytes = 32768, .log_bytes_max = 2048},
     .keys = {.common = 5, .late = 9, .bytes_max = 6},
     .values = {.bytes_max = 4},
     .items_max = 600},
};

class LayoutLeaf : public OnEachLayoutWith<Shape> {};

// Goal: a leaf agrees with a map at every version it knows and any time, also for a reader that has
// seen only the first of its log items: finds, walks and seeks both ways, from its keys, from
// between them and from keys that do not belong to it; counts; the blocks it names. Only a prefix
// of the log is visible at an old version, so this also tests the suffix rule.
// Method: random base items and a random log, in several shapes of keys and values; Check() after
// each append tests that the log item is what Find makes of its key.
TEST_P(LayoutLeaf, AgreesWithModelAtEveryVersion) {
  const unsigned seed = std::random_device{}();
  for (unsigned round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed + round);
    VisitLayoutOfTest([&]<class Layout>() {
      LeafScenario<Layout> scenario(GetCase(), seed + round);
      ASSERT_NO_FATAL_FAILURE(scenario.Run());
    });
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayoutLeaf, EachLayoutWith(kShapes), LayoutAndCaseName<Shape>);

template <class Layout>
class LayoutLog : public testing::Test {};
using Layouts = testing::Types<PaperLayout, HeadLayout>;
TYPED_TEST_SUITE(LayoutLog, Layouts);

// Goal: the items of one version are all visible or all invisible.
// Method: three items of one version behind an older one; read just below and at that version.
TYPED_TEST(LayoutLog, ItemsOfOneVersionAreAllVisibleOrNone) {
  TestStore store({});
  LayoutTestNode<TypeParam> node(store.codec(), kNodeVersion);
  node.BuildLeaf({});
  const StoredValue value = {.bytes = "v"};
  node.Append("a", {.bytes = "a"}, &value, 1);
  for (const char* key : {"b", "c", "d"}) node.Append(key, {.bytes = key}, &value, 5);
  EXPECT_EQ(node.leaf(kNodeVersion).CountPresent(), 0);
  EXPECT_EQ(node.leaf(kNodeVersion + 4).CountPresent(), 1);
  EXPECT_EQ(node.leaf(kNodeVersion + 4).newest_version(), kNodeVersion + 1);
  EXPECT_EQ(node.leaf(kNodeVersion + 5).CountPresent(), 4);
}

// Goal: the largest delta is kept exactly, beside the other fields of a log item.
TYPED_TEST(LayoutLog, KeepsTheLargestDelta) {
  constexpr uint64_t kDeltaMax = TypeParam::kDeltaMax;
  TestStore store({});
  LayoutTestNode<TypeParam> node(store.codec(), kNodeVersion);
  node.BuildLeaf({});
  const StoredValue value = {.bytes = "v"};
  node.Append("b", {.bytes = "b"}, &value, kDeltaMax - 1);
  node.Append("a", {.bytes = "a"}, nullptr, kDeltaMax);
  EXPECT_STREQ(node.Check(), nullptr);
  EXPECT_EQ(node.leaf().Find("b").version, kNodeVersion + kDeltaMax - 1);
  EXPECT_EQ(node.leaf().newest_version(), kNodeVersion + kDeltaMax);
  EXPECT_EQ(node.leaf(kNodeVersion + kDeltaMax - 1).log_items(), 2);
}

}  // namespace
}  // namespace skep::btree
