// Goal: Check() finds each invariant broken, and names it.
// Method: sound nodes, damaged by hand at one place in each test.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "btree/heads/head_layout_search.h"
#include "btree/testing/layout_test_node.h"

namespace skep::btree {
namespace {

using testing::StartsWith;
using TestNode = LayoutTestNode<HeadLayout>;

// Leaves of 70 items, so that they have two samples; the keys have a longer prefix in common than
// the fences. The log replaces a sorted item, then that item's replacement, adds a key, and deletes
// one.
class HeadLayoutCheck : public testing::Test {
 protected:
  HeadLayoutCheck() {
    Fill(&uniform_, false);
    Fill(&mixed_, true);
    std::vector<InnerItem> items;
    for (const std::string& key : keys_) items.push_back({{.bytes = key}, Link::Of(7, 1)});
    inner_.BuildInner(Link::Of(1, 1), items, kFences);
  }

  void Fill(TestNode* node, bool mixed) {
    std::vector<LeafItem> items;
    keys_.clear();
    for (int i = 0; i < 70; ++i) keys_.push_back(std::string("kabcd") + static_cast<char>('0' + i));
    for (const std::string& key : keys_) items.push_back({{.bytes = key}, {.bytes = "some value"}});
    if (mixed) items.back().value.bytes = "another value";
    node->BuildLeaf(items, kFences);
    const StoredValue value = {.bytes = "log value"};
    uint64_t delta = 0;
    for (const char* key : {"kabcdN", "kabcdN", "kax"}) {
      node->Append(key, {.bytes = key}, &value, ++delta);
    }
    node->Append("kabcdO", {.bytes = "kabcdO"}, nullptr, ++delta);
  }

  template <class T>
  static void Set(TestNode& node, uint32_t at, T value) {
    field::Store(node.node(), at, value);
  }
  template <class T>
  static T Get(const TestNode& node, uint32_t at) {
    return field::Load<T>(node.node(), at);
  }
  static uint32_t log_item(const TestNode& node, uint32_t index) {
    return heads::LogOffset(node.node(), index);
  }
  static heads::Form FormOf(const TestNode& node) { return heads::FormOf(node.node()); }
  static void SetForm(TestNode& node, const heads::Form& form) { Set(node, heads::kFormAt, form); }
  static void ExpectBroken(const TestNode& node, const char* invariant) {
    const char* const broken = node.Check();
    ASSERT_NE(broken, nullptr) << "expected " << invariant;
    EXPECT_THAT(broken, StartsWith(invariant));
  }
  const char* CheckUpTo(const TestNode& node, uint32_t bytes, uint32_t log_items) {
    return HeadLayout::Check(store_.codec(), node.node(), heads::Fill{bytes, log_items}.used());
  }

  static constexpr Fences kFences = {
      .lower = {.bytes = "ka"}, .upper = {.bytes = "kb"}, .unbounded = false};

  TestStore store_{{.node_bytes = 4096}};
  std::vector<std::string> keys_;
  TestNode uniform_{store_.codec()};
  TestNode mixed_{store_.codec()};
  TestNode inner_{store_.codec()};
};

TEST_F(HeadLayoutCheck, SoundNodesHaveNothingBroken) {
  EXPECT_STREQ(uniform_.Check(), nullptr);
  EXPECT_STREQ(mixed_.Check(), nullptr);
  EXPECT_STREQ(inner_.Check(), nullptr);
}

TEST_F(HeadLayoutCheck, BytesInUse) {
  const uint32_t used = uniform_.bytes_used();
  EXPECT_THAT(CheckUpTo(uniform_, 0, 0), StartsWith("H1: bytes used"));
  EXPECT_THAT(CheckUpTo(uniform_, heads::kInnerHeadsAt - 1, 0), StartsWith("H1: bytes used"));
  EXPECT_THAT(CheckUpTo(uniform_, 32769, 4), StartsWith("H1: bytes used"));
  EXPECT_THAT(CheckUpTo(uniform_, 200, 0), StartsWith("H1: end of the sorted block"));
  EXPECT_THAT(CheckUpTo(uniform_, used - 8, 4), StartsWith("H2: a log item's key"));
  EXPECT_THAT(CheckUpTo(uniform_, used, 3), StartsWith("H1: end of the log"));
  EXPECT_THAT(CheckUpTo(uniform_, used, 5), StartsWith("H1: a log item's offset"));
  EXPECT_THAT(CheckUpTo(uniform_, used, 25), StartsWith("H1: too many log items"));
}

TEST_F(HeadLayoutCheck, EndOfTheSortedBlock) {
  uniform_.node()->log_begin++;
  ExpectBroken(uniform_, "H1: the log is not behind the fences");
  uniform_.node()->log_begin = heads::AfterHeads(true, 70) - 1;
  ExpectBroken(uniform_, "H1: heads");
  inner_.node()->log_begin--;
  ExpectBroken(inner_, "H1: an inner node with a log");
}

TEST_F(HeadLayoutCheck, AnInnerNodeHasNoLog) {
  uniform_.node()->level = 1;
  ExpectBroken(uniform_, "H1: an inner node with a log");
  EXPECT_THAT(CheckUpTo(inner_, inner_.used(), 1), StartsWith("H1: an inner node with a log"));
}

TEST_F(HeadLayoutCheck, FencesAreBehindTheItems) {
  for (TestNode* node : {&uniform_, &mixed_, &inner_}) {
    node->node()->shortcut_end++;
    ExpectBroken(*node, "H1: the fences are not behind");
  }
}

TEST_F(HeadLayoutCheck, NumberOfItems) {
  for (TestNode* node : {&uniform_, &mixed_, &inner_}) {
    heads::Form form = FormOf(*node);
    form.count = 69;
    SetForm(*node, form);
    ExpectBroken(*node, "H1: the number of items");
    node->node()->sorted_count = 69;
    EXPECT_NE(node->Check(), nullptr);
    node->node()->sorted_count = form.count = heads::kCountMask;
    SetForm(*node, form);
    ExpectBroken(*node, "H1: heads");
  }
}

TEST_F(HeadLayoutCheck, OffsetsAreWhereItemsBegin) {
  const uint32_t leaf = heads::AfterHeads(true, 70);
  Set<uint16_t>(mixed_, leaf + 2 * 5, Get<uint16_t>(mixed_, leaf + 2 * 5) + 1);
  ExpectBroken(mixed_, "H1: an item's offset");
  const uint32_t inner = heads::AfterHeads(false, 70) + 8 * 70;
  Set<uint16_t>(inner_, inner + 2 * 5, Get<uint16_t>(inner_, inner));
  ExpectBroken(inner_, "H1: a separator's offset");
  heads::FrontOf(uniform_.node())->places[1]++;
  ExpectBroken(uniform_, "H1: a log item's offset");
}

TEST_F(HeadLayoutCheck, AFormIsOfItems) {
  TestNode empty(store_.codec());
  empty.BuildLeaf({});
  ASSERT_STREQ(empty.Check(), nullptr);
  heads::Form form = FormOf(empty);
  form.key_form = 1;
  SetForm(empty, form);
  ExpectBroken(empty, "H1: a form of no items");
  form = FormOf(uniform_);
  form.key_form = form.value_form = 0;
  SetForm(uniform_, form);
  ExpectBroken(uniform_, "H1: a form of no items");
}

TEST_F(HeadLayoutCheck, FlagsAndLengthsOfOneForm) {
  const heads::Form sound = FormOf(uniform_);
  const auto expect = [&](uint32_t key_form, uint32_t value_form, const char* invariant) {
    heads::Form form = sound;
    form.key_form = static_cast<uint16_t>(key_form);
    form.value_form = static_cast<uint16_t>(value_form);
    SetForm(uniform_, form);
    ExpectBroken(uniform_, invariant);
  };
  ASSERT_EQ(sound.key_form, 6);
  ASSERT_EQ(sound.value_form, 10);
  expect(6 | field::kDeleted, 10, "H2: a sorted item's key");
  expect(6 | field::kOutside, 10, "H2: a sorted item's key");
  expect(0x0fff, 10, "H2: a sorted item's key");
  expect(6, 10 | 0x1000, "H2, H8: a sorted item's value");
  expect(6, 10 | field::kOutside, "H2, H8: a sorted item's value");
  expect(6, 10 | field::kMetadata, "H2, H8: a sorted item's value");
  expect(6, 9, "H1: the fences are not behind");
  expect(7, 9, "H4");
}

TEST_F(HeadLayoutCheck, FlagsAndLengthsOfMixedItems) {
  const uint32_t first = Get<uint16_t>(mixed_, heads::AfterHeads(true, 70));
  for (const uint32_t form : {6 | field::kReplaces, 6 | field::kOutside, 0x0fff}) {
    Set<uint16_t>(mixed_, first, static_cast<uint16_t>(form));
    ExpectBroken(mixed_, "H2: a sorted item's key");
  }
  Set<uint16_t>(mixed_, first, 6);
  Set<uint16_t>(mixed_, first + 8, 10 | 0x2000);
  ExpectBroken(mixed_, "H2, H8: a sorted item's value");
  const uint32_t separator = Get<uint16_t>(inner_, heads::AfterHeads(false, 70) + 8 * 70);
  Set<uint16_t>(inner_, separator, 6 | field::kDeleted);
  ExpectBroken(inner_, "H2: a separator");
}

TEST_F(HeadLayoutCheck, FormsOfFences) {
  const uint32_t fences = uniform_.node()->shortcut_end;
  Set<uint16_t>(uniform_, fences, 2 | field::kDeleted);
  ExpectBroken(uniform_, "H2: the fences");
  Set<uint16_t>(uniform_, fences, 2);
  Set<uint16_t>(uniform_, fences + 4, 5);
  ExpectBroken(uniform_, "H2: the fences");
  Set<uint16_t>(uniform_, fences + 4, 1);
  ExpectBroken(uniform_, "H1: the log is not behind");
}

TEST_F(HeadLayoutCheck, FormsOfLogItems) {
  const uint32_t item = log_item(uniform_, 0);
  const auto key_form = Get<uint16_t>(uniform_, item + 4);
  const auto value_form = Get<uint16_t>(uniform_, item + 6);
  Set<uint16_t>(uniform_, item + 4, key_form | 0x1000);
  ExpectBroken(uniform_, "H2: a log item's key");
  Set<uint16_t>(uniform_, item + 4, key_form);
  Set<uint16_t>(uniform_, item + 6, value_form | 0x2000);
  ExpectBroken(uniform_, "H2, H8: a log item's value");
  Set<uint16_t>(uniform_, item + 6, value_form);
  Set<uint16_t>(uniform_, log_item(uniform_, 3) + 6, 1);  // of the delete marker
  ExpectBroken(uniform_, "H2, H8: a log item's value");
}

TEST_F(HeadLayoutCheck, MetadataIsADeadline) {
  heads::Form form = FormOf(uniform_);
  form.value_form |= field::kMetadata;
  SetForm(uniform_, form);
  const uint32_t items = heads::AfterHeads(true, 70);
  for (uint32_t i = 0; i < 70; ++i) {
    Set<uint64_t>(uniform_, items + 16 * i + 6, 7 | uint64_t{1000 + i} << 8);
  }
  Set<uint64_t>(uniform_, heads::kDeadlineAt, 1000);
  EXPECT_STREQ(uniform_.Check(), nullptr);
  const auto expect_broken_by = [&](uint64_t metadata) {
    Set<uint64_t>(uniform_, items + 6, metadata);
    ExpectBroken(uniform_, "H2, H8");
  };
  expect_broken_by(7 | uint64_t{999} << 8);
  expect_broken_by(7);
  expect_broken_by(6 | uint64_t{1000} << 8);
}

TEST_F(HeadLayoutCheck, DeadlineOfALogItem) {
  const uint32_t item = log_item(mixed_, 0);
  Set<uint16_t>(mixed_, item + 6, 9 | field::kMetadata);
  Set<uint64_t>(mixed_, item + 8 + 6, 7 | uint64_t{1000} << 8);
  ExpectBroken(mixed_, "H2, H8: a log item's value");
  Set<uint64_t>(mixed_, heads::kDeadlineAt, 1000);
  EXPECT_STREQ(mixed_.Check(), nullptr);
}

TEST_F(HeadLayoutCheck, KeysRise) {
  const uint32_t items = heads::AfterHeads(true, 70);
  Set<char>(uniform_, items + 16 + 5, '0');  // makes kabcd0 of kabcd1
  ExpectBroken(uniform_, "H3: keys do not rise");
  const uint32_t separator = Get<uint16_t>(inner_, heads::AfterHeads(false, 70) + 8 * 70);
  Set<char>(inner_, separator + 2 + 5, '9');  // makes kabcd9 of kabcd0
  ExpectBroken(inner_, "H3: keys do not rise");
}

TEST_F(HeadLayoutCheck, KeysAreBetweenTheFences) {
  const uint32_t lower = uniform_.node()->shortcut_end + 2;
  const uint32_t upper = lower + 2 + 2;
  const auto set_fences = [&](std::string_view from, std::string_view to) {
    std::memcpy(uniform_.node()->bytes() + lower, from.data(), 2);
    std::memcpy(uniform_.node()->bytes() + upper, to.data(), 2);
  };
  set_fences("kb", "kb");
  ExpectBroken(uniform_, "H3: fences do not rise");
  set_fences("la", "lb");
  ExpectBroken(uniform_, "H3: a key below");
  set_fences("jz", "k!");
  ExpectBroken(uniform_, "H3: a key above");
}

TEST_F(HeadLayoutCheck, TheFirstSeparatorIsNotTheLowerFence) {
  std::vector<InnerItem> items = {{{.bytes = "ka"}, Link::Of(1, 1)}};
  TestNode node(store_.codec());
  node.BuildInner(Link::Of(2, 1), items, kFences);
  ExpectBroken(node, "H3: a leftmost child without keys");
}

TEST_F(HeadLayoutCheck, LogKeysAreBetweenTheFences) {
  const uint32_t key = log_item(uniform_, 2) + heads::kLogItemHeaderBytes;
  Set<char>(uniform_, key, 'l');
  ExpectBroken(uniform_, "H3: a log item above");
  Set<char>(uniform_, key, 'a');
  ExpectBroken(uniform_, "H3: a log item below");
}

TEST_F(HeadLayoutCheck, HeadsAreThoseOfTheirKeys) {
  for (TestNode* node : {&uniform_, &mixed_, &inner_}) {
    const uint32_t at = node == &inner_ ? heads::kInnerHeadsAt : heads::kLeafHeadsAt;
    const auto head = Get<uint16_t>(*node, at + 2 * 10);
    Set<uint16_t>(*node, at + 2 * 10, head + 1);
    ExpectBroken(*node, "H4: a head");
    Set<uint16_t>(*node, at + 2 * 10, head);
    ASSERT_STREQ(node->Check(), nullptr);
    Set<uint16_t>(*node, at + 2 * 70, 0xfffe);  // behind the last head
    ExpectBroken(*node, "H4: a head");
  }
}

TEST_F(HeadLayoutCheck, HeadsFollowTheForm) {
  for (TestNode* node : {&uniform_, &mixed_, &inner_}) {
    const heads::Form sound = FormOf(*node);
    heads::Form form = sound;
    form.base++;
    SetForm(*node, form);
    ExpectBroken(*node, "H4");
    form = sound;
    form.shift++;
    SetForm(*node, form);
    ExpectBroken(*node, "H4: a head");
    form = sound;
    form.wide ^= 1;
    SetForm(*node, form);
    ExpectBroken(*node, "H4");
    form = sound;
    form.narrow ^= 1;
    SetForm(*node, form);
    ExpectBroken(*node, "H4");
    form = sound;
    form.wide_bytes ^= 1;
    SetForm(*node, form);
    ExpectBroken(*node, "H4");
  }
}

TEST_F(HeadLayoutCheck, SamplesAreTheFirstHeadsOfSegments) {
  for (const uint32_t sample : {0u, 1u, 2u, 6u}) {
    const uint32_t at = heads::kFormAt + offsetof(heads::Form, samples) + sample;
    const auto upper_byte = Get<uint8_t>(uniform_, at);
    Set<uint8_t>(uniform_, at, upper_byte - 1);
    ExpectBroken(uniform_, "H4: a sample");
    Set<uint8_t>(uniform_, at, upper_byte);
  }
  Set<uint8_t>(inner_, heads::kInnerSamplesAt + 23, 0);
  ExpectBroken(inner_, "H4: a sample");
}

TEST_F(HeadLayoutCheck, LogRanksAndTagsAreThoseOfTheirKeys) {
  ASSERT_EQ(heads::LogRank(uniform_.node(), 0), heads::RankOf(30, true));   // kabcdN
  ASSERT_EQ(heads::LogRank(uniform_.node(), 2), heads::RankOf(70, false));  // kax
  for (const uint32_t item : {0u, 1u, 2u, 3u}) {
    const uint16_t rank = heads::LogRank(uniform_.node(), item);
    for (const uint32_t other : {0u, rank - 2u, rank - 1u, rank + 1u, rank + 2u, 0xffffu}) {
      heads::SetLogRank(uniform_.node(), item, static_cast<uint16_t>(other));
      ExpectBroken(uniform_, "H4: a log item's rank");
    }
    heads::SetLogRank(uniform_.node(), item, rank);
  }
  const uint8_t tag = heads::Tag(uniform_.node(), 2);
  heads::SetTag(uniform_.node(), 2, tag + 1);
  ExpectBroken(uniform_, "H4: a log item's tag");
  heads::SetTag(uniform_.node(), 2, tag);
  heads::SetLogRank(uniform_.node(), 4, 0);  // an item that is not there yet
  heads::SetTag(uniform_.node(), 4, 1);
  EXPECT_STREQ(uniform_.Check(), nullptr);
}

TEST_F(HeadLayoutCheck, PrefixesAreCommon) {
  for (TestNode* node : {&uniform_, &mixed_, &inner_}) {
    const heads::Form sound = FormOf(*node);
    ASSERT_EQ(sound.is_surmised, 1);  // the fences' is 1
    ASSERT_EQ(sound.prefix, 5);       // that of kabcd0 and kabcdu
    heads::Form form = sound;
    form.is_surmised = 0;
    SetForm(*node, form);
    ExpectBroken(*node, "H5: what the fences have in common");
    form = sound;
    form.prefix = 6;
    SetForm(*node, form);
    ExpectBroken(*node, "H5: what the keys have in common");
    form.prefix = 7;
    SetForm(*node, form);
    ExpectBroken(*node, "H5: a prefix longer than a key");
  }
}

TEST_F(HeadLayoutCheck, APrefixIsOfKeysAndOfFences) {
  TestNode empty(store_.codec());
  empty.BuildLeaf({});
  heads::Form form = FormOf(empty);
  form.prefix = 1;
  SetForm(empty, form);
  ExpectBroken(empty, "H5: what the fences have in common");
  form.is_surmised = 1;
  SetForm(empty, form);
  ExpectBroken(empty, "H5: a prefix of no keys");
}

// Otherwise the head of an outside key, of which a node has only the beginning, would differ from
// that of the same key in whole, as a search has it.
TEST_F(HeadLayoutCheck, AWordBehindThePrefixIsInTheNode) {
  const std::string common(300, 'c');
  const StoredKey key = store_.Key(common);
  std::vector<LeafItem> items = {{key, {}}};
  TestNode node(store_.codec());
  node.BuildLeaf(items, {.lower = key, .upper = store_.Key(common + "d"), .unbounded = false});
  ASSERT_STREQ(node.Check(), nullptr);
  heads::Form form = FormOf(node);
  ASSERT_EQ(form.prefix, store_.geometry().long_key_head_bytes() - 8);
  form.prefix++;
  SetForm(node, form);
  ExpectBroken(node, "H5: a prefix too long");
}

TEST_F(HeadLayoutCheck, VersionsRise) {
  Set<uint32_t>(uniform_, log_item(uniform_, 2), 4);
  EXPECT_STREQ(uniform_.Check(), nullptr);  // equal deltas: items of one batch
  Set<uint32_t>(uniform_, log_item(uniform_, 2), 5);
  ExpectBroken(uniform_, "H6: version deltas fall");
  heads::NewestOf(mixed_.node()) = 3;
  ExpectBroken(mixed_, "H6: the newest version");
  heads::NewestOf(mixed_.node()) = 9;  // ahead of the used items
  EXPECT_STREQ(mixed_.Check(), nullptr);
}

TEST_F(HeadLayoutCheck, ReplacesWhatHadAValue) {
  const auto flip = [&](uint32_t index) {
    const uint32_t at = log_item(uniform_, index) + 4;
    Set<uint16_t>(uniform_, at, Get<uint16_t>(uniform_, at) ^ field::kReplaces);
  };
  for (uint32_t index = 0; index < 4; ++index) {
    flip(index);
    ExpectBroken(uniform_, "H7");
    flip(index);
  }
  EXPECT_STREQ(uniform_.Check(), nullptr);
}

// A leaf of users with fields, of which a node of heads alone would have few.
TEST_F(HeadLayoutCheck, DiscriminativeBits) {
  std::vector<LeafItem> items;
  std::vector<std::string> keys;
  for (const char* user : {"1004", "1237", "2891", "7341", "9123"}) {
    for (const char* field : {"email", "phone", "place", "title"}) {
      keys.push_back(std::string("k").append(user).append(":the:").append(field));
    }
  }
  for (const std::string& key : keys) items.push_back({{.bytes = key}, {.bytes = "v"}});
  TestNode node(store_.codec());
  node.BuildLeaf(items);
  ASSERT_STREQ(node.Check(), nullptr);
  const heads::Form sound = FormOf(node);
  ASSERT_TRUE(heads::HasChosenBits(sound));
  for (uint64_t left = sound.base; left != 0; left &= left - 1) {
    heads::Form form = sound;
    form.base ^= left & ~(left - 1);
    SetForm(node, form);
    ExpectBroken(node, "H4: the discriminative bits");
  }
  const auto expect = [&](auto change) {
    heads::Form form = sound;
    change(form);
    SetForm(node, form);
    ExpectBroken(node, "H4: the discriminative bits");
  };
  expect([](heads::Form& form) { form.is_surmised = 1; });
  expect([](heads::Form& form) { form.squeezes = 1; });
  expect([](heads::Form& form) { form.prefix--; });
  expect([](heads::Form& form) { form.shift ^= 1; });
  expect([](heads::Form& form) { form.wide_bytes ^= 1; });
  expect([](heads::Form& form) { form.narrow = 2; });
  heads::Form form = FormOf(inner_);
  form.wide = 0;
  form.narrow = 1;
  SetForm(inner_, form);
  ExpectBroken(inner_, "H4: bits of such a node");
}

}  // namespace
}  // namespace skep::btree
