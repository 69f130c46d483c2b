// A leaf against a model, at every version.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "btree/paper_layout_test_node.h"

namespace skep::btree {
namespace {

constexpr Version kNodeVersion = 1000;

// What a leaf should hold: of each key its values by version; no value: deleted.
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
  // Of the newest write of the key that is visible; none: the key is not known.
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

struct Shape {
  Geometry geometry;
  uint64_t key_bytes_max;
  uint64_t value_bytes_max;
};

// A random leaf and its model.
class LeafScenario {
 public:
  LeafScenario(const Shape& shape, unsigned seed)
      : shape_(shape), random_(seed), store_(shape.geometry), node_(store_.codec(), kNodeVersion) {}

  void Run() {
    BuildRandomBase();
    ASSERT_EQ(node_.Check(), nullptr);
    ASSERT_NO_FATAL_FAILURE(AppendRandomLog());
    const Version last = versions_.empty() ? kNodeVersion : versions_.back();
    for (Version version = kNodeVersion; version < last; version += 1 + random_.Below(16)) {
      ASSERT_NO_FATAL_FAILURE(ExpectAgrees(version));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAgrees(last));
    ASSERT_NO_FATAL_FAILURE(ExpectAgrees(PaperLayout::Leaf::kNewest));
  }

 private:
  std::string RandomKey() {
    std::string key = RandomBytes(random_, random_.Below(shape_.key_bytes_max + 1));
    // Long keys that differ beyond their heads only.
    if (key.size() > 100 && random_.Chance(2, 3)) std::fill(key.begin(), key.end() - 2, 'h');
    return key;
  }
  PlainValue RandomValue() {
    PlainValue value = {.bytes = RandomBytes(random_, random_.Below(shape_.value_bytes_max + 1))};
    if (random_.Chance(1, 3)) value.deadline_ms = 1 + random_.Below(20);
    return value;
  }

  void BuildRandomBase() {
    const Geometry& geometry = store_.geometry();
    LeafModel::Values base;
    uint32_t bytes = geometry.fences_begin() + 4;
    for (uint64_t wanted = random_.Below(200); wanted > 0; --wanted) {
      const std::string key = RandomKey();
      if (base.contains(key)) continue;
      const PlainValue value = RandomValue();
      bytes += PaperLayout::LeafItemBytes({store_.Key(key), store_.Value(value)});
      if (bytes > PaperLayout::LeafBytesMax(geometry)) break;
      base[key] = value;
      model_.Set(key, kNodeVersion, value);
    }
    std::vector<PaperLayout::LeafItem> items;
    for (const auto& [key, value] : base) items.push_back({store_.Key(key), store_.Value(value)});
    node_.BuildLeaf(items);
  }

  // Puts, updates and deletes, also of absent keys; sometimes several of one version.
  void AppendRandomLog() {
    Version version = kNodeVersion;
    for (uint64_t wanted = random_.Below(300); wanted > 0; --wanted) {
      const std::vector<std::string> known = model_.Keys();
      const bool old = !known.empty() && random_.Chance(1, 2);
      const std::string key = old ? known[random_.Below(known.size())] : RandomKey();
      std::optional<PlainValue> value;
      if (!random_.Chance(1, 3)) value = RandomValue();
      const StoredKey stored_key = store_.Key(key);
      const StoredValue stored_value = value ? store_.Value(*value) : StoredValue();
      const StoredValue* const stored = value ? &stored_value : nullptr;
      if (!node_.HasRoomFor(stored_key, stored)) break;
      version += random_.Chance(1, 4) ? 0 : 1 + random_.Below(3);
      node_.Append(key, stored_key, stored, version - kNodeVersion);
      model_.Set(key, version, value);
      versions_.push_back(version);
      ASSERT_EQ(node_.Check(), nullptr);
    }
  }

  void ExpectFound(const std::string& key, Version version, const LeafModel::Values& values) {
    const auto found = node_.leaf(version).Find(key);
    const auto expected = values.find(key);
    const auto known = model_.VersionOf(key, version);
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

  // The cursor is at the given item of the model, or at none.
  void ExpectAt(const PaperLayout::LeafCursor& cursor, const LeafModel::Values& values,
                LeafModel::Values::const_iterator expected, Version version) {
    ASSERT_EQ(cursor.valid(), expected != values.end());
    if (!cursor.valid()) return;
    ASSERT_EQ(store_.Whole(cursor.key()), expected->first);
    ASSERT_EQ(store_.Whole(cursor.value()), expected->second);
    ASSERT_EQ(cursor.version(), *model_.VersionOf(expected->first, version));
  }

  void ExpectWalks(Version version, const LeafModel::Values& values) {
    const auto leaf = node_.leaf(version, now_ms_);
    PaperLayout::LeafCursor cursor(leaf);
    ASSERT_FALSE(cursor.valid());
    cursor.SeekFirst();
    for (auto it = values.begin(); it != values.end(); ++it, cursor.Next()) {
      ASSERT_NO_FATAL_FAILURE(ExpectAt(cursor, values, it, version));
    }
    ASSERT_FALSE(cursor.valid());
    PaperLayout::LeafCursor back(leaf);
    back.SeekLast();
    for (auto it = values.end(); it != values.begin(); back.Prev()) {
      ASSERT_NO_FATAL_FAILURE(ExpectAt(back, values, --it, version));
    }
    ASSERT_FALSE(back.valid());
    back.SeekFirst();
    ASSERT_NO_FATAL_FAILURE(ExpectAt(back, values, values.begin(), version));
  }

  // Seeks to the key, then goes back and forth at random.
  void ExpectSeeks(const std::string& key, Version version, const LeafModel::Values& values) {
    const auto leaf = node_.leaf(version, now_ms_);
    PaperLayout::LeafCursor cursor(leaf);
    auto it = values.lower_bound(key);
    if (random_.Chance(1, 2)) {
      cursor.SeekAtLeast(key);
    } else {
      cursor.SeekBelow(key);
      it = it == values.begin() ? values.end() : std::prev(it);
    }
    for (int step = 0; step < 20; ++step) {
      ASSERT_NO_FATAL_FAILURE(ExpectAt(cursor, values, it, version));
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

  void ExpectAgrees(Version version) {
    now_ms_ = random_.Chance(1, 4) ? 0 : random_.Below(24);
    SCOPED_TRACE(testing::Message() << "read version " << version << " at " << now_ms_);
    const LeafModel::Values held = model_.At(version);
    LeafModel::Values values = held;
    std::erase_if(values, [&](const auto& item) {
      return item.second.deadline_ms != 0 && item.second.deadline_ms <= now_ms_;
    });
    const auto leaf = node_.leaf(version, now_ms_);
    ASSERT_EQ(leaf.CountPresent(), values.size());
    const auto after = std::ranges::upper_bound(versions_, version);
    ASSERT_EQ(leaf.newest_version(), after == versions_.begin() ? kNodeVersion : *std::prev(after));
    ASSERT_EQ(leaf.log_items(), versions_.size());
    ASSERT_NO_FATAL_FAILURE(ExpectWalks(version, values));
    std::vector<std::string> keys = model_.Keys();
    for (int i = 0; i < 10; ++i) keys.push_back(RandomKey());
    for (const std::string& key : keys) {
      ASSERT_NO_FATAL_FAILURE(ExpectFound(key, version, held));
      ASSERT_NO_FATAL_FAILURE(ExpectSeeks(key, version, values));
    }
  }

  const Shape shape_;
  SeededRandom random_;
  TestStore store_;
  TestNode node_;
  LeafModel model_;
  std::vector<Version> versions_;  // of the log
  uint64_t now_ms_ = 0;
};

class PaperLeaf : public testing::TestWithParam<Shape> {};

// Goal: a leaf agrees with a map at every version it knows and any time: finds, walks and seeks
// both ways, counts. Only a prefix of the log is visible at an old version, so this is also the
// suffix rule. Method: random base items and a random log, in several shapes of keys and values;
// Check() after each append says that what Find gives leads to back pointers and hints that fit.
TEST_P(PaperLeaf, AgreesWithModelAtEveryVersion) {
  const unsigned seed = std::random_device{}();
  for (unsigned round = 0; round < 4; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed + round);
    LeafScenario scenario(GetParam(), seed + round);
    ASSERT_NO_FATAL_FAILURE(scenario.Run());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PaperLeaf,
    testing::Values(
        Shape{.geometry = {}, .key_bytes_max = 16, .value_bytes_max = 16},
        Shape{.geometry = {}, .key_bytes_max = 2, .value_bytes_max = 0},
        Shape{.geometry = {}, .key_bytes_max = 700, .value_bytes_max = 700},
        Shape{.geometry = {.log_bytes_max = 0}, .key_bytes_max = 30, .value_bytes_max = 100},
        Shape{.geometry = {.node_bytes = 2048, .segment_bytes_min = 64},
              .key_bytes_max = 8,
              .value_bytes_max = 20},
        Shape{.geometry = {.node_bytes = 32768, .log_bytes_max = 8192, .segment_bytes_min = 16},
              .key_bytes_max = 300,
              .value_bytes_max = 3000},
        Shape{.geometry = {.node_bytes = 4096, .log_bytes_max = 1024, .segment_bytes_min = 1024},
              .key_bytes_max = 5,
              .value_bytes_max = 5}));

// Goal: whether the items of one version are visible is one question.
// Method: three items of one version behind an older one; read just below and at that version.
TEST(PaperLeafLog, ItemsOfOneVersionAreAllVisibleOrNone) {
  TestStore store({});
  TestNode node(store.codec(), kNodeVersion);
  node.BuildLeaf({});
  const StoredValue value = {.bytes = "v"};
  node.Append("a", {.bytes = "a"}, &value, 1);
  for (const char* key : {"b", "c", "d"}) node.Append(key, {.bytes = key}, &value, 5);
  EXPECT_EQ(node.leaf(kNodeVersion).CountPresent(), 0);
  EXPECT_EQ(node.leaf(kNodeVersion + 4).CountPresent(), 1);
  EXPECT_EQ(node.leaf(kNodeVersion + 4).newest_version(), kNodeVersion + 1);
  EXPECT_EQ(node.leaf(kNodeVersion + 5).CountPresent(), 4);
}

// Goal: the largest delta is kept exactly, next to back pointer and hint.
TEST(PaperLeafLog, KeepsTheLargestDelta) {
  TestStore store({});
  TestNode node(store.codec(), kNodeVersion);
  node.BuildLeaf({});
  const StoredValue value = {.bytes = "v"};
  node.Append("b", {.bytes = "b"}, &value, PaperLayout::kDeltaMax - 1);
  node.Append("a", {.bytes = "a"}, nullptr, PaperLayout::kDeltaMax);
  EXPECT_EQ(node.Check(), nullptr);
  EXPECT_EQ(node.leaf().Find("b").version, kNodeVersion + PaperLayout::kDeltaMax - 1);
  EXPECT_EQ(node.leaf().newest_version(), kNodeVersion + PaperLayout::kDeltaMax);
  EXPECT_EQ(node.leaf(kNodeVersion + PaperLayout::kDeltaMax - 1).log_items(), 2);
}

}  // namespace
}  // namespace skep::btree
