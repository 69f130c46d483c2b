// Tests places that were looked up together, after earlier requests have moved everything.
#include "btree/look_ahead.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "base/sanitized.h"
#include "btree/heads/head_layout_search.h"
#include "btree/testing/tree_test_changes.h"

namespace skep::btree {
namespace {

using changes::Kept;

class Windows : public OnEachLayoutWith<uint32_t> {
 protected:
  static constexpr uint32_t kKeys = 200;

  std::string RandomKey() { return TestKey(static_cast<uint32_t>(rng_() % kKeys)); }

  // Adds a request to the batch and applies it to the state, with the result that a get must have.
  void AddRandom(Batch& batch, bool grows) {
    const std::string key = RandomKey();
    const uint64_t lot = rng_() % 100;
    std::optional<std::string> found;
    if (lot < 35) {
      const auto at = state_.find(key);
      if (at != state_.end()) found = at->second;
      batch.Get(Kept(batch, key));
    } else if (lot < 95) {
      if (grows == (lot < 85)) {
        state_[key] = TestValue("v" + std::to_string(++writes_));
        batch.Put(Kept(batch, key), Kept(batch, state_[key]));
      } else {
        state_.erase(key);
        batch.Delete(Kept(batch, key));
      }
    } else {
      const std::string end = RandomKey();
      if (key < end) state_.erase(state_.lower_bound(key), state_.lower_bound(end));
      batch.DeleteRange(Range::Between(Kept(batch, key), Kept(batch, end)));
    }
    expected_.push_back(found);
  }

  std::mt19937_64 rng_;
  State state_;
  std::vector<std::optional<std::string>> expected_;
  uint64_t writes_ = 0;
};

// Goal: a request sees the effects of the requests before it in its batch, wherever its leaf went.
// Method: few keys, which come and go, so that the requests of one window merge, split, join and
// detach each other's leaves; gets between them are compared with a model.
TEST_P(Windows, SeeTheWritesBeforeThem) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  rng_.seed(seed);
  TestTree tree({.node_bytes = 2048, .log_bytes = GetCase()});
  for (uint32_t round = 0; round < Rounds(400u); ++round) {
    Batch batch;
    expected_.clear();
    for (uint32_t i = 0; i < 100; ++i) AddRandom(batch, round / 4 % 2 == 0);
    tree.Execute(batch);
    for (uint32_t i = 0; i < batch.size(); ++i) {
      if (batch.requests()[i].op != Op::kGet) continue;
      const Outcome& outcome = batch.outcome(i);
      ASSERT_EQ(outcome.present, expected_[i].has_value()) << round << " " << i;
      if (outcome.present) {
        ASSERT_EQ(outcome.value, *expected_[i]) << round << " " << i;
      }
    }
    if (round % 16 == 0) tree.ExpectHolds(state_);
    if (HasFatalFailure()) return;
  }
  tree.ExpectHolds(state_);
  tree.ExpectNothingLeaked();
}

class Places : public OnEachLayout {};

// Goal: no place outlives the stay in the epoch in which it was found. A thread that leaves, and
// comes back while the epoch is the same, may have read the number before other threads went on to
// the next epoch and freed buffers that nobody seemed to look at.
// Method: the thread comes back at once.
TEST_P(Places, AreForgottenWithTheEpoch) {
  TestTree tree;
  for (uint32_t i = 0; i < 2000; ++i) tree.Put(TestKey(i), TestValue("v"));
  tree.MaintainAll();
  Core& core = tree.core();
  ThreadState& thread = core.threads.Take();
  core.versions.EnterEpoch(thread);
  VisitLayoutOfTest([&]<class Layout>() {
    LookAhead<Layout> look_ahead(core, thread);
    Batch batch;
    for (const uint32_t i : {1000u, 1100u}) batch.Get(Kept(batch, TestKey(i)));
    look_ahead.Prepare(batch.requests(), 0);
    const Request& request = batch.requests()[0];
    const LeafPlace found = look_ahead.Newest(0, request);
    EXPECT_EQ(found.node, Reader<Layout>(core).Find(request.key, UINT64_MAX).node);
    EXPECT_EQ(found.spot.known, (std::is_same_v<Layout, HeadLayout>));
    EXPECT_TRUE(look_ahead.CurrentAt(0, batch.requests()[0], UINT64_MAX));
    EXPECT_TRUE(look_ahead.CurrentAt(1, batch.requests()[1], UINT64_MAX));
    const uint64_t epoch = thread.epoch.load();
    core.versions.LeaveEpoch(thread);
    core.versions.EnterEpoch(thread);
    EXPECT_EQ(thread.epoch.load(), epoch);
    EXPECT_FALSE(look_ahead.CurrentAt(0, batch.requests()[0], UINT64_MAX));
    EXPECT_FALSE(look_ahead.CurrentAt(1, batch.requests()[1], UINT64_MAX));
    EXPECT_FALSE(look_ahead.Newest(0, request).spot.known);
  });
  core.versions.LeaveEpoch(thread);
  core.threads.Give(thread);
}

// The link of the key's node at that level, or of its leaf's parent.
Link LinkAt(TestTree& tree, std::string_view key, uint32_t level) {
  const Core& core = tree.core();
  Link link = core.root;
  VisitLayoutOfTest([&]<class Layout>() {
    for (const NodeHeader* node = core.Head(link); node->level > level; node = core.Head(link)) {
      link = typename Layout::Inner(core.codec, node).ChildOf(key);
    }
  });
  return link;
}

// Goal: requests with hints are looked for in the window, too: from the leaf or the inner node that
// the hint names; from the root if it names none, and again if it names another leaf.
TEST_P(Places, AreFoundByHintsInTheWindow) {
  TestTree tree;
  for (uint32_t i = 0; i < 2000; ++i) tree.Put(TestKey(i), TestValue("v"));
  tree.MaintainAll();
  Core& core = tree.core();
  const std::string absent = TestKeyBetween(1000, 1);
  const std::string present = TestKey(1001);
  const std::string far = TestKey(7);
  ASSERT_GT(core.Head(core.root)->level, 1);
  struct Case {
    std::string_view key;
    uint64_t hint;
    bool is_stale;
  };
  const Case cases[] = {
      {present, LinkAt(tree, present, 0).bits, false},
      {absent, LinkAt(tree, absent, 0).bits, false},
      {present, LinkAt(tree, present, 1).bits, false},
      {present, core.root.bits, true},
      {present, LinkAt(tree, far, 0).bits, true},
      {absent, LinkAt(tree, far, 0).bits, true},
      {present, LinkAt(tree, far, 1).bits, true},
      {present, UINT64_MAX, true},
      {present, Link::Of(core.table.end(), 1).bits, true},
      {present, 0, false},
  };
  ThreadState& thread = core.threads.Take();
  core.versions.EnterEpoch(thread);
  VisitLayoutOfTest([&]<class Layout>() {
    for (const Case& c : cases) {
      SCOPED_TRACE(&c - cases);
      LookAhead<Layout> look_ahead(core, thread);
      Batch batch;
      for (int i = 0; i < 2; ++i) batch.Add({.op = Op::kGet, .key = c.key, .hint = {c.hint}});
      look_ahead.Prepare(batch.requests(), 0);
      const Request& request = batch.requests()[0];
      const LeafPlace right = Reader<Layout>(core).Find(request.key, UINT64_MAX);
      // A hint of another leaf is noticed at the end only.
      const bool is_found = !c.is_stale || c.hint != LinkAt(tree, far, 0).bits;
      const auto at_version = look_ahead.CurrentAt(1, request, UINT64_MAX);
      EXPECT_EQ(at_version.has_value(), is_found);
      if (at_version) {
        EXPECT_EQ(at_version->node, right.node);
      }
      const LeafPlace place = look_ahead.Newest(0, request);
      EXPECT_EQ(place.node, right.node);
      EXPECT_EQ(place.is_stale_hint, c.is_stale);
      EXPECT_EQ(place.spot.known, is_found && (std::is_same_v<Layout, HeadLayout>));
    }
  });
  core.versions.LeaveEpoch(thread);
  core.threads.Give(thread);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Places, EachLayout(), LayoutName);

std::string WindowsName(const testing::TestParamInfo<LayoutAndCase<uint32_t>>& info) {
  const auto& [layout, log_bytes] = info.param;
  return std::string("Log") + std::to_string(log_bytes) + "_" + NameOf(layout);
}

INSTANTIATE_TEST_SUITE_P(Logs, Windows, testing::Combine(EachLayout(), testing::Values(0u, 320u)),
                         WindowsName);

}  // namespace
}  // namespace skep::btree
