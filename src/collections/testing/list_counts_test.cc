// The counts of large lists, and what they save.
#include "collections/list_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>

#include "collections/testing/collection_world_test.h"

namespace skep::collections {
namespace {

class ListCountsTest : public testing::TestWithParam<std::string> {
 protected:
  // A list, and the same elements in a deque.
  struct Lists {
    World world;
    std::deque<std::string> model;
    explicit Lists(const std::string& engine) : world(64, engine) {}

    Reply Do(const std::string& function, const Words& words) {
      return Call(world.engine(), "l", function, TextsOperand(words));
    }
    void Push(bool is_left, const Words& words) {
      Do(is_left ? "list-push-left" : "list-push-right", words);
      for (const std::string& word : words) {
        is_left ? model.push_front(word) : model.push_back(word);
      }
    }
    void Pop(bool is_left, size_t count) {
      const Words words = {std::to_string(count)};
      Do(is_left ? "list-pop-left" : "list-pop-right", words);
      const auto end = static_cast<ptrdiff_t>(std::min(count, model.size()));
      is_left ? model.erase(model.begin(), model.begin() + end)
              : model.erase(model.end() - end, model.end());
    }
    void Check(size_t at) {
      const auto index = static_cast<int64_t>(at);
      const int64_t from_end = index - static_cast<int64_t>(model.size());
      ASSERT_EQ(Do("list-index", {std::to_string(index)}).value, TextsOperand({model[at]})) << at;
      ASSERT_EQ(Do("list-index", {std::to_string(from_end)}).value, TextsOperand({model[at]}));
      const size_t last = std::min(at + 9, model.size() - 1);
      const Words expected(model.begin() + index, model.begin() + static_cast<ptrdiff_t>(last) + 1);
      ASSERT_EQ(Do("list-range", {std::to_string(index), std::to_string(last)}).value,
                TextsOperand(expected));
    }
  };
};

// Goal: an index finds the element that it should, whatever was pushed, popped and edited, at the
// ends, in the middle, and where counted blocks begin and end.
// Method: random writes of a list of thousands of short segments go to a deque, too. Elements are
// looked at by both kinds of indexes after each, and the counts are checked.
TEST_P(ListCountsTest, AgreeWithADeque) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  Lists lists(GetParam());
  auto& model = lists.model;
  const auto element = [&] {
    std::string text(1, static_cast<char>(rng()));
    if (rng() % 40 == 0) text.append(rng() % 150, static_cast<char>(rng()));
    return text + std::to_string(rng() % 1000);
  };
  for (int round = 0; round < 3000; ++round) {
    const bool is_left = rng() % 2 == 0;
    const bool grows = round % 1500 < 900;
    const size_t kind = rng() % 12;
    if (model.empty() || (kind < 5 && grows) || kind == 0) {
      Words words;
      for (size_t i = rng() % (rng() % 30 == 0 ? 600 : 30) + 1; i > 0; --i) {
        words.push_back(element());
      }
      lists.Push(is_left, words);
    } else if (kind < 6) {
      lists.Pop(is_left, rng() % (rng() % 30 == 0 ? 600 : 30) + 1);
    } else if (kind < 10) {
      const size_t at = rng() % model.size();
      const std::string word = element();
      const int64_t index =
          static_cast<int64_t>(at) - (is_left ? 0 : static_cast<int64_t>(model.size()));
      lists.Do("list-set", {std::to_string(index), word});
      model[at] = word;
    } else if (kind == 10) {
      const std::string pivot = model[rng() % model.size()];
      const std::string word = element();
      lists.Do("list-insert", {is_left ? "before" : "after", pivot, word});
      const auto at = std::ranges::find(model, pivot);
      model.insert(is_left ? at : at + 1, word);
    } else {
      const std::string word = model[rng() % model.size()];
      lists.Do("list-remove", {"0", word});
      std::erase(model, word);
    }
    for (int i = 0; i < 3 && !model.empty(); ++i) lists.Check(rng() % model.size());
    if (round % 50 == 0) {
      ASSERT_EQ(lists.world.engine().Verify(), nullptr) << round;
    }
  }
}

// Goal: an element in the middle is found with the reads that the header says: the counts from the
// nearer end and the segments of a block; and pushes and pops at the ends read no more for the
// counts than each segment once.
// Method: the items that scans of the engine below find are counted, on a list of several nodes of
// counts. All is popped from one end while as much is pushed at the other one, so that the list
// leaves its first nodes, which are deleted.
TEST_P(ListCountsTest, IndexesReadFewItems) {
  Lists lists(GetParam());
  std::mt19937 rng(3);
  const auto push = [&](bool is_left) {
    Words words;
    for (int i = 0; i < 100; ++i) words.push_back("element:" + std::to_string(rng() % 900 + 100));
    lists.Push(is_left, words);
  };
  for (int i = 0; i < 500; ++i) push(i % 5 == 0);
  const uint64_t segments = lists.world.ItemsOf(Part::kElements);
  const uint64_t nodes = segments / kSegmentsOfBlock / kBlocksOfNode + 2;
  EXPECT_LE(lists.world.ItemsOf(Part::kBlocks), nodes);
  EXPECT_GE(lists.world.ItemsOf(Part::kBlocks), 3u);
  uint64_t most = 0;
  for (int i = 0; i < 300; ++i) {
    const size_t at = rng() % lists.model.size();
    lists.world.reads().items = 0;
    lists.Do("list-index", {std::to_string(at)});
    most = std::max(most, lists.world.reads().items.load());
    lists.world.reads().items = 0;
    lists.Do("list-set", {std::to_string(at), "element:1"});
    lists.model[at] = "element:1";
    // LSET goes on in steps of twice as many segments.
    most = std::max(most, lists.world.reads().items.load());
  }
  // Near an end an element may be in a block that is not counted.
  EXPECT_LE(most, nodes / 2 + 1 + 2 * (kLagBlocks + 2) * kSegmentsOfBlock);
  const uint64_t before = lists.world.ItemsOf(Part::kElements);
  lists.world.reads().items = 0;
  for (int i = 0; i < 600; ++i) {
    push(false);
    lists.Pop(true, 100);
  }
  const uint64_t read = lists.world.reads().items;
  const uint64_t written = 600 * 100 * before / lists.model.size();
  EXPECT_LE(read, written + written / 4 + (kLagBlocks + 2) * kSegmentsOfBlock);
  ASSERT_EQ(lists.world.engine().Verify(), nullptr);
  EXPECT_LE(lists.world.ItemsOf(Part::kBlocks), nodes);
  for (int i = 0; i < 100; ++i) lists.Check(rng() % lists.model.size());
}

INSTANTIATE_TEST_SUITE_P(Engines, ListCountsTest, testing::Values("btree", "model"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace skep::collections
