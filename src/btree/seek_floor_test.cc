// Tests the search for the largest key at or below a bound, where whole leaves hold no key.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "btree/testing/tree_test_within.h"

namespace skep::btree {
namespace {

std::string Key(uint32_t i) { return "key" + std::to_string(1000 + i); }

// The first key of a scan from the floor of `key`; empty if there is none.
std::string FloorOf(TestTree& tree, const std::string& key) {
  Batch batch;
  batch.Scan(Range::From(key), {.limit = 1, .keys_only = true, .seek_floor = true});
  tree.Execute(batch);
  return batch.items(0).empty() ? "" : std::string(batch.items(0).front().key);
}

class SeekFloor : public OnEachLayout {};

// Goal: the floor is found across leaves that are in the tree and hold no key, down to none at all.
// Method: an atomic delete empties leaves in the middle, or at the beginning; before any of them is
// joined, the same thread looks. A put far away releases the delete's version.
TEST_P(SeekFloor, IsFoundAcrossEmptyLeaves) {
  for (const uint32_t first : {60u, 0u}) {
    SCOPED_TRACE(first);
    TestTree tree;
    for (uint32_t i = 0; i < 400; ++i) tree.Put(Key(i), std::string(40, 'v'));
    const uint64_t leaves = tree.core().leaves.load();
    ASSERT_GT(leaves, 15u);
    Batch erase(Batch::Kind::kAtomic);
    for (uint32_t i = first; i < 200; ++i) erase.Delete(erase.scratch().Copy(Key(i)));
    const auto expect_floors = [&] {
      const std::string below = first == 0 ? "" : Key(first - 1);
      for (uint32_t i = first; i < 200; i += 7) {
        EXPECT_EQ(FloorOf(tree, Key(i)), below.empty() ? Key(200) : below) << i;
      }
      EXPECT_EQ(FloorOf(tree, Key(200)), Key(200));
    };
    RunWithin(tree, erase, SyncPoint::kStructureLocked, [&] {
      tree.Put("z", "");
      EXPECT_EQ(tree.core().leaves.load(), leaves);
      expect_floors();
    });
    EXPECT_LT(tree.core().leaves.load(), leaves - 5);
    expect_floors();
  }
}

// Goal: the floor of one key is right whatever the leaf's log has of the keys near it.
// Method: puts, deletes and puts with deadlines that pass, beside std::map, of keys over an
// alphabet so small that many differ only behind the two bytes that a head has; after each step the
// floors of some keys, present or not.
TEST_P(SeekFloor, OfOneKeyAgreesWithAModel) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (const bool expires : {false, true}) {
    TestTree tree;
    uint64_t now_ms = 1000;
    std::map<std::string, uint64_t> model;  // deadlines; 0: none
    const auto random_key = [&] {
      std::string key = "prefix";
      for (size_t bytes = rng() % 7; bytes > 0; --bytes) key += "\0am\xff"[rng() % 4];
      return key;
    };
    const auto expect_floor = [&] {
      const std::string key = random_key();
      auto floor = model.upper_bound(key);
      while (floor != model.begin()) {
        --floor;
        if (floor->second == 0 || floor->second > now_ms) break;
      }
      const bool is_there = floor != model.end() && floor->first <= key &&
                            (floor->second == 0 || floor->second > now_ms);
      Batch batch;
      batch.set_now_ms(now_ms);
      batch.Scan(Range::Between(key, KeyAfter(key, batch.scratch())),
                 {.limit = 1, .seek_floor = true});
      tree.engine().Execute(batch);
      ASSERT_EQ(batch.items(0).size(), is_there ? 1u : 0u);
      if (!is_there) return;
      EXPECT_EQ(batch.items(0).front().key, floor->first);
      EXPECT_EQ(batch.items(0).front().value, floor->first + "v");
    };
    for (int step = 0; step < 4000; ++step) {
      now_ms += rng() % 2;
      const std::string key = random_key();
      Batch batch;
      batch.set_now_ms(now_ms);
      if (rng() % 3 == 0) {
        batch.Delete(key);
        model.erase(key);
      } else {
        const uint64_t deadline_ms = expires && rng() % 3 == 0 ? now_ms + 1 + rng() % 20 : 0;
        const std::string_view value = batch.scratch().Copy(key + "v");
        batch.Add({.op = Op::kPut, .key = key, .value = value, .deadline_ms = deadline_ms});
        model[key] = deadline_ms;
      }
      tree.engine().Execute(batch);
      for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(expect_floor());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, SeekFloor, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
