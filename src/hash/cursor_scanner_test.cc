#include "hash/cursor_scanner.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "hash/hash_engine.h"
#include "hash/walk_test.h"

namespace skep::hash {
namespace {

// Goal: whatever the number of buckets, the chains divide the positions into intervals, and a key
// is in the chain whose interval has its position.
// Method: a table grows to 700 buckets, and shrinks; at each number of buckets all intervals are
// gone through.
TEST(Position, ChainsAreIntervals) {
  MemoryBudget budget;
  Arena arena({.budget = &budget, .pages = Pages::kPlain});
  Table table(arena, budget, {});
  ASSERT_TRUE(table.Reserve());
  uint64_t checked = 0;
  const auto check = [&] {
    if (table.bucket_count() == checked) return;
    checked = table.bucket_count();
    std::set<uint64_t> seen;
    uint64_t keys = 0;
    for (Position at = 0; at < kPositionEnd;) {
      const Table::Chain chain = table.ChainAt(at);
      ASSERT_EQ(chain.begin, at);
      ASSERT_GT(chain.end, at);
      ASSERT_EQ(table.ChainAt(chain.end - 1).index, chain.index);
      ASSERT_TRUE(seen.insert(chain.index).second);
      table.ForEachIn(chain.index, [&](const Pair& pair) {
        const Position position = PositionOf(HashOf(pair.key));
        EXPECT_TRUE(position >= chain.begin && position < chain.end);
        EXPECT_EQ(IndexAt(position), IndexOf(HashOf(pair.key)));
        ++keys;
      });
      at = chain.end;
    }
    ASSERT_EQ(seen.size(), checked);
    ASSERT_EQ(keys, table.items());
  };
  uint64_t stored = 0;
  for (; table.bucket_count() < 700; ++stored) {
    check();
    if (testing::Test::HasFailure()) return;
    ASSERT_TRUE(table.Store(KeyOf(std::to_string(stored)), "v", 0, Arena::Limit::kObey));
  }
  while (stored > 0) {
    check();
    if (testing::Test::HasFailure()) return;
    ASSERT_TRUE(table.Erase(KeyOf(std::to_string(--stored))));
  }
  ASSERT_EQ(table.bucket_count(), 1u);
}

// Goal: keys of one position come in one step, however small it is, and the other keys are not
// lost.
TEST(CursorScanner, KeysOfOnePositionComeTogether) {
  MemoryBudget budget;
  const auto engine = HashEngine::Make({.budget = &budget}, {.partitions = 2, .table = {}});
  const std::vector<std::string> alike = KeysOfOneHash(50);
  for (const std::string& key : alike) ASSERT_EQ(HashOf(key), HashOf(alike[0]));
  Batch fill;
  for (const std::string& key : alike) fill.Put(key, "alike");
  for (int i = 0; i < 300; ++i) fill.Put(fill.scratch().Copy(std::to_string(i)), "other");
  engine->Execute(fill);
  std::set<std::string> seen;
  size_t largest = 0;
  uint64_t cursor = 0;
  do {
    Batch step;
    step.Walk(cursor, {.limit = 1});
    engine->Execute(step);
    for (const Item& item : step.items(0)) ASSERT_TRUE(seen.insert(std::string(item.key)).second);
    ASSERT_TRUE(step.items(0).size() <= 1 || step.items(0).front().value == "alike");
    largest = std::max(largest, step.items(0).size());
    cursor = static_cast<uint64_t>(step.outcome(0).integer);
  } while (cursor != 0);
  EXPECT_EQ(seen.size(), 350u);
  EXPECT_EQ(largest, 50u);
}

}  // namespace
}  // namespace skep::hash
