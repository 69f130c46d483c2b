// tree_test_tree.h: a tree for tests, and checks of its content.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "btree/btree_engine.h"
#include "btree/core.h"
#include "btree/measure.h"
#include "btree/testing/tree_test_layouts.h"

namespace skep::btree {

// The content that a tree must have.
using State = std::map<std::string, std::string, std::less<>>;

// Small nodes, so that a few hundred keys make three levels; a log of two or three items.
inline constexpr BtreeOptions kSmallNodes{.node_bytes = 2048, .log_bytes = 320};

// Bytes that differ from place to place, so that no piece looks like another one.
inline std::string BytesOfSize(size_t size, uint64_t seed) {
  std::string bytes(size, '\0');
  std::mt19937_64 random(seed);
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// A factor for the length of tests: SKEP_TREE_TEST_ROUNDS, 1 unless it is set.
inline int RoundsOfTests() {
  const char* const text = std::getenv("SKEP_TREE_TEST_ROUNDS");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

// A tree of the layout of the test. Thread safety: as Engine; the model is its owner's.
class TestTree {
 public:
  static constexpr uint64_t kNowMs = 1'000'000;

  explicit TestTree(const BtreeOptions& options = kSmallNodes, uint64_t limit_bytes = 0)
      : budget_(limit_bytes),
        engine_(BtreeEngine::Make({.budget = &budget_, .index = {.btree = OfTest(options)}})),
        tree_(static_cast<BtreeEngine&>(*engine_)) {}

  BtreeEngine& engine() { return tree_; }
  Core& core() { return tree_.core(); }
  MemoryBudget& budget() { return budget_; }
  // Like BtreeEngine::Tree(), but for huge_bytes, which the system is slow to tell. Nothing else
  // frees nodes meanwhile.
  TreeStatistics Statistics() {
    TreeStatistics tree = SurveyNodes(core(), {});
    AddCounters(core(), &tree);
    return tree;
  }
  uint64_t allocated_bytes() { return core().arena.Statistics().allocated_bytes; }

  Version Execute(Batch& batch) {
    batch.set_now_ms(kNowMs);
    return engine_->Execute(batch);
  }
  // Executes one request. The outcome's bytes are gone; its verdict and numbers stay.
  Outcome Do(const Request& request) {
    Batch batch;
    batch.Add(request);
    Execute(batch);
    return batch.outcome(0);
  }
  Outcome Put(std::string_view key, std::string_view value) {
    return Do({.op = Op::kPut, .key = key, .value = value});
  }
  Outcome Delete(std::string_view key) { return Do({.op = Op::kDelete, .key = key}); }
  Outcome DeleteRange(const Range& range) {
    Batch batch;
    batch.DeleteRange(range);
    Execute(batch);
    return batch.outcome(0);
  }
  std::optional<std::string> Get(std::string_view key) {
    Batch batch;
    batch.Get(key);
    Execute(batch);
    if (!batch.outcome(0).present) return std::nullopt;
    return std::string(batch.outcome(0).value);
  }

  // The result of a scan, at a snapshot or of the released state.
  State Contents(SnapshotRef at = {}, bool reverse = false) {
    Batch batch;
    batch.set_snapshot(at);
    batch.Scan(Range::All(), {.reverse = reverse, .any_type = true});
    Execute(batch);
    State state;
    for (const Item& item : batch.items(0)) state.emplace(item.key, item.value);
    EXPECT_EQ(state.size(), batch.items(0).size()) << "a key came twice";
    return state;
  }

  SnapshotRef OpenSnapshot() { return engine_->OpenSnapshot(kNowMs).value(); }
  void CloseSnapshot(SnapshotRef snapshot) { engine_->CloseSnapshot(snapshot); }

  // Makes the directory of the leaves (directory_keeper.h), however few they are. Nothing else
  // runs.
  void MakeDirectory() {
    core().directory.set_limits({.leaves_min = 2});
    ThreadState& thread = core().threads.Take();
    for (uint64_t i = 0; i < core().leaves.load(); ++i) thread.NoteUnguided();
    core().threads.Give(thread);
    MaintainAll();
  }
  void MaintainAll() {
    while (engine_->Maintain(kNowMs)) {
    }
  }

  // Checks that every way of reading finds `expected`. Nothing else runs.
  void ExpectHolds(const State& expected) {
    ASSERT_STREQ(engine_->Verify(), nullptr);
    ASSERT_EQ(Contents(), expected);
    ASSERT_EQ(Contents({}, true), expected);
    ASSERT_EQ(engine_->Statistics().items, expected.size());
    Batch count;
    count.Count(Range::All());
    Execute(count);
    ASSERT_EQ(count.outcome(0).integer, static_cast<int64_t>(expected.size()));
  }

  // Requires that no snapshot is open and nothing else runs. Then everything on its way out is
  // freed in the end, and the arena holds the tree's nodes and the blocks they name, no more (T9).
  void ExpectNothingLeaked() {
    MaintainAll();
    const TreeStatistics tree = Statistics();
    EXPECT_EQ(tree.reclaim_waiting, 0u);
    EXPECT_EQ(tree.reclaim_kept, 0u);
    EXPECT_EQ(tree.reclaim_dying, 0u);
    EXPECT_EQ(tree.reclaim_detached, 0u);
    EXPECT_EQ(tree.chain_buffers, 0u);
    EXPECT_EQ(core().table.allocated(), tree.leaves + tree.inner_nodes);
    EXPECT_EQ(core().leaves.load(), tree.leaves);
    EXPECT_EQ(core().inner_nodes.load(), tree.inner_nodes);
    EXPECT_STREQ(engine_->Verify(), nullptr);
  }

  // The bytes of a tree without keys.
  static uint64_t EmptyBytes(const BtreeOptions& options) {
    TestTree tree(options);
    return tree.allocated_bytes();
  }

 private:
  static BtreeOptions OfTest(BtreeOptions options) {
    options.layout = LayoutOfTest::current();
    return options;
  }

  MemoryBudget budget_;
  const std::unique_ptr<Engine> engine_;
  BtreeEngine& tree_;
};

}  // namespace skep::btree
