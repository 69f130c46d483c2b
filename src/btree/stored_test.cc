#include "btree/stored.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "btree/testing/layout_test_node.h"

namespace skep::btree {
namespace {

int Sign(int order) { return (order > 0) - (order < 0); }

// Strings with a common beginning: copies of one string, cut and changed in one place.
std::string Variant(Random& random, const std::string& common) {
  std::string bytes = common.substr(0, random.Below(common.size() + 1));
  if (!bytes.empty() && random.Chance(2, 3)) {
    bytes[random.Below(bytes.size())] = RandomBytes(random, 1)[0];
  }
  return bytes;
}

// Goal: keys are in the order of std::string: unsigned bytes, a prefix before what it begins.
// Method: pairs of variants of one string, of all sizes up to where memcmp takes over.
TEST(CompareBytes, AgreesWithTheOrderOfStrings) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (int round = 0; round < 100'000; ++round) {
    const std::string common = RandomBytes(random, random.Below(round % 2 == 0 ? 12 : 80));
    const std::string a = Variant(random, common);
    const std::string b = Variant(random, common);
    ASSERT_EQ(Sign(CompareBytes(a, b)), Sign(a.compare(b)))
        << testing::PrintToString(a) << " and " << testing::PrintToString(b);
  }
}

// Goal: stored keys compare as the whole keys do, whichever of the two lies outside.
// Method: variants of one long string whose sizes are near those of the head, of the largest key
// that is stored whole, and beyond; all pairs of them, by both overloads.
TEST(Codec, ComparesStoredKeysByTheirWholeBytes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  TestStore store({});
  const uint32_t head = store.geometry().long_key_head_bytes();
  const uint32_t inline_max = store.geometry().key_inline_max();
  const std::string common = RandomBytes(random, 600);
  std::vector<std::string> keys = {"", common, common.substr(0, head), common.substr(0, inline_max),
                                   common.substr(0, inline_max + 1)};
  for (int i = 0; i < 60; ++i) {
    keys.push_back(common.substr(0, head - 2 + random.Below(inline_max - head + 8)));
    keys.push_back(Variant(random, common));
  }
  std::vector<StoredKey> stored;
  for (const std::string& key : keys) stored.push_back(store.Key(key));
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(stored[i].outside, keys[i].size() > inline_max);
    ASSERT_EQ(store.Whole(stored[i]), keys[i]);
    for (size_t j = 0; j < keys.size(); ++j) {
      const int order = Sign(keys[i].compare(keys[j]));
      ASSERT_EQ(Sign(store.codec().Compare(keys[i], stored[j])), order) << i << " " << j;
      ASSERT_EQ(Sign(store.codec().Compare(stored[i], stored[j])), order) << i << " " << j;
    }
  }
}

// Goal: without an arena the head of an outside key decides, or nothing does.
TEST(Codec, WithoutAnArenaComparesHeads) {
  TestStore store({});
  Codec heads = store.codec();
  heads.arena = nullptr;
  const StoredKey stored = store.Key(std::string(1000, 'm'));
  const StoredKey other = store.Key(std::string(999, 'm') + "n");
  EXPECT_LT(heads.Compare("a", stored), 0);
  EXPECT_GT(heads.Compare("n", stored), 0);
  EXPECT_LT(heads.Compare(std::string(10, 'm'), stored), 0);
  EXPECT_LT(heads.Compare(std::string(store.geometry().long_key_head_bytes(), 'm'), stored), 0);
  EXPECT_EQ(heads.Compare(std::string(1000, 'n').replace(0, 999, 999, 'm'), stored), 0);
  EXPECT_EQ(heads.Compare(stored, other), 0);
}

// Goal: a value and its deadline are read back whole, wherever the value lies.
TEST(Codec, ValuesComeBackWhole) {
  TestStore store({});
  const uint32_t inline_max = store.geometry().value_inline_max();
  for (const uint32_t size : {0u, 1u, inline_max - 8, inline_max - 7, inline_max, inline_max + 1,
                              uint32_t{kContiguousMax}}) {
    for (const uint64_t deadline_ms : {uint64_t{0}, uint64_t{1}, kDeadlineMax}) {
      const PlainValue value = {.bytes = std::string(size, 'v'), .deadline_ms = deadline_ms};
      const StoredValue stored = store.Value(value);
      EXPECT_EQ(stored.outside, size + (deadline_ms == 0 ? 0 : 8) > inline_max);
      EXPECT_EQ(store.Whole(stored), value);
    }
  }
}

}  // namespace
}  // namespace skep::btree
