// Tests the guesses of where in its leaf a key is (leaf_shape.h, Reader::Surmise).
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "btree/heads/head_layout_search.h"
#include "btree/testing/tree_test_changes.h"

namespace skep::btree {
namespace {

using changes::Kept;

// A tree for tests has some hundred leaves.
constexpr DirectoryKeeper::Limits kSmall{.leaves_min = 8, .leaves_maintain = 16};

// Goal: of random keys in a leaf of 160 items, four in five are among the items that are guessed;
// of large items no more are guessed than the bytes allow, and always one.
TEST(Guesses, AreRightForMostRandomKeys) {
  std::mt19937_64 rng(1);
  constexpr uint32_t kItems = 160;
  const LeafShape shape = LeafShape::Of(kItems, 32);
  uint32_t right = 0;
  constexpr uint32_t kLeaves = 200;
  for (uint32_t leaf = 0; leaf < kLeaves; ++leaf) {
    std::vector<uint32_t> shares(kItems);
    for (uint32_t& share : shares) share = static_cast<uint32_t>(rng() >> 48);
    std::ranges::sort(shares);
    for (uint32_t i = 0; i < kItems; ++i) right += HeadLayout::IsGuess(shape, shares[i], i) ? 1 : 0;
  }
  EXPECT_GT(right, kLeaves * kItems * 4 / 5);
  for (const uint32_t bytes : {1u, 32u, 100u, 300u, LeafShape::kMax}) {
    for (const uint32_t share : {0u, 1u, 30'000u, 65'535u}) {
      uint32_t guessed = 0;
      for (uint32_t i = 0; i < kItems; ++i) {
        guessed += HeadLayout::IsGuess(LeafShape::Of(kItems, bytes), share, i) ? 1 : 0;
      }
      EXPECT_GE(guessed, 1u);
      EXPECT_LE((guessed - 1) * bytes, HeadLayout::kGuessBytesMax);
      EXPECT_LE(guessed, 2 * HeadLayout::kGuessItems + 1);
    }
  }
}

// Goal: a thread goes on guessing while its guesses are right, stops while they are not, and begins
// again when they are.
// Method: words that are uniform, and words of which nearly all lie at the low end of their leaf.
TEST(Guesses, AreMadeWhileTheyAreRight) {
  const auto score_of = [](bool is_uniform) {
    TestTree tree({.node_bytes = 8192});
    tree.core().directory.set_limits(kSmall);
    std::mt19937_64 rng(2);
    std::vector<std::string> keys;
    Batch puts;
    for (int i = 0; i < 5000; ++i) {
      std::string key(16, '\0');
      for (char& byte : key) byte = static_cast<char>(rng());
      // Fifty crowds, in each of which half the keys are in the first part in millions.
      if (!is_uniform) {
        uint64_t in_crowd = rng() >> (16 + rng() % 48);
        for (int byte = 6; byte > 0; --byte, in_crowd >>= 8) {
          key[static_cast<size_t>(byte)] = static_cast<char>(in_crowd);
        }
        key[0] = static_cast<char>(rng() % 50);
      }
      keys.push_back(key);
      puts.Put(Kept(puts, key), "sixteen bytes...");
    }
    tree.Execute(puts);
    for (const std::string& key : keys) EXPECT_TRUE(tree.Get(key));
    tree.MaintainAll();
    EXPECT_EQ(tree.core().directory.builds(), 1u);
    uint64_t score = 0;
    for (int round = 0; round < 2; ++round) {
      for (const std::string& key : keys) {
        EXPECT_TRUE(tree.Get(key));
        ThreadState& thread = tree.core().threads.Take();
        score += round == 1 && thread.guess_score > 0 ? 1 : 0;
        tree.core().threads.Give(thread);
      }
    }
    return score;
  };
  EXPECT_GT(score_of(true), 4500u);
  EXPECT_LT(score_of(false), 2500u);
  ThreadState thread;
  for (int i = 0; i < 20; ++i) thread.NoteGuess(false);
  EXPECT_EQ(thread.guess_score, 0u);
  for (int i = 0; i < 40; ++i) thread.NoteGuess(true);
  EXPECT_EQ(thread.guess_score, ThreadState::kGuessScoreMax);
}

}  // namespace
}  // namespace skep::btree
