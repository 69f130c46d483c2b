// Tests heads made of discriminative bits, and searches in leaves that have them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sanitized.h"
#include "btree/heads/head_layout_build.h"
#include "btree/heads/head_layout_search.h"
#include "btree/testing/head_test_items.h"
#include "btree/testing/layout_test_node.h"

namespace skep::btree {
namespace {

using TestNode = LayoutTestNode<HeadLayout>;

// Bytes that differ in the first bit, in the last one and in several, and the ends of text.
constexpr std::string_view kAlphabet(
    "\0\1\x7f\x80\xff"
    "09afz",
    10);

// Keys of a front, a middle and a back. The middles of a leaf's keys are mostly alike, so fronts
// and backs tell them apart, and are up to beyond the reach of heads apart.
class KeysInParts {
 public:
  KeysInParts(SeededRandom& random, uint32_t node_bytes) : random_(random), room_(node_bytes / 2) {
    const std::string common(random.Chance(1, 2) ? 0 : random.Below(30), 'c');
    const std::vector<std::string> fronts = Parts(1 + random.Below(7), 5);
    const std::vector<std::string> backs = Parts(2 + random.Below(6), 3);
    const std::vector<std::string> middles = Middles();
    const bool has_other_middles = random.Chance(1, 4);
    const uint64_t share = 1 + random.Below(4);
    all_ = {"", common, common + "m", common + "\xff"};
    for (const std::string& front : fronts) {
      for (const std::string& back : backs) {
        for (const std::string& middle : middles) {
          all_.push_back(std::string(common).append(front).append(middle).append(back));
          const bool is_usual = has_other_middles || middle == middles[0];
          if (is_usual && random.Chance(share, 4)) AddToLeaf(all_.back());
        }
      }
    }
  }

  const std::vector<std::string>& all() const { return all_; }
  const std::set<std::string>& of_leaf() const { return of_leaf_; }

 private:
  std::string Bytes(uint64_t count) {
    std::string made;
    while (made.size() < count) made += kAlphabet[random_.Below(kAlphabet.size())];
    return made;
  }
  // Parts of fewer bytes than `bytes_end`.
  std::vector<std::string> Parts(uint64_t count, uint64_t bytes_end) {
    std::vector<std::string> parts;
    while (parts.size() < count) parts.push_back(Bytes(random_.Below(bytes_end)));
    return parts;
  }
  std::vector<std::string> Middles() {
    const std::string usual(random_.Chance(1, 2) ? random_.Below(9) : random_.Below(80), 'm');
    std::vector<std::string> middles = {usual};
    while (middles.size() < 4) {
      middles.push_back(usual + Bytes(random_.Below(2)));
      if (!usual.empty()) middles.back()[random_.Below(usual.size())] = Bytes(1)[0];
    }
    return middles;
  }
  void AddToLeaf(const std::string& key) {
    const size_t needed = key.size() + 16;
    if (needed <= room_ && of_leaf_.insert(key).second) room_ -= needed;
  }

  SeededRandom& random_;
  size_t room_;
  std::vector<std::string> all_;
  std::set<std::string> of_leaf_;
};

void ExpectPlace(TestStore& store, const TestNode& node, const std::set<std::string>& keys,
                 const std::string& key) {
  const HeadLayout::Leaf leaf = node.leaf();
  const auto expected = keys.lower_bound(key);
  const auto place = static_cast<uint32_t>(std::distance(keys.begin(), expected));
  const auto found = leaf.Find(key);
  ASSERT_EQ(found.present, keys.contains(key));
  ASSERT_EQ(found.rank, heads::RankOf(place, found.present));
  HeadLayout::LeafCursor cursor(leaf);
  cursor.SeekAtLeast(key);
  ASSERT_EQ(cursor.valid(), expected != keys.end());
  if (cursor.valid()) {
    ASSERT_EQ(store.Whole(cursor.key()), *expected);
  }
}

// Goal: a search for any key ends at its place in a leaf whose heads are made of discriminative
// bits, whatever bits the keys of the leaf and the other one have, and where the key ends.
// Method: every key of all fronts, middles and backs is looked for. Some keys lie outside the
// node.
TEST(DiscriminativeBits, AnyKeyFindsItsPlace) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  uint32_t leaves = 0;
  uint32_t two_parts = 0;
  for (unsigned round = 0; round < Rounds(600u); ++round) {
    const uint32_t node_bytes = random.Chance(1, 2) ? 2048 : 32768;
    const KeysInParts keys(random, node_bytes);
    TestStore store({.node_bytes = node_bytes});
    TestItems items(store);
    for (const std::string& key : keys.of_leaf()) items.Add(key, "v");
    TestNode node(store.codec());
    node.BuildLeaf(items);
    ASSERT_STREQ(node.Check(), nullptr);
    const heads::Form& form = heads::FormOf(node.node());
    if (!heads::HasChosenBits(form)) continue;
    ++leaves;
    const heads::DiscriminativeBits bits = heads::BitsOf(form);
    ASSERT_LE(std::popcount(bits.mask), 16);
    two_parts += bits.first_bytes < 8 && bits.gap > 0;
    ASSERT_TRUE(std::ranges::is_sorted(HeadsOf(node.node())));
    for (const std::string& key : keys.all()) {
      ASSERT_NO_FATAL_FAILURE(ExpectPlace(store, node, keys.of_leaf(), key));
    }
  }
  EXPECT_GT(leaves, Rounds(600u) / 4);
  EXPECT_GT(two_parts, Rounds(600u) / 20);
}

// Keys of five fields for each user, as tables of records have them.
std::string FieldOfUser(uint32_t number, std::span<const std::string_view> fields) {
  return fmt::format("user:{:010}:{}", number / fields.size() * 7919,
                     fields[number % fields.size()]);
}

// Checks that each way of a search that begins with a known spot, and SeekBelow, end at the place
// of the key among the model's.
void ExpectPlaceBySpot(TestStore& store, const TestNode& node, const std::set<std::string>& model,
                       const std::string& key) {
  const HeadLayout::Leaf leaf = node.leaf();
  LeafSpot spot = leaf.Prefetch(key);
  leaf.PrefetchItems(1, &spot);
  ASSERT_EQ(leaf.Find(key, spot).present, model.contains(key));
  ASSERT_EQ(leaf.Find(key, spot).rank, leaf.Find(key).rank);
  const auto expect_at = [&](const HeadLayout::LeafCursor& cursor,
                             std::set<std::string>::const_iterator expected) {
    ASSERT_EQ(cursor.valid(), expected != model.end());
    if (cursor.valid()) {
      ASSERT_EQ(store.Whole(cursor.key()), *expected);
    }
  };
  const auto before = [&](std::set<std::string>::const_iterator behind) {
    return behind == model.begin() ? model.end() : std::prev(behind);
  };
  HeadLayout::LeafCursor at_least(leaf);
  at_least.SeekAtLeast(key, spot, 1);
  ASSERT_NO_FATAL_FAILURE(expect_at(at_least, model.lower_bound(key)));
  HeadLayout::LeafCursor at_most(leaf);
  at_most.SeekAtMost(key, spot);
  ASSERT_NO_FATAL_FAILURE(expect_at(at_most, before(model.upper_bound(key))));
  HeadLayout::LeafCursor below(leaf);
  below.SeekBelow(key);
  ASSERT_NO_FATAL_FAILURE(expect_at(below, before(model.lower_bound(key))));
}

// Goal: searches that look ahead, and those for a key below, end at the key's place in a leaf of
// discriminative bits, whether the sorted items have it, the log, or neither.
// Method: fields of 40 users, of one length or of several. Every third key is missing in the sorted
// items, and some of these are in the log. All keys and all their truncations and continuations are
// looked for, before the log has anything and after.
TEST(DiscriminativeBits, KnownSpotsLeadToTheFieldsOfUsers) {
  constexpr std::string_view kAlike[] = {"email", "phone", "place", "state", "title"};
  constexpr std::string_view kOthers[] = {"age", "email", "emails", "id", "name"};
  constexpr uint32_t kKeys = 200;
  for (const auto& fields : {std::span(kAlike), std::span(kOthers)}) {
    TestStore store({.node_bytes = 32768, .log_bytes_max = 2048});
    TestItems items(store);
    std::set<std::string> model;
    std::set<std::string> searched = {"", "user", "z"};
    for (uint32_t n = 0; n < kKeys; ++n) {
      const std::string key = FieldOfUser(n, fields);
      for (size_t bytes = 5; bytes < key.size(); ++bytes) searched.insert(key.substr(0, bytes));
      searched.insert({key, key + '\0', key + "s", key + "\xff"});
      if (n % 3 == 1) continue;
      items.Add(key, "v");
      model.insert(key);
    }
    TestNode node(store.codec());
    node.BuildLeaf(items);
    ASSERT_TRUE(heads::HasChosenBits(heads::FormOf(node.node())));
    for (const std::string& key : searched) {
      ASSERT_NO_FATAL_FAILURE(ExpectPlaceBySpot(store, node, model, key)) << key;
    }
    const StoredValue value = {.bytes = "v"};
    for (uint32_t n = 1; n < kKeys; n += 18) {
      std::string key = FieldOfUser(n, fields);
      if (n % 36 == 1) key.pop_back();
      model.insert(key);
      node.Append(key, store.Key(key), &value, n);
    }
    ASSERT_STREQ(node.Check(), nullptr);
    ASSERT_GE(node.leaf().log_items(), 10u);
    for (const std::string& key : searched) {
      ASSERT_NO_FATAL_FAILURE(ExpectPlaceBySpot(store, node, model, key)) << key;
    }
  }
}

// Goal: the fields of each user have heads of their own.
// Method: leaves of 30 users with five fields; numbers of eleven digits and of bytes.
TEST(DiscriminativeBits, TellFieldsOfUsersApart) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  constexpr size_t kUsers = 30;
  const std::string fields[] = {"email", "phone", "place", "state", "title"};
  for (const bool is_text : {true, false}) {
    size_t own = 0;
    size_t keys = 0;
    int chosen = 0;
    for (int leaf = 0; leaf < 50; ++leaf) {
      const uint64_t first = random.Below(uint64_t{9'000'000'000});
      std::set<uint64_t> users;
      while (users.size() < kUsers) users.insert(first + random.Below(kUsers * 10'000));
      TestStore store({.node_bytes = 32768});
      TestItems items(store);
      for (const uint64_t user : users) {
        std::string number = std::to_string(10'000'000'000 + user);
        const uint64_t reversed = __builtin_bswap64(user);
        if (!is_text) number.assign(reinterpret_cast<const char*>(&reversed), sizeof(reversed));
        for (const std::string& field : fields) {
          items.Add(std::string("user:").append(number).append(":").append(field), "v");
        }
      }
      TestNode node(store.codec());
      node.BuildLeaf(items);
      chosen += heads::HasChosenBits(heads::FormOf(node.node()));
      const std::vector<uint16_t> all = HeadsOf(node.node());
      own += std::set(all.begin(), all.end()).size();
      keys += all.size();
    }
    // Few leaves have numbers whose bits leave more than half as many heads alike.
    EXPECT_GE(chosen, 46) << is_text;
    EXPECT_GE(own, keys * (is_text ? 75 : 85) / 100) << is_text;
  }
}

}  // namespace
}  // namespace skep::btree
