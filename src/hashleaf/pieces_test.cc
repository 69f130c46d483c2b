#include "hashleaf/pieces.h"

#include <gtest/gtest.h>

namespace skep::hashleaf {
namespace {

using Groups = std::vector<Group<uint32_t>>;

Groups GroupsOf(const std::vector<uint32_t>& sizes) {
  Groups groups;
  uint32_t at = 0;
  for (const uint32_t size : sizes) {
    groups.push_back({.leaf = nullptr, .begin = at, .end = at + size});
    at += size;
  }
  return groups;
}

// Goal: every operation is in one piece, hot leaves come first, and after them the largest piece,
// so that the last pieces are small.
// Method: groups of all sizes, the smallest ones first; one of the two large ones may be read by
// several threads.
TEST(Pieces, TheLargestComeFirst) {
  constexpr uint32_t kUnits = Pieces<uint32_t>::kUnits;
  const Groups groups =
      GroupsOf({10, 20, kUnits - 30, kUnits, 1, kUnits + 100, 3 * kUnits + 1, 7 * kUnits, 5});
  Pieces<uint32_t> pieces(groups,
                          [&](const auto& group) { return group.begin == groups[7].begin; });
  ASSERT_EQ(pieces.hot_groups().size(), 1u);
  std::vector<uint32_t> units;
  uint32_t parts = 0;
  std::vector<int> seen(groups.size());
  for (const auto& piece : pieces.all()) {
    if (piece.hot != nullptr) {
      EXPECT_TRUE(units.empty()) << "a hot leaf's piece behind another one";
      EXPECT_EQ(piece.hot->group, &groups[7]);
      EXPECT_EQ(piece.hot->left.load(), 7u);
      EXPECT_EQ(piece.begin, groups[7].begin + parts * kUnits);
      EXPECT_EQ(piece.end - piece.begin, kUnits);
      ++parts;
      continue;
    }
    uint32_t sum = 0;
    for (uint32_t g = piece.begin; g < piece.end; ++g) {
      sum += groups[g].end - groups[g].begin;
      ++seen[g];
    }
    EXPECT_EQ(piece.units, sum);
    units.push_back(piece.units);
  }
  EXPECT_EQ(parts, 7u);
  EXPECT_EQ(units, (std::vector<uint32_t>{3 * kUnits + 1, kUnits + 101, kUnits, kUnits, 5}));
  EXPECT_EQ(seen, (std::vector<int>{1, 1, 1, 1, 1, 1, 1, 0, 1}));
}

// Goal: only a leaf with very many operations is divided.
TEST(Pieces, SmallGroupsAreNotDivided) {
  constexpr uint32_t kUnits = Pieces<uint32_t>::kUnits;
  const Groups groups = GroupsOf({2 * kUnits - 1, 2 * kUnits});
  std::vector<uint32_t> asked;
  Pieces<uint32_t> pieces(groups, [&](const auto& group) {
    asked.push_back(group.begin);
    return false;
  });
  EXPECT_EQ(asked, std::vector<uint32_t>{groups[1].begin});
  EXPECT_EQ(pieces.all().size(), 2u);
  EXPECT_EQ(pieces.hot_groups().size(), 0u);
}

}  // namespace
}  // namespace skep::hashleaf
