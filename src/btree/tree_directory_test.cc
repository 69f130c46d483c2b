// Tests a tree that is led by its directory of leaves (leaf_directory.h, directory_keeper.h), while
// that is right, out of date, torn between two states of the tree, or a lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitized.h"
#include "btree/heads/head_layout_search.h"
#include "btree/leaf_directory.h"
#include "btree/testing/tree_test_changes.h"
#include "engine/plain_gets.h"

namespace skep::btree {
namespace {

using changes::Kept;

constexpr uint32_t kKeys = 1200;
// A tree for tests has some hundred leaves.
constexpr DirectoryKeeper::Limits kSmall{.leaves_min = 8, .leaves_maintain = 16};

std::string KeyOf(uint64_t number) { return TestKey(static_cast<uint32_t>(number % 10'000)); }

class TreeDirectory : public OnEachLayout {
 protected:
  explicit TreeDirectory(uint64_t limit_bytes = 0) : tree_(kSmallNodes, limit_bytes) {
    tree_.core().directory.set_limits(kSmall);
  }

  // In one batch, with no directory after it.
  void PutAll(uint32_t step = 1) {
    keeper().set_limits({.leaves_min = UINT64_MAX});
    Batch batch;
    for (uint32_t i = 0; i < kKeys; i += step) {
      state_[KeyOf(i)] = TestValue(std::to_string(i));
      batch.Put(Kept(batch, KeyOf(i)), state_[KeyOf(i)]);
    }
    tree_.Execute(batch);
    tree_.MaintainAll();
    keeper().set_limits(kSmall);
  }
  void Put(uint32_t number) {
    tree_.Put(KeyOf(number), TestValue(std::to_string(number)));
    state_[KeyOf(number)] = TestValue(std::to_string(number));
  }
  void Erase(uint32_t number) {
    tree_.Delete(KeyOf(number));
    state_.erase(KeyOf(number));
  }
  void ExpectScan(const std::string& from) {
    Batch batch;
    batch.Scan(Range::From(from), {.limit = 3});
    tree_.Execute(batch);
    auto expected = state_.lower_bound(from);
    for (const Item& item : batch.items(0)) {
      ASSERT_NE(expected, state_.end()) << from;
      ASSERT_EQ(item.key, expected->first) << from;
      ASSERT_EQ(item.value, expected->second) << from;
      ++expected;
    }
    ASSERT_TRUE(batch.items(0).size() == 3 || expected == state_.end()) << from;
  }
  // Executes a batch of some windows beside the model.
  void ExpectWindows(std::mt19937_64& rng) {
    constexpr uint32_t kRequests = 100;
    Batch batch;
    std::vector<std::optional<std::string>> expected;  // of gets
    const bool only_reads = rng() % 2 == 0;
    for (uint32_t i = 0; i < kRequests; ++i) {
      const std::string key = KeyOf(rng() % kKeys);
      const auto at = state_.find(key);
      expected.push_back(at == state_.end() ? std::nullopt : std::optional(at->second));
      if (only_reads || rng() % 4 != 0) {
        batch.Get(Kept(batch, key));
      } else if (rng() % 3 == 0) {
        batch.Delete(Kept(batch, key));
        state_.erase(key);
      } else {
        state_[key] = TestValue("in window " + std::to_string(rng() % 1000));
        batch.Put(Kept(batch, key), Kept(batch, state_[key]));
      }
    }
    tree_.Execute(batch);
    for (uint32_t i = 0; i < kRequests; ++i) {
      if (batch.requests()[i].op != Op::kGet) continue;
      const Outcome& outcome = batch.outcome(i);
      ASSERT_EQ(outcome.present, expected[i].has_value()) << i;
      if (outcome.present) {
        ASSERT_EQ(outcome.value, *expected[i]) << i;
      }
    }
  }
  // Gets many keys without a batch beside the model. Returns how many were answered.
  uint32_t ExpectMany(std::mt19937_64& rng) {
    std::vector<std::string> keys(100);
    for (std::string& key : keys) key = KeyOf(rng() % kKeys);
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<GetAnswer> answers(keys.size());
    Scratch values;
    PlainGetsOf(tree_.engine())->GetManyPlain(views, answers, values);
    uint32_t answered = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (answers[i].verdict == Verdict::kPostponed) continue;
      ++answered;
      const auto at = state_.find(keys[i]);
      EXPECT_EQ(answers[i].verdict, at == state_.end() ? Verdict::kAbsent : Verdict::kDone) << i;
      EXPECT_EQ(answers[i].value(), at == state_.end() ? "" : at->second) << i;
    }
    return answered;
  }
  // Reads single keys until a directory is due, and has it made.
  void MakeDirectory() {
    const uint64_t builds = keeper().builds();
    for (uint32_t i = 0; i < kKeys && keeper().builds() == builds; ++i) {
      ExpectGet(KeyOf(i));
      tree_.MaintainAll();
    }
    ASSERT_EQ(keeper().builds(), builds + 1);
  }
  void ExpectGet(const std::string& key) {
    const auto found = tree_.Get(key);
    const auto expected = state_.find(key);
    ASSERT_EQ(found.has_value(), expected != state_.end()) << key;
    if (found) {
      ASSERT_EQ(*found, expected->second) << key;
    }
  }
  Link FirstLeaf() {
    const LeafLinks first = tree_.engine().LinksFrom("", 1, SIZE_MAX);
    return {first.links[0].hint.bits};
  }
  int64_t unguided() { return static_cast<int64_t>(tree_.core().Sum(&ThreadState::unguided)); }
  DirectoryKeeper& keeper() { return tree_.core().directory; }

  TestTree tree_;
  State state_;
};

// Goal: a directory is made for a tree of which keys are read, alone or in windows, and for none
// whose inner nodes are few.
TEST_P(TreeDirectory, IsMadeWhenItPays) {
  for (const bool in_windows : {false, true}) {
    TestTree tree(kSmallNodes);
    DirectoryKeeper& keeper = tree.core().directory;
    keeper.set_limits(kSmall);
    tree.Put(KeyOf(1), "v");
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(tree.Get(KeyOf(1)));
    tree.MaintainAll();
    EXPECT_EQ(keeper.builds(), 0u) << "of a tree of one leaf";
    keeper.set_limits({.leaves_min = UINT64_MAX});
    Batch puts, reads;
    for (uint32_t i = 0; i < kKeys; ++i) puts.Put(Kept(puts, KeyOf(i)), "v");
    tree.Execute(puts);
    tree.MaintainAll();
    EXPECT_EQ(keeper.builds(), 0u);
    keeper.set_limits(kSmall);
    for (uint32_t i = 0; i < kKeys; ++i) reads.Get(Kept(reads, KeyOf(i)));
    if (in_windows) tree.Execute(reads);
    for (uint32_t i = 0; i < kKeys && !in_windows; ++i) ASSERT_TRUE(tree.Get(KeyOf(i)));
    tree.MaintainAll();
    EXPECT_EQ(keeper.builds(), 1u);
  }
}

// Goal: a build begins when the operations that nothing has led reach the share of the leaves that
// pays for it, and not before.
TEST_P(TreeDirectory, BeginsWithItsShareOfOperations) {
  PutAll();
  const uint64_t leaves = tree_.Statistics().leaves;
  ASSERT_GT(leaves, 100u);
  MakeDirectory();
  // A directory whose links all lead nowhere leaves each operation alone.
  auto empty = LeafDirectory::Make(1, FenceWords(""));
  ASSERT_TRUE(empty->Add("", Link::Of(tree_.core().table.end(), 1)));
  empty->Finish();
  keeper().Replace(tree_.core(), std::move(empty));
  const uint64_t builds = keeper().builds();
  for (uint64_t i = 0; i + 1 < leaves / DirectoryKeeper::kUnguidedShare; ++i) {
    ExpectGet(KeyOf(i * 7));
    tree_.MaintainAll();
    ASSERT_EQ(keeper().builds(), builds) << i;
  }
  for (int i = 0; i < 2; ++i) ExpectGet(KeyOf(3));
  tree_.MaintainAll();
  EXPECT_EQ(keeper().builds(), builds + 1);
}

// Goal: single reads, scans and writes come to their leaf without a look at the inner nodes.
TEST_P(TreeDirectory, LeadsSingleOperationsToTheirLeaf) {
  PutAll();
  MakeDirectory();
  const Stage stage(tree_.core());
  const int64_t before = unguided();
  uint32_t led = 0;
  for (uint32_t i = 0; i < kKeys; ++i) {
    const std::string key = KeyOf(i);
    const uint64_t from_root = stage.reached(SyncPoint::kReaderAtRoot);
    const uint64_t to_child = stage.reached(SyncPoint::kReaderAtChild);
    Batch batch;
    if (i % 3 == 0) {
      batch.Get(key);
    } else if (i % 3 == 1) {
      batch.Update(key, state_[key]);
    } else {
      batch.Scan(Range::From(key), {.limit = 1});
    }
    tree_.Execute(batch);
    ASSERT_EQ(batch.outcome(0).verdict, Verdict::kDone);
    // A leaf that was split meanwhile is found from the root.
    if (stage.reached(SyncPoint::kReaderAtRoot) != from_root) continue;
    ++led;
    EXPECT_EQ(stage.reached(SyncPoint::kReaderAtChild), to_child);
  }
  // The rest has the words of fences; a scan at a version may have to go around a newer leaf.
  EXPECT_GT(led, kKeys * 3 / 4);
  EXPECT_EQ(unguided(), before);
}

// Goal: the requests of a window come to their leaves without a look at the inner nodes, and those
// that the directory leads astray go down from the root and are noted.
TEST_P(TreeDirectory, LeadsWindows) {
  PutAll();
  MakeDirectory();
  const Stage stage(tree_.core());
  const auto execute = [&] {
    const uint64_t to_child = stage.reached(SyncPoint::kReaderAtChild);
    Batch batch;
    for (uint32_t i = 0; i < kKeys; ++i) {
      const std::string_view key = Kept(batch, KeyOf(i));
      if (i % 3 == 0) {
        batch.Get(key);
      } else if (i % 3 == 1) {
        batch.Update(key, state_[KeyOf(i)]);
      } else {
        batch.Scan(Range::From(key), {.limit = 1});
      }
    }
    tree_.Execute(batch);
    for (uint32_t i = 0; i < kKeys; ++i) {
      EXPECT_EQ(batch.outcome(i).verdict, Verdict::kDone) << i;
      if (i % 3 == 0) {
        EXPECT_EQ(batch.outcome(i).value, state_[KeyOf(i)]) << i;
      } else if (i % 3 == 2) {
        EXPECT_EQ(batch.items(i).front().key, KeyOf(i)) << i;
      }
    }
    return stage.reached(SyncPoint::kReaderAtChild) - to_child;
  };
  const int64_t before = unguided();
  const uint64_t led = execute();
  EXPECT_EQ(unguided(), before);
  // Two levels of inner nodes, and windows that have keys with the words of fences.
  EXPECT_LT(led, kKeys / 3);
  auto astray = LeafDirectory::Make(1, FenceWords(""));
  ASSERT_TRUE(astray->Add("", FirstLeaf()));
  astray->Finish();
  keeper().Replace(tree_.core(), std::move(astray));
  EXPECT_GT(execute(), 0u);
  EXPECT_GT(unguided() - before, kKeys / 2);
}

// Goal: what has gone out of date leads nobody astray, is noticed, and is made anew.
TEST_P(TreeDirectory, IsMadeAnewWhenLeavesHaveChanged) {
  PutAll(2);
  MakeDirectory();
  const uint64_t builds = keeper().builds();
  for (int round = 0; round < 4; ++round) {
    for (uint32_t i = 1; i < kKeys; i += 2) (round % 2 == 0 ? Put(i) : Erase(i));
    for (uint32_t i = 0; i < kKeys; ++i) {
      ASSERT_NO_FATAL_FAILURE(ExpectGet(KeyOf(i)));
      if (i % 64 == 0) tree_.MaintainAll();
    }
  }
  EXPECT_GT(keeper().builds(), builds);
  tree_.ExpectHolds(state_);
  tree_.ExpectNothingLeaked();
}

// Goal: a directory of links to anything (inner nodes, nodes of other keys, nodes that are gone,
// rows that are free, rows behind the end) makes no answer wrong.
// Method: single requests, and gets of many keys, beside a model, with a new directory of random
// links now and then.
TEST_P(TreeDirectory, ThatLiesIsNeverWrong) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  PutAll(2);
  std::vector<Link> links;
  const auto random_link = [&] {
    const Lid end = tree_.core().table.end();
    switch (rng() % 8) {
      case 0:
        return Link{rng()};
      case 1:
        return Link::Of(end + rng() % 3, 1);
      case 2:
        return Link::Of(rng() % end, static_cast<uint16_t>(rng() % 4));
      case 3:
        return tree_.core().root;
      default:
        return links[rng() % links.size()];
    }
  };
  for (int round = 0; round < (kSanitized ? 20 : 60) * RoundsOfTests(); ++round) {
    if (round % 4 == 0) {
      const PageTable& table = tree_.core().table;
      for (Lid lid = 1; lid < table.end(); ++lid) {
        const PageTable::Entry row = table.Load(lid);
        if (row.buffer()) links.push_back(Link::Of(lid, row.generation()));
      }
    }
    auto lie = LeafDirectory::Make(200, FenceWords(TestKey(0).substr(0, 60)));
    for (uint32_t i = 0; i < 200; ++i) ASSERT_TRUE(lie->Add(TestKey(6 * i), random_link()));
    lie->Finish();
    keeper().Replace(tree_.core(), std::move(lie));
    for (uint32_t i = 0; i < 200; ++i) {
      const auto number = static_cast<uint32_t>(rng() % kKeys);
      switch (rng() % 6) {
        case 0:
          Put(number);
          break;
        case 1:
          Erase(number);
          break;
        case 2:
          ASSERT_NO_FATAL_FAILURE(ExpectScan(KeyOf(number)));
          break;
        default:
          ASSERT_NO_FATAL_FAILURE(ExpectGet(KeyOf(number)));
      }
    }
    for (int windows = 0; windows < 2; ++windows) ASSERT_NO_FATAL_FAILURE(ExpectWindows(rng));
    ExpectMany(rng);
    ASSERT_FALSE(HasFailure());
    if (round % 8 == 0) tree_.MaintainAll();
  }
  tree_.ExpectHolds(state_);
  tree_.ExpectNothingLeaked();
}

// Goal: a directory whose build is torn by changes of the tree is never wrong, and has each leaf of
// the parts that did not change.
// Method: between two steps of a build keys are put and deleted.
TEST_P(TreeDirectory, ThatIsTornIsNeverWrong) {
  PutAll(2);
  for (int round = 0; round < (kSanitized ? 6 : 20); ++round) {
    const uint64_t builds = keeper().builds();
    for (uint32_t i = 0; i < 40'000 && keeper().builds() == builds; ++i) {
      const uint32_t number = i * 7 % kKeys;
      if (i % 4 == 0) (round % 2 == 0 ? Put(number) : Erase(number));
      ASSERT_NO_FATAL_FAILURE(ExpectGet(KeyOf(number + 1)));
      if (i % 8 == 0) tree_.engine().Maintain(TestTree::kNowMs);
    }
    if (round == 0) {
      ASSERT_GT(keeper().builds(), builds);
    }
    for (uint32_t i = 0; i < kKeys; ++i) ASSERT_NO_FATAL_FAILURE(ExpectGet(KeyOf(i)));
  }
  tree_.ExpectHolds(state_);
}

// Goal: a directory stays as long as a reader may look at it, and meanwhile no third one is made.
// Method: a reader stands behind its look at the directory while the keeper replaces it.
TEST_P(TreeDirectory, StaysWhileAReaderUsesIt) {
  PutAll();
  const Stage stage(tree_.core());
  MakeDirectory();
  const uint64_t bytes = keeper().held_bytes();
  ASSERT_GT(bytes, 0u);
  Actor reader(SyncPoint::kReaderAtHint, 1, [&] { ExpectGet(KeyOf(601)); });
  ASSERT_TRUE(reader.WaitUntilStopped());
  const auto replace = [&] {
    auto other = LeafDirectory::Make(1, FenceWords(""));
    EXPECT_TRUE(other->Add("", Link::Of(tree_.core().table.end(), 1)));
    other->Finish();
    keeper().Replace(tree_.core(), std::move(other));
  };
  replace();
  const uint64_t both = keeper().held_bytes();
  EXPECT_GT(both, bytes);
  const uint64_t builds = keeper().builds();
  for (uint32_t i = 0; i < kKeys; ++i) ExpectGet(KeyOf(i));
  tree_.MaintainAll();
  EXPECT_EQ(keeper().builds(), builds);
  EXPECT_EQ(keeper().held_bytes(), both);
  reader.Finish();
  tree_.MaintainAll();
  EXPECT_EQ(keeper().builds(), builds + 1);
  EXPECT_EQ(keeper().held_bytes(), bytes);
}

// Goal: its memory is counted by the budget and by the engine, and given back with the leaves.
TEST_P(TreeDirectory, IsCountedAndGivenBack) {
  PutAll();
  const uint64_t used = tree_.budget().used();
  const uint64_t told = tree_.engine().Statistics().bytes;
  MakeDirectory();
  const uint64_t bytes = keeper().held_bytes();
  EXPECT_GE(bytes, LeafDirectory::BytesOf(tree_.Statistics().leaves));
  EXPECT_EQ(tree_.budget().used() - used, tree_.engine().Statistics().bytes - told);
  EXPECT_GE(tree_.budget().used(), bytes);
  uint64_t shown = 0;
  tree_.engine().Describe(TestTree::kNowMs, [&](std::string_view name, uint64_t value) {
    if (name == "directory_held_bytes") shown = value;
  });
  EXPECT_EQ(shown, bytes);
  tree_.DeleteRange(Range::All());
  tree_.MaintainAll();
  EXPECT_EQ(keeper().held_bytes(), 0u);
  EXPECT_EQ(keeper().current(), nullptr);
}

// Goal: a store that is near its limit has none.
TEST_P(TreeDirectory, TakesNoRoomThatWritesNeed) {
  PutAll();
  tree_.budget().set_limit(tree_.budget().used() + 2 * LeafDirectory::BytesOf(1));
  for (uint32_t i = 0; i < 4 * kKeys; ++i) {
    ASSERT_NO_FATAL_FAILURE(ExpectGet(KeyOf(i)));
    if (i % 16 == 0) tree_.MaintainAll();
  }
  EXPECT_EQ(keeper().builds(), 0u);
  EXPECT_EQ(keeper().held_bytes(), 0u);
}

// Goal: a tree whose fences are alike in their words has none.
TEST_P(TreeDirectory, GivesUpWhereWordsAreAlike) {
  const auto key_of = [](uint32_t i) {
    return TestKey(0) + "same bytes" + std::to_string(10'000 + i);
  };
  Batch puts;
  for (uint32_t i = 0; i < kKeys; ++i) {
    puts.Put(Kept(puts, key_of(i)), Kept(puts, TestValue("v")));
    if (i >= 100) continue;
    puts.Put(Kept(puts, "a" + TestKey(i)), Kept(puts, TestValue("first")));
    puts.Put(Kept(puts, "z" + TestKey(i)), Kept(puts, TestValue("last")));
  }
  tree_.Execute(puts);
  ASSERT_GT(tree_.Statistics().leaves, kSmall.leaves_min);
  for (uint32_t i = 0; i < 4 * kKeys; ++i) {
    ASSERT_TRUE(tree_.Get(key_of(i % kKeys)));
    if (i % 16 == 0) tree_.MaintainAll();
  }
  EXPECT_EQ(keeper().builds(), 0u);
  EXPECT_EQ(keeper().held_bytes(), 0u);
}

// Goal: readers, writers and keepers of several threads agree.
// Method: each writer has keys of its own; readers see values of the key's writer only, which rise.
TEST_P(TreeDirectory, IsRightBesideThreads) {
  constexpr uint32_t kThreads = 3;
  constexpr uint32_t kOps = kSanitized ? 2'000 : 30'000;
  PutAll();
  std::vector<std::jthread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 rng(thread);
      std::vector<uint32_t> written(kKeys);
      for (uint32_t i = 1; i <= kOps; ++i) {
        const auto number = static_cast<uint32_t>(rng() % (kKeys / kThreads)) * kThreads + thread;
        const std::string key = KeyOf(number);
        if (i % 4 == 0) {
          tree_.Put(key, TestValue("w" + std::to_string(i)));
          written[number] = i;
        } else if (i % 4 == 1 && i % 3 == 0) {
          tree_.Put(key + std::to_string(i % 50), TestValue("other"));
        } else {
          const auto found = tree_.Get(key);
          ASSERT_TRUE(found) << key;
          ASSERT_EQ(*found, written[number] == 0
                                ? TestValue(std::to_string(number))
                                : TestValue("w" + std::to_string(written[number])));
        }
        if (i % 32 == 0) tree_.engine().Maintain(TestTree::kNowMs);
      }
    });
  }
  threads.clear();
  EXPECT_GT(keeper().builds(), 0u);
  ASSERT_STREQ(tree_.engine().Verify(), nullptr);
  tree_.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Layouts, TreeDirectory, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
