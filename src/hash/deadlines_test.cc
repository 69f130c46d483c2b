#include "hash/deadlines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace skep::hash {
namespace {

// Goal: a count agrees with a list, whatever was added, removed and counted before, whichever way
// the time goes, and however far a count was approached.
// Method: few different entries, so that many are equal.
TEST(Deadlines, CountsAsAListDoes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (int round = 0; round < 50; ++round) {
    MemoryBudget budget;
    Deadlines deadlines(budget);
    std::vector<Deadlines::Entry> model;
    for (int step = 0; step < 400; ++step) {
      const uint64_t ms = 1 + rng() % 12;
      switch (rng() % 6) {
        case 0:
        case 1: {
          const uint64_t hash = rng() % 3;
          deadlines.Add(ms, hash);
          model.push_back({.deadline_ms = ms, .hash = hash});
          break;
        }
        case 2: {
          if (model.empty()) break;
          const auto gone = model.begin() + static_cast<ptrdiff_t>(rng() % model.size());
          deadlines.Remove(gone->deadline_ms, gone->hash);
          model.erase(gone);
          break;
        }
        case 3:
          deadlines.Approach(ms, rng() % 4);
          break;
        case 4:
          if (rng() % 50 != 0) break;
          deadlines.Clear();
          model.clear();
          break;
        default:
          ASSERT_EQ(deadlines.CountDue(ms), std::ranges::count_if(model, [&](const auto& entry) {
                      return entry.deadline_ms <= ms;
                    }));
      }
      ASSERT_EQ(deadlines.size(), model.size());
    }
  }
}

// Goal: each entry is passed once, in pieces of the requested size; an entry added later than now
// is not passed, and a count that follows has nothing to do.
TEST(Deadlines, ArePassedOnceInPieces) {
  MemoryBudget budget;
  Deadlines deadlines(budget);
  for (uint64_t i = 0; i < 10'000; ++i) deadlines.Add(1 + i % 1000, i);
  int pieces = 1;
  while (deadlines.Approach(1000, 1024)) ++pieces;
  EXPECT_EQ(pieces, 10);
  for (uint64_t i = 0; i < 10'000; ++i) deadlines.Add(2000, i);
  EXPECT_FALSE(deadlines.Approach(1500, 0));
  EXPECT_EQ(deadlines.CountDue(1500), 10'000u);
  EXPECT_TRUE(deadlines.Approach(2000, 0));
}

}  // namespace
}  // namespace skep::hash
