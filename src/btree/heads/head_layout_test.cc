// Tests the heads of keys (order, samples), searches at every count of items, sizes, and runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "btree/heads/head_layout_build.h"
#include "btree/heads/head_layout_search.h"
#include "btree/testing/head_test_items.h"
#include "btree/testing/layout_test_node.h"
#include "skep/items.h"

namespace skep::btree {
namespace {

using testing::Each;
using TestNode = LayoutTestNode<HeadLayout>;

// Makes keys of numbers, in their order; four bytes, so that all items of a node have one size.
std::string NumberKey(uint32_t number) {
  number = __builtin_bswap32(number);
  return {reinterpret_cast<const char*>(&number), 4};
}

// Goal: nodes have the sizes that the picture in head_layout.h gives.
// Method: bytes counted by hand from it. 150 heads take five segments.
TEST(HeadLayout, HasTheSizesOfItsPicture) {
  TestStore store({});
  TestItems uniform(store);
  TestItems mixed(store);
  std::vector<InnerItem> separators;
  for (uint32_t i = 0; i < 150; ++i) {
    uniform.Add(NumberKey(i) + "123456789abc", "0123456789abcdef");
    mixed.Add(NumberKey(i), i == 0 ? "longer" : "v");
    separators.push_back({store.Key(NumberKey(i + 1)), Link::Of(i + 1, 0)});
  }
  constexpr uint32_t kFences = 2 + 2;
  TestNode empty(store.codec());
  empty.BuildLeaf({});
  EXPECT_EQ(empty.used(), 160 + 2 * 32 + kFences);
  TestNode leaf(store.codec());
  leaf.BuildLeaf(uniform);
  EXPECT_EQ(leaf.used(), 160 + 2 * 160 + 150 * 32 + kFences);
  TestNode other(store.codec());
  other.BuildLeaf(mixed);
  EXPECT_EQ(other.used(), 160 + 2 * 160 + 150 * (2 + 2 + 4 + 2 + 1) + 5 + kFences);
  TestNode inner(store.codec());
  inner.BuildInner(Link::Of(1000, 0), separators);
  EXPECT_EQ(inner.used(), 96 + 2 * 160 + 150 * (8 + 2 + 2 + 4) + kFences);
  const StoredValue value = {.bytes = "abc"};
  EXPECT_EQ(HeadLayout::LogItemBytes({.bytes = "key"}, &value), 4 + 2 + 2 + 3 + 3 + 2);
  EXPECT_EQ(HeadLayout::LogItemBytes({.bytes = "key"}, nullptr), 4 + 2 + 2 + 3 + 5);
}

// Goal: nearly all random keys have heads of their own, also if they share a prefix, and whatever
// the distance of the first and the last.
// Method: 100 keys of 12 random bytes; of 65536 heads at least half are in reach, so a pair of keys
// has the same one by chance with 1 in 32768: 0.15 pairs on average.
TEST(HeadLayout, RandomKeysHaveHeadsOfTheirOwn) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (const size_t common : {0, 1, 7, 8, 100, 255}) {
    for (const int free_bits : {8, 5, 1}) {
      TestStore store({.node_bytes = 32768});
      std::set<std::string> keys;
      while (keys.size() < 100) {
        std::string key(common + 12, 'c');
        for (size_t i = common; i < key.size(); ++i) key[i] = static_cast<char>(random.Below(256));
        key[common] = static_cast<char>(0x40 + (key[common] & ((1 << free_bits) - 1)));
        keys.insert(key);
      }
      TestItems items(store);
      for (const std::string& key : keys) items.Add(key, "v");
      TestNode node(store.codec());
      node.BuildLeaf(items);
      const std::vector<uint16_t> all = HeadsOf(node.node());
      EXPECT_GE(std::set(all.begin(), all.end()).size(), 95) << common << ", " << free_bits;
      EXPECT_GE(all.back(), 0x8000);
    }
  }
}

// Goal: a search for any key ends at its place, whatever bits the keys of the node have and lack.
// Method: nodes of a few keys out of all of up to three bytes over an alphabet of bytes that differ
// in many ways, with fences and without; every key of the alphabet is looked for in each.
TEST(HeadLayout, AnyKeyFindsItsPlace) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  const std::string alphabet = {'\0', '\x01', '0', '1', '9', 'Z', 'a', 'b', '\x7f', '\x80', '\xff'};
  std::vector<std::string> all = {""};
  for (size_t i = 0; i < all.size() && all[i].size() < 3; ++i) {
    for (const char c : alphabet) all.push_back(all[i] + c);
  }
  std::ranges::sort(all);
  for (int round = 0; round < 300; ++round) {
    const size_t first = random.Below(all.size() / 2);
    const size_t end = first + 2 + random.Below(all.size() - first - 1);
    const bool has_fences = random.Chance(1, 2) && end < all.size();
    std::set<std::string> keys;
    const bool is_hexadecimal = random.Chance(1, 2);
    for (uint64_t i = 1 + random.Below(6); i > 0; --i) {
      const std::string& key = all[first + random.Below(std::min(end, all.size()) - first)];
      if (!is_hexadecimal || IsHexadecimal(heads::WordAt(key, 0))) keys.insert(key);
    }
    TestStore store({});
    TestItems items(store);
    for (const std::string& key : keys) items.Add(key, "v");
    TestNode node(store.codec());
    Fences fences;
    if (has_fences) {
      fences = {.lower = store.Key(all[first]), .upper = store.Key(all[end]), .unbounded = false};
    }
    node.BuildLeaf(items, fences);
    ASSERT_STREQ(node.Check(), nullptr);
    for (size_t i = has_fences ? first : 0; i < (has_fences ? end : all.size()); ++i) {
      const HeadLayout::Leaf leaf(store.codec(), node.node(), node.used());
      ASSERT_EQ(leaf.Find(all[i]).present, keys.contains(all[i])) << i << ", round " << round;
      HeadLayout::LeafCursor cursor(leaf);
      cursor.SeekAtLeast(all[i]);
      const auto expected = keys.lower_bound(all[i]);
      ASSERT_EQ(cursor.valid(), expected != keys.end()) << i << ", round " << round;
      if (expected == keys.end()) continue;
      ASSERT_EQ(cursor.key().bytes, *expected) << i << ", round " << round;
    }
  }
}

// Goal: where the heads of two keys differ, their order is that of the keys: also for keys that are
// not in the node, in nodes with fences or none, with few items or many; but of discriminative bits
// only for keys of the node.
// Method: pairs of random keys of which one is often made of the other.
TEST(HeadLayout, HeadsRiseWithKeys) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (int round = 0; round < 100; ++round) {
    TestStore store({.node_bytes = 8192u << random.Below(3)});
    const std::string common(random.Chance(1, 2) ? 0 : random.Below(40), 'c');
    const auto random_key = [&] {
      std::string key = common + RandomBytes(random, random.Below(12));
      // Makes the items have a longer prefix in common than the fences.
      if (random.Chance(3, 4)) key.insert(common.size(), "mmm");
      return key;
    };
    std::set<std::string> keys;
    for (uint64_t wanted = random.Below(100); keys.size() < wanted;) keys.insert(random_key());
    TestItems items(store);
    for (const std::string& key : keys) items.Add(key);
    Fences fences;
    if (random.Chance(1, 2)) {
      fences = {.lower = store.Key(common),
                .upper = store.Key(common + std::string(20, '\xff')),
                .unbounded = false};
    }
    TestNode node(store.codec());
    node.BuildLeaf(items, fences);
    ASSERT_STREQ(node.Check(), nullptr);
    if (heads::HasChosenBits(heads::FormOf(node.node()))) {
      ASSERT_TRUE(std::ranges::is_sorted(HeadsOf(node.node())));
      continue;
    }
    for (int i = 0; i < 500; ++i) {
      const std::string a = random_key();
      std::string b = random.Chance(1, 2) ? random_key() : a;
      if (random.Chance(1, 2)) b += RandomBytes(random, random.Below(3));
      const uint16_t head_a = node.leaf().Find(a).head;
      const uint16_t head_b = node.leaf().Find(b).head;
      ASSERT_TRUE(a < b ? head_a <= head_b : head_a >= head_b);
      ASSERT_TRUE(a != b || head_a == head_b);
    }
  }
}

// Goal: samples lie no closer than a segment, and their number is enough for any node.
TEST(HeadLayout, SamplesLieFurtherApartIfThereAreManyItems) {
  EXPECT_EQ(heads::SampleShift(0, 7), 5);
  EXPECT_EQ(heads::SampleShift(255, 7), 5);
  EXPECT_EQ(heads::SampleShift(256, 7), 6);
  EXPECT_EQ(heads::SampleShift(511, 7), 6);
  EXPECT_EQ(heads::SampleShift(512, 7), 7);
  EXPECT_EQ(heads::SampleShift(1055, 32), 5);
  EXPECT_EQ(heads::SampleShift(1056, 32), 6);
}

// Counts at which the last segment is full or not, and at which samples lie 32, 64, 128 heads
// apart.
constexpr uint32_t kCounts[] = {0,    1,    2,    31,   32,   33,   63,   64,   65,   255,
                                256,  257,  287,  288,  289,  319,  320,  321,  511,  512,
                                544,  575,  576,  577,  640,  641,  1023, 1024, 1025, 1055,
                                1056, 1057, 1087, 1088, 1089, 1120, 1121, 1500};

// Goal: a leaf finds each of its keys, and the gap of each key that it does not have, at all counts
// of items, whether their sizes are the same or not.
// Method: odd numbers are in the leaf, even ones and those behind the last one are not.
TEST(HeadLayout, LeafFindsAtEveryCount) {
  for (const uint32_t count : kCounts) {
    for (const bool uniform : {true, false}) {
      SCOPED_TRACE(testing::Message() << count << (uniform ? " of one size" : " mixed"));
      TestStore store({.node_bytes = 32768});
      TestItems items(store);
      for (uint32_t i = 0; i < count; ++i) items.Add(NumberKey(2 * i + 1), uniform ? "" : "v");
      if (!uniform && count > 0) items.Add(NumberKey(2 * count + 1), "longer");
      const uint32_t all = count + (!uniform && count > 0 ? 1 : 0);
      TestNode node(store.codec());
      node.BuildLeaf(items);
      ASSERT_STREQ(node.Check(), nullptr);
      const auto leaf = node.leaf();
      HeadLayout::LeafCursor cursor(leaf);
      for (uint32_t number = 0; number < 2 * all + 5; ++number) {
        const std::string key = NumberKey(number);
        const uint32_t below = std::min(number / 2, all);
        ASSERT_EQ(leaf.Find(key).present, number % 2 == 1 && number / 2 < all) << number;
        cursor.SeekAtLeast(key);
        ASSERT_EQ(cursor.valid(), below < all) << number;
        if (cursor.valid()) {
          ASSERT_EQ(cursor.key().bytes, NumberKey(2 * below + 1));
        }
        cursor.SeekBelow(key);
        ASSERT_EQ(cursor.valid(), below > 0) << number;
        if (cursor.valid()) {
          ASSERT_EQ(cursor.key().bytes, NumberKey(2 * below - 1));
        }
        LeafSpot spot = leaf.Prefetch(key);
        leaf.PrefetchItems(1, &spot);
        ASSERT_EQ(leaf.Find(key, spot).known, leaf.Find(key).known);
      }
    }
  }
}

// Goal: an inner node leads a key behind the last separator that is not above it, at all counts.
TEST(HeadLayout, InnerNodeFindsAtEveryCount) {
  for (const uint32_t count : kCounts) {
    SCOPED_TRACE(count);
    TestStore store({.node_bytes = 32768});
    std::vector<InnerItem> items;
    for (uint32_t i = 0; i < count; ++i) {
      items.push_back({store.Key(NumberKey(2 * i + 1)), Link::Of(i + 1, 0)});
    }
    TestNode node(store.codec());
    node.BuildInner(Link::Of(9999, 0), items);
    ASSERT_STREQ(node.Check(), nullptr);
    for (uint32_t number = 0; number < 2 * count + 5; ++number) {
      uint32_t index;
      node.inner().ChildOf(NumberKey(number), &index);
      ASSERT_EQ(index, std::min((number + 1) / 2, count)) << number;
      node.inner().ChildBelow(NumberKey(number), &index);
      ASSERT_EQ(index, std::min(number / 2, count)) << number;
    }
  }
}

// Goal: a search of a leaf touches four cache lines: the two of front and header, one segment of
// heads and the item. The first item of a segment costs the segment before it as well: its sample
// is an upper byte, which is not below that of its own head.
// Method: a leaf of evenly spread keys, and a copy of it for each search in which only these lines
// have their bytes. A search that reads another line is led astray.
TEST(HeadLayout, ASearchTouchesFourLines) {
  constexpr uint32_t kItems = 160;
  constexpr size_t kLine = 64;
  TestStore store({});
  TestItems items(store);
  const auto key_of = [](uint32_t i) { return static_cast<char>(i) + std::string(15, 'k'); };
  const auto value_of = [](uint32_t i) { return static_cast<char>(i) + std::string(15, 'v'); };
  for (uint32_t i = 0; i < kItems; ++i) items.Add(key_of(i), value_of(i));
  TestNode node(store.codec());
  node.BuildLeaf(items);
  const std::byte* const whole = node.node()->bytes() - HeadLayout::kFrontBytes;
  const size_t bytes = (HeadLayout::kFrontBytes + node.bytes_used() + kLine - 1) / kLine * kLine;
  const auto copy = std::unique_ptr<std::byte, decltype(&std::free)>(
      static_cast<std::byte*>(std::aligned_alloc(kLine, bytes)), &std::free);
  const uint32_t items_at = HeadLayout::kFrontBytes + heads::AfterHeads(true, kItems);
  ASSERT_EQ(items_at % kLine, 0u);
  for (uint32_t i = 0; i < kItems; ++i) {
    std::memset(copy.get(), 0xa5, bytes);
    const size_t heads_line =
        (HeadLayout::kFrontBytes + heads::kLeafHeadsAt) / kLine + i / heads::kSegmentHeads;
    const size_t item_line = (items_at + i * 32) / kLine;
    const bool is_first = i % heads::kSegmentHeads == 0 && i > 0;
    const size_t before = is_first ? heads_line - 1 : heads_line;
    for (const size_t line : {size_t{0}, size_t{1}, before, heads_line, item_line}) {
      std::memcpy(copy.get() + line * kLine, whole + line * kLine, kLine);
    }
    const HeadLayout::Leaf leaf(store.codec(), NodeIn(copy.get(), HeadLayout::kFrontBytes),
                                node.used());
    const auto found = leaf.Find(key_of(i));
    ASSERT_TRUE(found.present) << i;
    ASSERT_EQ(found.value.bytes, value_of(i));
  }
}

// Goal: where heads are equal, the keys decide.
// Method: 300 keys that begin with the same 80 bytes, and one below and one above them without that
// prefix: the heads of the 300 are equal. The log's items lie between the others.
TEST(HeadLayout, EqualHeadsLeaveItToTheKeys) {
  TestStore store({.node_bytes = 32768, .log_bytes_max = 8192});
  const auto key_of = [](uint32_t number) { return std::string(80, 'k') + NumberKey(number); };
  TestItems items(store);
  items.Add("a", "value");
  for (uint32_t i = 0; i < 300; ++i) items.Add(key_of(4 * i + 2), "value");
  items.Add("z", "value");
  TestNode node(store.codec());
  node.BuildLeaf(items);
  const std::vector<uint16_t> all = HeadsOf(node.node());
  ASSERT_THAT(std::span(all).subspan(1, 300), Each(all[1]));
  const StoredValue value = {.bytes = "new"};
  constexpr uint32_t kLogged = 20;
  for (uint32_t i = 0; i < kLogged; ++i) {
    const std::string key = key_of(48 * i);
    node.Append(key, store.Key(key), &value, i + 1);
  }
  ASSERT_STREQ(node.Check(), nullptr);
  const auto leaf = node.leaf();
  std::string previous = "a";
  for (uint32_t number = 0; number < 1202; ++number) {
    const std::string key = key_of(number);
    const bool in_log = number % 48 == 0 && number / 48 < kLogged;
    const bool present = in_log || (number % 4 == 2 && number < 1200);
    ASSERT_EQ(leaf.Find(key).present, present) << number;
    HeadLayout::LeafCursor cursor(leaf);
    cursor.SeekBelow(key);
    ASSERT_TRUE(cursor.valid());
    ASSERT_EQ(store.Whole(cursor.key()), previous) << number;
    if (present) previous = key;
  }
}

// Goal: whether a leaf covers a key that its sorted items or its log have is known without a look
// at the fences.
// Method: the fences are overwritten by others, between which no key of the leaf lies.
TEST(HeadLayout, CoversItsKeysWithoutALookAtFences) {
  TestStore store({});
  TestItems items(store);
  items.Add("kc", "v");
  items.Add("ke", "v");
  TestNode node(store.codec());
  node.BuildLeaf(items, {.lower = store.Key("ka"), .upper = store.Key("kz"), .unbounded = false});
  const StoredValue value = {.bytes = "v"};
  node.Append("kd", store.Key("kd"), &value, 1);
  field::PutFences(node.node(), node.node()->shortcut_end,
                   {.lower = store.Key("ky"), .upper = store.Key("kz"), .unbounded = false});
  const auto covers = [&](std::string_view key) {
    LeafSpot spot = node.leaf().Prefetch(key);
    node.leaf().PrefetchItems(1, &spot);
    return HeadLayout::CoversAt(store.codec(), node.node(), key, spot);
  };
  EXPECT_TRUE(covers("kc"));
  EXPECT_TRUE(covers("kd"));
  EXPECT_FALSE(covers("kf"));
}

// Goal: the stub of an outside key is no part of its head.
// Method: keys that differ behind their bytes in the node; their stubs differ in every byte of the
// size, and their order is not that of the stubs.
TEST(HeadLayout, StubsAreNoPartOfHeads) {
  TestStore store({.node_bytes = 2048});
  const std::string common(store.geometry().long_key_head_bytes(), 'k');
  const std::string keys[] = {common + std::string(700, 'a'), common + std::string(70, 'b'),
                              common + std::string(7000, 'c')};
  TestItems items(store);
  for (const std::string& key : keys) items.Add(key, "v");
  TestNode node(store.codec());
  node.BuildLeaf(items);
  ASSERT_STREQ(node.Check(), nullptr);
  EXPECT_THAT(HeadsOf(node.node()), Each(0));
  for (const std::string& key : keys) EXPECT_TRUE(node.leaf().Find(key).present);
  EXPECT_FALSE(node.leaf().Find(common + "b").known);
}

// Goal: a leaf's buffer has room for 16 log items like its sorted ones, or for the longest log; and
// a log uses the room that a larger buffer has, up to 24 items.
TEST(HeadLayout, BufferHasRoomForTheLog) {
  for (const auto& [log_bytes, more_units] :
       {std::pair(0u, 1u), std::pair(500u, 0u), std::pair(1024u, 0u), std::pair(2048u, 2u)}) {
    TestStore store({.log_bytes_max = log_bytes});
    TestItems items(store);
    for (uint32_t i = 0; i < 100; ++i) items.Add(NumberKey(i), "0123456789ab");
    const std::unique_ptr<uint64_t[]> buffer(new uint64_t[1 << 10]());
    auto* const node = new (buffer.get() + HeadLayout::kFrontBytes / 8) NodeHeader{};
    uint32_t used = HeadLayout::BuildLeaf(store.codec(), items, {}, node);
    const uint32_t bytes = HeadLayout::LeafBufferBytes(store.codec(), node, used);
    node->units = static_cast<uint8_t>((HeadLayout::kFrontBytes + bytes + 255) / 256 + more_units);
    const StoredKey key = {.bytes = "4bytes..", .outside = false};
    const StoredValue value = {.bytes = "01234567"};
    const uint32_t item = HeadLayout::LogItemBytes(key, &value);
    ASSERT_EQ(item, 8 + 16);
    uint32_t appended = 0;
    while (HeadLayout::HasLogRoom(store.codec(), node, used, item, 1)) {
      const auto found = HeadLayout::Leaf(store.codec(), node, used).Find(key.bytes);
      const uint32_t after = HeadLayout::AppendToLog(store.codec(), node, used, found, key, &value);
      HeadLayout::SetLogVersion(node, used, ++appended);
      used = after;
    }
    EXPECT_GE(appended, std::min(16u, log_bytes / item)) << log_bytes;
    EXPECT_LE(appended, std::min(HeadLayout::kLogItemsMax, log_bytes / item)) << log_bytes;
    if (more_units > 0) {
      EXPECT_EQ(appended, std::min(HeadLayout::kLogItemsMax, log_bytes / item));
    }
    EXPECT_STREQ(HeadLayout::Check(store.codec(), node, used), nullptr);
  }
}

// Goal: items that have the form of the sorted block are copied in one go, those of the log in
// their places and without the items they hide, up to the first one of another form. A leaf whose
// sorted items have several forms has no plain form.
TEST(HeadLayout, CopiesWhatHasTheFormOfTheSortedBlock) {
  TestStore store({});
  TestItems items(store);
  for (uint32_t i = 0; i < 100; ++i) items.Add(NumberKey(1000 * i), "value");
  TestNode node(store.codec());
  node.BuildLeaf(items);
  // Returns how many items CopyPlain has copied; they must be the model's keys from `number` on.
  std::set<uint32_t> model;
  for (uint32_t i = 0; i < 100; ++i) model.insert(1000 * i);
  const auto copied_from = [&](uint32_t number, uint32_t most, bool keys_only = false) {
    const auto leaf = node.leaf();
    HeadLayout::LeafCursor cursor(leaf);
    cursor.SeekAtLeast(NumberKey(number));
    const PlainForm form = *cursor.plain_form();
    ItemSpan run = {.key_bytes = form.key_bytes, .value_bytes = keys_only ? 0 : form.value_bytes};
    std::string copies(200 * run.stride(), '?');
    run.at = copies.data();
    run.count = cursor.CopyPlain(most, keys_only, copies.data());
    auto expected = model.lower_bound(number);
    for (uint32_t i = 0; i < run.count; ++i, ++expected) {
      EXPECT_EQ(run[i].key, NumberKey(*expected));
      EXPECT_EQ(run[i].value, keys_only ? "" : "value");
    }
    EXPECT_EQ(run.end(), copies.data() + copies.find_last_not_of('?') + 1) << "wrote behind";
    return run.count;
  };
  EXPECT_EQ(copied_from(0, 1000), 100);
  EXPECT_EQ(copied_from(1, UINT32_MAX, true), 99);
  EXPECT_EQ(copied_from(99000, 1000), 1);
  EXPECT_EQ(copied_from(30000, 7), 7);

  const StoredValue value = {.bytes = "value"};
  const StoredValue longer = {.bytes = "longer value"};
  node.Append(NumberKey(50000), store.Key(NumberKey(50000)), &value, 1);
  node.Append(NumberKey(70000), store.Key(NumberKey(70000)), nullptr, 2);
  node.Append(NumberKey(80500), store.Key(NumberKey(80500)), &value, 3);
  node.Append(NumberKey(99500), store.Key(NumberKey(99500)), &value, 4);
  model.insert({80500, 99500});
  model.erase(70000);
  EXPECT_EQ(copied_from(0, 1000), 101);
  EXPECT_EQ(copied_from(50000, 1000), 51);
  EXPECT_EQ(copied_from(50000, 1), 1);  // the log's item
  EXPECT_EQ(copied_from(69500, 2, true), 2);
  EXPECT_EQ(copied_from(80001, 1000), 21);
  EXPECT_EQ(copied_from(99001, 1000), 1);
  node.Append(NumberKey(90500), store.Key(NumberKey(90500)), &longer, 5);
  EXPECT_EQ(copied_from(0, 1000), 91);
  EXPECT_EQ(copied_from(90001, 1000), 0);
  EXPECT_EQ(copied_from(90501, 1000), 10);

  TestNode mixed(store.codec());
  items.Add(NumberKey(100000), "longer value");
  mixed.BuildLeaf(items);
  const auto leaf = mixed.leaf();
  HeadLayout::LeafCursor cursor(leaf);
  cursor.SeekFirst();
  EXPECT_FALSE(cursor.plain_form());
}

// Goal: a walk finds the places of the log's items without the heads, lines of which it would read
// for nothing else.
// Method: a log of new keys, several of them in one gap, of updates and deletes, each in the order
// that is worst for a walk, the keys falling; then all heads are destroyed.
TEST(HeadLayout, AWalkReadsNoHeads) {
  TestStore store({.log_bytes_max = 2048});
  TestItems items(store);
  std::map<std::string, std::string> model;
  for (uint32_t i = 0; i < 100; ++i) {
    items.Add(NumberKey(10 * i), "old");
    model[NumberKey(10 * i)] = "old";
  }
  TestNode node(store.codec());
  node.BuildLeaf(items);
  const StoredValue value = {.bytes = "new"};
  uint64_t delta = 0;
  for (const uint32_t number : {995u, 993u, 990u, 990u, 501u, 509u, 505u, 505u, 500u, 12u, 10u}) {
    const std::string key = NumberKey(number);
    const bool erases = number == 10 || number == 509;
    node.Append(key, store.Key(key), erases ? nullptr : &value, ++delta);
    model[key] = "new";
    if (erases) model.erase(key);
  }
  ASSERT_STREQ(node.Check(), nullptr);
  std::memset(heads::NumbersAt(node.node(), heads::kLeafHeadsAt), 0xa5, 2 * heads::HeadSlots(100));
  const auto leaf = node.leaf();
  HeadLayout::LeafCursor cursor(leaf);
  cursor.SeekFirst();
  std::string copies(model.size() * 7, '?');
  ASSERT_EQ(cursor.CopyPlain(1000, false, copies.data()), model.size());
  std::string expected;
  for (const auto& [key, content] : model) expected += key + content;
  EXPECT_EQ(copies, expected);
  cursor.SeekLast();
  for (auto it = model.rbegin(); it != model.rend(); ++it, cursor.Prev()) {
    ASSERT_TRUE(cursor.valid());
    ASSERT_EQ(cursor.key().bytes, it->first);
  }
  EXPECT_FALSE(cursor.valid());
}

// Goal: placing a log item behind the last sorted one reads nothing behind whole segments of heads.
// Method: 32 items of one byte, so that the node ends where the next segment would begin; it lies
// in a block of its own length, whose end AddressSanitizer knows.
TEST(HeadLayout, ALogItemBehindAWholeSegment) {
  TestStore store({});
  TestItems items(store);
  for (char key = 'A'; key < 'A' + 32; ++key) items.Add(std::string(1, key), "");
  TestNode node(store.codec());
  node.BuildLeaf(items);
  const StoredValue value = {};
  node.Append("z", {.bytes = "z"}, &value, 1);
  ASSERT_STREQ(node.Check(), nullptr);
  const auto leaf = node.leaf();
  HeadLayout::LeafCursor cursor(leaf);
  cursor.SeekFirst();
  std::string copies(33, '?');
  EXPECT_EQ(cursor.CopyPlain(32, false, copies.data()), 32u);
  EXPECT_EQ(cursor.CopyPlain(32, false, copies.data() + 32), 1u);
  EXPECT_EQ(copies, "ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`z");
}

}  // namespace
}  // namespace skep::btree
