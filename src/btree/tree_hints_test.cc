// Tests hints to leaves that have changed since or are gone, to inner nodes, and to nothing.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "btree/testing/tree_test_changes.h"

namespace skep::btree {
namespace {

constexpr uint32_t kKeys = 60;

// A key too long for a node; all of them have the same bytes in the node.
std::string LongKey(uint32_t number) {
  return std::string(200, 'k') + std::to_string(1000 + number);
}

Hint HintOf(TestTree& tree, std::string_view key) {
  return tree.Do({.op = Op::kGet, .flags = Request::kWantHint, .key = key}).hint;
}

// Gets all keys with the hint, in one batch, so that the batch also looks ahead.
void ExpectAllWithHint(TestTree& tree, const State& state, Hint hint) {
  Batch batch;
  for (uint32_t i = 0; i < kKeys; ++i) {
    batch.Add({.op = Op::kGet, .key = batch.scratch().Copy(LongKey(i)), .hint = hint});
  }
  tree.Execute(batch);
  for (uint32_t i = 0; i < batch.size(); ++i) {
    const auto expected = state.find(batch.requests()[i].key);
    ASSERT_EQ(batch.outcome(i).present, expected != state.end()) << i;
    if (expected != state.end()) {
      ASSERT_EQ(batch.outcome(i).value, expected->second);
    }
  }
}

class Hints : public OnEachLayout {};

// Goal: no reader follows the stubs of a leaf that has left the tree, though its LID is kept for a
// snapshot: blocks that no snapshot can see are freed before the leaf.
// Method: keys that come, after a snapshot, to a leaf that is then split; the keys are deleted, so
// that their blocks are freed, while the snapshot keeps the leaf.
TEST_P(Hints, ToALeafThatIsKeptForASnapshot) {
  TestTree tree({.node_bytes = 2048, .log_bytes = 0});
  State state;
  const auto put = [&](uint32_t number) {
    tree.Put(LongKey(number), "value");
    state[LongKey(number)] = "value";
  };
  // At least two leaves, since the root keeps its LID whatever happens.
  for (uint32_t i = 0; i < kKeys; i += 2) put(i);
  ASSERT_GT(tree.Statistics().leaves, 1u);
  const Hint hint = HintOf(tree, LongKey(0));
  const SnapshotRef snapshot = tree.OpenSnapshot();
  const State before = state;
  for (uint32_t i = 1; i < kKeys; i += 2) put(i);
  ASSERT_NE(HintOf(tree, LongKey(0)).bits, hint.bits) << "the leaf was not split";
  ExpectAllWithHint(tree, state, hint);
  for (uint32_t i = 0; i < kKeys; ++i) tree.Delete(LongKey(i));
  state.clear();
  tree.MaintainAll();
  ExpectAllWithHint(tree, state, hint);
  EXPECT_EQ(tree.Contents(snapshot), before);
  tree.CloseSnapshot(snapshot);
  tree.ExpectHolds(state);
  tree.ExpectNothingLeaked();
}

// Goal: a hint to a leaf that was detached, freed, or whose LID names another leaf now, costs time
// and nothing else.
// Method: one hint, before a range delete, after it, once the subtrees are freed, and after their
// LIDs were given to other leaves.
TEST_P(Hints, ToALeafThatWasDetached) {
  TestTree tree({.node_bytes = 2048, .log_bytes = 64});
  State state;
  const auto put_all = [&](std::string_view value) {
    for (uint32_t i = 0; i < kKeys; ++i) {
      tree.Put(LongKey(i), value);
      state.insert_or_assign(LongKey(i), std::string(value));
    }
  };
  put_all("first");
  const Hint hint = HintOf(tree, LongKey(kKeys / 2));
  ExpectAllWithHint(tree, state, hint);
  tree.DeleteRange(Range::All());
  state.clear();
  ExpectAllWithHint(tree, state, hint);
  tree.MaintainAll();
  ExpectAllWithHint(tree, state, hint);
  for (int round = 0; round < 3; ++round) {
    put_all(std::to_string(round));
    ExpectAllWithHint(tree, state, hint);
    tree.DeleteRange(Range::All());
    state.clear();
    tree.MaintainAll();
    ExpectAllWithHint(tree, state, hint);
  }
  tree.ExpectHolds(state);
  tree.ExpectNothingLeaked();
}

// The links of all nodes that the page table has.
std::vector<Link> AllLinks(TestTree& tree) {
  std::vector<Link> links;
  const PageTable& table = tree.core().table;
  for (Lid lid = 1; lid < table.end(); ++lid) {
    const PageTable::Entry row = table.Load(lid);
    if (row.buffer()) links.push_back(Link::Of(lid, row.generation()));
  }
  return links;
}

// A model and its tree, which random requests with all kinds of hints read and change.
class HintedTree {
 public:
  explicit HintedTree(uint64_t seed) : rng_(seed) {
    for (uint32_t i = 0; i < kAll; i += 2) Put(i);
  }

  TestTree& tree() { return tree_; }
  const State& state() const { return state_; }
  std::vector<Link>& links() { return links_; }

  // Executes gets, scans and counts of the whole tree with hints, and compares their outcomes.
  void Read(Batch::Kind kind, SnapshotRef snapshot = {}) {
    Batch batch(kind);
    batch.set_snapshot(snapshot);
    for (uint32_t i = 0; i < 70; ++i) {
      const std::string_view key = changes::Kept(batch, RandomKey());
      switch (rng_() % 8) {
        case 0:
          batch.Add({.op = Op::kScan,
                     .flags = Request::kNoUpperBound,
                     .limit = 3,
                     .key = key,
                     .hint = RandomHint()});
          break;
        case 1:
          batch.Add({.op = Op::kCount,
                     .flags = Request::kNoUpperBound,
                     .key = key,
                     .hint = RandomHint()});
          break;
        default:
          batch.Add({.op = Op::kGet, .key = key, .hint = RandomHint()});
      }
    }
    tree_.Execute(batch);
    for (uint32_t slot = 0; slot < batch.size(); ++slot) ExpectRight(batch, slot);
  }

  // Puts, inserts and deletes keys with hints; gets between them see the writes before them.
  void Write() {
    Batch batch;
    std::vector<std::optional<std::string>> expected;
    for (uint32_t i = 0; i < 70; ++i) {
      const std::string key = RandomKey();
      const std::string_view kept = changes::Kept(batch, key);
      const auto at = state_.find(key);
      expected.push_back(at == state_.end() ? std::nullopt : std::optional(at->second));
      if (rng_() % 3 == 0) {
        batch.Add({.op = Op::kGet, .key = kept, .hint = RandomHint()});
      } else if (rng_() % 2 == 0) {
        const std::string value = TestValue(std::to_string(rng_() % 1000));
        batch.Add({.op = Op::kPut,
                   .key = kept,
                   .value = changes::Kept(batch, value),
                   .hint = RandomHint()});
        state_[key] = value;
      } else {
        batch.Add({.op = Op::kDelete, .key = kept, .hint = RandomHint()});
        state_.erase(key);
      }
    }
    tree_.Execute(batch);
    for (uint32_t i = 0; i < batch.size(); ++i) {
      ASSERT_EQ(batch.outcome(i).present, expected[i].has_value()) << i;
      if (batch.requests()[i].op != Op::kGet || !expected[i]) continue;
      ASSERT_EQ(batch.outcome(i).value, *expected[i]) << i;
    }
  }

 private:
  static constexpr uint32_t kAll = 1200;

  std::string RandomKey() { return TestKey(static_cast<uint32_t>(rng_() % kAll)); }

  void Put(uint32_t number) {
    tree_.Put(TestKey(number), TestValue("v"));
    state_[TestKey(number)] = TestValue("v");
  }

  // None; made up; behind the table's end; of a generation that the row may not have; the link of
  // some node, which may be gone.
  Hint RandomHint() {
    const Lid end = tree_.core().table.end();
    switch (rng_() % 6) {
      case 0:
        return {};
      case 1:
        return {rng_()};
      case 2:
        return {Link::Of(end + rng_() % 3, 1).bits};
      case 3:
        return {Link::Of(rng_() % end, static_cast<uint16_t>(rng_() % 4)).bits};
      default:
        return {links_.empty() ? 0 : links_[rng_() % links_.size()].bits};
    }
  }

  void ExpectRight(const Batch& batch, uint32_t slot) {
    const Request& request = batch.requests()[slot];
    const Outcome& outcome = batch.outcome(slot);
    auto at = state_.lower_bound(request.key);
    if (request.op == Op::kGet) {
      const bool present = at != state_.end() && at->first == request.key;
      ASSERT_EQ(outcome.present, present) << slot;
      if (present) {
        ASSERT_EQ(outcome.value, at->second) << slot;
      }
    } else if (request.op == Op::kCount) {
      ASSERT_EQ(outcome.integer, std::distance(at, state_.end())) << slot;
    } else {
      for (const Item& item : batch.items(slot)) {
        ASSERT_NE(at, state_.end()) << slot;
        ASSERT_EQ(item.key, at->first) << slot;
        ASSERT_EQ(item.value, at->second) << slot;
        ++at;
      }
      ASSERT_TRUE(outcome.item_count == 3 || at == state_.end()) << slot;
    }
  }

  TestTree tree_;
  State state_;
  std::vector<Link> links_;  // what hints are taken from
  std::mt19937_64 rng_;
};

// Goal: no hint, whatever it names, makes an answer wrong: a leaf or an inner node of the tree, one
// that is gone, a free or unused row, a LID behind the end of the table, any 64 bits.
// Method: requests with random hints, in batches that look ahead and in single ones, while the tree
// changes; the links are noted now and then, so most of them become stale.
TEST_P(Hints, OfAnyKindAreNeverWrong) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  HintedTree hinted(seed);
  const Core& core = hinted.tree().core();
  ASSERT_GT(core.Head(core.root)->level, 1);
  for (int round = 0; round < 40 * RoundsOfTests(); ++round) {
    if (round % 8 == 0) hinted.links() = AllLinks(hinted.tree());
    hinted.Read(Batch::Kind::kUnordered);
    hinted.Read(Batch::Kind::kAtomic);
    const SnapshotRef snapshot = hinted.tree().OpenSnapshot();
    hinted.Read(Batch::Kind::kUnordered, snapshot);
    hinted.tree().CloseSnapshot(snapshot);
    hinted.Write();
    if (round % 16 == 0) hinted.tree().MaintainAll();
    if (HasFatalFailure()) return;
  }
  hinted.tree().ExpectHolds(hinted.state());
  hinted.tree().ExpectNothingLeaked();
}

// Goal: hints that another tree has given (another keyspace, or the same one before a restart) name
// nodes of this one by chance, and are never wrong.
TEST_P(Hints, OfAnotherTreeAreNeverWrong) {
  HintedTree first(1);
  HintedTree second(2);
  for (int round = 0; round < 20; ++round) first.Write();
  second.links() = AllLinks(first.tree());
  for (int round = 0; round < 20; ++round) {
    second.Read(Batch::Kind::kUnordered);
    second.Write();
    if (HasFatalFailure()) return;
  }
  second.tree().ExpectHolds(second.state());
}

INSTANTIATE_TEST_SUITE_P(Layouts, Hints, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
