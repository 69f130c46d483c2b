// The separators of a part, in blocks.
#include "collections/part_hints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <string>

namespace skep::collections {
namespace {

std::string Number(uint32_t number) {
  std::string text = std::to_string(number);
  return std::string(8 - text.size(), '0') + text;
}

// Goal: the last separator that is not above a place is found, with what was noted of it, whatever
// separators come and go; and when all are gone nothing is held.
// Method: random ones of a few thousand, so that blocks are divided and become empty, beside
// std::map; the first half of the steps mostly adds, the second half erases until none is left.
TEST(PartHints, AgreeWithAModel) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  Scratch bytes;
  PartHints hints(Part::kMembers);
  std::map<std::string, uint64_t> model;
  bool found = false;
  for (int step = 0; step < 4000 || !model.empty(); ++step) {
    std::string separator = rng() % 50 == 0 ? "" : "member:" + Number(rng() % 4000);
    if (step < 4000 && rng() % 4 != 0) {
      hints.Add(separator, bytes);
      const auto at = hints.Find(separator, &found);
      ASSERT_TRUE(found);
      ASSERT_EQ(hints.SeparatorAt(at), separator);
      hints.place(at) = model[separator] = rng();
    } else {
      const auto next = model.lower_bound(separator);
      if (next != model.end()) separator = next->first;
      hints.Erase(separator);
      model.erase(separator);
      if (step >= 4000 && next == model.end() && !model.empty()) {
        hints.Erase(model.begin()->first);
        model.erase(model.begin());
      }
    }
    if (rng() % 500 == 0) {
      Scratch live;
      hints.Relocate(live);
      bytes = std::move(live);
    }
    const std::string place = "member:" + Number(rng() % 4001);
    const auto above = model.upper_bound(place);
    const auto at = hints.Find(place, &found);
    ASSERT_EQ(found, above != model.begin());
    for (int i = 0; i < 4; ++i) {
      const PartHints::At other = {.block = rng() % 2, .index = rng() % 20};
      const bool is_other = hints.held_bytes() == PartHints::kBlockBytes && found &&
                            other.block == at.block && other.index == at.index;
      ASSERT_EQ(hints.IsAt(other, place), is_other);
    }
    if (!found) continue;
    ASSERT_EQ(hints.SeparatorAt(at), std::prev(above)->first);
    ASSERT_EQ(hints.place(at), std::prev(above)->second);
  }
  EXPECT_EQ(hints.held_bytes(), 0u);
}

// Goal: two separators never have one address, nor has any of them none, also if one is empty.
TEST(PartHints, SeparatorsHaveAddresses) {
  for (const bool relocates : {false, true}) {
    Scratch bytes;
    Scratch live;
    PartHints hints(Part::kMembers);
    for (const char* const separator : {"", "a"}) hints.Add(separator, bytes);
    if (relocates) hints.Relocate(live);
    bool found = false;
    const char* const empty = hints.SeparatorAt(hints.Find("", &found)).data();
    EXPECT_NE(empty, nullptr);
    EXPECT_NE(empty, hints.SeparatorAt(hints.Find("a", &found)).data());
  }
}

// Goal: separators that are added in order fill their blocks, and those that are added anywhere
// fill half of them or more.
// Method: the bytes that are held, against those of one block.
TEST(PartHints, FillBlocks) {
  constexpr uint32_t kCount = 40 * PartHints::kBlockNames;
  Scratch bytes;
  PartHints ascending(Part::kMembers);
  for (uint32_t i = 0; i < kCount; ++i) ascending.Add(Number(i), bytes);
  EXPECT_EQ(ascending.held_bytes(), 40 * PartHints::kBlockBytes);
  PartHints descending(Part::kMembers);
  for (uint32_t i = kCount; i-- > 0;) descending.Add(Number(i), bytes);
  EXPECT_LE(descending.held_bytes(), 80 * PartHints::kBlockBytes);
}

}  // namespace
}  // namespace skep::collections
