// Tests merging and splitting leaves of plain items without a look at each of them.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "base/sanitized.h"
#include "btree/heads/head_layout_build.h"
#include "btree/heads/head_layout_search.h"
#include "btree/testing/layout_test_node.h"
#include "btree/testing/node_buffer.h"

namespace skep::btree {
namespace {

using Model = std::map<std::string, std::string>;

// A leaf of keys and values of one size each, with a log of inserts, updates and deletes, and a
// model of its content.
class PlainLeaf {
 public:
  explicit PlainLeaf(unsigned seed) : random_(seed), store_({}), node_(store_.codec()) {
    common_.assign(random_.Below(12), 'c');
    key_bytes_ = 1 + random_.Below(16);
    if (random_.Chance(1, 2)) {
      alphabet_ = "0123456789abcdefZg";
      letters_ = random_.Chance(1, 2) ? 10 : 16;
      key_bytes_ += 4;
      has_fields_ = random_.Chance(1, 2);
    }
    value_bytes_ = random_.Below(40);
    if (random_.Chance(1, 2)) {
      fences_ = {.lower = store_.Key(common_),
                 .upper = store_.Key(common_ + std::string(20, '\xff')),
                 .unbounded = false};
    }
    for (uint64_t i = 2 + random_.Below(120); i > 0; --i) model_[RandomKey()] = RandomValue();
    node_.BuildLeaf(Items(model_), fences_);
    if (random_.Chance(1, 2)) letters_ = 16 + random_.Below(3);
    for (uint64_t i = random_.Below(HeadLayout::kLogItemsMax + 1); i > 0; --i) AppendOne(i);
  }

  // Returns a key of any bytes, or of text. The first text key that has a letter, or the first that
  // is not hexadecimal, may be in the log. Keys with fields are of few numbers, which are far from
  // the fields.
  std::string RandomKey() {
    std::string key = common_ + RandomBytes(random_, key_bytes_);
    if (alphabet_.empty()) return key;
    if (has_fields_) {
      key.assign(common_).append(std::to_string(1000 + 7 * random_.Below(40)));
      key.append(key_bytes_ - 5, ':');
      return key.append(1, alphabet_[random_.Below(letters_)]);
    }
    for (size_t i = common_.size(); i < key.size(); ++i) {
      key[i] = alphabet_[random_.Below(letters_)];
    }
    return key;
  }
  std::string RandomValue() { return RandomBytes(random_, value_bytes_); }
  // A key that is in the leaf, mostly.
  std::string SomeKey() {
    if (model_.empty() || random_.Chance(1, 3)) return RandomKey();
    return std::next(model_.begin(), static_cast<ptrdiff_t>(random_.Below(model_.size())))->first;
  }

  std::vector<LeafItem> Items(const Model& model) {
    std::vector<LeafItem> items;
    for (const auto& [key, value] : model) {
      items.push_back({store_.Key(key), store_.Value({.bytes = value})});
    }
    return items;
  }

  // Appends an edit of a random key.
  void AppendOne(uint64_t delta) {
    const std::string key = SomeKey();
    const StoredKey stored = store_.Key(key);
    if (has_erases_ && random_.Chance(1, 4)) {
      if (!node_.HasRoomFor(stored, nullptr)) return;
      node_.Append(key, stored, nullptr, 100 - delta);
      model_.erase(key);
      return;
    }
    const std::string bytes = RandomValue();
    const StoredValue value = store_.Value({.bytes = bytes});
    if (!node_.HasRoomFor(stored, &value)) return;
    model_[key] = bytes;
    node_.Append(key, stored, &value, 100 - delta);
  }

  void ExpectBuilt(const Model& model, NodeBuffer& made, uint32_t used) {
    NodeBuffer expected;
    ASSERT_EQ(used, HeadLayout::BuildLeaf(store_.codec(), Items(model), fences_, expected.node()));
    ASSERT_EQ(std::memcmp(made.node(), expected.node(), used), 0);
    ASSERT_STREQ(HeadLayout::Check(store_.codec(), made.node(), used), nullptr);
  }

  void ExpectMerges() {
    const std::string key = SomeKey();
    const bool erases = random_.Chance(1, 3);
    Model model = model_;
    if (erases) {
      model.erase(key);
    } else {
      model[key] = RandomValue();
    }
    const StoredValue value = store_.Value({.bytes = model[key]});
    if (erases) model.erase(key);
    NodeBuffer made;
    const uint32_t used =
        HeadLayout::MergeLeaf(store_.codec(), node_.node(), node_.used(), store_.Key(key),
                              erases ? nullptr : &value, 8192, made.node());
    if (model.size() < 2) {
      ASSERT_EQ(used, 0u);
      return;
    }
    if (used > 8192) {  // more than bytes_max
      ASSERT_EQ(used, HeadLayout::LeafBytes(store_.codec(), Items(model), fences_));
      return;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectBuilt(model, made, used));
    NodeBuffer untouched;
    const uint32_t again =
        HeadLayout::MergeLeaf(store_.codec(), node_.node(), node_.used(), store_.Key(key),
                              erases ? nullptr : &value, used - 1, untouched.node());
    ASSERT_EQ(again, used);
    ASSERT_EQ(untouched.node()->log_begin, 0);
  }

  // The same of the log alone.
  void ExpectMergesLog() {
    NodeBuffer made;
    const uint32_t used =
        HeadLayout::MergeLog(store_.codec(), node_.node(), node_.used(), 8192, made.node());
    if (model_.size() < 2) {
      ASSERT_EQ(used, 0u);
      return;
    }
    if (used > 8192) {
      ASSERT_EQ(used, HeadLayout::LeafBytes(store_.codec(), Items(model_), fences_));
      return;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectBuilt(model_, made, used));
    NodeBuffer untouched;
    ASSERT_EQ(HeadLayout::MergeLog(store_.codec(), node_.node(), node_.used(), used - 1,
                                   untouched.node()),
              used);
    ASSERT_EQ(untouched.node()->log_begin, 0);
  }

  // Checks that a part of the gathered run builds what the same items build.
  void ExpectGathers() {
    Scratch scratch;
    const ItemSpan run =
        HeadLayout::GatherPlain(store_.codec(), node_.node(), node_.used(), scratch);
    ASSERT_EQ(run.count, model_.size());
    if (run.count == 0) return;
    const auto cut = static_cast<uint32_t>(random_.Below(run.count));
    const auto middle = std::next(model_.begin(), cut);
    ASSERT_NO_FATAL_FAILURE(ExpectBuilds(Model(middle, model_.end()), run.From(cut)));
    if (cut == 0) return;
    ASSERT_NO_FATAL_FAILURE(ExpectBuilds(Model(model_.begin(), middle), run.First(cut)));
  }
  void ExpectBuilds(const Model& model, const ItemSpan& run) {
    NodeBuffer made;
    const uint32_t used = HeadLayout::BuildLeaf(store_.codec(), run, fences_, made.node());
    ASSERT_NO_FATAL_FAILURE(ExpectBuilt(model, made, used));
  }

  // Checks that an item that is not plain, or of another size, prevents both ways.
  void ExpectNothingIfMixed() {
    const StoredValue value = random_.Chance(1, 2)
                                  ? store_.Value({.bytes = RandomValue(), .deadline_ms = 1})
                                  : store_.Value({.bytes = RandomValue() + "x"});
    const std::string key = RandomKey();
    NodeBuffer made;
    ASSERT_EQ(HeadLayout::MergeLeaf(store_.codec(), node_.node(), node_.used(), store_.Key(key),
                                    &value, 8192, made.node()),
              0u);
    const StoredKey stored = store_.Key(key);
    if (!node_.HasRoomFor(stored, &value)) return;
    node_.Append(key, stored, &value, 100);
    ASSERT_EQ(HeadLayout::MergeLog(store_.codec(), node_.node(), node_.used(), 8192, made.node()),
              0u);
    Scratch scratch;
    ASSERT_EQ(HeadLayout::GatherPlain(store_.codec(), node_.node(), node_.used(), scratch).count,
              0u);
  }

 private:
  SeededRandom random_;
  TestStore store_;
  LayoutTestNode<HeadLayout> node_;
  std::string common_;
  std::string alphabet_;                          // of the rest of the keys; empty: all bytes
  bool has_fields_ = false;                       // text keys are numbers with fields
  size_t letters_ = 1;                            // how many of the alphabet the next keys have
  const bool has_erases_ = random_.Chance(1, 2);  // in the log
  uint64_t key_bytes_;
  uint64_t value_bytes_;
  Fences fences_;
  Model model_;
};

// Goal: a merge builds, to the byte, what building the leaf's items with the edit builds, and a run
// of gathered items what these items build; neither does anything if one item differs in form.
// Method: random leaves of alike keys, with logs up to the longest, against std::map.
TEST(HeadLayoutMerge, AgreesWithBuilding) {
  const unsigned seed = std::random_device{}();
  for (unsigned round = 0; round < Rounds(2000u); ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed + round);
    PlainLeaf leaf(seed + round);
    ASSERT_NO_FATAL_FAILURE(leaf.ExpectMerges());
    ASSERT_NO_FATAL_FAILURE(leaf.ExpectMergesLog());
    ASSERT_NO_FATAL_FAILURE(leaf.ExpectGathers());
    ASSERT_NO_FATAL_FAILURE(leaf.ExpectNothingIfMixed());
  }
}

// Goal: a merge that only replaces values does not ask anew whether chosen bits tell the keys apart
// better; one that adds or erases a key does.
// Method: a leaf whose form was not chosen though it would be now, so that the answer shows who has
// asked.
TEST(HeadLayoutMerge, KeepsTheDecisionOnBitsWithTheKeys) {
  TestStore store({});
  const auto key_of = [](uint32_t i) {
    return "user:" + std::to_string(1000 + 7 * (i / 2)) + std::string(8, ':') + "ab"[i % 2];
  };
  std::vector<LeafItem> items;
  for (uint32_t i = 0; i < 60; ++i) items.push_back({store.Key(key_of(i)), store.Value({"v"})});
  LayoutTestNode<HeadLayout> leaf(store.codec());
  leaf.BuildLeaf(items);
  heads::Form form = heads::FormOf(leaf.node());
  ASSERT_TRUE(heads::HasChosenBits(form));
  const heads::Form built = form;
  form = heads::PutHeads(
      store.codec(), 60, Fences{}, [&](uint32_t i) { return items[i].key.bytes; },
      heads::NumbersAt(leaf.node(), heads::kLeafHeadsAt));
  ASSERT_FALSE(heads::HasChosenBits(form));
  form.key_form = built.key_form;
  form.value_form = built.value_form;
  heads::PutForm(leaf.node(), form);
  heads::FinishHeads(leaf.node());
  ASSERT_STREQ(leaf.Check(), nullptr);
  const StoredValue value = store.Value({"w"});
  const auto has_chosen = [&](uint32_t i, const StoredValue* put) {
    NodeBuffer merged;
    const uint32_t used = HeadLayout::MergeLeaf(store.codec(), leaf.node(), leaf.used(),
                                                store.Key(key_of(i)), put, 8192, merged.node());
    EXPECT_GT(used, 0u);
    EXPECT_STREQ(HeadLayout::Check(store.codec(), merged.node(), used), nullptr);
    return heads::HasChosenBits(heads::FormOf(merged.node()));
  };
  EXPECT_FALSE(has_chosen(7, &value));
  EXPECT_TRUE(has_chosen(60, &value));
  EXPECT_TRUE(has_chosen(7, nullptr));
}

// Goal: a merge refuses a leaf that would be too large, exactly as FitsLeaf does.
// Method: small items up to the first that does not fit.
TEST(HeadLayoutMerge, AgreesWithFitsLeaf) {
  TestStore store({});
  std::vector<LeafItem> items;
  for (uint32_t i = 0;; ++i) {
    const uint32_t number = __builtin_bswap32(2 * i + 1);
    items.push_back({store.Key({reinterpret_cast<const char*>(&number), 4}), store.Value({"vv"})});
    if (i < 2) continue;
    NodeBuffer leaf;
    const std::span<const LeafItem> before(items.data(), items.size() - 1);
    const uint32_t used = HeadLayout::BuildLeaf(store.codec(), before, {}, leaf.node());
    NodeBuffer merged;
    const uint32_t bytes_max = HeadLayout::LeafBytesMax(store.geometry());
    const uint32_t bytes = HeadLayout::MergeLeaf(store.codec(), leaf.node(), used, items.back().key,
                                                 &items.back().value, bytes_max, merged.node());
    ASSERT_NE(bytes, 0u);
    ASSERT_EQ(bytes <= bytes_max, HeadLayout::FitsLeaf(store.codec(), items, {})) << i;
    if (bytes > bytes_max) break;
  }
}

}  // namespace
}  // namespace skep::btree
