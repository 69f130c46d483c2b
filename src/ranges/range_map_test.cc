// Maps of ranges, as text and in the coordinator.
#include "ranges/range_map.h"

#include <gtest/gtest.h>

#include <string>

namespace skep::ranges {
namespace {

const RangeMap kMap = {{{.lower = "", .target = "pool:a"},
                        {.lower = std::string("m\0\xff", 3), .target = "10.0.0.7:6379"},
                        {.lower = "t", .target = "[::1]:7000"}}};

TEST(RangeMapTest, IsTheSameWhenItWasRead) {
  RangeMap read;
  ASSERT_TRUE(RangeMap::Decode(kMap.Encode(), &read));
  EXPECT_EQ(read, kMap);
  EXPECT_EQ(kMap.Encode(), "skep-ranges 1\n- pool:a\n6d00ff 10.0.0.7:6379\n74 [::1]:7000\n");
}

TEST(RangeMapTest, RefusesWhatIsNoMap) {
  RangeMap read;
  for (const char* const bytes :
       {"", "skep-ranges 1\n", "skep-ranges 2\n- pool:a\n", "skep-ranges 1\n- pool:a",
        "skep-ranges 1\n-pool:a\n", "skep-ranges 1\n6 pool:a\n", "skep-ranges 1\n6g pool:a\n",
        "skep-ranges 1\n61 pool:a\n", "skep-ranges 1\n- pool:a\n- pool:b\n",
        "skep-ranges 1\n- pool:a\n62 b:1\n61 c:1\n", "skep-ranges 1\n- pool:\n",
        "skep-ranges 1\n- pool:a/b\n", "skep-ranges 1\n- here\n", "skep-ranges 1\n- a:1,b:1\n",
        "skep-ranges 1\n- a:1\n62 a:1\n", "skep-ranges 1\n- a=1:1\n"}) {
    EXPECT_FALSE(RangeMap::Decode(bytes, &read)) << bytes;
  }
  RangeMap many;
  for (size_t i = 0; i <= kRangesMax; ++i) {
    many.entries.push_back({.lower = i == 0 ? "" : std::to_string(10'000 + i),
                            .target = "pool:a" + std::to_string(i)});
  }
  EXPECT_EQ(many.Check().code(), Code::kInvalidArgument);
  many.entries.pop_back();
  EXPECT_TRUE(many.Check().ok());
  many.entries.back().lower.assign(kCoordinatorBytesMax / 2, 'b');
  EXPECT_EQ(many.Check().code(), Code::kInvalidArgument);
}

TEST(RangeMapTest, Names) {
  EXPECT_TRUE(IsMapName("users"));
  for (const char* const name : {"", "a/b", ".", "..", "a b"})
    EXPECT_FALSE(IsMapName(name)) << name;
  EXPECT_FALSE(IsMapName(std::string(65, 'a')));
}

}  // namespace
}  // namespace skep::ranges
