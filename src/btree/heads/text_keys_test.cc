// Tests the heads and tags of the keys that people have, in nodes of HeadLayout.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "btree/heads/head_layout_build.h"
#include "btree/heads/head_layout_search.h"
#include "btree/testing/head_test_items.h"
#include "btree/testing/layout_test_node.h"

namespace skep::btree {
namespace {

using TestNode = LayoutTestNode<HeadLayout>;

// Keys of text, of which a number makes one each.
using TextKey = std::string (*)(uint64_t);
std::string HexadecimalKey(uint64_t number) { return fmt::format("{:016x}", number); }
std::string DecimalKey(uint64_t number) { return fmt::format("{:020}", number); }
std::string CounterKey(uint64_t number) { return fmt::format("user:{}", number >> 44); }
std::string UuidKey(uint64_t number) {
  const uint64_t rest = number * 0x9e3779b97f4a7c15;
  return fmt::format("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", number >> 32, number >> 16 & 0xffff,
                     number & 0xfff, rest >> 52, rest & 0xffffffffffff);
}
std::string FieldKey(uint64_t number) {
  constexpr const char* kFields[] = {"age", "city", "email", "name", "phone"};
  return fmt::format("user:{}:{}", number >> 44, kFields[number % std::size(kFields)]);
}
std::string EmailKey(uint64_t number) {
  std::string name;
  for (uint64_t left = number; name.size() < 9; left /= 26) {
    name += static_cast<char>('a' + left % 26);
  }
  return name + "@example.com";
}
std::string UrlKey(uint64_t number) {
  return fmt::format("https://example.com/{}/{:x}", number % 7, number >> 30);
}

// Goal: most keys of text have heads of their own, too, so that a search seldom compares keys.
// Method: leaves of 150 keys in a row, out of 100,000; digits and letters have two to five bits in
// a byte that differ. Where a key has a common beginning with some of its neighbours for longer
// than a word (fields) it shares a head with these; so it does in a leaf with a carry of several
// digits, as the mask has all bits of a digit that is only 9 or 0.
TEST(TextKeys, HaveHeadsOfTheirOwn) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  const std::pair<TextKey, size_t> kinds[] = {
      {HexadecimalKey, 95}, {DecimalKey, 95}, {CounterKey, 78}, {UuidKey, 95},
      {FieldKey, 85},       {EmailKey, 85},   {UrlKey, 85}};
  for (const auto& [text, least] : kinds) {
    std::set<std::string> made;
    while (made.size() < 100'000) made.insert(text(random.Next()));
    const std::vector<std::string> keys(made.begin(), made.end());
    size_t heads = 0;
    constexpr size_t kItems = 150;
    constexpr size_t kLeaves = 100;
    for (size_t leaf = 0; leaf < kLeaves; ++leaf) {
      const size_t first = 1 + random.Below(keys.size() - kItems - 1);
      TestStore store({.node_bytes = 32768});
      TestItems items(store);
      for (size_t i = first; i < first + kItems; ++i) items.Add(keys[i], "v");
      TestNode node(store.codec());
      node.BuildLeaf(items, {.lower = store.Key(keys[first]),
                             .upper = store.Key(keys[first + kItems]),
                             .unbounded = false});
      const std::vector<uint16_t> all = HeadsOf(node.node());
      heads += std::set(all.begin(), all.end()).size();
    }
    EXPECT_GE(heads, kItems * kLeaves * least / 100) << text(0x123456789abcdef0);
  }
}

// Goal: the mask has every bit that differs, and no other one would be chosen for a node that has
// more keys whose bits are within the mask, which is what a merge relies on.
// Method: widths of each byte are drawn, and what differs in the grown node out of the mask.
TEST(TextKeys, HaveAMaskThatGrowsWithThem) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (int turn = 0; turn < 20'000; ++turn) {
    uint64_t differing = 0;
    const uint64_t widest = 1 + random.Below(8);
    for (int byte = 0; byte < 8; ++byte) {
      const uint64_t width = random.Below(widest + 1);
      differing = differing << 8 | (random.Next() & ((uint64_t{1} << width) - 1));
    }
    heads::Form form = {};
    form.squeezes = widest < 7 && random.Below(2) == 0;
    heads::ChooseMask(&form, differing);
    const uint64_t mask = heads::MaskOf(form);
    ASSERT_EQ(differing & ~mask, 0u) << std::hex << differing;
    heads::Form grown = form;
    heads::ChooseMask(&grown, differing | (random.Next() & mask));
    if (heads::HasAllBits(form)) continue;
    ASSERT_EQ(heads::MaskOf(grown), mask) << std::hex << differing;
  }
}

// Goal: the tags of a log of text keys tell nearly as many apart as random tags would.
// Method: 24 of 174 keys in a row are in the log. Two random tags are alike with 1 in 256.
TEST(TextKeys, AreToldApartByTags) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (const TextKey text : {HexadecimalKey, DecimalKey, CounterKey, EmailKey}) {
    std::set<std::string> made;
    while (made.size() < 20'000) made.insert(text(random.Next()));
    const std::vector<std::string> keys(made.begin(), made.end());
    double pairs = 0;
    double alike = 0;
    for (int leaf = 0; leaf < 50; ++leaf) {
      const size_t first = 1 + random.Below(keys.size() - 200);
      std::vector<std::string> some(keys.begin() + static_cast<ptrdiff_t>(first),
                                    keys.begin() + static_cast<ptrdiff_t>(first) + 174);
      TestStore store({.node_bytes = 32768});
      const Fences fences = {.lower = store.Key(some.front()),
                             .upper = store.Key(some.back() + "~"),
                             .unbounded = false};
      std::ranges::shuffle(some, std::minstd_rand(static_cast<unsigned>(random.Next())));
      std::ranges::sort(some.begin(), some.begin() + 150);
      TestItems items(store);
      for (size_t i = 0; i < 150; ++i) items.Add(some[i], "v");
      TestNode node(store.codec());
      node.BuildLeaf(items, fences);
      const HeadLayout::Sorted sorted(node.node());
      const std::vector<uint16_t> all = HeadsOf(node.node());
      for (size_t i = 150; i < some.size(); ++i) {
        const uint16_t head = HeadInLeaf(sorted, node.node(), std::string_view(some[i]));
        for (const uint16_t other : all) {
          if (other == head) continue;
          ++pairs;
          alike += heads::TagOf(head) == heads::TagOf(other);
        }
      }
    }
    EXPECT_LT(alike, pairs / 256 * 1.5) << text(0x123456789abcdef0);
  }
}

}  // namespace
}  // namespace skep::btree
