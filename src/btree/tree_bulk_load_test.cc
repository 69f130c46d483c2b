// Tests that trees built from their leaves up hold the pairs they were given, are sound, and can be
// written to as any other.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "btree/testing/tree_test_tree.h"
#include "engine/bulk_load.h"

namespace skep::btree {
namespace {

struct Loaded {
  std::string value;
  uint64_t deadline_ms = 0;
  uint8_t type = kPlainType;
};
using Pairs = std::map<std::string, Loaded, std::less<>>;

struct Kind {
  const char* name;
  size_t key_bytes_max;
  size_t value_bytes_max;
  bool uniform;    // all keys, and all values, are of that size
  bool deadlines;  // some keys have one
};

constexpr Kind kKinds[] = {
    {"Uniform", 8, 8, true, false},
    {"Short", 12, 40, false, true},
    {"Outside", 700, 3000, false, true},  // outside the nodes
    {"LongKeys", 600, 8, true, false},
};

Pairs MakePairs(const Kind& kind, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto text = [&](size_t bytes_max, size_t bytes_min) {
    const size_t bytes =
        kind.uniform ? bytes_max : bytes_min + random() % (bytes_max + 1 - bytes_min);
    std::string bytes_of(bytes, 'k');  // alike but for the end
    for (size_t i = bytes > 12 ? bytes - 12 : 0; i < bytes; ++i) {
      bytes_of[i] = static_cast<char>(random());
    }
    return bytes_of;
  };
  Pairs pairs;
  while (pairs.size() < count) {
    Loaded& loaded = pairs[text(kind.key_bytes_max, 0)];
    loaded.value = text(kind.value_bytes_max, 0);
    if (kind.deadlines && random() % 8 == 0)
      loaded.deadline_ms = TestTree::kNowMs + 1 + random() % 50;
    if (kind.deadlines && random() % 4 == 0) loaded.type = static_cast<uint8_t>(1 + random() % 255);
  }
  return pairs;
}

State StateOf(const Pairs& pairs) {
  State state;
  for (const auto& [key, loaded] : pairs) state.emplace(key, loaded.value);
  return state;
}

// Loads the pairs in `part_count` parts, each filled by a thread of its own.
void Load(TestTree& tree, const Pairs& pairs, size_t part_count) {
  const auto bulk = tree.engine().OpenBulkLoad();
  ASSERT_NE(bulk, nullptr);
  std::vector<Pairs::const_iterator> begins = {pairs.begin()};
  for (size_t i = 1; i < part_count; ++i) {
    begins.push_back(
        std::next(pairs.begin(), static_cast<ptrdiff_t>(pairs.size() * i / part_count)));
  }
  begins.push_back(pairs.end());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < part_count; ++i) {
    threads.emplace_back([&, i] {
      std::optional<std::string> upper;
      if (i + 1 < part_count) upper = begins[i + 1]->first;
      const auto part = bulk->Open(i == 0 ? "" : begins[i]->first, upper);
      for (auto at = begins[i]; at != begins[i + 1]; ++at) {
        const Loaded& loaded = at->second;
        ASSERT_TRUE(part->Add(at->first, loaded.value, loaded.deadline_ms, loaded.type).ok());
      }
      ASSERT_TRUE(part->Finish().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(bulk->Finish().ok());
}

// Puts, deletes, and deletes ranges, of keys of the tree and of others.
void WriteAtRandom(TestTree& tree, const Kind& kind, State* state, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Pairs others = MakePairs(kind, 200, seed + 1);
  for (const auto& [key, loaded] : others) {
    tree.Put(key, loaded.value);
    (*state)[key] = loaded.value;
    const auto victim = std::next(state->begin(), static_cast<ptrdiff_t>(random() % state->size()));
    tree.Delete(victim->first);
    state->erase(victim);
  }
  if (state->size() < 20) return;
  const auto first = std::next(state->begin(), static_cast<ptrdiff_t>(state->size() / 3));
  const auto last = std::next(first, static_cast<ptrdiff_t>(state->size() / 3));
  tree.DeleteRange(Range::Between(std::string(first->first), std::string(last->first)));
  state->erase(first, last);
}

class TreeBulkLoad : public OnEachLayoutWith<Kind> {};

TEST_P(TreeBulkLoad, HoldsWhatItWasGiven) {
  const Kind& kind = GetCase();
  for (const size_t count : {0u, 1u, 2u, 7u, 60u, 400u, 4000u}) {
    if (kind.key_bytes_max == 8 || count <= 400) {
      for (const size_t parts : {1u, 2u, 5u}) {
        if (parts > std::max<size_t>(count, 1)) continue;
        SCOPED_TRACE(testing::Message() << count << " pairs in " << parts << " parts");
        TestTree tree(kSmallNodes);
        const Pairs pairs = MakePairs(kind, count, count * 10 + parts);
        ASSERT_NO_FATAL_FAILURE(Load(tree, pairs, parts));
        State state = StateOf(pairs);
        ASSERT_NO_FATAL_FAILURE(tree.ExpectHolds(state));
        for (const auto& [key, loaded] : pairs) {
          Batch batch;
          batch.Add({.op = Op::kGet, .type = loaded.type, .key = key});
          batch.set_now_ms(TestTree::kNowMs);
          tree.engine().Execute(batch);
          const Outcome& found = batch.outcome(0);
          ASSERT_EQ(found.verdict, Verdict::kDone);
          ASSERT_EQ(found.value, loaded.value);
          ASSERT_EQ(found.type, loaded.type);
          ASSERT_EQ(found.deadline_ms, loaded.deadline_ms);
        }
        WriteAtRandom(tree, kind, &state, count + parts);
        ASSERT_NO_FATAL_FAILURE(tree.ExpectHolds(state));
        tree.ExpectNothingLeaked();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, TreeBulkLoad, EachLayoutWith(kKinds), LayoutAndCaseName<Kind>);

class BulkLoadOf : public OnEachLayout {
 protected:
  TestTree tree_;
};

TEST_P(BulkLoadOf, NodesOfTheDefaultSizeAreFull) {
  TestTree tree(BtreeOptions{});
  const Pairs pairs = MakePairs(kKinds[0], 50'000, 1);
  ASSERT_NO_FATAL_FAILURE(Load(tree, pairs, 3));
  tree.ExpectHolds(StateOf(pairs));
  const TreeStatistics statistics = tree.Statistics();
  EXPECT_GT(statistics.items / statistics.leaves, 150u);
}

TEST_P(BulkLoadOf, WhatHasADeadlineExpires) {
  const Pairs pairs = MakePairs(kKinds[1], 500, 3);
  ASSERT_NO_FATAL_FAILURE(Load(tree_, pairs, 2));
  const size_t kept = static_cast<size_t>(
      std::ranges::count(pairs, 0u, [](const auto& pair) { return pair.second.deadline_ms; }));
  ASSERT_LT(kept, pairs.size());
  while (tree_.engine().Maintain(TestTree::kNowMs + 10'000'000)) {
  }
  EXPECT_EQ(tree_.engine().Statistics().items, kept);
  EXPECT_EQ(tree_.engine().Statistics().deadlines, 0u);
}

TEST_P(BulkLoadOf, ASnapshotAndAScanSeeAllOfIt) {
  const Pairs pairs = MakePairs(kKinds[0], 300, 4);
  ASSERT_NO_FATAL_FAILURE(Load(tree_, pairs, 1));
  const SnapshotRef snapshot = tree_.OpenSnapshot();
  tree_.Do({.op = Op::kDelete, .key = pairs.begin()->first});
  EXPECT_EQ(tree_.Contents(snapshot), StateOf(pairs));
  tree_.CloseSnapshot(snapshot);
}

TEST_P(BulkLoadOf, KeysOutOfOrderAreRefused) {
  const auto code_of = [&](std::string_view first, std::string_view second) {
    TestTree tree;
    const auto bulk = tree.engine().OpenBulkLoad();
    const auto part = bulk->Open("b", "m");
    const Status s = part->Add(first, "value", 0, kPlainType);
    return s.ok() ? part->Add(second, "value", 0, kPlainType).code() : s.code();
  };
  EXPECT_EQ(code_of("b", "c"), Code::kOk);
  EXPECT_EQ(code_of("c", "c"), Code::kInvalidArgument);
  EXPECT_EQ(code_of("d", "c"), Code::kInvalidArgument);
  EXPECT_EQ(code_of("a", "c"), Code::kInvalidArgument);
  EXPECT_EQ(code_of("b", "m"), Code::kInvalidArgument);
}

TEST_P(BulkLoadOf, TooLargeIsRefused) {
  const auto bulk = tree_.engine().OpenBulkLoad();
  const auto part = bulk->Open("", std::nullopt);
  const size_t key_bytes_max = tree_.engine().traits().key_bytes_max;
  EXPECT_EQ(part->Add(std::string(key_bytes_max + 1, 'k'), "", 0, kPlainType).code(),
            Code::kTooLarge);
  EXPECT_TRUE(part->Add(std::string(key_bytes_max, 'k'), "", 0, kPlainType).ok());
}

TEST_P(BulkLoadOf, NoMemoryIsTold) {
  TestTree tree(kSmallNodes, 4 << 20);
  const auto bulk = tree.engine().OpenBulkLoad();
  const auto part = bulk->Open("", std::nullopt);
  Status s;
  for (int i = 0; i < 100'000 && s.ok(); ++i) {
    s = part->Add(std::to_string(1'000'000 + i), std::string(1000, 'v'), 0, kPlainType);
  }
  EXPECT_EQ(s.code(), Code::kOutOfMemory);
  EXPECT_EQ(s.detail(), tree.budget().limit());
}

TEST_P(BulkLoadOf, AnEmptyTreeIsNeeded) {
  EXPECT_NE(tree_.engine().OpenBulkLoad(), nullptr);
  tree_.Put("key", "value");
  EXPECT_EQ(tree_.engine().OpenBulkLoad(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Layouts, BulkLoadOf, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
